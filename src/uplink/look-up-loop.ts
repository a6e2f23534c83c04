import { PeersyncError } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import type { Peerdoc } from '../peer/peerdoc.js';
import type { Entry } from '../state/entry.js';
import { Background, holdMs, type UplinkDeps } from './deps.js';
import { type Answer, applyAnswer, type Judge, type LookUp, type LookUpOwner } from './look-up.js';
import { ReadyQueue } from './ready-queue.js';

/**
 * Limits of one request that looks up several documents: the number of URLs (as many as the
 * embedded peer accepts), and the number of characters of all URLs but the last one.
 */
const MAX_URLS_PER_REQUEST = 20;
const MAX_URL_CHARACTERS = 8_000;

export interface LookUpLoopOptions {
  /** Name of the health check. */
  readonly name: string;
  /** The work that is not done while the loop does not progress, as in HealthCheck. */
  readonly what: string;
  /** Maximum number of due look-ups in memory, and of later ones. */
  readonly maxInMemory: number;
  /**
   * Longest time that due look-ups wait for pushes to end, in ms; 0 if they do not wait. Look-ups
   * slow pushes down, and are faster after them.
   */
  readonly maxWaitForPushMs: number;
  /** Starts a pass over the entries of the state that may have to be looked up. */
  readonly entries: () => AsyncGenerator<Iterable<Entry>>;
  /** Called for each entry of a pass. Adds its look-up if the loop does not have it. */
  readonly onFound: (entry: Entry) => void;
}

/**
 * Looks documents up when they are due, and passes each answer to the judge. A look-up is
 *
 * - *waiting*: for its time, or for room in the queue (lane `confirm`). The look-up that has been
 *   due for longest goes first.
 * - *under way*: from its request until the judge has decided about the answer. Then it waits
 *   again, or has ended (see LookUp). If `add` or `delete` is called with its key, the answer is
 *   ignored.
 *
 * The embedded peer is asked for several documents in one request; each gets its own answer.
 *
 * If a look-up fails, the failure concerns its document (`documentFailed`) if the peer answered
 * other requests since the previous failure of the same document. Otherwise it concerns the peer
 * (`peerFailed`).
 *
 * Memory is bounded (see ReadyQueue): look-ups beyond the limit are dropped, and found again by a
 * pass over the state. One in the mode `settling` is never dropped, because that mode is not in the
 * state. Such a look-up soon ends.
 */
export class LookUpLoop<Subject, Found> implements LookUpOwner<Subject> {
  readonly health: HealthCheck;
  readonly #deps: UplinkDeps;
  readonly #judge: Judge<Subject, Found>;
  readonly #options: LookUpLoopOptions;
  readonly #work: Background;
  readonly #waiting: ReadyQueue<LookUp<Subject>>;
  readonly #underWay = new Map<string, LookUp<Subject>>();
  /** The number of requests that the peer answered. */
  #answers = 0;

  constructor(deps: UplinkDeps, judge: Judge<Subject, Found>, options: LookUpLoopOptions) {
    this.#deps = deps;
    this.#judge = judge;
    this.#options = options;
    this.#work = new Background(deps.clock);
    this.#waiting = new ReadyQueue(deps.clock, options.maxInMemory, options.entries, () =>
      this.#work.notify(),
    );
    this.health = new HealthCheck(options.name, options.what, {
      busy: () => this.#nextInMs === 0 && deps.queue.hasRoom('confirm'),
    });
  }

  /** Whether no look-up waits or is under way. */
  get isIdle(): boolean {
    return this.#work.size === 0 && this.#waiting.isIdle;
  }

  /** Whether a look-up may have been dropped, so that its mode is not known any more. */
  get hasOverflowed(): boolean {
    return this.#waiting.hasOverflowed;
  }

  get(key: string): LookUp<Subject> | undefined {
    return this.#waiting.get(key) ?? this.#underWay.get(key);
  }

  /** Schedules a look-up. Replaces an earlier one of the same key. */
  add(look: LookUp<Subject>): void {
    this.#underWay.delete(look.key);
    this.wait(look);
    this.#work.notify();
  }

  delete(key: string): void {
    this.#waiting.delete(key);
    this.#underWay.delete(key);
  }

  deleteAll(where: (subject: Subject) => boolean): void {
    this.#waiting.deleteAll(({ subject }) => where(subject));
    for (const [key, { subject }] of this.#underWay) if (where(subject)) this.#underWay.delete(key);
  }

  /** Starts the pass over the state again. */
  startOver(): void {
    this.#waiting.startOver();
    this.#work.notify();
  }

  /** Called when pushes may have ended: due look-ups wait for that. */
  notify(): void {
    this.#work.notify();
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#work.loop(() => this.#step(signal), signal);
  }

  async #step(signal: AbortSignal): Promise<void> {
    if (this.#waiting.wantsMore)
      for (const entry of await this.#waiting.more()) this.#options.onFound(entry);
    const waitMs = this.#nextInMs;
    if (waitMs === 0) {
      await this.#deps.queue.ready('confirm', signal);
      this.health.progress();
      const looks = this.#takeDue();
      if (looks.length > 0) this.#work.start(this.#lookUp(looks, signal));
    } else if (!this.#waiting.wantsMore)
      await this.#work.wait(Math.min(waitMs, this.#waiting.nextPassInMs));
  }

  /** The time until a look-up may begin, in ms; infinite if none is due. */
  get #nextInMs(): number {
    const { clock, queue } = this.#deps;
    const { first } = this.#waiting;
    if (first === undefined) return Number.POSITIVE_INFINITY;
    const { maxWaitForPushMs } = this.#options;
    if (maxWaitForPushMs === 0 || !queue.isBusy('push')) return 0;
    return Math.max(0, first.due + maxWaitForPushMs - clock.now());
  }

  /** Takes the due look-ups that fit into one request. */
  #takeDue(): readonly LookUp<Subject>[] {
    const most = this.#deps.embeddedPeer === undefined ? 1 : MAX_URLS_PER_REQUEST;
    const looks: LookUp<Subject>[] = [];
    let characters = 0;
    while (looks.length < most && characters < MAX_URL_CHARACTERS && this.#nextInMs === 0) {
      const { first } = this.#waiting;
      if (first === undefined) break;
      this.#waiting.delete(first.key);
      this.#underWay.set(first.key, first);
      looks.push(first);
      characters += first.url.length;
    }
    return looks;
  }

  async #lookUp(looks: readonly LookUp<Subject>[], signal: AbortSignal): Promise<void> {
    const began = this.#deps.clock.now();
    let docs: readonly (Peerdoc | undefined)[] = [];
    let failure: PeersyncError | undefined;
    try {
      docs = await this.#request(looks.map(({ url }) => url));
      this.#answers += 1;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof PeersyncError)) throw error;
      failure = error;
    }
    await Promise.all(
      looks.map((look, i) =>
        this.#answered(
          look,
          failure === undefined
            ? { kind: 'document', began, doc: docs[i] }
            : this.#failed(look, began, failure),
        ),
      ),
    );
  }

  #request(urls: readonly string[]): Promise<readonly (Peerdoc | undefined)[]> {
    const { embeddedPeer, peer, queue } = this.#deps;
    const [url = ''] = urls;
    return queue.run('confirm', async (signal) =>
      embeddedPeer === undefined
        ? [await peer.peerdoc({ url }, { signal })]
        : embeddedPeer.peerdocs(urls, { signal }),
    );
  }

  #failed(look: LookUp<Subject>, began: number, failure: PeersyncError): Answer {
    const { answersAtFailure } = look;
    look.answersAtFailure = this.#answers;
    const hasAnsweredOthers = answersAtFailure !== undefined && answersAtFailure < this.#answers;
    return { kind: hasAnsweredOthers ? 'documentFailed' : 'peerFailed', began, failure };
  }

  async #answered(look: LookUp<Subject>, answer: Answer): Promise<void> {
    if (!this.#isUnderWay(look)) return;
    const { clock, settings } = this.#deps;
    await applyAnswer(look, answer, this.#judge, this, {
      clock,
      holdMs: holdMs(this.#deps),
      maxIntervalMs: settings.confirm.maxInterval,
    });
  }

  checkIn(look: LookUp<Subject>): boolean {
    return this.#isUnderWay(look) && this.#underWay.delete(look.key);
  }

  /** Whether this look-up is under way, and was not replaced or deleted since. */
  #isUnderWay(look: LookUp<Subject>): boolean {
    return this.#underWay.get(look.key) === look;
  }

  wait(look: LookUp<Subject>): void {
    const mayBeDropped = look.isEvictable && look.mode !== 'settling';
    this.#waiting.put(look.key, look, look.due, mayBeDropped);
  }
}
