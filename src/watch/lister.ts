import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, type Stats, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock, Timer } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import type { FileStat } from '../lib/file-stat.js';
import type { Answered, WorkThread } from '../lib/work-thread.js';

/**
 * Lists directories in threads: names and stats, synchronously, one directory at a time. A thread sends what it found
 * only when the digest of it differs from the one that is known, so that an unchanged directory costs the event loop one
 * comparison. Two threads listed 1,000,000 files in 3.2 s where `find` took 2.8 s.
 */

/** So many entries are handed over at a time. */
const BATCH = 500;
const FIGURES = 5;
const KINDS = ['file', 'directory', 'link', 'other'] as const;

/** Something else than a directory stands there: no code of the system's. */
export const NOT_A_DIRECTORY = 'NOT_A_DIRECTORY';

/** What stands at a name in a directory. */
export interface Found {
  readonly name: string;
  readonly kind: (typeof KINDS)[number];
  readonly stat: FileStat;
}

/** What distinguishes a directory from another one that takes its place, and when it was changed. */
export interface DirectoryStat {
  readonly dev: number;
  readonly ino: number;
  readonly birthtimeMs: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly size: number;
}

export interface Listing {
  readonly stat: DirectoryStat;
  /** Of the names, and the stats of what is no directory. */
  readonly digest: number;
  /** How many regular files there are. */
  readonly files: number;
  readonly hasLinks: boolean;
  readonly directories: readonly string[];
  /** Names that could not be looked at, with the system's code. */
  readonly failed: readonly { readonly name: string; readonly code: string }[];
  /** What stands in it, in batches; undefined where the digest is the known one. */
  readonly entries: AsyncIterable<readonly Found[]> | undefined;
}

export interface Lister {
  /**
   * @param known the digest that is known
   * @param follow whether `directory` may be a link
   * @returns the system's code where it cannot be listed
   */
  list(
    directory: string,
    known: number | undefined,
    follow: boolean,
  ): Promise<Listing | { readonly code: string }>;
}

/** Asks for work of `listWork`. */
type Ask = <T>(work: keyof typeof listWork, order: unknown) => Promise<T>;

/** Lists in this thread. */
export const listHere: Lister = {
  async list(directory, known, follow) {
    await nextTurn();
    return await listBy(
      async <T>(work: keyof typeof listWork, order: unknown) => {
        return listWork[work](order as never).value as T;
      },
      { directory, known, follow },
    );
  },
};

/** Lists in threads. Each costs some 10 MB, so they end when nothing was listed for a while. */
export class ThreadLister implements Lister {
  readonly #options: ThreadListerOptions;
  #threads: readonly WorkThread[] = [];
  #timer: Timer | undefined;
  #isUsed = false;

  constructor(options: ThreadListerOptions) {
    this.#options = options;
  }

  async list(...[directory, known, follow]: Parameters<Lister['list']>): ReturnType<Lister['list']> {
    if (this.#threads.length === 0) this.#start();
    const thread = this.#threads.reduce((a, b) => (b.waiting < a.waiting ? b : a));
    const ask: Ask = (work, order) => {
      this.#isUsed = true;
      return thread.ask(work, order);
    };
    return await listBy(ask, { directory, known, follow });
  }

  /** Ends the threads; what they had not answered is rejected. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const threads = this.#threads;
    this.#threads = [];
    await Promise.all(threads.map((thread) => thread.close()));
  }

  #start(): void {
    const { open, threads = Math.min(2, availableParallelism()) } = this.#options;
    this.#threads = Array.from({ length: threads }, open);
    this.#endWhenIdle();
  }

  #endWhenIdle(): void {
    const { clock, idleMs = 30_000 } = this.#options;
    this.#isUsed = false;
    this.#timer = clock.after(
      idleMs,
      () => {
        if (this.#isUsed || this.#threads.some(({ waiting }) => waiting > 0)) this.#endWhenIdle();
        else void this.close();
      },
      { background: true },
    );
  }
}

export interface ThreadListerOptions {
  /** Makes a thread that serves `listWork`. */
  readonly open: () => WorkThread;
  /** How many list at once. @default 2, on one core 1 */
  readonly threads?: number;
  readonly clock: Clock;
  /** In ms. @default 30 s */
  readonly idleMs?: number;
}

async function listBy(ask: Ask, order: ListOrder): Promise<Listing | { readonly code: string }> {
  const answer = await ask<ListAnswer>('list', order);
  if ('code' in answer) return answer;
  const { stat, digest, files, hasLinks, directories, failed, first } = answer;
  return {
    ...{ stat, digest, files, hasLinks, failed },
    directories: directories === '' ? [] : directories.split('\0'),
    entries: first === undefined ? undefined : batches(ask, first),
  };
}

async function* batches(ask: Ask, first: Batch): AsyncIterable<readonly Found[]> {
  for (let batch: Batch | undefined = first; batch !== undefined; ) {
    yield decoded(batch);
    batch = batch.rest === undefined ? undefined : await ask<Batch>('more', batch.rest);
  }
}

function decoded({ names, figures }: Batch): Found[] {
  const figure = (at: number): number => figures[at] ?? 0;
  return names.split('\0').map((name, i) => {
    const at = FIGURES * i;
    const stat = {
      size: figure(at + 1),
      mtimeMs: figure(at + 2),
      ctimeMs: figure(at + 3),
      ino: figure(at + 4),
    };
    return { name, kind: KINDS[figure(at)] ?? 'other', stat };
  });
}

interface ListOrder {
  readonly directory: string;
  readonly known: number | undefined;
  readonly follow: boolean;
}

/** Entries in few large values, which cross to another thread at little cost. */
interface Batch {
  /** With a NUL between two. */
  readonly names: string;
  /** FIGURES for each: kind, size, mtime, ctime, inode. */
  readonly figures: Float64Array;
  /** Where to ask for more, if there are more. */
  readonly rest: number | undefined;
}

type ListAnswer =
  | { readonly code: string }
  | (Omit<Listing, 'directories' | 'entries'> & {
      readonly directories: string;
      readonly first: Batch | undefined;
    });

/** What was listed and not asked for yet. */
const rests = new Map<number, Rest>();
let lastRest = 0;

interface Rest {
  readonly names: readonly string[];
  readonly figures: Float64Array;
  /** How many of them were handed over. */
  readonly from: number;
}

/** What a thread that lists serves. */
export const listWork = {
  list: (order: ListOrder): Answered => {
    try {
      const value = list(order);
      return { value };
    } catch (error) {
      return { value: { code: systemCode(error) ?? messageOf(error) } };
    }
  },
  more: (rest: number): Answered => {
    const found = rests.get(rest);
    rests.delete(rest);
    return { value: found === undefined ? undefined : batchOf(found) };
  },
};

function list({ directory, known, follow }: ListOrder): ListAnswer {
  const stats = follow ? statSync(directory) : lstatSync(directory);
  if (!stats.isDirectory()) return { code: NOT_A_DIRECTORY };
  const entries = readdirSync(directory, { withFileTypes: true });
  const names: string[] = [];
  const directories: string[] = [];
  const failed: { name: string; code: string }[] = [];
  const figures = new Float64Array(FIGURES * entries.length);
  let [files, hasLinks] = [0, false];
  for (const entry of entries) {
    const at = FIGURES * names.length;
    if (entry.isDirectory()) {
      directories.push(entry.name);
      figures[at] = 1;
    } else {
      const found = lookAt(`${directory}/${entry.name}`);
      if (typeof found === 'string') {
        failed.push({ name: entry.name, code: found });
        continue;
      }
      const kind = found.isFile() ? 0 : found.isSymbolicLink() ? 2 : found.isDirectory() ? 1 : 3;
      if (kind === 0) files += 1;
      if (kind === 1) directories.push(entry.name);
      hasLinks ||= kind === 2;
      figures.set([kind, found.size, found.mtimeMs, found.ctimeMs, found.ino], at);
    }
    names.push(entry.name);
  }
  const used = figures.subarray(0, FIGURES * names.length);
  const digest = createHash('sha1')
    .update(names.join('\0'))
    .update(new Uint8Array(used.buffer, 0, used.byteLength))
    .digest()
    .readUIntBE(0, 6);
  const { dev, ino, birthtimeMs, mtimeMs, ctimeMs, size } = stats;
  return {
    stat: { dev, ino, birthtimeMs, mtimeMs, ctimeMs, size },
    ...{ digest, files, hasLinks, directories: directories.join('\0'), failed },
    first: digest === known || names.length === 0 ? undefined : batchOf({ names, figures: used, from: 0 }),
  };
}

function batchOf({ names, figures, from }: Rest): Batch {
  const to = from + BATCH;
  let rest: number | undefined;
  if (names.length > to) {
    lastRest += 1;
    rest = lastRest;
    rests.set(rest, { names, figures, from: to });
  }
  return {
    names: names.slice(from, to).join('\0'),
    figures: figures.slice(FIGURES * from, FIGURES * to),
    rest,
  };
}

/** The stat of a name, a link itself and not its target, or the system's code. */
function lookAt(path: string): Stats | string {
  try {
    return lstatSync(path);
  } catch (error) {
    return systemCode(error) ?? messageOf(error);
  }
}
