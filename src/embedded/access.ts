import { randomBytes } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { writeFileAtomic } from '../lib/atomic.js';
import type { Clock } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import { isOpenToOthers } from '../lib/file.js';
import type { Logger } from '../lib/logger.js';
import { escapeInvisible } from '../lib/text.js';
import { isRight } from '../web/server.js';
import { EmbeddedError } from './errors.js';
import { Refusal } from './form.js';

/** The only user of the peer, who may change it. */
export const USERNAME = 'admin';

/** The access of the administrator. */
export interface Administrator {
  readonly password: string;
  /** The file with the password, which a refusal names. */
  readonly passwordFile: string;
}

/**
 * Checks the credentials of the administrator by Basic authentication (RFC 7617). They are not
 * encrypted, and the peer listens only on loopback.
 *
 * @throws Refusal 401
 */
export async function admit(
  { authorization }: IncomingHttpHeaders,
  { password, passwordFile }: Administrator,
  clock: Clock,
): Promise<void> {
  const encoded = /^Basic +(\S+)$/i.exec(authorization ?? '')?.[1];
  const given = Buffer.from(encoded ?? '', 'base64').toString();
  if (encoded !== undefined && (await isRight(given, `${USERNAME}:${password}`, clock))) return;
  const why =
    encoded === undefined
      ? 'This page needs the administrator'
      : 'The user or the password is wrong';
  const where = `The user is ${USERNAME}, and the password is in ${escapeInvisible(passwordFile)}`;
  throw new Refusal(401, `${why}. ${where}.`, {
    'www-authenticate': 'Basic realm="peersync embedded peer", charset="UTF-8"',
  });
}

const MIN_PASSWORD_CHARS = 8;

export function passwordFileOf(dir: string): string {
  return join(dir, 'admin-password');
}

/**
 * Returns the administrator's password of the peer in `dir`: the line in `admin-password`. The
 * first start creates it, with 32 random characters, readable only by its owner.
 *
 * @throws EmbeddedError EMBEDDED_PASSWORD_UNUSABLE
 */
export async function administratorPassword(dir: string, log: Logger): Promise<string> {
  const path = passwordFileOf(dir);
  const unusable = (why: string) =>
    new EmbeddedError('EMBEDDED_PASSWORD_UNUSABLE', { path, why }, { details: { path } });
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw unusable(systemCode(error) ?? 'it cannot be read');
    const made = randomBytes(24).toString('base64url');
    await writeFileAtomic(path, `${made}\n`, { mode: 0o600 });
    log.info(
      { path },
      `The embedded peer has a new administrator: user admin, password in ${path}`,
    );
    return made;
  }
  const password = text.replace(/\r?\n$/, '');
  if (/[\r\n]/.test(password)) throw unusable('it has several lines');
  if (password.length < MIN_PASSWORD_CHARS)
    throw unusable(`it has ${password.length} characters, fewer than ${MIN_PASSWORD_CHARS}`);
  const { mode, uid } = await stat(path);
  if (isOpenToOthers(mode)) throw unusable('other users may write in it');
  if (uid !== 0 && uid !== (await stat(dir)).uid) throw unusable('it belongs to another user');
  if ((mode & 0o077) !== 0)
    log.warn({ path }, `Others can read the administrator's password: chmod 600 ${path}`);
  return password;
}
