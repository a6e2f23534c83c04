import { createHash, randomBytes } from 'node:crypto';
import {
  type FileHandle,
  link,
  open,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { type Clock, systemClock, type Timer } from './clock.js';
import { systemCode } from './errors.js';
import { listenOn, openSocketPath, type SocketPath } from './socket.js';

/**
 * The holder of a lock. Its socket shows whether it is alive. The pid and the host are mainly for
 * people.
 */
export interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When it took the lock, in ms since the epoch. */
  readonly since: number;
  /**
   * When the process started, in ticks of the kernel since boot. Distinguishes the process from a
   * later one with the same pid. Linux only.
   */
  readonly started?: string;
  /** The boot ID of the kernel. All containers of a machine share it. Linux only. */
  readonly boot?: string;
  /** The PID namespace of `pid`. Linux only. */
  readonly pidNamespace?: string;
  /** Unique for each holder. */
  readonly nonce: string;
}

export interface Lock {
  readonly holder: Holder;
  /**
   * Called every 5 s. `isOwn` is false if the lock, or its directory, was removed, or if another
   * process took the lock.
   */
  onHeartbeat: (isOwn: boolean) => void;
  /** Releases the lock. */
  release(): Promise<void>;
}

/** The delay before the next attempt while another process replaces a dead holder, in ms. */
const RETRY_MS = 5;
/**
 * The time that another process may take to replace a dead holder, in ms. After that it is reported
 * as the holder.
 */
const REPLACE_TIMEOUT_MS = 30_000;
/**
 * The interval at which a holder writes its heartbeat and checks that it still has the lock, in ms.
 */
const HEARTBEAT_MS = 5_000;
/**
 * The age of a heartbeat after which its holder counts as dead, in ms. Only for holders that cannot
 * be asked.
 */
const DEAD_AFTER_MS = 60_000;
/** The interval at which the heartbeat of such a holder is checked, in ms. */
const POLL_MS = 1_000;

/**
 * Takes the lock file `path` for this process. Its directory must exist.
 *
 * The file contains the holder. It is created by `link`, so it is never seen half-written. If the
 * holder is dead, one process replaces the file: the process that takes a second lock, whose name
 * is a hash of the dead holder. Nobody can therefore replace the replacement. A file without a
 * valid holder, as a power cut or another program leaves it, is replaced in the same way.
 *
 * A holder listens on a socket beside the lock. The kernel accepts connections there as long as the
 * process lives, even if it is stopped or busy, and from all containers of the machine. A holder on
 * another machine, or from before a reboot, cannot be asked. It counts as dead after a minute
 * without a heartbeat, and `takeLock` waits for that.
 *
 * @param held returns the error to throw if the lock has a living holder
 * @throws that error, or the error of the system if the directory cannot be written
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
  let isReleased = false;
  const lock: Lock = {
    holder,
    onHeartbeat: () => {},
    async release() {
      isReleased = true;
      timer?.cancel();
      // Remove the lock before the socket closes. Otherwise another process could find a dead
      // holder.
      if ((await contentOf(path).catch(() => undefined)) === text) await rm(path, { force: true });
      stopListening?.();
    },
  };
  const heartbeat = async () => {
    const isOwn = await writeHeartbeat(path, text);
    if (isReleased) return;
    scheduleHeartbeat();
    lock.onHeartbeat(isOwn);
  };
  const scheduleHeartbeat = () => {
    timer = clock.after(HEARTBEAT_MS, () => void heartbeat(), { background: true });
  };
  scheduleHeartbeat();
  return lock;
}

/**
 * Writes the heartbeat: the same text again, which updates the time of the file.
 *
 * @returns false if the file is missing, or is not this holder's; true after an error of the disk,
 *   which proves neither
 */
async function writeHeartbeat(path: string, text: string): Promise<boolean> {
  try {
    const file = await open(path, 'r+');
    try {
      if ((await beginningOf(file, text.length + 1)) !== text) return false;
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

/** Returns up to `length` bytes of a file as text, by one read: `readFile` takes two steps. */
async function beginningOf(file: FileHandle, length: number): Promise<string> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, 0);
  return buffer.toString('utf8', 0, bytesRead);
}

/** Returns the holder of the lock `path` if it is alive. */
export async function readLock(path: string): Promise<Holder | undefined> {
  const text = await contentOf(path);
  const holder = text === undefined ? undefined : parse(text);
  if (holder === undefined) return undefined;
  const isLiving =
    (await askKernel(path, holder)) ??
    systemClock.wall() - (await heartbeatOf(path)) < DEAD_AFTER_MS;
  return isLiving ? holder : undefined;
}

/** Whether the holder runs on a machine of this name. */
export function isHere({ host }: Holder): boolean {
  return host === hostname();
}

/** Returns `pid 7, since …`, with the host if it is another machine. */
export function describeHolder(holder: Holder): string {
  const where = isHere(holder) ? '' : ` on ${holder.host}`;
  return `pid ${holder.pid}${where}, since ${new Date(holder.since).toISOString()}`;
}

/** Links `own` as `path`. Returns the holder if a living one has the lock. */
async function claim(path: string, own: string, clock: Clock): Promise<Holder | undefined> {
  const giveUpAt = clock.now() + REPLACE_TIMEOUT_MS;
  for (;;) {
    if (await tryLink(own, path)) return undefined;
    const found = await contentOf(path);
    if (found === undefined) continue;
    const holder = parse(found);
    if (holder !== undefined && (await isAlive(path, holder, own, clock))) return holder;
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
      if (clock.now() >= giveUpAt) return rival;
      await clock.sleep(RETRY_MS);
    }
  }
}

async function tryLink(own: string, path: string): Promise<boolean> {
  try {
    await link(own, path);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Returns the content of a file; undefined if it does not exist. */
async function contentOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
    // A dangling link blocks a lock as a file with garbage does.
    return await readlink(path).catch(() => undefined);
  }
}

/**
 * Whether a holder is alive. If it cannot be asked, waits for its next heartbeat, or until the last
 * one is a minute old.
 */
async function isAlive(path: string, holder: Holder, own: string, clock: Clock): Promise<boolean> {
  const answer = await askKernel(path, holder);
  if (answer !== undefined) return answer;
  const beat = await heartbeatOf(path);
  // Both times are those of the file system, so a wrong clock of either machine does not matter.
  const silentMs = Math.max(0, (await stat(own)).mtimeMs - beat);
  const deadAt = clock.now() + DEAD_AFTER_MS - silentMs;
  while (clock.now() < deadAt) {
    await clock.sleep(POLL_MS);
    if ((await heartbeatOf(path)) !== beat) return true;
  }
  return false;
}

/** Returns the time of the last heartbeat, in ms since the epoch; 0 if the file is gone. */
async function heartbeatOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  return found?.mtimeMs ?? 0;
}

/**
 * Asks the kernel whether a holder is alive; undefined if it cannot know, because the holder is on
 * another machine or from before a reboot.
 */
async function askKernel(path: string, holder: Holder): Promise<boolean | undefined> {
  const here = await thisProcess();
  const answer = await listens(path, holder.nonce);
  if (answer === 'yes') return true;
  const isSameKernel = holder.boot === undefined ? isHere(holder) : holder.boot === here.boot;
  if (answer === 'no' && holder.boot !== undefined && isSameKernel) return false;
  // Without a socket, only processes in this PID namespace can be checked.
  const isSeen = isSameKernel && (holder.pidNamespace ?? here.pidNamespace) === here.pidNamespace;
  return isSeen ? await isRunning(holder) : undefined;
}

async function isRunning(holder: Holder): Promise<boolean> {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if (systemCode(error) === 'ESRCH') return false;
  }
  const started = await startTimeOf(holder.pid);
  return started === undefined || (started !== 'ended' && started === (holder.started ?? started));
}

async function thisProcess(): Promise<Omit<Holder, 'since' | 'nonce'>> {
  const [started, boot, pidNamespace] = await Promise.all([
    startTimeOf(process.pid),
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

/** Returns the name of the holder's socket beside the lock; undefined if the nonce is not valid. */
function socketName(nonce: string): string | undefined {
  return /^[0-9a-f]{16}$/.test(nonce) ? `lock.${nonce}.socket` : undefined;
}

/** Opens the path of the holder's socket; undefined if that is impossible. */
async function socketOf(path: string, nonce: string): Promise<SocketPath | undefined> {
  const name = socketName(nonce);
  return name === undefined
    ? undefined
    : await openSocketPath(dirname(path), name).catch(() => undefined);
}

/**
 * Listens for as long as the process lives. Connections are closed at once.
 *
 * @returns a function that stops listening; undefined if the file system has no sockets
 */
async function listen(path: string, nonce: string): Promise<(() => void) | undefined> {
  const socketPath = await socketOf(path, nonce);
  if (socketPath === undefined) return undefined;
  const server = createServer((socket) => socket.destroy());
  try {
    await listenOn(server, socketPath.path);
  } catch {
    await socketPath.close();
    return undefined;
  }
  server.unref();
  return () => void server.close(() => void socketPath.close());
}

/**
 * Whether the holder listens. `no` means that the socket is there, and no process on this machine
 * listens on it.
 */
async function listens(path: string, nonce: string): Promise<'yes' | 'no' | 'unknown'> {
  const socketPath = await socketOf(path, nonce);
  if (socketPath === undefined) return 'unknown';
  const answer = new Promise<'yes' | 'no' | 'unknown'>((resolve) => {
    const socket = connect(socketPath.path, () => {
      socket.destroy();
      resolve('yes');
    });
    socket.once('error', (error) => {
      // A full queue (EAGAIN) means that the process is alive, and busy or stopped.
      const code = systemCode(error);
      resolve(code === 'ECONNREFUSED' ? 'no' : code === 'EAGAIN' ? 'yes' : 'unknown');
    });
  });
  return await answer.finally(() => socketPath.close());
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

/** Returns when a process started; `ended` for a zombie; undefined on systems without /proc. */
async function startTimeOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  // The name of the program may contain spaces and brackets.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields?.[0] === 'Z' || fields?.[0] === 'X' ? 'ended' : fields?.[22 - 3];
}
