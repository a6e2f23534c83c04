import { HealthCheck } from '../lib/health.js';
import type { Place } from '../state/entries.js';
import type { Entry, PendingItem } from '../state/entry.js';
import { Backlog } from './backlog.js';
import { BatchSender } from './batch-sender.js';
import type { ConfirmLoop } from './confirm-loop.js';
import { FailureAttribution } from './failure-attribution.js';
import type { Isolation } from './isolation.js';
import { placeOf, roomFor, type UplinkParts } from './parts.js';
import { pack } from './prepare.js';
import { BackgroundWork, Signal } from './signal.js';
import { UrlConflicts } from './url-conflicts.js';

/** One batch is read and encoded in seconds; but the thread that does it reads large files for others, too. In ms. */
const LONGEST_PACKING_MS = 15 * 60_000;
/** What has not failed is put off for a few seconds at most: two pushes are kept apart, a file changed under our hands. In ms. */
const LONGEST_OTHER_WAIT_MS = 10_000;
/** How long an item is left alone that waits for a scan of its folder, in ms; less where that changes it. */
const SCAN_PAUSE_MS = 10_000;

/**
 * Pushes what is pending, in batches.
 *
 * One producer forms batches (by number, bytes and age) when the queue has room, and marks every item of a batch as in
 * doubt, on disk, before the request leaves. See BatchSender for what becomes of a batch. Afterwards what is accepted is looked up by
 * the confirm loop, and so is what is still in doubt, before it is pushed again; what is as pending as before is due again, and what
 * is in a folder that is held when that is back.
 */
export class PushLoop {
  readonly health = new HealthCheck('push', 'items that are due are not pushed', {
    busy: () => this.#mayPush(),
  });
  readonly packing = new HealthCheck('packing', 'a batch is not read from the disk', {
    limitMs: LONGEST_PACKING_MS,
  });
  readonly #parts: UplinkParts;
  readonly #confirm: ConfirmLoop;
  readonly #backlog: Backlog;
  readonly #failures: FailureAttribution;
  readonly #sender: BatchSender;
  readonly #conflicts: UrlConflicts;
  readonly #changed: Signal;
  readonly #work: BackgroundWork;
  readonly #isolation: Isolation;

  constructor(parts: UplinkParts, confirm: ConfirmLoop, isolation: Isolation) {
    this.#parts = parts;
    this.#isolation = isolation;
    this.#confirm = confirm;
    this.#failures = new FailureAttribution(parts);
    this.#conflicts = new UrlConflicts(parts.state);
    this.#sender = new BatchSender(parts, this.#failures, (items, sentAt) => confirm.watch(items, sentAt));
    const longestMs = () => Math.max(LONGEST_OTHER_WAIT_MS, parts.settings.push.backoff.max);
    this.#backlog = new Backlog(parts.state, parts.clock, longestMs, parts.standing);
    this.#changed = new Signal(parts.clock);
    this.#work = new BackgroundWork(() => this.#changed.notify());
  }

  /** How many items are on their way. */
  get inFlight(): number {
    return this.#backlog.out;
  }

  /** Nothing of this file waits to be pushed any more; `isAccepted` where the peer has yet to show it. */
  forget(place: Place, isAccepted = false): void {
    this.#failures.forget(place);
    if (isAccepted || !this.#isolation.has(place)) return;
    this.#isolation.forget(place);
    // The rest of its group may wait for just this.
    this.#changed.notify();
  }

  /** To be told of every record that there is at the start. */
  met(entry: Entry): void {
    this.#conflicts.met(entry);
  }

  isOut(place: Place): boolean {
    return this.#backlog.isOut(place);
  }

  add(item: PendingItem): void {
    if (!this.#isolation.take(item)) this.#backlog.add(item);
    this.#changed.notify();
  }

  /** A folder stands otherwise than before: more may be due, or less. */
  foldersChanged(): void {
    this.#changed.notify();
  }

  /** Whether nothing is under way, and nothing will be unless an item is added or a folder is back. */
  get isIdle(): boolean {
    return this.#work.size === 0 && this.#backlog.isIdle && this.#isolation.isIdle;
  }

  /** Whether something is due, and nothing keeps it from being pushed. */
  #mayPush(): boolean {
    const { queue, settings } = this.#parts;
    if (this.#work.size > settings.push.concurrency) return false;
    const decision = this.#isolation.decide(true, true);
    if (decision.push !== undefined || decision.blocksOthers) return false;
    return queue.hasRoom('push') && this.#backlog.peek() !== undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { queue, settings } = this.#parts;
    while (!signal.aborted && !this.#work.hasFailed) {
      const isDue = this.#backlog.peek() !== undefined;
      const decision = this.#isolation.decide(isDue, this.#work.size > 0);
      if (decision.push !== undefined) {
        this.#work.start(this.#pushApart(decision.push, signal));
        continue;
      }
      if (!isDue || decision.blocksOthers) {
        const ownMs = isDue ? undefined : this.#backlog.nextInMs;
        await this.#changed.wait(soonest(ownMs, decision.againInMs), signal);
        continue;
      }
      // One batch more than may travel is made ready, so that none waits for the disk.
      if (this.#work.size > settings.push.concurrency) {
        await this.#changed.wait(undefined, signal);
        continue;
      }
      if (!(await roomFor(queue, 'push', signal))) break;
      const batch = await this.#gather(signal);
      if (batch.length === 0) continue;
      this.health.progress();
      this.#work.start(this.#deliver(batch));
    }
    await this.#work.settled();
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
        const alone = this.#failures.isSuspect(item);
        if (batch.length > 0 && (alone || bytes + item.version.size > maxBytes)) break;
        this.#backlog.take();
        batch.push(item);
        bytes += item.version.size;
        if (alone || batch.length >= maxItems || bytes >= maxBytes) break;
        continue;
      }
      const left = end - clock.now();
      if (left <= 0) break;
      await this.#changed.wait(Math.min(left, this.#backlog.nextInMs ?? left), signal);
    }
    return batch;
  }

  /** Pushes suspects while nothing else is under way. */
  async #pushApart(group: readonly PendingItem[], signal: AbortSignal): Promise<void> {
    const { queue, settings } = this.#parts;
    const { maxItems, maxBytes } = settings.push;
    const taken = group.filter((item) => this.#backlog.takeOut(item));
    for (const item of group) if (!taken.includes(item)) this.#isolation.take(item);
    for (let from = 0; from < taken.length; ) {
      let to = from;
      for (let bytes = 0; to < taken.length && to - from < maxItems; to += 1) {
        bytes += taken[to]?.version.size ?? 0;
        if (to > from && bytes > maxBytes) break;
      }
      const batch = taken.slice(from, to);
      from = to;
      this.health.progress();
      if (await roomFor(queue, 'push', signal)) await this.#deliver(batch);
      else for (const { folder, path } of batch) this.#backlog.giveBack({ folder, path });
    }
    this.#isolation.pushed(true);
  }

  async #deliver(batch: readonly PendingItem[]): Promise<void> {
    const spoken = this.#parts.dialect.current;
    if (spoken === undefined) throw new Error('a batch was gathered before the dialect was known');
    const documents = await this.packing.during(() =>
      pack(this.#parts, batch, spoken.content, this.#conflicts),
    );
    await this.#parts.commit();
    const before = this.#failures.successes;
    await this.#sender.send(documents, spoken, before);
    this.#isolation.pushed();
    await this.#parts.commit();
    for (const item of batch) this.#release(item, before);
  }

  #release(taken: PendingItem, before: number): void {
    const place = placeOf(taken);
    this.#backlog.giveBack(place);
    const entry = this.#parts.state.get(place.folder, place.path);
    // It may have gone back to what the peer was sent before; what was just pushed is being watched already.
    if (entry?.status === 'accepted') this.#confirm.resume(entry);
    if (entry?.status !== 'pending') this.forget(place, entry?.status === 'accepted');
    else if (entry.doubt === undefined) this.#wait(entry, taken);
    else this.#confirm.doubt(entry, entry.doubt, (item) => this.#failures.neverAnswered(item, before));
  }

  /** What was left as it was, for nothing can be told of it before its folder is scanned or back, waits without a trace on disk. */
  #wait(item: PendingItem, taken: PendingItem): void {
    const { pathOf, standing, state } = this.#parts;
    if (this.#isolation.take(item)) return;
    if (state.isCurrent(taken) && standing(item.folder) === 'doubtful') this.#backlog.putAside(item);
    else this.#backlog.add(item, pathOf(item) === undefined ? SCAN_PAUSE_MS : 0);
  }
}

function soonest(...waits: readonly (number | undefined)[]): number | undefined {
  const known = waits.filter((ms) => ms !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
