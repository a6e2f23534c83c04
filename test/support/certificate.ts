import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from './temp.js';

/** A certificate for 127.0.0.1 that nobody vouches for but itself. PEM text. */
export function makeCertificate(): { readonly key: string; readonly cert: string } {
  const directory = temporaryDirectory();
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const request =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=peer';
  execFileSync(
    'openssl',
    [...request.split(' '), '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert],
    { stdio: 'pipe' },
  );
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
}
