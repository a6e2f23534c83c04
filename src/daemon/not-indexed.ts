import { join } from 'node:path';
import type { NotIndexedFile, NotIndexedFiles, SoughtWord } from '../embedded/daemon-link.js';
import { wordsOf } from '../embedded/words.js';
import type { Clock } from '../lib/clock.js';
import { withConfig, withFile } from '../lib/hint.js';
import { Pace, Yielder } from '../lib/slices.js';
import { escapeInvisible, sentence } from '../lib/text.js';
import type { CurrentConfig } from '../report/live.js';
import { type Entry, recordKey } from '../state/entry.js';
import type { State } from '../state/state.js';
import { UNNAMED } from '../watch/rules/failures.js';
import { whyCommand } from './originals.js';

export interface NotIndexedDeps {
  readonly state: Pick<State, 'entries' | 'committed' | 'onChange'>;
  readonly current: Pick<CurrentConfig, 'config'>;
  readonly clock: Pick<Clock, 'now'>;
  /** The configuration file, if commands have to name it with `-c`. */
  readonly configFile?: string | undefined;
  /** The most names. @default 10000 */
  readonly most?: number;
}

/** The name of a file that is not indexed. */
interface Name {
  readonly folder: string;
  readonly path: string;
  readonly isQuarantined: boolean;
  readonly since: number;
  /** The folded words of the path, each between spaces. */
  readonly words: string;
  /** The position of the first word of the name, without its directories. */
  readonly nameAt: number;
}

interface Match {
  readonly name: Name;
  /** The greater, the better. */
  readonly rank: number;
}

const MOST_NAMES = 10_000;
/** Names beyond the limit that are kept until the oldest are dropped, as a fraction of it. */
const SLACK = 0.2;
const MOST_SHOWN = 5;
/** The most records that are read for an answer. Some may not be on disk yet. */
const MOST_READ = 50;

/**
 * The names of the files that are skipped or quarantined, so that a search finds them and says why
 * they are not searchable.
 *
 * `start` reads the state in slices, and follows its changes from then on. Up to 10,000 names are
 * kept. If there are more, each reason (the code of the failure) keeps its newest names, and no
 * reason has more than its share while another one needs it: thousands of photographs without OCR
 * do not displace a document with a password. Files that a path rule excludes have no record, so
 * they are not found here. Neither are files with a private key, and files that cannot be read:
 * nobody could look whether they have one.
 *
 * A question compares all names in memory, in slices: 10,000 take about 6 ms. The files of the
 * answer are read from the state on disk.
 */
export class NotIndexedNames {
  readonly #most: number;
  /** By the code of the failure, then by the key of the record. */
  readonly #names = new Map<string, Map<string, Name>>();
  #size = 0;
  #isRead = false;
  #wasDropped = false;
  #unfollow = () => {};
  readonly #stopping = new AbortController();

  constructor(private readonly deps: NotIndexedDeps) {
    this.#most = deps.most ?? MOST_NAMES;
  }

  /** The number of names that are kept. */
  get size(): number {
    return this.#size;
  }

  /** Reads the state, and follows it. Resolves when it is read. */
  async start(): Promise<void> {
    const { state } = this.deps;
    this.#unfollow = state.onChange((after, before, { folder, path }) => {
      if (before === 'skipped' || before === 'quarantined') this.#delete(recordKey(folder, path));
      if (after !== undefined) this.#put(after);
    });
    const status: Entry['status'][] = ['skipped', 'quarantined'];
    for await (const slice of state.entries.slices({ status })) {
      if (this.#stopping.signal.aborted) return;
      for (const entry of slice) this.#put(entry);
    }
    this.#isRead = true;
  }

  stop(): void {
    this.#stopping.abort();
    this.#unfollow();
  }

  /**
   * Finds the files whose paths have all words. Those with the words in their names come first,
   * then quarantined files, then the newest.
   */
  async find(words: readonly SoughtWord[]): Promise<NotIndexedFiles> {
    const sought = words.map(({ isPrefix, spellings }) =>
      spellings.map((word) => (isPrefix ? ` ${word}` : ` ${word} `)),
    );
    const [pace, yielder] = [new Pace(), new Yielder(this.deps.clock)];
    const best: Match[] = [];
    let total = 0;
    for (const names of this.#names.values())
      for (const name of names.values()) {
        if (pace.step()) await yielder.turn();
        const rank = rankOf(name, sought);
        if (rank === undefined) continue;
        total += 1;
        addTo(best, { name, rank });
      }
    const files: NotIndexedFile[] = [];
    for (const { name } of best) {
      if (files.length === MOST_SHOWN) break;
      const file = this.#fileOf(name);
      if (file === undefined) total -= 1;
      else files.push(file);
    }
    return { files, total, totalIsExact: this.#isRead && !this.#wasDropped };
  }

  /** Returns a file as the state on disk has it; undefined if it is indexed there, or unknown. */
  #fileOf({ folder, path }: Name): NotIndexedFile | undefined {
    const { configFile, current, state } = this.deps;
    const root = current.config.folders.find(({ name }) => name === folder)?.path;
    const entry = state.committed.get(folder, path);
    if (root === undefined || !isNamed(entry)) return undefined;
    const { code, hint, message } = entry.failure;
    const file = join(root, path);
    const command = withConfig(`\`${whyCommand(file)}\``, configFile).slice(1, -1);
    return {
      path: file,
      status: entry.status,
      code,
      reason: sentence(message),
      hint: withConfig(withFile(sentence(hint), escapeInvisible(file)), configFile),
      command,
      ...(entry.sent !== undefined && { isOlderSearchable: true }),
    };
  }

  #put(entry: Entry): void {
    if (!isNamed(entry)) return;
    const { failure, folder, path, since, status } = entry;
    const key = recordKey(folder, path);
    const at = path.lastIndexOf('/');
    const [above, own] = [path.slice(0, at + 1), path.slice(at + 1)].map((part) =>
      wordsOf(part).join(' '),
    );
    const before = above === '' ? '' : ` ${above}`;
    const name: Name = {
      folder,
      path,
      since,
      isQuarantined: status === 'quarantined',
      words: `${before} ${own} `,
      nameAt: before.length,
    };
    const names = this.#names.get(failure.code) ?? new Map<string, Name>();
    this.#names.set(failure.code, names);
    this.#size += names.has(key) ? 0 : 1;
    names.set(key, name);
    if (this.#size > this.#most * (1 + SLACK)) this.#dropOldest();
  }

  #delete(key: string): void {
    for (const [code, names] of this.#names) {
      if (!names.delete(key)) continue;
      this.#size -= 1;
      if (names.size === 0) this.#names.delete(code);
      return;
    }
  }

  /** Drops the oldest names of the reasons that have more than their share. */
  #dropOldest(): void {
    this.#wasDropped = true;
    let left = this.#most;
    const reasons = [...this.#names].sort(([, a], [, b]) => a.size - b.size);
    for (const [i, [code, names]] of reasons.entries()) {
      const share = Math.floor(left / (reasons.length - i));
      if (names.size > share) {
        const newest = [...names].sort(([, a], [, b]) => b.since - a.since).slice(0, share);
        this.#names.set(code, new Map(newest));
        this.#size -= names.size - share;
      }
      left -= Math.min(share, names.size);
    }
  }
}

/** Whether a record is of a file that is not indexed and may be named. */
function isNamed(
  entry: Entry | undefined,
): entry is Extract<Entry, { status: 'skipped' | 'quarantined' }> {
  if (entry?.status !== 'skipped' && entry?.status !== 'quarantined') return false;
  return !UNNAMED.has(entry.failure.code);
}

/** Adds a match to the best ones, best first. The last one is dropped if there are too many. */
function addTo(best: Match[], match: Match): void {
  const isBetter = ({ name, rank }: Match): boolean =>
    match.rank > rank || (match.rank === rank && match.name.since > name.since);
  const last = best.at(-1);
  if (best.length === MOST_READ && last !== undefined && !isBetter(last)) return;
  const at = best.findIndex(isBetter);
  best.splice(at === -1 ? best.length : at, 0, match);
  if (best.length > MOST_READ) best.pop();
}

/** Returns how well a path fits; undefined if it lacks a word. */
function rankOf(
  { isQuarantined, nameAt, words }: Name,
  sought: readonly (readonly string[])[],
): number | undefined {
  let isInName = true;
  for (const spellings of sought) {
    let last = -1;
    for (const word of spellings) last = Math.max(last, words.lastIndexOf(word));
    if (last === -1) return undefined;
    isInName &&= last >= nameAt;
  }
  return (isInName ? 2 : 0) + (isQuarantined ? 1 : 0);
}
