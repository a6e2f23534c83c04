import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, rm, rmdir } from 'node:fs/promises';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { systemCode } from './errors.js';

/** The longest path of a socket that is used directly, in bytes. The kernel's limit is 107. */
const MAX_PATH_BYTES = 100;

/** The flags to open a directory. They refuse a link. */
const PRIVATE_DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** A path of a socket to listen on or connect to. It is valid until it is closed. */
export interface SocketPath {
  readonly path: string;
  close(): Promise<void>;
}

/** Thrown when the directory of a socket belongs to another user. */
export class ForeignSocket extends Error {
  constructor(
    readonly directory: string,
    readonly uid: number,
  ) {
    super(`${directory} belongs to user ${uid}`);
  }
}

/**
 * Returns the path of the socket `name` in `directory`, to listen on or to connect to. If the path
 * is too long for the kernel, it leads through the open directory, for which Linux has a short
 * name. Such a path works only in this process.
 *
 * @throws the error of the system if the directory cannot be opened
 */
export async function openSocketPath(directory: string, name: string): Promise<SocketPath> {
  const handle = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  const path = join(directory, name);
  const isLong = Buffer.byteLength(path) > MAX_PATH_BYTES && process.platform === 'linux';
  if (isLong) return throughDirectory(handle, name);
  await handle.close();
  return { path, close: async () => {} };
}

/**
 * Returns the path of a socket that `listenInPrivate` created for this user, to connect to. On
 * Linux it leads through the directory that was checked, even if another one replaces that.
 *
 * The daemon creates the directory with mode 0700, so only its owner and root can open it. If
 * others can open it, it must belong to this user. For root it must always belong to root. A file
 * system that gives all files to one user is therefore a problem only for root.
 *
 * @throws ForeignSocket, or the error of the system if the directory cannot be opened
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
 * Listens on `path` until the server is closed. If a later connection cannot be accepted, because
 * no descriptor is free, the server goes on.
 *
 * @throws the error of the system
 */
export async function listenOn(server: Server, path: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject);
    server.listen(path, resolve);
  });
}

/**
 * Listens on the socket `name` in a directory that only this user can enter. The directory protects
 * the socket until its mode is set. A link in place of the directory is refused. The caller holds a
 * lock, so an existing socket or link of that name is unused, and is replaced.
 *
 * @param directory created if it is missing, but not its parents; removed at the end
 * @returns the path, to be closed after the server
 * @throws the error of the system
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
