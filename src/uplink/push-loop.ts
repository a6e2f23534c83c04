import type { PeersyncError } from '../lib/errors.js';
import type { PushAnswer } from '../peer/push.js';
import type { Place } from '../state/entries.js';
import {
  type AcceptedItem,
  isItem,
  type PendingItem,
  type Sent,
  type Trouble,
  type Version,
} from '../state/entry.js';
import { accepted, failed, leaving, overtaken, quarantined, returned } from '../state/transitions.js';
import { Backlog } from './backlog.js';
import type { ConfirmLoop } from './confirm-loop.js';
import type { Packed } from './packer.js';
import { placeName, placeOf, roomFor, type UplinkParts } from './parts.js';
import { streamed } from './streaming.js';
import { Suspects } from './suspects.js';
import { pushFailure, troubleOf } from './trouble.js';
import { Wake } from './wake.js';

/** Files up to this many bytes are read whole; larger ones are streamed. */
const WHOLE_BYTES = 256 * 1024;
/** How long a file that changed under our hands is left alone, in ms. */
const STALE_PAUSE_MS = 2_000;

/** An item with the text that is about to travel. */
interface Parcel {
  readonly item: PendingItem;
  readonly content: Extract<Packed, { kind: 'content' }>;
  readonly sent: Sent;
}

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
 * - answered badly as a whole: split, until the bad item stands alone (see Suspects for when it is to blame).
 *
 * A file that is no longer the version that was to travel is given back and looked at again.
 */
export class PushLoop {
  readonly #parts: UplinkParts;
  readonly #confirm: ConfirmLoop;
  readonly #backlog: Backlog;
  readonly #suspects = new Suspects();
  readonly #wake: Wake;
  readonly #underWay = new Set<Promise<void>>();
  #failure: unknown;

  constructor(parts: UplinkParts, confirm: ConfirmLoop) {
    this.#parts = parts;
    this.#confirm = confirm;
    this.#backlog = new Backlog(parts.state, parts.clock);
    this.#wake = new Wake(parts.clock);
  }

  /** How many items are on their way. */
  get inFlight(): number {
    return this.#backlog.out;
  }

  isOut(place: Place): boolean {
    return this.#backlog.isOut(place);
  }

  add(item: PendingItem): void {
    this.#backlog.add(item);
    this.#wake.ring();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, door, settings } = this.#parts;
    while (!signal.aborted && this.#failure === undefined) {
      if (this.#backlog.peek() === undefined) {
        const due = this.#backlog.nextDue;
        await this.#wake.wait(due === undefined ? undefined : due - clock.now(), signal);
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
    const end = clock.now() + linger;
    let bytes = 0;
    while (!signal.aborted) {
      const item = this.#backlog.peek();
      if (item !== undefined) {
        if (batch.length > 0 && bytes + item.version.size > maxBytes) break;
        this.#backlog.take();
        batch.push(item);
        bytes += item.version.size;
        if (batch.length >= maxItems || bytes >= maxBytes) break;
        continue;
      }
      const left = end - clock.now();
      if (left <= 0) break;
      const due = this.#backlog.nextDue;
      await this.#wake.wait(due === undefined ? left : Math.min(left, due - clock.now()), signal);
    }
    return batch;
  }

  /** Reads what is to travel; what is not the expected version any more is settled here. */
  async #pack(batch: readonly PendingItem[]): Promise<Parcel[]> {
    const { clock, look, state } = this.#parts;
    const results = await this.#read(batch);
    const now = clock.now();
    const parcels: Parcel[] = [];
    batch.forEach((item, i) => {
      const result = results[i];
      if (result === undefined || this.#current(item) === undefined) return;
      if (result.kind === 'stale') {
        state.put(returned(item, now + STALE_PAUSE_MS));
        look(placeOf(item));
      } else if (result.kind === 'unreadable') {
        state.put(quarantined(item, item, item.version, unreadable(result.code), now));
      } else {
        const { url, collection, version } = item;
        const { size, digest } = result;
        const sent = { sha256: version.sha256, size, digest, url, collection, at: now };
        state.put(leaving(item, sent));
        parcels.push({ item, content: result, sent });
      }
    });
    return parcels;
  }

  /** The texts of a batch: small files all at once in the packer, large ones each by itself. */
  async #read(batch: readonly PendingItem[]): Promise<Packed[]> {
    const { packer, pathOf } = this.#parts;
    const results: Packed[] = batch.map(() => ({ kind: 'stale' }));
    const small: { readonly path: string; readonly version: Version; readonly position: number }[] = [];
    for (const [position, { folder, path, version }] of batch.entries()) {
      const file = pathOf({ folder, path });
      if (file === undefined) continue;
      if (version.size > WHOLE_BYTES) results[position] = await streamed(file, version);
      else small.push({ path: file, version, position });
    }
    const packed = await packer.pack(small);
    small.forEach(({ position }, i) => {
      results[position] = packed[i] ?? { kind: 'stale' };
    });
    return results;
  }

  async #deliver(batch: readonly PendingItem[]): Promise<void> {
    const parcels = await this.#pack(batch);
    await this.#parts.state.commit();
    if (parcels.length > 0) await this.#send(parcels);
    await this.#parts.state.commit();
    for (const item of batch) this.#release(placeOf(item));
  }

  async #send(parcels: readonly Parcel[]): Promise<void> {
    const { clock, door, peer } = this.#parts;
    const { synchronous, commit } = this.#parts.settings.push;
    const items = parcels.map(({ item, content }) => ({
      url: item.url,
      collection: item.collection,
      data: content.text,
    }));
    const options = { ...(synchronous ? { synchronous } : {}), ...(commit ? { commit } : {}) };
    let began = clock.now();
    let answer: PushAnswer;
    try {
      answer = await door.run('push', (signal) => {
        began = clock.now();
        return peer.push(items, { ...options, signal });
      });
    } catch (error) {
      await this.#notTaken(parcels, error);
      return;
    }
    await this.#answered(parcels, answer, began);
  }

  async #answered(parcels: readonly Parcel[], answer: PushAnswer, began: number): Promise<void> {
    const { clock, log, state } = this.#parts;
    const now = clock.now();
    const taken: AcceptedItem[] = [];
    parcels.forEach(({ item, sent: before }, i) => {
      const result = answer.results[i];
      const sent = {
        ...before,
        at: began,
        ...(answer.peerTime === undefined ? {} : { peerAt: answer.peerTime }),
      };
      const current = this.#current(item);
      if (current === undefined) {
        this.#overtakenBy(item, result?.ok === true ? sent : undefined);
      } else if (result?.ok) {
        const after = accepted(current, sent, now);
        state.put(after);
        taken.push(after);
      } else {
        const message = result?.message ?? 'the peer did not answer for this item';
        this.#spend(current, {
          code: 'REFUSED',
          message: `The peer refused it: ${message}.`,
          hint: 'Mend what the peer complains about, then `peersync retry` the file.',
        });
      }
    });
    if (taken.length > 0) this.#suspects.succeeded(taken);
    await state.commit();
    log.debug(
      { event: 'pushed', items: parcels.length, accepted: taken.length },
      `pushed ${parcels.length} items, ${taken.length} accepted`,
    );
    this.#confirm.watch(taken.filter((item) => state.get(item.folder, item.path) === item));
  }

  async #notTaken(parcels: readonly Parcel[], error: unknown): Promise<void> {
    const { clock, log, look } = this.#parts;
    const failure = pushFailure(error);
    if (failure.kind === 'stale') {
      parcels.forEach(({ item }, i) => {
        const stale = i === failure.item;
        this.#return(item, stale ? clock.now() + STALE_PAUSE_MS : clock.now());
        if (stale) look(placeOf(item));
      });
      return;
    }
    if (failure.kind === 'doubt') return;
    if (failure.kind === 'untaken') {
      for (const { item } of parcels) this.#return(item, clock.now(), troubleOf(failure.error));
      return;
    }
    const [only] = parcels;
    if (parcels.length > 1 || only === undefined) {
      log.debug(
        { event: 'split', items: parcels.length, code: failure.error.code },
        `a batch of ${parcels.length} failed and is split: ${failure.error.message}`,
      );
      const middle = Math.ceil(parcels.length / 2);
      await this.#send(parcels.slice(0, middle));
      await this.#send(parcels.slice(middle));
      return;
    }
    await this.#blame(only.item, failure.error);
  }

  /** One item failed by itself: spends an attempt when it is to blame, and else puts it off. */
  async #blame(item: PendingItem, error: PeersyncError): Promise<void> {
    const { clock, settings, state } = this.#parts;
    const { failures, othersWentThrough } = this.#suspects.failed(item);
    const current = this.#current(item);
    if (current === undefined) return;
    if (error.code === 'PEER_TOO_LARGE') {
      this.#suspects.forget(item);
      state.put(quarantined(current, current, current.version, troubleOf(error), clock.now()));
      return;
    }
    const onlySuspectsWait = state.counts().pending <= this.#suspects.size;
    if (othersWentThrough || (onlySuspectsWait && (await this.#takesAnEmptyPush()))) {
      const still = this.#current(item);
      if (still !== undefined) this.#spend(still, troubleOf(error));
      return;
    }
    this.#return(item, clock.now() + backoff(failures, settings.push.backoff), troubleOf(error));
  }

  async #takesAnEmptyPush(): Promise<boolean> {
    const { door, peer } = this.#parts;
    try {
      await door.run('push', (signal) => peer.push([], { signal }));
      return true;
    } catch (error) {
      pushFailure(error);
      return false;
    }
  }

  #spend(item: PendingItem, trouble: Trouble): void {
    const { clock, log, settings, state } = this.#parts;
    const now = clock.now();
    const again = failed(item, trouble, now + backoff(item.attempts + 1, settings.push.backoff), now);
    if (again.attempts < settings.push.attempts) {
      state.put(again);
      return;
    }
    this.#suspects.forget(item);
    state.put(quarantined(again, again, again.version, trouble, now));
    log.warn(
      { event: 'quarantined', folder: item.folder, path: item.path, code: trouble.code },
      `quarantined ${placeName(item)}: ${trouble.message} ${trouble.hint}`,
    );
  }

  #return(item: PendingItem, notBefore: number, trouble?: Trouble): void {
    const current = this.#current(item);
    if (current !== undefined) this.#parts.state.put(returned(current, notBefore, trouble));
  }

  /** The item as it stands now, if it is still pending in the version (and for the document) that was taken. */
  #current(item: PendingItem): PendingItem | undefined {
    const now = this.#parts.state.get(item.folder, item.path);
    return now?.status === 'pending' &&
      now.version.sha256 === item.version.sha256 &&
      now.url === item.url &&
      now.collection === item.collection
      ? now
      : undefined;
  }

  /** The file changed while an older version travelled: what the peer took is remembered with the new one. */
  #overtakenBy(item: PendingItem, sent: Sent | undefined): void {
    const { state } = this.#parts;
    const now = state.get(item.folder, item.path);
    if (sent !== undefined && now !== undefined && isItem(now) && now.status === 'pending')
      state.put(overtaken(now, sent));
  }

  #release(place: Place): void {
    this.#backlog.giveBack(place);
    const entry = this.#parts.state.get(place.folder, place.path);
    if (entry?.status !== 'pending') return;
    if (entry.doubt === undefined) this.#backlog.add(entry);
    else this.#confirm.doubt(entry, entry.doubt);
  }
}

/** The wait after the n-th failure: doubling from `min` to `max`, in ms. */
function backoff(failures: number, { min, max }: { readonly min: number; readonly max: number }): number {
  return Math.min(max, min * 2 ** Math.min(30, failures - 1));
}

function unreadable(code: string): Trouble {
  return {
    code: 'UNREADABLE',
    message: `The file could not be read: ${code}.`,
    hint: 'Let the user that peersync runs as read it, then `peersync retry` the file.',
  };
}
