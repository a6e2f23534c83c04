import type { PeersyncError } from '../lib/errors.js';
import { type Duty, UnderWay } from '../lib/pulse.js';
import type { PushAnswer } from '../peer/push.js';
import type { Place } from '../state/entries.js';
import type { AcceptedItem, PendingItem, Sent, Trouble } from '../state/entry.js';
import { accepted, overtaken, returned } from '../state/transitions.js';
import { Backlog } from './backlog.js';
import { Blame } from './blame.js';
import type { ConfirmLoop } from './confirm-loop.js';
import { currentOf, type Parcel, pack, STALE_PAUSE_MS, sentAt } from './parcel.js';
import { placeOf, roomFor, type UplinkParts } from './parts.js';
import type { Spoken } from './peer-dialect.js';
import { type PushFailure, pushFailure, troubleOf } from './trouble.js';
import { Wake } from './wake.js';

/** One batch is read and encoded in seconds; but the thread that does it reads large files for others, too. In ms. */
const LONGEST_PACKING_MS = 15 * 60_000;
/** What has not failed is put off for a few seconds at most: two pushes are kept apart, a file changed under our hands. In ms. */
const LONGEST_OTHER_WAIT_MS = 10_000;

/**
 * Pushes what is pending, in batches.
 *
 * One producer forms batches (by number, bytes and age) when the door has room, and marks every item of a batch as in
 * doubt, on disk, before the request leaves. What becomes of a batch:
 *
 * - answered: each item is accepted, or has one attempt spent with the peer's own words, and after `push.attempts` of
 *   those is quarantined;
 * - not taken (peer away, busy, credentials refused): its items are pending as before, nothing is spent;
 * - unanswered: its items stay in doubt, and the confirm loop looks them up before they are pushed again;
 * - answered badly as a whole: split, until the bad item stands alone (see Blame).
 *
 * A file that is no longer the version that was to travel is given back and looked at again.
 *
 * Its duties: what is due leaves as soon as the door has room and not too many batches are under way, and a batch is read
 * from the disk.
 */
export class PushLoop {
  readonly #parts: UplinkParts;
  readonly #confirm: ConfirmLoop;
  readonly #backlog: Backlog;
  readonly #blame: Blame;
  readonly #wake: Wake;
  readonly #underWay = new Set<Promise<void>>();
  readonly #packing = new UnderWay();
  /** How many batches were taken. */
  #batches = 0;
  #failure: unknown;

  constructor(parts: UplinkParts, confirm: ConfirmLoop) {
    this.#parts = parts;
    this.#confirm = confirm;
    this.#blame = new Blame(parts);
    const longestMs = () => Math.max(LONGEST_OTHER_WAIT_MS, parts.settings.push.backoff.max);
    this.#backlog = new Backlog(parts.state, parts.clock, longestMs);
    this.#wake = new Wake(parts.clock);
  }

  /** How many items are on their way. */
  get inFlight(): number {
    return this.#backlog.out;
  }

  /** Nothing of this file waits any more. */
  forget(place: Place): void {
    this.#blame.forget(place);
  }

  isOut(place: Place): boolean {
    return this.#backlog.isOut(place);
  }

  add(item: PendingItem): void {
    this.#backlog.add(item);
    this.#wake.ring();
  }

  get duties(): readonly Duty[] {
    return [
      {
        name: 'push',
        moves: () => this.#batches,
        neglects: () => (this.#mayPush() ? 'items that are due are not pushed' : undefined),
      },
      {
        name: 'packing',
        moves: () => this.#packing.oldest,
        neglects: () => (this.#packing.size > 0 ? 'a batch is not read from the disk' : undefined),
        limitMs: LONGEST_PACKING_MS,
      },
    ];
  }

  /** Whether something is due, and nothing keeps it from being pushed. */
  #mayPush(): boolean {
    const { door, settings } = this.#parts;
    if (this.#underWay.size > settings.push.concurrency) return false;
    return door.hasRoom('push') && this.#backlog.peek() !== undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { door, settings } = this.#parts;
    while (!signal.aborted && this.#failure === undefined) {
      if (this.#backlog.peek() === undefined) {
        await this.#wake.wait(this.#backlog.nextInMs, signal);
        continue;
      }
      // One batch more than may travel is made ready, so that none waits for the disk.
      if (this.#underWay.size > settings.push.concurrency) {
        await this.#wake.wait(undefined, signal);
        continue;
      }
      if (!(await roomFor(door, 'push', signal))) break;
      const batch = await this.#gather(signal);
      if (batch.length === 0) continue;
      this.#batches += 1;
      const work = this.#deliver(batch)
        .catch((error: unknown) => {
          this.#failure ??= error;
        })
        .finally(() => {
          this.#underWay.delete(work);
          this.#wake.ring();
        });
      this.#underWay.add(work);
    }
    await Promise.all(this.#underWay);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Takes due items until the batch is full or has waited for `push.linger`. */
  async #gather(signal: AbortSignal): Promise<PendingItem[]> {
    const { clock } = this.#parts;
    const { maxItems, maxBytes, linger } = this.#parts.settings.push;
    const batch: PendingItem[] = [];
    const end = clock.monotonic() + linger;
    let bytes = 0;
    while (!signal.aborted) {
      const item = this.#backlog.peek();
      if (item !== undefined) {
        const alone = this.#blame.isSuspect(item);
        if (batch.length > 0 && (alone || bytes + item.version.size > maxBytes)) break;
        this.#backlog.take();
        batch.push(item);
        bytes += item.version.size;
        if (alone || batch.length >= maxItems || bytes >= maxBytes) break;
        continue;
      }
      const left = end - clock.monotonic();
      if (left <= 0) break;
      await this.#wake.wait(Math.min(left, this.#backlog.nextInMs ?? left), signal);
    }
    return batch;
  }

  async #deliver(batch: readonly PendingItem[]): Promise<void> {
    const spoken = this.#parts.dialect.current;
    if (spoken === undefined) throw new Error('a batch was gathered before the dialect was known');
    const parcels = await this.#packing.during(() => pack(this.#parts, batch, spoken.content));
    await this.#parts.commit();
    const before = this.#blame.successes;
    await this.#send(parcels, spoken, before);
    await this.#parts.commit();
    for (const item of batch) this.#release(placeOf(item), before);
  }

  /**
   * Sends a batch; where that fails as a whole in smaller ones, down to single items. All of a size go before any is
   * split further, so that a peer that takes the good ones is heard to, and one bad item is no trouble of the peer.
   *
   * @param spoken the dialect that it was made ready for
   * @param before how many pushes had gone through when it began
   */
  async #send(parcels: readonly Parcel[], spoken: Spoken, before: number): Promise<void> {
    let batches = parcels.length === 0 ? [] : [parcels];
    while (batches.length > 0) {
      const smaller: (readonly Parcel[])[] = [];
      for (const batch of batches) smaller.push(...(await this.#sendOne(batch, spoken, before)));
      batches = smaller;
    }
  }

  /** Sends one request. @returns what is to be sent instead, where it failed as a whole */
  async #sendOne(parcels: readonly Parcel[], spoken: Spoken, before: number): Promise<(readonly Parcel[])[]> {
    const { clock, dialect, door, peer } = this.#parts;
    const { synchronous, commit } = this.#parts.settings.push;
    const items = parcels.map(({ item, content }) => ({
      url: item.url,
      collection: item.collection,
      data: content.text,
      ...(content.type === '' ? {} : { contentType: content.type, lastModified: item.version.mtimeMs }),
    }));
    const options = { ...(synchronous ? { synchronous } : {}), ...(commit ? { commit } : {}) };
    let began: number | undefined;
    let answer: PushAnswer | undefined;
    try {
      answer = await door.run('push', (signal) => {
        began = clock.now();
        // It may have waited long: the dialect was found out to be another, or a file, or its whole folder, is gone.
        if (dialect.current !== spoken || parcels.some(({ item }) => this.#isGone(item)))
          return Promise.resolve(undefined);
        return peer.push(items, { ...options, signal });
      });
    } catch (error) {
      return this.#notTaken(parcels, pushFailure(error, began !== undefined), before);
    }
    if (answer === undefined) this.#returnAll(parcels);
    else await this.#answered(parcels, answer, began ?? clock.now());
    return [];
  }

  async #answered(parcels: readonly Parcel[], answer: PushAnswer, began: number): Promise<void> {
    const { clock, log, state } = this.#parts;
    const now = clock.now();
    const taken: AcceptedItem[] = [];
    parcels.forEach((parcel, i) => {
      const { item } = parcel;
      const result = answer.results[i];
      const sent = sentAt(parcel, began, answer.peerTime);
      const current = currentOf(this.#parts.state, item);
      if (current === undefined) {
        this.#overtakenBy(item, result?.ok === true ? sent : undefined);
      } else if (result?.ok) {
        const after = accepted(current, sent, now);
        state.put(after);
        taken.push(after);
      } else {
        this.#blame.refused(current, result?.message ?? 'the peer did not answer for this item');
      }
    });
    if (taken.length > 0) this.#blame.succeeded(taken);
    await this.#parts.commit();
    log.debug(
      { event: 'pushed', items: parcels.length, accepted: taken.length },
      `pushed ${parcels.length} items, ${taken.length} accepted`,
    );
    this.#confirm.watch(taken.filter((item) => state.get(item.folder, item.path) === item));
  }

  /** @returns the smaller batches that are to be sent instead */
  async #notTaken(
    parcels: readonly Parcel[],
    failure: PushFailure,
    before: number,
  ): Promise<(readonly Parcel[])[]> {
    const { clock, dialect, log, look } = this.#parts;
    if (failure.kind === 'stale') {
      parcels.forEach(({ item }, i) => {
        const stale = i === failure.item;
        this.#return(item, stale ? clock.now() + STALE_PAUSE_MS : clock.now());
        if (stale) look(placeOf(item));
      });
      return [];
    }
    if (failure.kind === 'doubt') return [];
    if (mayMisfit(failure.error) && (await dialect.misfits())) {
      this.#returnAll(parcels);
      return [];
    }
    if (failure.kind === 'untaken') {
      for (const { item } of parcels) this.#return(item, clock.now(), troubleOf(failure.error));
      return [];
    }
    const [only] = parcels;
    if (parcels.length > 1 || only === undefined) {
      log.debug(
        { event: 'split', items: parcels.length, code: failure.error.code },
        `a batch of ${parcels.length} failed and is split: ${failure.error.message}`,
      );
      const middle = Math.ceil(parcels.length / 2);
      return [parcels.slice(0, middle), parcels.slice(middle)];
    }
    await this.#blame.answeredBadly(only.item, failure.error, before);
    return [];
  }

  #isGone({ folder, path }: Place): boolean {
    const entry = this.#parts.state.get(folder, path);
    return entry === undefined || entry.status === 'gone';
  }

  /** As they were: they are made ready anew. */
  #returnAll(parcels: readonly Parcel[]): void {
    for (const { item } of parcels) this.#return(item, this.#parts.clock.now());
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

  #release(place: Place, before: number): void {
    this.#backlog.giveBack(place);
    const entry = this.#parts.state.get(place.folder, place.path);
    // It may have gone back to what the peer was sent before; what was just pushed is being watched already.
    if (entry?.status === 'accepted') this.#confirm.resume(entry);
    if (entry?.status !== 'pending') this.#blame.forget(place);
    else if (entry.doubt === undefined) this.#backlog.add(entry);
    else this.#confirm.doubt(entry, entry.doubt, (item) => this.#blame.neverAnswered(item, before));
  }
}

/** Whether another kind of peer could have answered so. */
function mayMisfit({ code }: PeersyncError): boolean {
  return code === 'PEER_ANSWER' || code === 'PEER_REFUSED' || code === 'PEER_FAILED';
}
