import { constants } from 'node:fs';
import { lstat, unlink } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { systemCode } from '../lib/errors.js';
import type { ShareStream } from '../peer/share.js';
import type { State } from '../state/state.js';
import type { ShareVersion } from './record.js';
import { reach, type Spot } from './root.js';
import { temporaryName } from './temporary.js';

/** What is here of a shared object that has not come whole yet. Times are ms since the epoch. */
export interface Download {
  /** The temporary file that it stands in: beside the target, below the root. */
  readonly file: string;
  /** So many bytes of it are safe. */
  readonly bytes: number;
  /** Of the whole object. */
  readonly size: number;
  /** The media type that the object is remembered by. */
  readonly type: string;
  readonly version: ShareVersion;
}

const PREFIX = 'mirror-download/';
/** Smaller objects are soon asked for again. */
const SMALLEST = 2 ** 20;
/** An object that did not come whole for so long has changed meanwhile, or nobody misses it. */
const STALE_MS = 7 * 86_400_000;

type DownloadState = Pick<State, 'meta' | 'setMeta'>;

export function downloadOf(state: Pick<DownloadState, 'meta'>, name: string): Download | undefined {
  const kept = state.meta(PREFIX + name);
  return isDownload(kept) ? kept : undefined;
}

export function isStale({ version }: Download, now: number): boolean {
  const age = now - version.at;
  return age < 0 || age > STALE_MS;
}

/** In memory: commit it when it has to hold. */
export function keepDownload(
  state: Pick<DownloadState, 'setMeta'>,
  name: string,
  download: Download | undefined,
): void {
  state.setMeta(PREFIX + name, download && { ...download, version: { ...download.version } });
}

/** The names of all mirrors that have a download. */
export function downloadNames(state: Pick<State, 'metaNames'>): readonly string[] {
  return state.metaNames(PREFIX).map((name) => name.slice(PREFIX.length));
}

/** A download of an object that begins to come; undefined where it could not be gone on with, or need not. */
export function beginDownload(
  { path }: Spot,
  { size }: Pick<ShareStream, 'size'>,
  type: string,
  version: ShareVersion | undefined,
): Download | undefined {
  if (size === undefined || size < SMALLEST || version === undefined) return undefined;
  return { file: posix.join(posix.dirname(path), temporaryName()), bytes: 0, size, type, version };
}

/** Whether what is said to be there of a download is, and can be gone on with. */
export async function stands(spot: Spot, { file, bytes }: Download): Promise<boolean> {
  if (bytes === 0 || posix.dirname(file) !== posix.dirname(spot.path)) return false;
  try {
    const stats = await lstat(await realPath(spot, file));
    return stats.isFile() && stats.size >= bytes && (stats.mode & constants.S_IWUSR) !== 0;
  } catch (error) {
    if (systemCode(error) === undefined) throw error;
    return false;
  }
}

/** Removes the file of a download, where it is still there. */
export async function discard(spot: Spot, { file }: Download): Promise<void> {
  if (posix.dirname(file) !== posix.dirname(spot.path)) return;
  await unlink(await realPath(spot, file)).catch(() => undefined);
}

async function realPath(spot: Spot, file: string): Promise<string> {
  return join(dirname(await reach(spot)), posix.basename(file));
}

function isDownload(kept: unknown): kept is Download {
  return typeof kept === 'object' && kept !== null && 'file' in kept && 'version' in kept;
}
