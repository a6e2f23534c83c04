import { setImmediate as nextTurn } from 'node:timers/promises';
import { joinPath } from '../lib/file.js';
import type { EntriesReader } from './entries-reader.js';
import type { Entry, Place } from './entry.js';
import { decode, statusOf } from './line.js';

/** So many names are collected, sorted or merged without a pause: 2 to 3 ms. */
const RUN = 4_096;
/** So many records are read in a slice. */
const SLICE = 1_000;

/** The records that are asked for: all where nothing is given. */
interface Chosen {
  readonly folder?: string | undefined;
  readonly status?: Entry['status'] | undefined;
}

/** Says when the event loop is to turn: after so many steps of a walk. */
class Pace {
  #steps = 0;

  /** Counts one more step. @returns whether it is time for a pause */
  step(): boolean {
    this.#steps = (this.#steps + 1) % RUN;
    return this.#steps === 0;
  }
}

/**
 * A directory whose children are passed: names of files, and names of directories with a slash at
 * the end, in order.
 */
interface Passing {
  readonly path: string;
  readonly children: readonly string[];
  next: number;
}

/**
 * The chosen records by folder and by path, in slices that take a few milliseconds each; the event
 * loop turns between two.
 *
 * Paths are ordered as whole texts, as `LC_ALL=C sort` has them. The names of one directory are
 * sorted at a time, and kept with those of the directories that it stands in. A record is read when
 * its turn comes, so that it is never an older one.
 */
export async function* sortedEntries(
  entries: EntriesReader,
  { folder, status }: Chosen = {},
): AsyncGenerator<readonly Entry[]> {
  for (const name of folder === undefined ? [...entries.folders()].sort() : [folder]) {
    if (status !== undefined && entries.counts(name)[status] === 0) continue;
    for await (const paths of sortedPaths(entries, name, status)) {
      const slice: Entry[] = [];
      for (const path of paths) {
        const line = entries.line(name, path);
        if (line === undefined || (status !== undefined && statusOf(line) !== status)) continue;
        slice.push(decode(line, name, path, entries.bases));
      }
      if (slice.length > 0) yield slice;
      await nextTurn();
    }
  }
}

/**
 * The paths of a folder in their order, those that are on disk alone among them, some at a time.
 */
async function* sortedPaths(
  entries: EntriesReader,
  folder: string,
  status: Chosen['status'],
): AsyncGenerator<readonly string[]> {
  const forgotten = await sortNames(await entries.forgottenPaths(folder));
  let at = 0;
  for await (const paths of walk(entries, folder, status)) {
    const slice: string[] = [];
    for (const path of paths) {
      for (let next = forgotten[at]; next !== undefined && next <= path; next = forgotten[at]) {
        // It may be in memory again.
        if (next !== path) slice.push(next);
        at += 1;
        if (slice.length >= 2 * SLICE) yield slice.splice(0);
      }
      slice.push(path);
    }
    yield slice;
  }
  for (; at < forgotten.length; at += SLICE) yield forgotten.slice(at, at + SLICE);
}

/**
 * The paths with a record in memory, in their order: directory by directory, and into each where
 * its turn comes.
 */
async function* walk(
  entries: EntriesReader,
  folder: string,
  status: Chosen['status'],
): AsyncGenerator<readonly string[]> {
  const pace = new Pace();
  const enter = async (path: string): Promise<Passing> => {
    const children = await childrenOf(entries, { folder, path }, status, pace);
    return { path, children, next: 0 };
  };
  const stack = [await enter('')];
  let paths: string[] = [];
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const child = top.children[top.next];
    top.next += 1;
    if (child === undefined) stack.pop();
    else if (!child.endsWith('/')) paths.push(joinPath(top.path, child));
    else stack.push(await enter(joinPath(top.path, child.slice(0, -1))));
    if (paths.length === SLICE) {
      yield paths;
      paths = [];
    }
  }
  if (paths.length > 0) yield paths;
}

/** What stands directly in a directory, in order. */
async function childrenOf(
  entries: EntriesReader,
  { folder, path: directory }: Place,
  status: Chosen['status'],
  pace: Pace,
): Promise<readonly string[]> {
  const children: string[] = [];
  for (const [name, line] of entries.linesIn(folder, directory)) {
    if (status === undefined || statusOf(line) === status) children.push(name);
    if (pace.step()) await nextTurn();
  }
  for (const name of entries.knownDirectories(folder, directory)) {
    children.push(`${name}/`);
    if (pace.step()) await nextTurn();
  }
  return await sortNames(children);
}

/**
 * Sorts the names in place, or into another list where they are many: sorted runs are merged, two
 * by two.
 */
async function sortNames(names: string[]): Promise<string[]> {
  if (names.length <= RUN) return names.sort();
  let from: string[] = [];
  for (let at = 0; at < names.length; at += RUN) {
    from.push(...names.slice(at, at + RUN).sort());
    await nextTurn();
  }
  let to = names;
  for (let width = RUN; width < names.length; width *= 2) {
    for (let at = 0; at < names.length; at += 2 * width) await merge(from, to, at, width);
    [from, to] = [to, from];
  }
  return from;
}

/**
 * Merges the sorted runs of `from` that begin at `start` and at `start + width` into the same place
 * of `to`.
 */
async function merge(
  from: readonly string[],
  to: string[],
  start: number,
  width: number,
): Promise<void> {
  const middle = Math.min(start + width, from.length);
  const end = Math.min(start + 2 * width, from.length);
  let left = start;
  let right = middle;
  for (let at = start; at < end; at += 1) {
    const isLeft = right >= end || (left < middle && (from[left] ?? '') <= (from[right] ?? ''));
    to[at] = from[isLeft ? left++ : right++] ?? '';
    if ((at - start) % RUN === RUN - 1) await nextTurn();
  }
}
