import { isUtf8 } from 'node:buffer';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, systemCode } from '../lib/errors.js';
import { type Logger, silentLogger } from '../lib/logger.js';
import { escapeInvisible } from '../lib/text.js';
import { ConfigError } from './config.js';
import type { Secret } from './fields.js';

const MAX_SECRET_BYTES = 65_536;

/**
 * Reads a secret. It is read when it is needed, and never kept here. One line break at its end is
 * removed.
 *
 * A file that everybody may read is used, with a warning in `log`.
 *
 * @throws ConfigError SECRET_MISSING, SECRET_UNREADABLE, SECRET_EMPTY; none of them contains the
 *   secret
 */
export async function resolveSecret(
  secret: Secret,
  env: Readonly<Record<string, string | undefined>>,
  log: Logger = silentLogger,
): Promise<string> {
  if ('env' in secret) {
    const place = `The environment variable ${secret.env}`;
    const value = env[secret.env];
    if (value !== undefined) return usable(value, place);
    throw new ConfigError('SECRET_MISSING', { place, why: 'is not set' }, { details: secret });
  }
  if ('file' in secret) return readSecret(secret.file, `The secret file ${secret.file}`, log);
  const place = `The systemd credential ${secret.credential}`;
  const directory = env.CREDENTIALS_DIRECTORY;
  if (directory) return readSecret(join(directory, secret.credential), place, log);
  const why =
    'is not there: CREDENTIALS_DIRECTORY is not set (the unit needs a LoadCredential= or SetCredential= line)';
  throw new ConfigError('SECRET_MISSING', { place, why }, { details: secret });
}

/** Returns the place of a secret for a sentence: *in the file /etc/token (status.token.file)*. */
export function secretPlace(secret: Secret, key: string): string {
  if ('file' in secret) return `in the file \`${escapeInvisible(secret.file)}\` (\`${key}.file\`)`;
  if ('env' in secret) return `in the environment variable \`${secret.env}\` (\`${key}.env\`)`;
  return `in the systemd credential \`${secret.credential}\` (\`${key}.credential\`)`;
}

async function readSecret(path: string, place: string, log: Logger): Promise<string> {
  const unreadable = (why: string) =>
    new ConfigError('SECRET_UNREADABLE', { place, why }, { details: { path } });
  try {
    // Opened without blocking, because a FIFO would otherwise block the start for ever.
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stat = await handle.stat();
      if (!stat.isFile()) throw unreadable('is not a regular file');
      if (stat.size > MAX_SECRET_BYTES)
        throw unreadable('is larger than 64 KiB, the limit for a secret');
      if ((stat.mode & 0o004) !== 0)
        log.warn({ path }, `${place} can be read by every user of this machine; \`chmod 600\` it.`);
      const bytes = await handle.readFile();
      if (!isUtf8(bytes)) throw unreadable('is not text in UTF-8');
      return usable(bytes.toString(), place);
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (systemCode(error) !== 'ENOENT') throw unreadable(`cannot be read: ${messageOf(error)}`);
    const values = { place, why: 'does not exist' };
    throw new ConfigError('SECRET_MISSING', values, { details: { path } });
  }
}

function usable(value: string, place: string): string {
  const secret = value.replace(/\r?\n$/, '');
  if (secret === '') throw new ConfigError('SECRET_EMPTY', { place }, { details: {} });
  return secret;
}
