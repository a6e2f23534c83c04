import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { EXIT, messageOf, PeersyncError } from '../lib/errors.js';

const BEGINNING = /(?=-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----)/;

/**
 * Reads a PEM file of certificates to trust.
 *
 * @param key the key of the configuration that names the file
 * @throws PeersyncError CONFIG_CA if the file cannot be read, or is incomplete
 */
export async function readCa(path: string, key: string): Promise<string> {
  const wrong = (what: string, hint: string, cause?: unknown) =>
    new PeersyncError({
      code: 'CONFIG_CA',
      message: `The CA file ${path} ${what}.`,
      hint,
      exitCode: EXIT.usage,
      cause,
    });
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    const hint = `Mend ${key}, or the permissions of the file.`;
    throw wrong(`could not be read: ${messageOf(error)}`, hint, error);
  });
  // The TLS library ignores anything that is no certificate, and then refuses the peer's own.
  const certificates = text.split(BEGINNING).filter((part) => BEGINNING.test(part));
  const mend = `Put the certificates there that the server is to be known by, whole, or mend ${key}.`;
  if (certificates.length === 0) throw wrong('holds no certificate in PEM format', mend);
  try {
    for (const each of certificates) void new X509Certificate(each);
    return text;
  } catch (error) {
    throw wrong('holds a certificate that is damaged or cut off', mend, error);
  }
}
