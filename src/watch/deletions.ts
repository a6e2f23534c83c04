import type { FolderConfig } from '../config/config.js';
import { documentUrl } from '../config/url.js';
import type { Timer } from '../lib/clock.js';
import { type FileStat, sameStat } from '../lib/file.js';
import { nextTurn, Pace } from '../lib/slices.js';
import { counted, escapeInvisible, numberText, quoted, shellWord } from '../lib/text.js';
import {
  contentOf,
  type Entry,
  type GoneItem,
  isExcluded,
  isRenamed,
  removing,
  type Sent,
  type SkippedFile,
} from '../state/entry.js';
import { isSkippedUnsent, sinceOf } from '../state/line.js';
import type { State, StateView } from '../state/state.js';
import { isAbsence, look } from './lister.js';
import type { FolderDeps } from './reconciler.js';
import { UnreadFiles } from './unread-files.js';

/**
 * Files that were removed at once, so many that a person is to approve it. A type and not an
 * interface, for it is kept as JSON.
 */
export type HeldDeletes = {
  /** How many; renamed ones do not count. */
  readonly files: number;
  /** How many files the folder had with them. */
  readonly of: number;
  /** The paths of some, relative to the folder. */
  readonly examples: readonly string[];
  /** Since when they are held, in ms since the epoch. */
  readonly since: number;
  /** Meant is what was removed before this, in ms since the epoch. */
  readonly before: number;
};

/**
 * So many documents are removed in any case, and such a share of the folder. Where more than both
 * went within a minute, those that went then wait for a person.
 */
const FEW = 20;
const FEW_SHARE = 0.1;
const SPAN_SECONDS = 60;
const EXAMPLES = 3;

/** Scans for the sake of removed files take at most a twentieth of the time. */
const REST = 19;
/**
 * How long a file that is not read yet, and may be the removed one, keeps its document from being
 * removed, in ms.
 */
const LONGEST_UNREAD_MS = 600_000;
/** So many files are looked for at once, and put into state without a pause. */
const SLICE = 50;

const heldKey = (folder: string) => `watch.held-deletes.${folder}`;
const approvedKey = (folder: string) => `watch.approved-deletes.${folder}`;

/** The removed files of a folder whose documents wait for a person. */
export function unapprovedDeletes(
  state: Pick<StateView, 'meta'>,
  folder: string,
): HeldDeletes | undefined {
  const held = heldDeletes(state, folder);
  return held?.before === state.meta(approvedKey(folder)) ? undefined : held;
}

/** Those that waited for `approveDeletes` when the folder was scanned last. */
export function heldDeletes(
  state: Pick<StateView, 'meta'>,
  folder: string,
): HeldDeletes | undefined {
  return state.meta(heldKey(folder)) as HeldDeletes | undefined;
}

/**
 * A person wants the documents of the held files to be removed: the next full scan decides so. In
 * memory; see `State.commit`.
 */
export function approveDeletes(state: State, folder: string): void {
  state.setMeta(approvedKey(folder), heldDeletes(state, folder)?.before);
}

/**
 * Whether documents of removed files are removed from the peer. Unless the folder says so, they are
 * with the embedded peer; nothing is as long as nobody knows what the peer is.
 *
 * @param isEmbedded whether the peer is an embedded one; undefined while that is not known
 */
export function removesDocuments(
  { onDelete }: Pick<FolderConfig, 'onDelete'>,
  isEmbedded: boolean | undefined,
): boolean {
  return onDelete === undefined ? isEmbedded === true : onDelete === 'remove';
}

/** A record whose document may be to be removed: its file is gone, or is there and kept out. */
type Candidate = (GoneItem | SkippedFile) & { readonly sent: Sent };

/**
 * Whether the document of a file that is gone, or of one whose content is kept out, is to be
 * removed from the peer, as soon as that is certain: not where its URL is another one now. What a
 * rule of paths keeps out stays, for a rule may be mistaken.
 */
export function isToBeRemoved(
  entry: Entry,
  folder: Pick<FolderConfig, 'onDelete' | 'url'> | undefined,
  isEmbedded: boolean | undefined,
): entry is Candidate {
  if (folder === undefined || !isOut(entry) || !removesDocuments(folder, isEmbedded)) return false;
  return entry.sent.url === documentUrl(folder.url, entry.path);
}

/** Whether a file is gone, or kept out for its content, of which the peer was sent a document. */
function isOut(entry: Entry): entry is Candidate {
  const isAway = entry.status === 'gone' || (entry.status === 'skipped' && !isExcluded(entry));
  return isAway && entry.sent !== undefined;
}

/** A file whose document is a candidate, and nobody has approved that. */
interface Unapproved {
  readonly path: string;
  readonly second: number;
}

/**
 * Decides which documents of one folder are to be removed from the peer, for their files were
 * removed.
 *
 * A file that is found to be gone, or to have content that is kept out, asks for a full scan. At
 * the end of a full scan, a document is to be removed whose file was gone, or kept out, before the
 * scan began and still is, while the root is certainly the folder. It waits for another scan while
 * a file that is not read yet may be the same one under another name. Very many that went within a
 * minute are *held*, until a person approves them or they come back.
 */
export class Deletions {
  #timer: Timer | undefined;
  /** No scan is asked for before this, in ms since the epoch. */
  #nextAt = Number.NEGATIVE_INFINITY;
  #isStopped = false;

  /**
   * @param reading the files that are being read, as they were found
   * @param rescan scans the whole folder
   */
  constructor(
    private readonly deps: FolderDeps,
    private readonly reading: ReadonlyMap<string, FileStat>,
    private readonly rescan: () => Promise<{ readonly durationMs: number }>,
  ) {}

  /** Whether a scan was asked for and has not begun. */
  get isWaiting(): boolean {
    return this.#timer !== undefined;
  }

  /** The record of a file changed. Where files are held, one that is back may end that. */
  changed(after: Entry | undefined, before: Entry['status'] | undefined): void {
    const { folder, state } = this.deps;
    const isLeaving = after !== undefined && this.#isToBeRemoved(after);
    const isBack = (before === 'gone' || before === 'skipped') && after?.status !== 'removing';
    if (isLeaving || (isBack && heldDeletes(state, folder.name) !== undefined)) this.#ask();
  }

  #isToBeRemoved(entry: Entry): entry is Candidate {
    const { folder, isEmbedded } = this.deps;
    if (!isOut(entry)) return false;
    return isToBeRemoved(entry, folder, folder.onDelete === undefined ? isEmbedded() : undefined);
  }

  /** A scan is to follow soon. */
  #ask(): void {
    const { clock, policy } = this.deps;
    if (this.#timer !== undefined || this.#isStopped) return;
    this.#wait(Math.max(policy.deletionPauseMs, this.#nextAt - clock.now()));
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #wait(ms: number): void {
    const { clock } = this.deps;
    this.#timer = clock.after(ms, () => {
      this.#timer = undefined;
      const now = clock.now();
      // A scan that has ended since then took long.
      if (now < this.#nextAt) this.#wait(this.#nextAt - now);
      else void this.#scan(now);
    });
  }

  async #scan(now: number): Promise<void> {
    const { clock, debouncer, policy } = this.deps;
    this.#nextAt = now + policy.deletionScanMs;
    // Files that were removed together are to be decided about together.
    await debouncer.caughtUp(policy.deletionScanMs);
    if (this.#isStopped) return;
    const { durationMs } = await this.rescan();
    this.#nextAt = Math.max(this.#nextAt, clock.now() + REST * durationMs);
  }

  /** A full scan is over. @param began when it began, in ms since the epoch */
  async decide(began: number): Promise<void> {
    const { clock, debouncer, folder, state } = this.deps;
    const kept = Number(state.meta(approvedKey(folder.name)) ?? Number.NEGATIVE_INFINITY);
    // One from ahead was given in an earlier run whose clock was wrong: it holds for what went
    // then, and for nothing since.
    const approved = kept > began ? 0 : kept;
    const unread = await UnreadFiles.of(debouncer, this.reading, clock);
    const isUnread = (item: Candidate) =>
      this.#goneSince(item) >= began - LONGEST_UNREAD_MS && unread.mayBe(item);
    const before = clock.now();
    const found = new Map<string, Unapproved[]>();
    let all = 0;
    let waiting = 0;
    let isApprovedWaiting = false;
    for await (const item of this.#candidates(before, unread)) {
      all += 1;
      const since = this.#goneSince(item);
      const mayMove = isUnread(item);
      if (mayMove || since >= began) {
        waiting += 1;
        isApprovedWaiting ||= since < approved;
      }
      if (mayMove || since < approved) continue;
      const content = contentOf(item) ?? item.path;
      const same = found.get(content);
      const one = { path: item.path, second: secondOf(item) };
      if (same === undefined) found.set(content, [one]);
      else same.push(one);
    }
    if (waiting > 0) this.#ask();
    const crowded = await this.#crowded(found, all);
    this.#hold(this.#heldOf(found, { all, crowded, before }));
    const isFree = (item: Candidate) =>
      !isUnread(item) && (this.#goneSince(item) < approved || !crowded.has(secondOf(item)));
    const isDone = all === waiting || (await this.#remove(began, unread, isFree));
    if (isDone && !isApprovedWaiting && approved > Number.NEGATIVE_INFINITY)
      state.setMeta(approvedKey(folder.name), undefined);
  }

  /**
   * The seconds in which files went that are held, for very many went within a minute of each.
   *
   * @param found by their content; those that are there under another name are taken out
   */
  async #crowded(found: Map<string, Unapproved[]>, all: number): Promise<ReadonlySet<number>> {
    const { folder, state } = this.deps;
    const limit = this.#limit(all);
    const crowded = crowdedSeconds(found, limit);
    if (crowded.size === 0) return crowded;
    const live = ['pending', 'accepted', 'confirmed'] as const;
    for await (const slice of state.entries.slices({ folder: folder.name, status: live }))
      for (const entry of slice) found.get(contentOf(entry) ?? '')?.pop();
    return crowdedSeconds(found, limit);
  }

  /**
   * How many of the files of the folder, `all` removed ones among them, may go without a person.
   */
  #limit(all: number): number {
    return Math.max(FEW, FEW_SHARE * this.#filesWith(all));
  }

  #filesWith(all: number): number {
    const { pending, accepted, confirmed, quarantined } = this.deps.state.counts(
      this.deps.folder.name,
    );
    return pending + accepted + confirmed + quarantined + all;
  }

  #heldOf(
    found: ReadonlyMap<string, readonly Unapproved[]>,
    { all, crowded, before }: { all: number; crowded: ReadonlySet<number>; before: number },
  ): HeldDeletes | undefined {
    if (crowded.size === 0) return undefined;
    const { clock, folder, state } = this.deps;
    let files = 0;
    const examples: string[] = [];
    for (const same of found.values())
      for (const { path, second } of same) {
        if (!crowded.has(second)) continue;
        files += 1;
        if (examples.length < EXAMPLES) examples.push(path);
      }
    const since = heldDeletes(state, folder.name)?.since ?? clock.now();
    return { files, of: this.#filesWith(all), examples, since, before };
  }

  #hold(held: HeldDeletes | undefined): void {
    const { changed, folder, log, state } = this.deps;
    const { name } = folder;
    const known = heldDeletes(state, name);
    if (held === known) return;
    state.setMeta(heldKey(name), held);
    changed();
    if (known === undefined && held !== undefined) {
      const { message, hint } = deletesHeld(name, held);
      log.warn({ event: 'deletes-held', folder: name, code: 'DELETES_HELD' }, `${message} ${hint}`);
    }
  }

  /**
   * Since when a file is gone. A time ahead is of an earlier run whose clock was wrong: the file
   * went before this run began.
   */
  #goneSince({ since }: Pick<Candidate, 'since'>): number {
    return since > this.deps.clock.now() ? Number.NEGATIVE_INFINITY : since;
  }

  /**
   * The gone items that are to be decided about. @param before those that were gone before this, in
   * ms since the epoch
   */
  async *#candidates(before: number, unread: UnreadFiles): AsyncGenerator<Candidate> {
    const { folder, rules, state } = this.deps;
    const { gone, skipped } = state.counts(folder.name);
    if (folder.onDelete === 'keep' || gone + skipped === 0) return;
    const status = ['gone', 'skipped'] as const;
    const where = (line: string) =>
      this.#goneSince({ since: sinceOf(line) }) < before && !isSkippedUnsent(line);
    const pace = new Pace(SLICE);
    for await (const slice of state.entries.slices({ folder: folder.name, status, where })) {
      for (const entry of slice) {
        if (pace.step()) await nextTurn();
        if (!this.#isToBeRemoved(entry)) continue;
        if (state.entries.ownerOf(entry.sent.url, entry) !== undefined) continue;
        // The scan did not look whether it is back, or it may be back and waits to be read.
        const isSeen =
          unread.isComplete && !unread.has(entry.path) && rules.decide(entry.path).take;
        if (!isSeen && !(await this.#isStillOut(entry))) continue;
        yield entry;
      }
    }
  }

  /**
   * The free ones of the candidates are to be removed. @returns whether nothing kept it from that
   */
  async #remove(
    before: number,
    unread: UnreadFiles,
    isFree: (item: Candidate) => boolean,
  ): Promise<boolean> {
    const { folder, log } = this.deps;
    let documents = 0;
    let slice: Candidate[] = [];
    const removeSlice = async () => {
      const done = await this.#removeSlice(slice);
      documents += done ?? 0;
      slice = [];
      return done !== undefined;
    };
    for await (const item of this.#candidates(before, unread)) {
      if (!isFree(item)) continue;
      slice.push(item);
      if (slice.length === SLICE && !(await removeSlice())) return false;
    }
    const isDone = await removeSlice();
    if (documents > 0)
      log.info(
        { event: 'removing', folder: folder.name, documents },
        removedText(documents, folder.name),
      );
    return isDone;
  }

  /**
   * Whether no file is there, or the same one that is kept out. What cannot be looked at proves
   * nothing.
   */
  async #isStillOut({ path, status, version }: Candidate): Promise<boolean> {
    const { absolute, folder } = this.deps;
    const found = await look(absolute(path), status === 'skipped' && folder.followSymlinks);
    if ('code' in found) return isAbsence(found.code);
    if (status === 'skipped' && found.kind === 'file') return sameStat(found.stat, version);
    return found.kind !== 'file' && !(found.kind === 'link' && folder.followSymlinks);
  }

  /**
   * @returns how many documents are to be removed, renamed files not counted; undefined where the
   *   root is not certain any more
   */
  async #removeSlice(slice: readonly Candidate[]): Promise<number | undefined> {
    const { changed, clock, folder, isCertain, isUnmounted, state } = this.deps;
    const out = await Promise.all(slice.map((item) => this.#isStillOut(item)));
    if (this.#isStopped || !(await isCertain())) return undefined;
    let documents = 0;
    for (const [i, { path, since }] of slice.entries()) {
      const now = state.get(folder.name, path);
      if (!out[i] || isUnmounted(path) || now?.since !== since || !this.#isToBeRemoved(now))
        continue;
      state.put(removing(now, clock.now()));
      // A rename was told as one.
      if (now.status === 'skipped' || !isRenamed(now)) documents += 1;
    }
    changed();
    return documents;
  }
}

function secondOf({ since }: Candidate): number {
  return Math.floor(since / 1_000);
}

/** The seconds that belong to a minute in which more than `limit` files went. */
function crowdedSeconds(
  found: ReadonlyMap<string, readonly Unapproved[]>,
  limit: number,
): Set<number> {
  const counts = new Map<number, number>();
  for (const same of found.values())
    for (const { second } of same) counts.set(second, (counts.get(second) ?? 0) + 1);
  const crowded = new Set<number>();
  const minute: number[] = [];
  let files = 0;
  for (const second of [...counts.keys()].sort((a, b) => a - b)) {
    minute.push(second);
    files += counts.get(second) ?? 0;
    for (
      let first = minute[0];
      first !== undefined && first <= second - SPAN_SECONDS;
      first = minute[0]
    ) {
      minute.shift();
      files -= counts.get(first) ?? 0;
    }
    if (files > limit) for (const one of minute) crowded.add(one);
  }
  return crowded;
}

/** What a person is told, and what to do. */
export function deletesHeld(folder: string, { examples, files, of }: HeldDeletes) {
  return {
    code: 'DELETES_HELD',
    message: `${numberText(files)} of ${numberText(of)} files of the folder ${quoted(folder)} were removed or emptied at once, such as ${examples.map(escapeInvisible).join(', ')}; the peer keeps their documents until you approve that.`,
    hint: `\`peersync approve-deletes ${shellWord(folder)}\` removes the documents; files that come back end this.`,
  };
}

/** What the log says of removed files whose documents go. */
function removedText(files: number, folder: string): string {
  const [were, documents] =
    files === 1 ? ['was', 'its document goes'] : ['were', 'their documents go'];
  return `${counted(files, 'file')} ${were} removed from ${quoted(folder)}; ${documents}, too`;
}
