import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncDirectory } from '../lib/atomic.js';
import type { StateData } from './data.js';
import type { Place } from './entries.js';
import type { Header, OpenFile } from './files.js';
import { LineBuffer, writeFully } from './framing.js';
import type { UrlBases } from './line.js';

/** How much of a snapshot may wait for the disk, so that the syncs of commits do not stand behind all of it. */
const SYNC_EVERY_BYTES = 8 * 1024 * 1024;

export interface SnapshotParts {
  readonly header: Header;
  /** How much is encoded without a pause, in bytes. */
  readonly writeBytes: number;
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

function* slices({ entries, meta }: StateData, { header, writeBytes }: SnapshotParts): Generator<Uint8Array> {
  const lines = new LineBuffer();
  lines.add(JSON.stringify(header));
  for (const name of meta.keys()) lines.add(metaRow(name, meta));
  for (const [folder, directory, name, line] of entries.lines()) {
    lines.add(recordText({ folder, path: directory === '' ? name : `${directory}/${name}` }, line));
    if (lines.length >= writeBytes) yield lines.take();
  }
  // At the end, as new ones may have come meanwhile.
  for (const row of baseRows(entries.bases, 0)) lines.add(row);
  lines.add(JSON.stringify({ records: lines.lines - 1, sum: lines.sum }));
  yield lines.take();
}

/** The text of a change on disk: `"folder","path",[record]`, or a row `["-", folder, path]` where the record is removed. */
export function recordText({ folder, path }: Place, line: string | undefined): string {
  if (line === undefined) return JSON.stringify(['-', folder, path]);
  return `${JSON.stringify(folder)},${JSON.stringify(path)},${line}`;
}

/** A row `["m", name, value]`; without a value: removed. */
export function metaRow(name: string, meta: StateData['meta']): string {
  return JSON.stringify(meta.has(name) ? ['m', name, meta.get(name)] : ['m', name]);
}

/** A row `["u", number, collection, url]` for each base from number `from` on. */
export function baseRows(bases: UrlBases, from: number): string[] {
  const rows: string[] = [];
  for (let number = from; number < bases.size; number += 1) {
    const base = bases.get(number);
    if (base !== undefined) rows.push(JSON.stringify(['u', number, base.collection, base.url]));
  }
  return rows;
}
