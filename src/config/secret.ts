import { isUtf8 } from 'node:buffer';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, systemCode } from '../lib/errors.js';
import { type Logger, silentLogger } from '../lib/logger.js';
import { ConfigError } from './config.js';
import type { Secret } from './fields.js';

const LARGEST_SECRET_BYTES = 65_536;

/**
 * Looks a secret up: only when it is needed, and never kept by this room. One line break at its end is not part of it.
 *
 * A file that everybody may read is used, with a warning to `log`.
 *
 * @throws ConfigError SECRET_MISSING, SECRET_UNREADABLE, SECRET_EMPTY; none of them holds the secret
 */
export async function resolveSecret(
  secret: Secret,
  env: Readonly<Record<string, string | undefined>>,
  log: Logger = silentLogger,
): Promise<string> {
  if ('env' in secret) {
    const value = env[secret.env];
    if (value === undefined) {
      throw new ConfigError('SECRET_MISSING', `The environment variable ${secret.env} is not set.`, {
        ...secret,
      });
    }
    return usable(value, `The environment variable ${secret.env}`);
  }
  if ('file' in secret) return readSecret(secret.file, `The secret file ${secret.file}`, log);
  const directory = env.CREDENTIALS_DIRECTORY;
  if (!directory) {
    throw new ConfigError(
      'SECRET_MISSING',
      `The systemd credential ${secret.credential} is not there: CREDENTIALS_DIRECTORY is not set ` +
        '(the unit needs a LoadCredential= or SetCredential= line).',
      { ...secret },
    );
  }
  return readSecret(join(directory, secret.credential), `The systemd credential ${secret.credential}`, log);
}

async function readSecret(path: string, what: string, log: Logger): Promise<string> {
  const bytes = await readSecretFile(path, what, log).catch((error: unknown) => {
    if (error instanceof ConfigError) throw error;
    if (systemCode(error) === 'ENOENT')
      throw new ConfigError('SECRET_MISSING', `${what} does not exist.`, { path });
    throw new ConfigError('SECRET_UNREADABLE', `${what} cannot be read: ${messageOf(error)}.`, { path });
  });
  if (!isUtf8(bytes)) throw new ConfigError('SECRET_UNREADABLE', `${what} is not text in UTF-8.`, { path });
  return usable(bytes.toString('utf8'), what);
}

async function readSecretFile(path: string, what: string, log: Logger): Promise<Buffer> {
  // Not blocking: a FIFO in its place would otherwise hold the start for ever.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = await handle.stat();
    if (!stat.isFile())
      throw new ConfigError('SECRET_UNREADABLE', `${what} is not a regular file.`, { path });
    if (stat.size > LARGEST_SECRET_BYTES) {
      throw new ConfigError('SECRET_UNREADABLE', `${what} is larger than 64 KiB: this is no secret.`, {
        path,
      });
    }
    if ((stat.mode & 0o004) !== 0) {
      log.warn({ path }, `${what} can be read by every user of this machine; \`chmod 600\` it.`);
    }
    return await handle.readFile();
  } finally {
    await handle.close();
  }
}

function usable(value: string, what: string): string {
  const secret = value.replace(/\r?\n$/, '');
  if (secret === '') throw new ConfigError('SECRET_EMPTY', `${what} is empty.`);
  return secret;
}
