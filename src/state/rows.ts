import { joinPath } from '../lib/file.js';
import { StateError } from './directory.js';
import type { Entries } from './entries.js';
import { lineOf } from './framed-lines.js';
import type { UrlBases } from './line.js';
import type { Json, StateData } from './state-data.js';

/**
 * Versions of the line format and of the record schema. They are raised whenever older lines would
 * be misread.
 */
export const VERSIONS = { format: 1, schema: 2 };

function recordRow(folder: string, path: string, line: string | undefined): string {
  if (line === undefined) return JSON.stringify(['-', folder, path]);
  return `${JSON.stringify(folder)},${JSON.stringify(path)},${line}`;
}

function metaRow(name: string, meta: StateData['meta']): string {
  return JSON.stringify(meta.has(name) ? ['m', name, meta.get(name)] : ['m', name]);
}

function baseRows(bases: UrlBases, from: number, to = bases.length): readonly string[] {
  return bases
    .slice(from, to)
    .flatMap((base, i) => (base ? JSON.stringify(['u', from + i, base.collection, base.url]) : []));
}

/**
 * Yields the changed records in their latest version. A URL base that is new in this journal
 * precedes the first record that uses it.
 */
export function* changedLines(
  { changes, entries, meta }: StateData,
  from: number,
): Iterable<string> {
  const { bases } = entries;
  let next = from;
  for (const change of changes.keysBeingWritten()) {
    const [name = '', path] = change.split('\0');
    const row =
      path === undefined ? metaRow(name, meta) : recordRow(name, path, entries.line(name, path));
    // A crash may cut the journal after any line, and new bases appear while it is written.
    const rows = baseRows(bases, next);
    next = bases.length;
    for (const base of rows) yield lineOf(base);
    yield lineOf(row);
  }
  // Written twice, so that one damaged line costs no more than itself.
  for (const base of baseRows(bases, from, next)) yield lineOf(base);
}

/**
 * Yields the texts of a snapshot while the data goes on changing. A change made meanwhile may be
 * missing from the snapshot, so the journal of the same generation must contain it.
 */
export function* snapshotTexts(
  { entries, meta }: StateData,
  signal: AbortSignal,
): Iterable<string> {
  for (const name of meta.keys()) yield metaRow(name, meta);
  for (const [folder, directory, name, line] of entries.lines()) {
    signal.throwIfAborted();
    yield recordRow(folder, joinPath(directory, name), line);
  }
  // At the end: new bases may have appeared meanwhile.
  yield* baseRows(entries.bases, 0);
}

/**
 * Applies the text of one line to `data`.
 *
 * @throws StateError STATE_NEWER if it is the header of a later version
 */
export function applyLine(data: StateData, text: string, dir: string): void {
  if (text.startsWith('"')) applyRecord(data.entries, text);
  else if (text.startsWith('{')) checkVersion(JSON.parse(text), dir);
  else applyRow(data, JSON.parse(text));
}

function applyRow({ entries, meta }: StateData, row: readonly [kind: string, ...string[]]): void {
  const [kind, first = '', second = '', url] = row;
  if (kind === '-') entries.delete(first, second);
  else if (kind === 'u')
    entries.bases[Number(first)] = { collection: second, url: url ?? undefined };
  else if (kind === 'm' && row.length > 2) meta.set(first, row[2] as Json);
  else if (kind === 'm') meta.delete(first);
  else throw new Error(`a record has the unknown status ${JSON.stringify(kind)}`);
}

function applyRecord(entries: Entries, text: string): void {
  const [middle, end] = [text.indexOf('","'), text.indexOf('",[')];
  if (text.includes('\\')) {
    const [folder, path, record] = JSON.parse(`[${text}]`);
    entries.set(folder, path, JSON.stringify(record));
  } else entries.set(text.slice(1, middle), text.slice(middle + 3, end), text.slice(end + 2));
}

/** Checks the version in a header. A footer has none. */
function checkVersion(line: Readonly<Partial<typeof VERSIONS>>, dir: string): void {
  const { format, schema } = { ...VERSIONS, ...line };
  if (schema < VERSIONS.schema)
    throw new StateError('STATE_DAMAGED', { dir, detail: 'it is from before the first release' });
  if (format <= VERSIONS.format && schema === VERSIONS.schema) return;
  const detail = `schema ${format}.${schema}; this one knows ${VERSIONS.format}.${VERSIONS.schema}`;
  throw new StateError('STATE_NEWER', { dir, detail });
}
