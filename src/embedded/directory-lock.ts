import { randomBytes } from 'node:crypto';
import { link, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../lib/errors.js';
import { EmbeddedError, failures } from './errors.js';

/** Who holds a lock: enough to know the process again, and to tell it from a later one with the same number. */
interface Holder {
  readonly pid: number;
  /** Start of the process in clock ticks since boot; empty where the system does not tell. */
  readonly started: string;
  /** This run of the system; empty where the system does not tell. */
  readonly boot: string;
}

const LOCK_NAME = /^lock-(\d{1,15})$/;

/** The 22nd field of /proc/PID/stat; the command's name before it may hold blanks and brackets. */
async function startOf(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

async function bootOf(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'latin1').catch(() => '')).trim();
}

async function isAlive(holder: Holder): Promise<boolean> {
  if (holder.boot !== (await bootOf())) return false;
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if (systemCode(error) !== 'EPERM') return false;
  }
  return holder.started === (await startOf(holder.pid));
}

/** Undefined for a released lock, which is empty. */
function parseHolder(text: string): Holder | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return undefined;
    if (!('pid' in value && 'started' in value && 'boot' in value)) return undefined;
    const { pid, started, boot } = value;
    if (typeof pid !== 'number' || typeof started !== 'string' || typeof boot !== 'string') return undefined;
    return { pid, started, boot };
  } catch {
    return undefined;
  }
}

async function highest(dir: string): Promise<number> {
  let found = 0;
  for (const name of await readdir(dir)) {
    const number = LOCK_NAME.exec(name)?.[1];
    if (number !== undefined) found = Math.max(found, Number(number));
  }
  return found;
}

/**
 * Keeps a second embedded peer out of a directory.
 *
 * The lock is the file `lock-N` with the highest number, and it names its holder. Whoever finds the holder dead, or the
 * lock released, links `lock-N+1`, which only one can; sees that no higher one came up meanwhile; and removes the lower ones.
 * Numbers only grow, so a slow contender cannot take away a lock that it has not seen.
 */
export class DirectoryLock {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  /** @throws EmbeddedError EMBEDDED_DIR_LOCKED where a living process holds `dir` */
  static async take(dir: string): Promise<DirectoryLock> {
    const holder: Holder = { pid: process.pid, started: await startOf(process.pid), boot: await bootOf() };
    const draft = join(dir, `lock.${randomBytes(6).toString('hex')}.tmp`);
    await writeFile(draft, JSON.stringify(holder), { mode: 0o600, flag: 'wx' });
    try {
      for (;;) {
        const last = await highest(dir);
        const found = parseHolder(await readFile(join(dir, `lock-${last}`), 'utf8').catch(() => ''));
        if (found && (await isAlive(found)))
          throw new EmbeddedError(failures.directoryLocked(dir, found.pid));
        const mine = join(dir, `lock-${last + 1}`);
        if (!(await linked(draft, mine))) continue;
        if ((await highest(dir)) > last + 1) {
          await rm(mine, { force: true });
          continue;
        }
        await removeBelow(dir, last + 1);
        return new DirectoryLock(mine);
      }
    } finally {
      await rm(draft, { force: true });
    }
  }

  /** Gives the directory free. The file stays, empty, so that numbers go on growing; this works on a full disk too. */
  async release(): Promise<void> {
    await truncate(this.#path, 0);
  }
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw error;
  }
}

async function removeBelow(dir: string, number: number): Promise<void> {
  for (const name of await readdir(dir)) {
    const other = LOCK_NAME.exec(name)?.[1];
    if (other !== undefined && Number(other) < number) await rm(join(dir, name), { force: true });
  }
}
