import { PeersyncError } from '../lib/errors.js';
import { classify, type Deps } from './deps.js';
import { type Answer, applyAnswer, type Judge, type LookUp, type LookUpOwner } from './look-up.js';

/** Outcomes of a failed look-up that concern its document only. */
const OUTCOMES_OF_ONE: ReadonlySet<string> = new Set(['answered', 'failing']);

export interface LookUpPassOptions {
  readonly lane: 'interactive' | 'audit';
  /** Number of look-ups at a time. */
  readonly concurrency: number;
  /** Returns the hold of these look-ups, in ms. */
  readonly holdMs: () => number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Looks up a stream of documents once each, as fast as the consumer takes the results, and passes
 * each answer to the judge. A look-up that did not end with its first answer waits until `again`
 * repeats it.
 *
 * Unlike LookUpLoop, it has no queue. It takes documents from the stream in groups, the next one
 * when the group before has its answers. Therefore no look-up begins after the consumer has ended
 * the iteration, or after the stop.
 */
export class LookUpPass<Subject, Found> implements LookUpOwner<Subject> {
  readonly #deps: Deps;
  readonly #judge: Judge<Subject, Found>;
  readonly #options: LookUpPassOptions;
  #waiting: LookUp<Subject>[] = [];

  constructor(deps: Deps, judge: Judge<Subject, Found>, options: LookUpPassOptions) {
    this.#deps = deps;
    this.#judge = judge;
    this.#options = options;
  }

  /** The look-ups that `again` repeats. */
  get waiting(): readonly LookUp<Subject>[] {
    return this.#waiting;
  }

  /** Whether the stop was asked for. No look-up begins after that. */
  get isStopped(): boolean {
    return this.#options.signal?.aborted === true;
  }

  /**
   * Looks documents up, and yields each group that was looked up together.
   * @throws what the judge throws; the reason of the stop
   */
  async *run(
    looks: Iterable<LookUp<Subject>> | AsyncIterable<LookUp<Subject>>,
  ): AsyncGenerator<readonly LookUp<Subject>[]> {
    for await (const group of groupsOf(looks, this.#options.concurrency)) {
      if (this.isStopped) return;
      await Promise.all(group.map((look) => this.#lookUp(look)));
      yield group;
    }
  }

  /** Waits until all waiting look-ups are due, and repeats them until none waits. */
  async again(): Promise<void> {
    const { clock } = this.#deps;
    while (this.#waiting.length > 0 && !this.isStopped) {
      const looks = this.#waiting;
      this.#waiting = [];
      const allDue = looks.reduce((latest, { due }) => Math.max(latest, due), 0);
      await clock.sleep(Math.max(0, allDue - clock.now()), this.#options.signal);
      for await (const _ of this.run(looks));
    }
  }

  async #lookUp(look: LookUp<Subject>): Promise<void> {
    const { clock, settings } = this.#deps;
    const answer = await this.#ask(look);
    await applyAnswer(look, answer, this.#judge, this, {
      clock,
      holdMs: this.#options.holdMs(),
      maxIntervalMs: settings.confirm.maxInterval,
    });
  }

  /** Returns true: a look-up of a pass is never replaced or deleted. */
  checkIn(): boolean {
    return true;
  }

  wait(look: LookUp<Subject>): void {
    this.#waiting.push(look);
  }

  async #ask({ url }: LookUp<Subject>): Promise<Answer> {
    const { clock, peer, queue } = this.#deps;
    const { lane, signal } = this.#options;
    const began = clock.now();
    try {
      const request = (s: AbortSignal) => peer.peerdoc({ url }, { signal: s });
      const doc = await queue.run(lane, request, signal === undefined ? {} : { signal });
      return { kind: 'document', began, doc };
    } catch (failure) {
      if (!(failure instanceof PeersyncError)) throw failure;
      const isOfOne = OUTCOMES_OF_ONE.has(classify(failure).kind);
      return { kind: isOfOne ? 'documentFailed' : 'peerFailed', began, failure };
    }
  }
}

async function* groupsOf<T>(
  items: Iterable<T> | AsyncIterable<T>,
  size: number,
): AsyncGenerator<T[]> {
  let group: T[] = [];
  for await (const item of items) {
    if (group.push(item) < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}
