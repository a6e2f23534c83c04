import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncDirectory } from '../lib/atomic.js';
import type { StateData } from './data.js';
import type { OpenFile } from './files.js';
import { LineBuffer, writeFully } from './lines.js';
import type { StatePolicy } from './policy.js';
import { entryRow, metaRow } from './row.js';
import type { Header } from './schema.js';

/** How much of a snapshot may wait for the disk, so that the syncs of commits do not stand behind all of it. */
const SYNC_EVERY_BYTES = 8 * 1024 * 1024;

export interface SnapshotParts {
  readonly header: Header;
  readonly policy: StatePolicy;
  readonly open: OpenFile;
  /** Gives up, leaving nothing behind. */
  readonly signal: AbortSignal;
}

/**
 * Writes a snapshot of `data` while it goes on changing, a slice at a time; it exists whole or not at all.
 *
 * What changes meanwhile may be in it or not, and has to be in the journal of the same generation.
 *
 * @returns its size in bytes
 */
export async function writeSnapshot(path: string, data: StateData, parts: SnapshotParts): Promise<number> {
  const temporary = `${path}.tmp`;
  try {
    const file = await parts.open(temporary, 'w', 0o600);
    let size = 0;
    try {
      let synced = 0;
      for (const slice of slices(data, parts)) {
        parts.signal.throwIfAborted();
        await writeFully(file, slice, size);
        size += slice.length;
        if (size - synced < SYNC_EVERY_BYTES) continue;
        await file.datasync();
        synced = size;
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
    await syncDirectory(dirname(path));
    return size;
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

function* slices(data: StateData, { header, policy }: SnapshotParts): Generator<Uint8Array> {
  const lines = new LineBuffer();
  lines.add(header);
  for (const [name, value] of data.meta) lines.add(metaRow(name, value));
  for (const entry of data.entries.all()) {
    lines.add(entryRow(entry));
    if (lines.length >= policy.writeBytes) yield lines.take();
  }
  lines.add({ records: lines.lines - 1, sum: lines.sum });
  yield lines.take();
}
