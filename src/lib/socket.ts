import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, rm, rmdir } from 'node:fs/promises';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { systemCode } from './errors.js';

/** The kernel's limit for the path of a socket is 107 bytes. */
const LONGEST_PATH = 100;

/** Opens a directory, and no link in its place. */
const PRIVATE_DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** A path that can be listened on, or connected to, until it is closed. */
export interface SocketPath {
  readonly path: string;
  close(): Promise<void>;
}

/** Thrown for a socket in a directory of another user. */
export class ForeignSocket extends Error {
  constructor(
    readonly directory: string,
    readonly uid: number,
  ) {
    super(`${directory} belongs to user ${uid}`);
  }
}

/**
 * Returns the path of the socket `name` in `directory`, to listen on or to connect to. A path that
 * is too long for the kernel goes by way of the open directory, which Linux shows under a short
 * name; it works in this process alone.
 *
 * @throws the system's error where the directory cannot be opened
 */
export async function openSocketPath(directory: string, name: string): Promise<SocketPath> {
  const handle = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  const path = join(directory, name);
  const isLong = Buffer.byteLength(path) > LONGEST_PATH && process.platform === 'linux';
  if (isLong) return throughDirectory(handle, name);
  await handle.close();
  return { path, close: async () => {} };
}

/**
 * Returns the path of a socket that `listenInPrivate` made for this user, to connect to. On Linux
 * it leads through the directory that was checked, whatever takes its place meanwhile.
 *
 * A daemon makes the directory with mode 0700, so that nobody but its owner and root can open it:
 * where others can, it has to be this user's, and for root always. File systems that give all files
 * to one user are no obstacle for other users than root.
 *
 * @throws ForeignSocket, or the system's error where the directory cannot be opened
 */
export async function openOwnSocketPath(directory: string, name: string): Promise<SocketPath> {
  const handle = await open(directory, PRIVATE_DIRECTORY);
  const { mode, uid } = await handle.stat();
  const user = process.geteuid?.() ?? uid;
  const isPrivate = (mode & 0o077) === 0 && user !== 0;
  if (uid !== user && !isPrivate) {
    await handle.close();
    throw new ForeignSocket(directory, uid);
  }
  if (process.platform === 'linux') return throughDirectory(handle, name);
  await handle.close();
  return { path: join(directory, name), close: async () => {} };
}

function throughDirectory(handle: FileHandle, name: string): SocketPath {
  return { path: `/proc/self/fd/${handle.fd}/${name}`, close: () => handle.close() };
}

/**
 * Listens on `path` until the server is closed. A connection that cannot be taken later, for want
 * of descriptors, ends nothing.
 *
 * @throws the system's error
 */
export async function listenOn(server: Server, path: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject);
    server.listen(path, resolve);
  });
}

/**
 * Listens on the socket `name` in a directory of its own, which only this user enters: a socket is
 * open to all until its mode is set. A link in the place of the directory is refused. The caller
 * holds a lock, so that a socket or a link in the place of the socket is nobody's, and is replaced.
 *
 * @param directory made where it is missing, but not what is above it, and removed at the end
 * @returns the path, to be closed after the server
 * @throws the system's error
 */
export async function listenInPrivate(
  server: Server,
  directory: string,
  name: string,
): Promise<SocketPath> {
  await mkdir(directory, { mode: 0o700 }).catch((error: unknown) => {
    if (systemCode(error) !== 'EEXIST') throw error;
  });
  const own = await open(directory, PRIVATE_DIRECTORY);
  await own.chmod(0o700).finally(() => own.close());
  const socket = await openSocketPath(directory, name);
  try {
    await rm(socket.path, { force: true });
    await listenOn(server, socket.path);
    const close = async () => {
      await socket.close();
      await rmdir(directory).catch(() => undefined);
    };
    return { path: socket.path, close };
  } catch (error) {
    await socket.close();
    throw error;
  }
}
