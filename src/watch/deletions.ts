import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FolderConfig } from '../config/config.js';
import { documentUrl } from '../config/url.js';
import type { Timer } from '../lib/clock.js';
import { numberText, shellWord } from '../lib/text.js';
import { type AwayItem, contentOf, type GoneItem, isAway, removing, type Sent } from '../state/entry.js';
import { sinceOf } from '../state/line.js';
import type { State, StateView } from '../state/state.js';
import { isAbsence, look } from './lister.js';
import type { FolderDeps } from './reconciler.js';

/** Files that were removed at once, so many that a person is to approve it. A type and not an interface, for it is kept as JSON. */
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

/** So many documents are removed in any case, and such a share of the folder; what is more than both waits for a person. */
const FEW = 20;
const FEW_SHARE = 0.1;
const EXAMPLES = 3;

/** Scans for the sake of removed files take at most a twentieth of the time. */
const REST = 19;
/** How often is asked whether what is new in a folder has been read, in ms; and how long it is waited for. */
const CALM_CHECK_MS = 100;
const LONGEST_UNREST_MS = 600_000;
/** So many files are looked for at once, and put into state without a pause. */
const SLICE = 50;

const heldKey = (folder: string) => `watch.held-deletes.${folder}`;
const approvedKey = (folder: string) => `watch.approved-deletes.${folder}`;

/** The removed files of a folder whose documents wait for a person. */
export function unapprovedDeletes(state: Pick<StateView, 'meta'>, folder: string): HeldDeletes | undefined {
  const held = heldDeletes(state, folder);
  return held?.before === state.meta(approvedKey(folder)) ? undefined : held;
}

/** Those that waited for `approveDeletes` when the folder was scanned last. */
export function heldDeletes(state: Pick<StateView, 'meta'>, folder: string): HeldDeletes | undefined {
  return state.meta(heldKey(folder)) as HeldDeletes | undefined;
}

/** A person wants the documents of the held files to be removed: the next full scan decides so. In memory; see `State.commit`. */
export function approveDeletes(state: State, folder: string): void {
  state.setMeta(approvedKey(folder), heldDeletes(state, folder)?.before);
}

/** Whether the document of a removed file is to be removed from the peer, as soon as that is certain: not where its URL is another one now. */
export function isToBeRemoved(
  item: AwayItem,
  folder: Pick<FolderConfig, 'onDelete' | 'url'> | undefined,
): item is GoneItem & { readonly sent: Sent } {
  const isWanted = folder?.onDelete === 'remove' && item.status === 'gone';
  return isWanted && item.sent?.url === documentUrl(folder.url, item.path);
}

/**
 * Decides which documents of one folder are to be removed from the peer, for their files were removed.
 *
 * A file that is found to be gone asks for a full scan. At the end of a full scan, a document is to be removed whose file was gone
 * before the scan began and is still not there, while the root is certainly the folder. What a scan finds to be new is read
 * before: it may be the same file under another name. Very many at once are *held*, until a person approves them or they come back.
 */
export class Deletions {
  #timer: Timer | undefined;
  /** No scan is asked for before this, in ms since the epoch. */
  #nextAt = Number.NEGATIVE_INFINITY;
  #isStopped = false;

  /**
   * @param isCalm whether nothing waits to be read that may be a new file
   * @param rescan scans the whole folder
   */
  constructor(
    private readonly deps: FolderDeps,
    private readonly isCalm: () => boolean,
    private readonly rescan: () => Promise<{ readonly durationMs: number }>,
  ) {}

  /** Whether a scan was asked for and has not begun. */
  get isWaiting(): boolean {
    return this.#timer !== undefined;
  }

  /** A file was removed. */
  wasGone(item: GoneItem): void {
    if (isToBeRemoved(item, this.deps.folder)) this.#ask();
  }

  /** A removed file is there again. */
  isBack(): void {
    if (heldDeletes(this.deps.state, this.deps.folder.name) !== undefined) this.#ask();
  }

  /** A scan is to follow soon. */
  #ask(): void {
    const { clock, policy } = this.deps;
    if (this.#timer !== undefined || this.#isStopped) return;
    const now = clock.now();
    this.#wait(Math.max(policy.deletionPauseMs, this.#nextAt - now), now);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** @param askedAt in ms since the epoch */
  #wait(ms: number, askedAt: number): void {
    const { clock } = this.deps;
    this.#timer = clock.after(ms, () => {
      this.#timer = undefined;
      const now = clock.now();
      if (now < this.#nextAt) this.#wait(this.#nextAt - now, askedAt);
      else if (!this.isCalm() && now - askedAt < LONGEST_UNREST_MS) this.#wait(CALM_CHECK_MS, askedAt);
      else void this.#scan(now);
    });
  }

  async #scan(now: number): Promise<void> {
    const { clock, policy } = this.deps;
    this.#nextAt = now + policy.deletionScanMs;
    const { durationMs } = await this.rescan();
    this.#nextAt = Math.max(this.#nextAt, clock.now() + REST * durationMs);
  }

  /** A full scan is over. @param began when it began, in ms since the epoch */
  async decide(began: number): Promise<void> {
    const { folder, state } = this.deps;
    const approved = Number(state.meta(approvedKey(folder.name)) ?? Number.NEGATIVE_INFINITY);
    const before = this.isCalm() ? began : began - LONGEST_UNREST_MS;
    /** Not approved yet, by the content: how many, and one of them. */
    const found = new Map<string, { files: number; readonly path: string }>();
    let [all, unapproved, isLate] = [0, 0, false];
    for await (const item of this.#candidates(began)) {
      all += 1;
      if (item.since >= before) isLate = true;
      else if (item.since >= approved) {
        unapproved += 1;
        const key = contentOf(item) ?? item.path;
        const same = found.get(key);
        if (same === undefined) found.set(key, { files: 1, path: item.path });
        else same.files += 1;
      }
    }
    if (isLate) this.#ask();
    const held = await this.#tooMany(found, { all, unapproved, before });
    this.#hold(held);
    if (all === 0 || (await this.#remove(before, held === undefined ? before : approved)))
      if (approved > Number.NEGATIVE_INFINITY) state.setMeta(approvedKey(folder.name), undefined);
  }

  /** What is held of that, if it is too much. */
  async #tooMany(
    found: Map<string, { files: number; readonly path: string }>,
    { all, unapproved, before }: Readonly<Record<'all' | 'unapproved' | 'before', number>>,
  ): Promise<HeldDeletes | undefined> {
    const { clock, folder, state } = this.deps;
    const { pending, accepted, confirmed, quarantined } = state.counts(folder.name);
    const of = pending + accepted + confirmed + quarantined + all;
    const limit = Math.max(FEW, FEW_SHARE * of);
    if (unapproved <= limit) return undefined;
    let files = unapproved;
    const live = ['pending', 'accepted', 'confirmed'] as const;
    for await (const slice of state.entries.slices({ folder: folder.name, status: live }))
      for (const entry of slice) {
        const same = found.get(contentOf(entry) ?? '');
        if (same === undefined || same.files === 0) continue;
        same.files -= 1;
        files -= 1;
      }
    if (files <= limit) return undefined;
    const examples: string[] = [];
    for (const one of found.values()) if (one.files > 0 && examples.push(one.path) === EXAMPLES) break;
    const since = heldDeletes(state, folder.name)?.since ?? clock.now();
    return { files, of, examples, since, before };
  }

  #hold(held: HeldDeletes | undefined): void {
    const { changed, folder, log, state } = this.deps;
    const { name } = folder;
    const known = heldDeletes(state, name);
    if (held === known) return;
    state.setMeta(heldKey(name), held);
    changed();
    if (known === undefined && held !== undefined) {
      const { message, hint } = heldTrouble(name, held);
      log.warn({ event: 'deletes-held', folder: name, code: 'DELETES_HELD' }, `${message} ${hint}`);
    }
  }

  /** The gone items that are to be decided about. @param before those that were gone before this, in ms since the epoch */
  async *#candidates(before: number): AsyncGenerator<GoneItem> {
    const { folder, rules, state } = this.deps;
    if (folder.onDelete === 'keep' || state.counts(folder.name).gone === 0) return;
    const isCalm = this.isCalm();
    const where = (line: string) => sinceOf(line) < before;
    let passed = 0;
    for await (const slice of state.entries.slices({ folder: folder.name, status: ['gone'], where })) {
      for (const entry of slice) {
        passed += 1;
        if (passed % SLICE === 0) await nextTurn();
        if (!isAway(entry) || !isToBeRemoved(entry, folder)) continue;
        if (state.entries.ownerOf(entry.sent.url, entry) !== undefined) continue;
        // Nobody looks whether it is back, or it may be back and waits to be read.
        const isSeen = isCalm && rules.decide(entry.path).take;
        if (!isSeen && !(await this.#isAbsent(entry.path))) continue;
        yield entry;
      }
    }
  }

  /** Documents of files that were gone before both of these are to be removed. @returns whether nothing kept it from that */
  async #remove(...before: readonly number[]): Promise<boolean> {
    const { folder, log } = this.deps;
    let documents = 0;
    let slice: GoneItem[] = [];
    const removeSlice = async () => {
      const done = await this.#removeSlice(slice);
      documents += done ?? 0;
      slice = [];
      return done !== undefined;
    };
    for await (const item of this.#candidates(Math.min(...before))) {
      slice.push(item);
      if (slice.length === SLICE && !(await removeSlice())) return false;
    }
    const isDone = await removeSlice();
    if (documents > 0)
      log.info(
        { event: 'removing', folder: folder.name, documents },
        `${numberText(documents)} removed in ${folder.name}: what the peer has of that is removed, too`,
      );
    return isDone;
  }

  /** Whether no file is there. What cannot be looked at proves nothing. */
  async #isAbsent(path: string): Promise<boolean> {
    const { absolute, folder } = this.deps;
    const found = await look(absolute(path));
    if ('code' in found) return isAbsence(found.code);
    return found.kind !== 'file' && !(found.kind === 'link' && folder.followSymlinks);
  }

  /** @returns how many documents are to be removed; undefined where the root is not certain any more */
  async #removeSlice(slice: readonly GoneItem[]): Promise<number | undefined> {
    const { changed, clock, folder, isCertain, state } = this.deps;
    const absent = await Promise.all(slice.map(({ path }) => this.#isAbsent(path)));
    if (this.#isStopped || !(await isCertain())) return undefined;
    let documents = 0;
    for (const [i, { path, since }] of slice.entries()) {
      const now = state.get(folder.name, path);
      if (!absent[i] || now?.status !== 'gone' || now.since !== since) continue;
      state.put(removing(now, clock.now()));
      documents += 1;
    }
    changed();
    return documents;
  }
}

/** What a person is told, and what to do. */
export function heldTrouble(folder: string, { examples, files, of }: HeldDeletes) {
  return {
    code: 'DELETES_HELD',
    message: `${numberText(files)} of ${numberText(of)} files of the folder ${folder} were removed at once, such as ${examples.join(', ')}; the peer keeps their documents until you approve that.`,
    hint: `\`peersync approve-deletes ${shellWord(folder)}\` removes the documents; files that come back end this.`,
  };
}
