import type { Timer } from '../lib/clock.js';
import { counted, quoted } from '../lib/text.js';
import { contentOf, type Entry } from '../state/entry.js';
import { isRenamed } from '../state/history.js';
import { removing } from '../state/transitions.js';
import { type Candidate, DeletionCandidates, UnreadFiles } from './deletion-candidates.js';
import type { FolderDeps } from './folder-deps.js';
import {
  approvedBefore,
  endApproval,
  limitOf,
  type MassDeletion,
  massDeletion,
  massDeletionCondition,
  setMassDeletion,
  UnapprovedFiles,
} from './mass-deletions.js';
import type { Reconciler } from './reconciler.js';

/**
 * The longest time for which a file that is not read yet, and may be the removed one under another
 * name, keeps its document from being removed, in ms.
 */
const MAX_UNREAD_MS = 600_000;
/** Number of documents whose removal is put into state without a pause. */
const DOCUMENTS_PER_SLICE = 50;

/** The facts that all decisions after one full scan share. Times are ms since the epoch. */
interface Scan {
  readonly began: number;
  /** When its decisions began. */
  readonly decidedAt: number;
  /** A person approved the removal of files that went before this. */
  readonly approvedBefore: number;
  readonly unread: UnreadFiles;
}

/** The candidates of one full scan. */
interface Survey {
  readonly all: number;
  /** Number of candidates that another scan has to decide on. */
  readonly undecided: number;
  /** Whether a person approved some of those. */
  readonly mustKeepApproval: boolean;
  readonly unapproved: UnapprovedFiles;
}

/**
 * Decides which documents of one folder are removed from the peer because their files were removed.
 *
 * A file that is noticed to be gone, or to have content that is kept out, causes a full scan. When
 * a full scan ends, a document is removed if
 *
 * - its file was gone, or kept out, before the scan began, and still is;
 * - no file that waits to be read may be the same one under another name. If one may, another scan
 *   decides;
 * - its file is not part of a *mass deletion*, or a person approved that. A mass deletion also ends
 *   when its files come back;
 * - the root is certainly the folder.
 */
export class Deletions {
  readonly #candidates: DeletionCandidates;
  readonly #scans: DeletionScans;

  constructor(
    private readonly deps: FolderDeps,
    private readonly reconciler: Reconciler,
  ) {
    this.#candidates = new DeletionCandidates(deps);
    this.#scans = new DeletionScans(deps);
  }

  /** Whether a scan is due that was not requested yet. */
  get isWaiting(): boolean {
    return this.#scans.isDue;
  }

  /** Called when the record of a file changed. A file that is back may end a mass deletion. */
  changed(after: Entry | undefined, before: Entry['status'] | undefined): void {
    const { folder, state } = this.deps;
    const isOut = after !== undefined && this.#candidates.includes(after);
    const isBack = (before === 'gone' || before === 'skipped') && after?.status !== 'removing';
    if (isOut || (isBack && massDeletion(state, folder.name) !== undefined)) this.#scans.scanSoon();
  }

  stop(): void {
    this.#scans.stop();
  }

  /**
   * Decides after a full scan that went to its end.
   *
   * @param began when the scan began, in ms since the epoch
   */
  async decide(began: number): Promise<void> {
    const scan = await this.#scanFrom(began);
    const survey = await this.#survey(scan);
    if (survey.undecided > 0) this.#scans.scanSoon();
    const awaitingSeconds = await this.#secondsAwaitingApproval(survey);
    this.#record(this.#massDeletionIn(awaitingSeconds, survey, scan));
    const leavesAllToAnotherScan = survey.all === survey.undecided;
    const isDone = leavesAllToAnotherScan || (await this.#remove(scan, awaitingSeconds));
    if (isDone && !survey.mustKeepApproval && scan.approvedBefore > Number.NEGATIVE_INFINITY)
      endApproval(this.deps.state, this.deps.folder.name);
  }

  async #scanFrom(began: number): Promise<Scan> {
    const { clock, debouncer, folder, state } = this.deps;
    const approved = approvedBefore(state, folder.name) ?? Number.NEGATIVE_INFINITY;
    return {
      began,
      // An approval from the future was given in an earlier run whose clock was wrong. It covers
      // the files that went in that run, and no others.
      approvedBefore: approved > began ? 0 : approved,
      unread: await UnreadFiles.of(debouncer, this.reconciler.reading, clock),
      decidedAt: clock.now(),
    };
  }

  /** Counts the candidates, and gathers those that nobody has approved. */
  async #survey(scan: Scan): Promise<Survey> {
    const unapproved = new UnapprovedFiles();
    let all = 0;
    let undecided = 0;
    let mustKeepApproval = false;
    for await (const item of this.#candidates.goneBefore(scan.decidedAt, scan.unread)) {
      all += 1;
      const isApproved = this.#isApproved(item, scan);
      const mayHaveMoved = this.#mayHaveMoved(item, scan);
      if (mayHaveMoved || this.#candidates.goneSince(item) >= scan.began) {
        undecided += 1;
        mustKeepApproval ||= isApproved;
      }
      if (mayHaveMoved || isApproved) continue;
      unapproved.add(contentOf(item) ?? item.path, { path: item.path, second: secondOf(item) });
    }
    return { all, undecided, mustKeepApproval, unapproved };
  }

  /** Whether the file may be there under another name that was not read yet. */
  #mayHaveMoved(item: Candidate, { began, unread }: Scan): boolean {
    return this.#candidates.goneSince(item) >= began - MAX_UNREAD_MS && unread.mayBe(item);
  }

  #isApproved(item: Candidate, scan: Scan): boolean {
    return this.#candidates.goneSince(item) < scan.approvedBefore;
  }

  /** Returns the seconds in which files of a mass deletion went. */
  async #secondsAwaitingApproval({ all, unapproved }: Survey): Promise<ReadonlySet<number>> {
    const { folder, state } = this.deps;
    const limit = limitOf(this.#filesWith(all));
    const seconds = unapproved.crowdedSeconds(limit);
    if (seconds.size === 0) return seconds;
    // A removed file whose content is there under another name was renamed, and does not count.
    const live = ['pending', 'accepted', 'confirmed'] as const;
    for await (const slice of state.entries.slices({ folder: folder.name, status: live }))
      for (const entry of slice) unapproved.discount(contentOf(entry) ?? '');
    return unapproved.crowdedSeconds(limit);
  }

  /** Returns the number of files of the folder together with its removed ones. */
  #filesWith(removed: number): number {
    const { folder, state } = this.deps;
    const { pending, accepted, confirmed, quarantined } = state.counts(folder.name);
    return pending + accepted + confirmed + quarantined + removed;
  }

  #massDeletionIn(
    seconds: ReadonlySet<number>,
    { all, unapproved }: Survey,
    { decidedAt }: Scan,
  ): MassDeletion | undefined {
    if (seconds.size === 0) return undefined;
    const { clock, folder, state } = this.deps;
    return {
      ...unapproved.summaryOf(seconds),
      of: this.#filesWith(all),
      since: massDeletion(state, folder.name)?.since ?? clock.now(),
      before: decidedAt,
    };
  }

  /** Records the mass deletion of the folder, and logs a new one. */
  #record(found: MassDeletion | undefined): void {
    const { committer, folder, log, state } = this.deps;
    const { name } = folder;
    const known = massDeletion(state, name);
    if (found === known) return;
    setMassDeletion(state, name, found);
    committer.commitSoon();
    if (known !== undefined || found === undefined) return;
    const { code, hint, message } = massDeletionCondition(name, found);
    log.warn({ event: 'deletes-await-approval', folder: name, code }, `${message} ${hint}`);
  }

  /**
   * Has the documents removed that do not await approval.
   *
   * @returns false if the root was not certainly the folder any more
   */
  async #remove(scan: Scan, awaitingSeconds: ReadonlySet<number>): Promise<boolean> {
    let documents = 0;
    let slice: Candidate[] = [];
    const removeSlice = async () => {
      const removed = await this.#removeSlice(slice);
      documents += removed ?? 0;
      slice = [];
      return removed !== undefined;
    };
    for await (const item of this.#candidates.goneBefore(scan.began, scan.unread)) {
      const awaitsApproval = !this.#isApproved(item, scan) && awaitingSeconds.has(secondOf(item));
      if (awaitsApproval || this.#mayHaveMoved(item, scan)) continue;
      slice.push(item);
      if (slice.length === DOCUMENTS_PER_SLICE && !(await removeSlice())) return false;
    }
    const isDone = await removeSlice();
    this.#logRemoved(documents);
    return isDone;
  }

  /**
   * Marks documents as to be removed, if their files are still out.
   *
   * @returns how many, renamed files not counted; undefined if the root is not certainly the folder
   */
  async #removeSlice(slice: readonly Candidate[]): Promise<number | undefined> {
    const { clock, committer, folder, guard, modes, state } = this.deps;
    const areOut = await Promise.all(slice.map((item) => this.#candidates.isStillOut(item)));
    if (modes.is('stopped') || !(await guard.isCertain())) return undefined;
    let documents = 0;
    for (const [i, { path, since }] of slice.entries()) {
      const now = state.get(folder.name, path);
      if (!areOut[i] || guard.isUnmounted(path)) continue;
      if (now?.since !== since || !this.#candidates.includes(now)) continue;
      state.put(removing(now, clock.now()));
      // The log has shown a rename already.
      if (now.status === 'skipped' || !isRenamed(now)) documents += 1;
    }
    committer.commitSoon();
    return documents;
  }

  #logRemoved(documents: number): void {
    if (documents === 0) return;
    const { folder, log } = this.deps;
    const rest =
      documents === 1
        ? `was removed from ${quoted(folder.name)}; its document goes, too`
        : `were removed from ${quoted(folder.name)}; their documents go, too`;
    log.info(
      { event: 'removing', folder: folder.name, documents },
      `${counted(documents, 'file')} ${rest}`,
    );
  }
}

function secondOf({ since }: Candidate): number {
  return Math.floor(since / 1_000);
}

/** Pause after a scan, as a multiple of its duration: scans take a twentieth of the time. */
const PAUSE_FACTOR = 19;

/**
 * Requests the full scans that confirm the absence of removed files, a moment after a file was
 * noticed to be gone, and not too often.
 */
class DeletionScans {
  /** Set while a scan is due that was not requested yet. */
  #timer: Timer | undefined;
  /** No scan is requested before this, in ms since the epoch. */
  #nextAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly deps: FolderDeps) {}

  get isDue(): boolean {
    return this.#timer !== undefined;
  }

  /** Has a scan requested soon. */
  scanSoon(): void {
    const { clock, modes, policy } = this.deps;
    if (this.#timer !== undefined || modes.is('stopped')) return;
    this.#wait(Math.max(policy.deletionPauseMs, this.#nextAt - clock.now()));
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #wait(ms: number): void {
    const { clock } = this.deps;
    this.#timer = clock.after(ms, () => {
      this.#timer = undefined;
      const now = clock.now();
      // A scan that ended meanwhile may have moved the time.
      if (now < this.#nextAt) this.#wait(this.#nextAt - now);
      else void this.#scan(now);
    });
  }

  async #scan(now: number): Promise<void> {
    const { clock, debouncer, modes, policy, scans } = this.deps;
    this.#nextAt = now + policy.deletionScanMs;
    // Files that were removed together are decided on together.
    await debouncer.caughtUp(policy.deletionScanMs);
    if (modes.is('stopped')) return;
    const { durationMs } = await scans.request();
    this.#nextAt = Math.max(this.#nextAt, clock.now() + PAUSE_FACTOR * durationMs);
  }
}
