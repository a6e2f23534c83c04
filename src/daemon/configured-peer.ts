import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Config } from '../config/config.js';
import { resolveSecret } from '../config/secret.js';
import type { Clock } from '../lib/clock.js';
import { EXIT, messageOf, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Credentials } from '../peer/auth.js';
import { PeerClient } from '../peer/client.js';

const BEGINNING = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----/g;
const CERTIFICATE = new RegExp(`${BEGINNING.source}[^-]*-----END (?:TRUSTED |X509 )?CERTIFICATE-----`, 'g');

/**
 * A client for the configured peer.
 *
 * @param embedded address and credentials of the embedded peer, where that is the peer
 * @throws PeersyncError when the password or the CA file cannot be read
 */
export async function configuredPeer(
  { url, dialect, auth, tls, timeouts, maxAnswer }: Config['peer'],
  parts: { readonly clock: Clock; readonly log: Logger },
  embedded?: {
    readonly url: string;
    readonly credentials: { readonly username: string; readonly password: string };
  },
): Promise<PeerClient> {
  const common = { ...parts, timeouts, maxAnswer };
  if (embedded !== undefined)
    return new PeerClient({
      ...common,
      dialect: 'standard',
      baseUrl: embedded.url,
      credentials: embedded.credentials,
    });
  return new PeerClient({
    ...common,
    dialect,
    baseUrl: url,
    ...(auth === undefined ? {} : { credentials: await configuredCredentials(auth, parts.log) }),
    ...(tls.ca === undefined ? {} : { tls: { ca: await readCa(tls.ca) } }),
  });
}

/** @throws ConfigError when the password cannot be read */
export async function configuredCredentials(
  { username, password }: NonNullable<Config['peer']['auth']>,
  log: Logger,
): Promise<Credentials> {
  return { username, password: await resolveSecret(password, process.env, log) };
}

/** @throws PeersyncError CONFIG_CA when it cannot be read, or is not whole */
export async function readCa(path: string): Promise<string> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new PeersyncError({
      code: 'CONFIG_CA',
      message: `The CA file ${path} could not be read: ${messageOf(error)}.`,
      hint: 'Mend peer.tls.ca, or the permissions of the file.',
      exitCode: EXIT.usage,
      cause: error,
    });
  }
  // What is no certificate is passed over by the TLS library, and the peer's own is refused then.
  const certificates = text.match(CERTIFICATE) ?? [];
  const begun = text.match(BEGINNING)?.length ?? 0;
  if (begun > 0 && certificates.length === begun && certificates.every(isCertificate)) return text;
  throw new PeersyncError({
    code: 'CONFIG_CA',
    message: `The CA file ${path} ${begun === 0 ? 'holds no certificate in PEM format' : 'holds a certificate that is damaged or cut off'}.`,
    hint: 'Put the certificates there that the peer is to be known by, whole, or mend peer.tls.ca.',
    exitCode: EXIT.usage,
  });
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
