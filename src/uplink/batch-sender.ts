import type { PeersyncError } from '../lib/errors.js';
import type { PushAnswer } from '../peer/push.js';
import type { Place } from '../state/entries.js';
import type { AcceptedItem, PendingItem, Sent, Trouble } from '../state/entry.js';
import { accepted, overtaken, returned } from '../state/transitions.js';
import type { FailureAttribution } from './failure-attribution.js';
import { placeOf, type UplinkParts } from './parts.js';
import type { Spoken } from './peer-dialect.js';
import { currentOf, type PreparedDocument, STALE_PAUSE_MS, sentAt } from './prepare.js';
import { type PushFailure, pushFailure, troubleOf } from './trouble.js';

/**
 * Called with the items of one request that the peer took, once that is on disk.
 *
 * @param sentAt when the request began
 */
type OnAccepted = (items: readonly AcceptedItem[], sentAt: number) => void;

/**
 * Brings batches that are ready to the peer, and decides what becomes of each:
 *
 * - answered: each item is accepted, or has one attempt spent with the peer's own words, and after `push.attempts` of
 *   those is quarantined;
 * - not taken (peer away, busy, credentials refused): its items are pending as before, nothing is spent;
 * - unanswered: its items stay in doubt;
 * - answered badly as a whole: split, until the bad item stands alone (see FailureAttribution).
 *
 * A file that is no longer the version that was to travel is given back and looked at again.
 */
export class BatchSender {
  readonly #parts: UplinkParts;
  readonly #failures: FailureAttribution;
  readonly #onAccepted: OnAccepted;

  constructor(parts: UplinkParts, blame: FailureAttribution, onAccepted: OnAccepted) {
    this.#parts = parts;
    this.#failures = blame;
    this.#onAccepted = onAccepted;
  }

  /**
   * Sends one batch; where that fails as a whole in smaller ones, down to single items. All of a size go before any is
   * split further, so that a peer that takes the good ones is heard to, and one bad item is no trouble of the peer.
   *
   * @param spoken the dialect that it was made ready for
   * @param before how many pushes had gone through when it began
   */
  async send(documents: readonly PreparedDocument[], spoken: Spoken, before: number): Promise<void> {
    let batches = documents.length === 0 ? [] : [documents];
    while (batches.length > 0) {
      const smaller: (readonly PreparedDocument[])[] = [];
      for (const batch of batches) smaller.push(...(await this.#sendOne(batch, spoken, before)));
      batches = smaller;
    }
  }

  /** Sends one request. @returns what is to be sent instead, where it failed as a whole */
  async #sendOne(
    documents: readonly PreparedDocument[],
    spoken: Spoken,
    before: number,
  ): Promise<(readonly PreparedDocument[])[]> {
    const { clock, dialect, queue, peer } = this.#parts;
    const { synchronous, commit } = this.#parts.settings.push;
    const items = documents.map(({ item, content }) => ({
      url: item.url,
      collection: item.collection,
      data: content.text,
      ...(content.type === '' ? {} : { contentType: content.type, lastModified: item.version.mtimeMs }),
    }));
    const options = { ...(synchronous ? { synchronous } : {}), ...(commit ? { commit } : {}) };
    let began: number | undefined;
    let answer: PushAnswer | undefined;
    try {
      answer = await queue.run('push', (signal) => {
        began = clock.now();
        // It may have waited long: the dialect was found out to be another, or a file, or its whole folder, is gone.
        if (dialect.current !== spoken || documents.some(({ item }) => this.#isGone(item)))
          return Promise.resolve(undefined);
        return peer.push(items, { ...options, signal });
      });
    } catch (error) {
      return this.#notTaken(documents, pushFailure(error, began !== undefined), before);
    }
    if (answer === undefined) this.#returnAll(documents);
    else await this.#answered(documents, answer, began ?? clock.now());
    return [];
  }

  async #answered(documents: readonly PreparedDocument[], answer: PushAnswer, began: number): Promise<void> {
    const { clock, log, state } = this.#parts;
    const now = clock.now();
    const taken: AcceptedItem[] = [];
    documents.forEach((document, i) => {
      const { item } = document;
      const result = answer.results[i];
      const sent = sentAt(document, began, answer.peerTime);
      const current = currentOf(this.#parts.state, item);
      if (current === undefined) {
        this.#overtakenBy(item, result?.ok === true ? sent : undefined);
      } else if (result?.ok) {
        const after = accepted(current, sent, now);
        state.put(after);
        taken.push(after);
      } else {
        this.#failures.refused(current, result?.message ?? 'the peer did not answer for this item');
      }
    });
    if (taken.length > 0) this.#failures.succeeded(taken);
    await this.#parts.commit();
    log.debug(
      { event: 'pushed', items: documents.length, accepted: taken.length },
      `pushed ${documents.length} items, ${taken.length} accepted`,
    );
    const stay = taken.filter((item) => state.isCurrent(item));
    this.#onAccepted(stay, began);
  }

  /** @returns the smaller batches that are to be sent instead */
  async #notTaken(
    documents: readonly PreparedDocument[],
    failure: PushFailure,
    before: number,
  ): Promise<(readonly PreparedDocument[])[]> {
    const { clock, dialect, log, look } = this.#parts;
    if (failure.kind === 'stale') {
      documents.forEach(({ item }, i) => {
        const stale = i === failure.item;
        this.#return(item, stale ? clock.now() + STALE_PAUSE_MS : clock.now());
        if (stale) look(placeOf(item));
      });
      return [];
    }
    if (failure.kind === 'doubt') return [];
    if (mayMisfit(failure.error) && (await dialect.misfits())) {
      this.#returnAll(documents);
      return [];
    }
    if (failure.kind === 'untaken') {
      for (const { item } of documents) this.#return(item, clock.now(), troubleOf(failure.error));
      return [];
    }
    const [only] = documents;
    if (documents.length > 1 || only === undefined) {
      log.debug(
        { event: 'split', items: documents.length, code: failure.error.code },
        `a batch of ${documents.length} failed and is split: ${failure.error.message}`,
      );
      const middle = Math.ceil(documents.length / 2);
      return [documents.slice(0, middle), documents.slice(middle)];
    }
    await this.#failures.answeredBadly(only.item, failure.error, before);
    return [];
  }

  #isGone({ folder, path }: Place): boolean {
    const entry = this.#parts.state.get(folder, path);
    return entry === undefined || entry.status === 'gone';
  }

  /** As they were: they are made ready anew. */
  #returnAll(documents: readonly PreparedDocument[]): void {
    for (const { item } of documents) this.#return(item, this.#parts.clock.now());
  }

  #return(item: PendingItem, notBefore: number, trouble?: Trouble): void {
    const current = currentOf(this.#parts.state, item);
    if (current !== undefined) this.#parts.state.put(returned(current, notBefore, trouble));
  }

  /** The file changed or went while a version travelled: what the peer took is remembered with what is there now. */
  #overtakenBy(item: PendingItem, sent: Sent | undefined): void {
    const { state } = this.#parts;
    const now = state.get(item.folder, item.path);
    if (sent === undefined || now === undefined || now.status === 'accepted' || now.status === 'confirmed')
      return;
    state.put(overtaken(now, sent, this.#parts.clock.now()));
  }
}

/** Whether another kind of peer could have answered so. */
function mayMisfit({ code }: PeersyncError): boolean {
  return code === 'PEER_ANSWER' || code === 'PEER_REFUSED' || code === 'PEER_FAILED';
}
