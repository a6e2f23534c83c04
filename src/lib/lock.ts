import { createHash, randomBytes } from 'node:crypto';
import { link, readFile, readlink, rename, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Clock } from './clock.js';
import { systemCode } from './errors.js';

/** Who holds a lock. */
export interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When it took the lock, in ms since the epoch. */
  readonly since: number;
  /** When the process started, in the kernel's ticks since the boot; tells a process from a later one with its pid. Linux only. */
  readonly started?: string;
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
/** Whoever has been replacing a dead holder for so long is named as the one who has the lock. */
const PATIENCE_MS = 30_000;

/**
 * Takes the lock that is the file `path`, in a directory that is there, for this process.
 *
 * The file has the holder's name and appears whole or not at all (link). A holder that is dead is replaced: by whoever holds
 * a second lock that is named after the dead one, so that nobody can replace the replacement. What is no holder's name, as a
 * power cut or another program leaves it, is replaced in the same way.
 *
 * @param held what is thrown when somebody living has the lock, in the words of what it guards
 * @throws that, or the system's error where the directory cannot be written
 */
export async function takeLock(path: string, clock: Clock, held: (holder: Holder) => Error): Promise<Lock> {
  const nonce = randomBytes(8).toString('hex');
  const started = await startOf(process.pid);
  const now = { pid: process.pid, host: hostname(), since: clock.now(), nonce };
  const holder: Holder = started === undefined ? now : { ...now, started };
  const own = `${path}.${nonce}.tmp`;
  const text = `${JSON.stringify(holder)}\n`;
  try {
    await writeFile(own, text, { mode: 0o600, flag: 'wx' });
    const other = await claim(path, own, clock);
    if (other !== undefined) throw held(other);
  } finally {
    await rm(own, { force: true }).catch(() => undefined);
  }
  return {
    holder,
    async release() {
      if ((await contentOf(path)) === text) await rm(path, { force: true });
    },
  };
}

/** Who holds the lock `path`, if anybody living does. */
export async function readLock(path: string): Promise<Holder | undefined> {
  const text = await contentOf(path);
  return text === undefined ? undefined : livingHolder(text);
}

/** Whether the holder is a process of this machine, of which it is known whether it lives. */
export function isHere({ host }: Holder): boolean {
  return host === hostname();
}

/** `pid 7, since …`, with the machine where that is another one. */
export function describeHolder(holder: Holder): string {
  const where = isHere(holder) ? '' : ` on ${holder.host}`;
  return `pid ${holder.pid}${where}, since ${new Date(holder.since).toISOString()}`;
}

/** Makes `path` a link to `own`, unless somebody living has it, who is returned then. */
async function claim(path: string, own: string, clock: Clock): Promise<Holder | undefined> {
  const patientUntil = clock.now() + PATIENCE_MS;
  for (;;) {
    if (await linked(own, path)) return undefined;
    const found = await contentOf(path);
    if (found === undefined) continue;
    const holder = await livingHolder(found);
    if (holder !== undefined) return holder;
    const guard = `${path}.${createHash('sha256').update(found).digest('hex').slice(0, 16)}`;
    const rival = await claim(guard, own, clock);
    if (rival === undefined) {
      if ((await contentOf(path)) === found) return await rename(guard, path).then(() => undefined);
      await rm(guard, { force: true });
    } else {
      if (clock.now() >= patientUntil) return rival;
      await clock.sleep(RETRY_MS);
    }
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

/** Undefined where nothing is. */
async function contentOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
    // A link to nothing is in the way of a lock, as a file with garbage is.
    return await readlink(path).catch(() => undefined);
  }
}

/** The holder that `text` names, unless it is certainly dead; of one on another machine nothing is known from here. */
async function livingHolder(text: string): Promise<Holder | undefined> {
  const holder = parse(text);
  if (holder === undefined || !isHere(holder)) return holder;
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if (systemCode(error) === 'ESRCH') return undefined;
  }
  const started = await startOf(holder.pid);
  const isIt = started === undefined || (started !== 'ended' && started === (holder.started ?? started));
  return isIt ? holder : undefined;
}

function parse(text: string): Holder | undefined {
  try {
    const holder = JSON.parse(text) as Holder;
    describeHolder(holder); // Throws where `since` is no moment.
    const isHolder = Number.isSafeInteger(holder.pid) && holder.pid > 0 && typeof holder.host === 'string';
    return isHolder ? holder : undefined;
  } catch {
    return undefined;
  }
}

/** When a process started, `ended` for one that nobody has waited for yet; undefined on systems without /proc. */
async function startOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // The name of the program may hold blanks and brackets.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields?.[0] === 'Z' || fields?.[0] === 'X' ? 'ended' : fields?.[22 - 3];
}
