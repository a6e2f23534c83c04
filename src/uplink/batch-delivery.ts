import type { Dialect } from '../peer/dialects/dialect.js';
import type { AcceptedItem, PendingItem } from '../state/entry.js';
import { accepted, olderVersionAccepted, returned } from '../state/transitions.js';
import type { Backlog } from './backlog.js';
import type { BatchReader } from './batch-reader.js';
import { dated, type PreparedDocument, type PushResult, sendBatch } from './batch-sender.js';
import type { Blame } from './blame.js';
import { stillPending, type UplinkDeps } from './deps.js';
import type { FailureAttribution } from './failure-attribution.js';
import type { Isolation } from './isolation.js';

export interface DeliveryParts {
  readonly attribution: FailureAttribution;
  readonly backlog: Backlog;
  readonly blame: Blame;
  readonly isolation: Isolation;
  readonly reader: BatchReader;
}

/**
 * Sends a batch that was read, and stores the result of each item in the state: on disk, before
 * anything follows from it.
 */
export class BatchDelivery {
  readonly #deps: UplinkDeps;
  readonly #parts: DeliveryParts;

  constructor(deps: UplinkDeps, parts: DeliveryParts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /**
   * Commits that the items are in flight, sends them, and commits their results.
   *
   * @param dialect the dialect for which the batch was prepared
   * @param synchronous whether the peer is to answer only when it has indexed the batch
   * @returns the accepted items, which are to be looked up
   */
  async send(
    documents: readonly PreparedDocument[],
    dialect: Dialect,
    synchronous: boolean,
  ): Promise<readonly AcceptedItem[]> {
    const { state } = this.#deps;
    const { blame, isolation } = this.#parts;
    await state.commit();
    const before = blame.successes;
    const results = await sendBatch(this.#deps, documents, dialect, synchronous);
    const taken = documents.flatMap((document, i) => this.#accept(document, results[i]) ?? []);
    if (taken.length > 0) blame.succeeded(taken);
    for (const [i, { item }] of documents.entries()) {
      const result = results[i];
      if (result !== undefined && result.kind !== 'accepted')
        await this.#fail(item, result, before);
    }
    isolation.pushed();
    await state.commit();
    return taken;
  }

  /**
   * Stores a positive result in the state.
   * @returns the accepted item, if it is to be looked up
   */
  #accept(document: PreparedDocument, result: PushResult | undefined): AcceptedItem | undefined {
    if (result?.kind !== 'accepted') return undefined;
    const { clock, state } = this.#deps;
    const sent = dated(document, result.at, result.peerAt);
    const now = this.#parts.backlog.current(document.item);
    const current = stillPending(now, document.item);
    const after = current && accepted(current, sent, clock.now());
    if (after !== undefined) state.put(after);
    // The file changed or was removed during the push: its present record notes what the peer
    // accepted.
    else if (now !== undefined && now.status !== 'accepted' && now.status !== 'confirmed')
      state.put(olderVersionAccepted(now, sent, clock.now()));
    return after;
  }

  /**
   * Stores a negative result in the state.
   * @param before the number of successful pushes when this one began
   */
  async #fail(item: PendingItem, result: PushResult, before: number): Promise<void> {
    const { clock, state } = this.#deps;
    const { attribution, backlog, blame, reader } = this.#parts;
    const current = stillPending(backlog.current(item), item);
    if (result.kind === 'failed') await attribution.failedAlone(item, result.failure, before);
    else if (result.kind === 'unanswered') blame.unanswered(item);
    else if (current === undefined) return;
    else if (result.kind === 'refused') attribution.refused(current, result.words);
    else if (result.kind === 'stale') reader.postpone(current);
    else if (result.kind === 'returned') state.put(returned(current, clock.now(), result.failure));
  }
}
