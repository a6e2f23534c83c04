import { createHash, randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import { StateError, writeError } from '../state/errors.js';

/** Who holds a lock. */
export interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When it took the lock, in ms since the epoch. */
  readonly since: number;
  /** When the process started, in the kernel's ticks; tells a process from a later one with its pid. Linux only. */
  readonly started?: string;
  /** Differs after each boot. Linux only. */
  readonly boot?: string;
  /** No two holders have the same. */
  readonly nonce: string;
}

export interface Lock {
  readonly holder: Holder;
  /** Lets the next one in. */
  release(): Promise<void>;
}

/** How long to wait for someone who is replacing a dead holder at this moment. */
const RETRY_MS = 5;

/**
 * Takes the state directory `dir`, created if need be, for this process.
 *
 * The lock is a file with the holder's name, which appears whole or not at all (link). A holder that is dead is replaced: by
 * whoever holds a second lock that is named after the dead one, so that nobody can replace the replacement.
 *
 * @throws StateError STATE_LOCKED, STATE_LOCKED_ELSEWHERE, STATE_UNWRITABLE, STATE_FULL, STATE_NOT_A_DIRECTORY
 */
export async function acquireLock(dir: string, { clock }: { readonly clock: Clock }): Promise<Lock> {
  const holder = await myself(clock.now());
  const own = `${lockPath(dir)}.${holder.nonce}.tmp`;
  const text = `${JSON.stringify(holder)}\n`;
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await writeFile(own, text, { mode: 0o600, flag: 'wx' });
    const other = await claim(lockPath(dir), own, clock);
    if (other !== undefined) throw locked(dir, other);
  } catch (error) {
    throw writeError(error, dir);
  } finally {
    await rm(own, { force: true }).catch(() => undefined);
  }
  return {
    holder,
    async release() {
      if ((await contentOf(lockPath(dir))) === text) await rm(lockPath(dir), { force: true });
    },
  };
}

/** Who holds the lock of `dir`, if anybody living does. */
export async function readLock(dir: string): Promise<Holder | undefined> {
  const text = await contentOf(lockPath(dir));
  return text === undefined ? undefined : livingHolder(text);
}

function lockPath(dir: string): string {
  return join(dir, 'lock');
}

function locked(dir: string, { pid, host, since }: Holder): StateError {
  const when = `since ${new Date(since).toISOString()}`;
  if (host === hostname()) return new StateError('STATE_LOCKED', { dir, detail: `pid ${pid}, ${when}` });
  return new StateError('STATE_LOCKED_ELSEWHERE', { dir, detail: `pid ${pid} on ${host}, ${when}` });
}

/** Makes `path` a link to `own`, unless somebody living has it, who is returned then. */
async function claim(path: string, own: string, clock: Clock): Promise<Holder | undefined> {
  for (;;) {
    if (await linked(own, path)) return undefined;
    const found = await contentOf(path);
    if (found === undefined) continue;
    const holder = await livingHolder(found);
    if (holder !== undefined) return holder;
    if (await replaceDead(path, found, own, clock)) return undefined;
  }
}

/** False when somebody else was quicker. */
async function replaceDead(path: string, dead: string, own: string, clock: Clock): Promise<boolean> {
  const guard = `${path}.${createHash('sha256').update(dead).digest('hex').slice(0, 16)}`;
  if ((await claim(guard, own, clock)) !== undefined) {
    await clock.sleep(RETRY_MS);
    return false;
  }
  try {
    if ((await contentOf(path)) !== dead) return false;
    const copy = `${own}.copy`;
    await link(own, copy);
    await rename(copy, path);
    return true;
  } finally {
    await rm(guard, { force: true });
  }
}

async function linked(own: string, path: string): Promise<boolean> {
  try {
    await link(own, path);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw error;
  }
}

async function contentOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function myself(now: number): Promise<Holder> {
  const [process_, boot] = [await processOf(process.pid), await bootId()];
  return {
    pid: process.pid,
    host: hostname(),
    since: now,
    ...(process_ ? { started: process_.started } : {}),
    ...(boot ? { boot } : {}),
    nonce: randomBytes(8).toString('hex'),
  };
}

/** The holder that `text` names, if it may still live. A text that a power cut left behind names nobody. */
async function livingHolder(text: string): Promise<Holder | undefined> {
  const holder = parse(text);
  return holder !== undefined && (await mayLive(holder)) ? holder : undefined;
}

function parse(text: string): Holder | undefined {
  try {
    const holder: unknown = JSON.parse(text);
    const isHolder =
      typeof holder === 'object' &&
      holder !== null &&
      'pid' in holder &&
      Number.isSafeInteger(holder.pid) &&
      Number(holder.pid) > 0 &&
      'host' in holder &&
      typeof holder.host === 'string' &&
      'since' in holder &&
      Number.isSafeInteger(holder.since);
    return isHolder ? (holder as Holder) : undefined;
  } catch {
    return undefined;
  }
}

/** Certainly false for a dead process; of one on another machine nothing is known from here. */
async function mayLive(holder: Holder): Promise<boolean> {
  if (holder.host !== hostname()) return true;
  const boot = await bootId();
  if (holder.boot !== undefined && boot !== undefined && holder.boot !== boot) return false;
  if (!exists(holder.pid)) return false;
  const found = await processOf(holder.pid);
  if (found === undefined) return true;
  return !found.ended && (holder.started === undefined || holder.started === found.started);
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return systemCode(error) !== 'ESRCH';
  }
}

async function bootId(): Promise<string | undefined> {
  return (await readProc('/proc/sys/kernel/random/boot_id'))?.trim();
}

/** What the kernel says of a process; `ended` is one that nobody has waited for yet. */
async function processOf(pid: number): Promise<{ started: string; ended: boolean } | undefined> {
  const stat = await readProc(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, started] = [fields[0], fields[22 - 3]];
  return started === undefined ? undefined : { started, ended: state === 'Z' || state === 'X' };
}

/** Undefined where there is no such file, as on systems without /proc. */
function readProc(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined);
}
