import { createHash, randomBytes } from 'node:crypto';
import { link, open, readFile, readlink, rename, rm, stat, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { type Clock, systemClock, type Timer } from './clock.js';
import { systemCode } from './errors.js';
import { listenOn, openSocketPath, type SocketPath } from './socket.js';

/** Who holds a lock. That it lives is asked at its socket; pid and host are mainly for people. */
export interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When it took the lock, in ms since the epoch. */
  readonly since: number;
  /**
   * When the process started, in the kernel's ticks since the boot; tells a process from a later
   * one with its pid. Linux only.
   */
  readonly started?: string;
  /** Names the run of the kernel, which all containers of a machine share. Linux only. */
  readonly boot?: string;
  /** Names what the pid counts in. Linux only. */
  readonly pidNamespace?: string;
  /** No two holders have the same. */
  readonly nonce: string;
}

export interface Lock {
  readonly holder: Holder;
  /**
   * Called every 5 s with whether the lock is still this holder's: it is not where it was removed,
   * with its directory perhaps, or taken.
   */
  onBeat: (isOwn: boolean) => void;
  /** Lets the next one in. */
  release(): Promise<void>;
}

/** How long to wait for someone who is replacing a dead holder at this moment. */
const RETRY_MS = 5;
/** Whoever has been replacing a dead holder for so long is named as the one who has the lock. */
const PATIENCE_MS = 30_000;
/** How often a holder shows that it lives, and looks whether the lock is still its own, in ms. */
const BEAT_MS = 5_000;
/** A holder that cannot be asked and has not shown for so long that it lives is dead, in ms. */
const SILENT_MS = 60_000;
/** How often a holder that cannot be asked is looked at, in ms. */
const LOOK_MS = 1_000;

/**
 * Takes the lock that is the file `path`, in a directory that is there, for this process.
 *
 * The file has the holder's name and appears whole or not at all (link). A holder that is dead is
 * replaced: by whoever holds a second lock that is named after the dead one, so that nobody can
 * replace the replacement. What is no holder's name, as a power cut or another program leaves it,
 * is replaced in the same way.
 *
 * A holder listens on a socket beside the lock, whose connections the kernel takes for as long as
 * the process lives, also when it is stopped or busy, and from all containers of the machine. One
 * of another machine, or of before a boot, cannot be asked: it is dead when it has not written to
 * the file for a minute, which is waited for.
 *
 * @param held what is thrown when somebody living has the lock, in the words of what it guards
 * @throws that, or the system's error where the directory cannot be written
 */
export async function takeLock(
  path: string,
  clock: Clock,
  held: (holder: Holder) => Error,
): Promise<Lock> {
  const nonce = randomBytes(8).toString('hex');
  const holder: Holder = { ...(await thisProcess()), since: clock.now(), nonce };
  const own = `${path}.${nonce}.tmp`;
  const text = `${JSON.stringify(holder)}\n`;
  const stopListening = await listen(path, nonce);
  try {
    await writeFile(own, text, { mode: 0o600, flag: 'wx' });
    const other = await claim(path, own, clock);
    if (other !== undefined) throw held(other);
  } catch (error) {
    stopListening?.();
    throw error;
  } finally {
    await rm(own, { force: true }).catch(() => undefined);
  }
  return heldLock(path, text, { holder, stopListening, clock });
}

function heldLock(
  path: string,
  text: string,
  {
    holder,
    stopListening,
    clock,
  }: { holder: Holder; stopListening: (() => void) | undefined; clock: Clock },
): Lock {
  let timer: Timer | undefined;
  let isOver = false;
  const lock: Lock = {
    holder,
    onBeat: () => {},
    async release() {
      isOver = true;
      timer?.cancel();
      // Before nobody listens any more, so that whoever asks finds no dead holder.
      if ((await contentOf(path).catch(() => undefined)) === text) await rm(path, { force: true });
      stopListening?.();
    },
  };
  const beat = async () => {
    const isOwn = await showLife(path, text);
    if (isOver) return;
    plan();
    lock.onBeat(isOwn);
  };
  const plan = () => {
    timer = clock.after(BEAT_MS, () => void beat(), { background: true });
  };
  plan();
  return lock;
}

/**
 * Writes the lock once more, which gives it a new time.
 *
 * @returns false where the file is not this holder's, or not there; an error of the disk says
 *   nothing of that
 */
async function showLife(path: string, text: string): Promise<boolean> {
  try {
    const file = await open(path, 'r+');
    try {
      if ((await file.readFile('utf8')) !== text) return false;
      await file.write(text, 0);
      return true;
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = systemCode(error);
    return code !== 'ENOENT' && code !== 'ENOTDIR';
  }
}

/** Who holds the lock `path`, if anybody living does. */
export async function readLock(path: string): Promise<Holder | undefined> {
  const text = await contentOf(path);
  const holder = text === undefined ? undefined : parse(text);
  if (holder === undefined) return undefined;
  const lives =
    (await askedLife(path, holder)) ?? systemClock.wall() - (await beatOf(path)) < SILENT_MS;
  return lives ? holder : undefined;
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
    const holder = parse(found);
    if (holder !== undefined && (await lives(path, holder, own, clock))) return holder;
    const guard = `${path}.${createHash('sha256').update(found).digest('hex').slice(0, 16)}`;
    const rival = await claim(guard, own, clock);
    if (rival === undefined) {
      if ((await contentOf(path)) === found) {
        await rename(guard, path);
        const left = holder === undefined ? undefined : socketName(holder.nonce);
        if (left !== undefined) await rm(join(dirname(path), left), { force: true });
        return undefined;
      }
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

/**
 * Whether a holder lives; one that cannot be asked is waited for until it shows that, or has not
 * for a minute.
 */
async function lives(path: string, holder: Holder, own: string, clock: Clock): Promise<boolean> {
  const answer = await askedLife(path, holder);
  if (answer !== undefined) return answer;
  const beat = await beatOf(path);
  // Both times are of the file system: a clock that is wrong here or there tells nothing.
  const silentMs = Math.max(0, (await stat(own)).mtimeMs - beat);
  const deadAt = clock.now() + SILENT_MS - silentMs;
  while (clock.now() < deadAt) {
    await clock.sleep(LOOK_MS);
    if ((await beatOf(path)) !== beat) return true;
  }
  return false;
}

/** When the lock was last written, in ms since the epoch; 0 where it is gone. */
async function beatOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  return found?.mtimeMs ?? 0;
}

/**
 * Whether a holder lives, as far as the kernel knows it; undefined for one of another machine, or
 * of before a boot.
 */
async function askedLife(path: string, holder: Holder): Promise<boolean | undefined> {
  const here = await thisProcess();
  const answer = await listens(path, holder.nonce);
  if (answer === 'yes') return true;
  const isSameKernel = holder.boot === undefined ? isHere(holder) : holder.boot === here.boot;
  if (answer === 'no' && holder.boot !== undefined && isSameKernel) return false;
  // Without a socket, only the processes that are seen from here are known.
  const isSeen = isSameKernel && (holder.pidNamespace ?? here.pidNamespace) === here.pidNamespace;
  return isSeen ? await isRunning(holder) : undefined;
}

async function isRunning(holder: Holder): Promise<boolean> {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if (systemCode(error) === 'ESRCH') return false;
  }
  const started = await startOf(holder.pid);
  return started === undefined || (started !== 'ended' && started === (holder.started ?? started));
}

async function thisProcess(): Promise<Omit<Holder, 'since' | 'nonce'>> {
  const [started, boot, pidNamespace] = await Promise.all([
    startOf(process.pid),
    readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => undefined),
    readlink('/proc/self/ns/pid').catch(() => undefined),
  ]);
  return {
    pid: process.pid,
    host: hostname(),
    ...(started !== undefined && { started }),
    ...(boot !== undefined && { boot: boot.trim() }),
    ...(pidNamespace !== undefined && { pidNamespace }),
  };
}

/**
 * The name of the socket beside a lock on which its holder listens; undefined where the nonce is
 * none.
 */
function socketName(nonce: string): string | undefined {
  return /^[0-9a-f]{16}$/.test(nonce) ? `lock.${nonce}.socket` : undefined;
}

/** Where the holder of a lock listens; undefined where that cannot be. */
async function socketOf(path: string, nonce: string): Promise<SocketPath | undefined> {
  const name = socketName(nonce);
  return name === undefined
    ? undefined
    : await openSocketPath(dirname(path), name).catch(() => undefined);
}

/**
 * Listens for as long as the process lives; nothing is said.
 *
 * @returns what ends that; undefined where the file system has no sockets
 */
async function listen(path: string, nonce: string): Promise<(() => void) | undefined> {
  const place = await socketOf(path, nonce);
  if (place === undefined) return undefined;
  const server = createServer((socket) => socket.destroy());
  try {
    await listenOn(server, place.path);
  } catch {
    await place.close();
    return undefined;
  }
  server.unref();
  return () => void server.close(() => void place.close());
}

/** Whether somebody listens: `no` where a socket is left that nobody of this machine listens on. */
async function listens(path: string, nonce: string): Promise<'yes' | 'no' | 'unknown'> {
  const place = await socketOf(path, nonce);
  if (place === undefined) return 'unknown';
  const answer = new Promise<'yes' | 'no' | 'unknown'>((resolve) => {
    const socket = connect(place.path, () => {
      socket.destroy();
      resolve('yes');
    });
    socket.once('error', (error) => {
      // A full queue is that of a process that lives and is busy or stopped.
      const code = systemCode(error);
      resolve(code === 'ECONNREFUSED' ? 'no' : code === 'EAGAIN' ? 'yes' : 'unknown');
    });
  });
  return await answer.finally(() => place.close());
}

function parse(text: string): Holder | undefined {
  try {
    const holder = JSON.parse(text) as Holder;
    describeHolder(holder); // Throws where `since` is no moment.
    const isHolder =
      Number.isSafeInteger(holder.pid) && holder.pid > 0 && typeof holder.host === 'string';
    return isHolder ? holder : undefined;
  } catch {
    return undefined;
  }
}

/**
 * When a process started, `ended` for one that nobody has waited for yet; undefined on systems
 * without /proc.
 */
async function startOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // The name of the program may hold blanks and brackets.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields?.[0] === 'Z' || fields?.[0] === 'X' ? 'ended' : fields?.[22 - 3];
}
