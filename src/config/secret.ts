import { isUtf8 } from 'node:buffer';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { messageOf, systemCode } from '../lib/errors.js';
import { type Logger, silentLogger } from '../lib/logger.js';
import { ConfigError } from './errors.js';
import { path, text } from './fields.js';

/** Where a secret stands; never the secret itself. */
export type Secret = { readonly env: string } | { readonly file: string } | { readonly credential: string };

const PLACES =
  '{ "env": "NAME" }, { "file": "path" } or { "credential": "name" }: a secret does not stand in the configuration itself';

export const secretSchema = z
  .strictObject(
    {
      env: text('the name of an environment variable', /^[A-Za-z_][A-Za-z0-9_]*$/)
        .optional()
        .meta({ description: 'The environment variable that holds it.' }),
      file: path('a file that holds only the secret')
        .optional()
        .meta({ description: 'A file that holds only the secret, readable by peersync alone.' }),
      credential: text('the plain name of a systemd credential', /^(?!\.\.?$)[A-Za-z0-9_.-]{1,255}$/)
        .optional()
        .meta({ description: 'The name of a systemd credential, found in `$CREDENTIALS_DIRECTORY`.' }),
    },
    { error: (issue) => (issue.code === 'invalid_type' ? PLACES : undefined) },
  )
  .meta({ minProperties: 1, maxProperties: 1 })
  .transform(({ env, file, credential }, context): Secret => {
    const given = [
      ...(env === undefined ? [] : [{ env }]),
      ...(file === undefined ? [] : [{ file }]),
      ...(credential === undefined ? [] : [{ credential }]),
    ];
    const [secret] = given;
    if (secret !== undefined && given.length === 1) return secret;
    context.issues.push({ code: 'custom', message: `exactly one of ${PLACES}`, input: undefined });
    return z.NEVER;
  });

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
