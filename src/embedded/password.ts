import { randomBytes } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../lib/atomic.js';
import { systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { EmbeddedError, failures } from './errors.js';

const SHORTEST = 8;

/**
 * The administrator's password of the peer in `dir`: the line in `admin-password`, made at the first start
 * (32 random characters, readable by its owner alone).
 *
 * @throws EmbeddedError EMBEDDED_PASSWORD_UNUSABLE where the file holds none
 */
export async function administratorPassword(dir: string, log: Logger): Promise<string> {
  const path = join(dir, 'admin-password');
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) !== 'ENOENT')
      throw new EmbeddedError(failures.passwordUnusable(path, systemCode(error) ?? 'it cannot be read'));
    const made = randomBytes(24).toString('base64url');
    await writeFileAtomic(path, `${made}\n`, { mode: 0o600 });
    log.info({ path }, `The embedded peer has a new administrator: user admin, password in ${path}`);
    return made;
  }
  const password = text.replace(/\r?\n$/, '');
  if (/[\r\n]/.test(password))
    throw new EmbeddedError(failures.passwordUnusable(path, 'it has several lines'));
  if (password.length < SHORTEST)
    throw new EmbeddedError(
      failures.passwordUnusable(path, `it has ${password.length} characters, fewer than ${SHORTEST}`),
    );
  if (((await stat(path)).mode & 0o077) !== 0)
    log.warn({ path }, `Others can read the administrator's password: chmod 600 ${path}`);
  return password;
}
