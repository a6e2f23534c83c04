/** Number of bytes at the beginning of a file that are searched for a private key. */
export const KEY_BYTES = 65_536;

/** Every private key contains one of these words. The search takes 2 µs for a file of 4 KB. */
const WORDS = [
  'PRIVATE KEY',
  'AGE-SECRET-KEY-1',
  'PuTTY-User-Key-File-',
  'PrivateKey',
  '"kty"',
].map((word) => Buffer.from(word));

const KEYS: readonly RegExp[] = [
  // A PEM, OpenSSH, SSH2, OpenPGP or PuTTY file begins with its kind; a PEM may have a certificate
  // first.
  /^\s*(?:-{4,5} ?BEGIN (?:[\s\S]*-----BEGIN )?[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}|PuTTY-User-Key-File-\d)/,
  // Elsewhere it is a key only if its base64 text follows: a manual may quote the line alone.
  /-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}(?:\\[rn]|\s|[\w-]+: ?[^\n]*\n)*[A-Za-z0-9+/=]{40}/,
  /AGE-SECRET-KEY-1[0-9A-Z]{50}/,
  // WireGuard
  /^\s*PrivateKey\s*=\s*[A-Za-z0-9+/]{42,43}=/m,
  // A JSON Web Key
  /"kty"[\s\S]{0,4096}"d"\s*:\s*"[\w-]{20}|"d"\s*:\s*"[\w-]{20}[\s\S]{0,4096}"kty"/,
];

/**
 * Whether a file contains a private key: PEM, OpenSSH, SSH2, OpenPGP, PuTTY, age, WireGuard or a
 * JSON Web Key, in UTF-8 or UTF-16.
 *
 * @param head the first `KEY_BYTES` of the file, or all of a shorter one
 */
export function holdsPrivateKey(head: Uint8Array): boolean {
  const bytes = withoutZeros(Buffer.from(head.buffer, head.byteOffset, head.byteLength));
  if (!WORDS.some((word) => bytes.includes(word))) return false;
  // A byte order mark and invisible characters may precede the first line.
  const text = bytes.toString('utf8').replace(/^[\ufffd\ufeff\u200b]+/, '');
  return KEYS.some((key) => key.test(text));
}

/** Converts ASCII in UTF-16 to ASCII. */
function withoutZeros(bytes: Buffer): Buffer {
  const head = bytes.subarray(0, KEY_BYTES);
  const isUtf16 = head.subarray(0, 4).includes(0);
  return isUtf16 ? Buffer.from(head.filter((byte) => byte !== 0)) : head;
}
