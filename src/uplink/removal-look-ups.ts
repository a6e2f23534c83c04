import type { HealthCheck } from '../lib/health.js';
import type { ItemKey } from '../state/entries.js';
import { type Entry, type Failure, itemName, type RemovingItem } from '../state/entry.js';
import { isRenamed } from '../state/history.js';
import { removed } from '../state/transitions.js';
import { holdMs, itemKeyText, type UplinkDeps } from './deps.js';
import { type Again, type Answer, type Judge, LookUp, type Verdict } from './look-up.js';
import { LookUpLoop } from './look-up-loop.js';
import { MAX_IN_MEMORY } from './ready-queue.js';

const NOT_REMOVED: Failure = {
  code: 'NOT_REMOVED',
  message: 'The peer took the removal of the document, and still shows it.',
  hint: 'It is asked again by itself; if that does not help, see the log of the peer.',
};
const UNANSWERED: Failure = {
  code: 'REMOVAL_UNANSWERED',
  message: 'The removal of the document was not answered, and the peer still shows it.',
  hint: 'It is asked again by itself.',
};

/** A removal that the peer was asked for. */
interface Requested<Removal> {
  readonly removal: Removal;
  /** Whether the peer accepted this run's request. */
  readonly isAccepted: boolean;
}

export interface RemovalLookUpsOptions<Removal> {
  /** Starts a pass over the entries that are being removed. */
  readonly entries: () => AsyncGenerator<Iterable<Entry>>;
  /** Called for each entry of a pass. */
  readonly onFound: (entry: Entry) => void;
  /** Called when the document has to be removed by another request. */
  readonly onStillShown: (removal: Removal, failure: Failure) => void;
}

/**
 * Looks up the documents of requested removals until the peer does not show them any more.
 *
 * The first look-up is due when the hold after the request is over (see LookUp). A look-up has one
 * of these results:
 *
 * - the document is not shown: the item is `removed`;
 * - it is still shown, and the peer accepted the request: it is looked up again, and requested
 *   again if it is shown for longer than `confirm.timeout`, while the peer answered;
 * - it is still shown, and no answer to the request was recorded: it is requested again at once;
 * - the look-up failed: it is looked up again, because that proves nothing.
 */
export class RemovalLookUps<Removal extends ItemKey>
  implements Judge<Requested<Removal>, RemovingItem>
{
  readonly #deps: UplinkDeps;
  readonly #options: RemovalLookUpsOptions<Removal>;
  readonly #lookUps: LookUpLoop<Requested<Removal>, RemovingItem>;

  constructor(deps: UplinkDeps, options: RemovalLookUpsOptions<Removal>) {
    this.#deps = deps;
    this.#options = options;
    this.#lookUps = new LookUpLoop<Requested<Removal>, RemovingItem>(deps, this, {
      name: 'removal-look-up',
      what: 'removed documents are not looked up',
      maxInMemory: deps.maxInMemory ?? MAX_IN_MEMORY,
      maxWaitForPushMs: 0,
      entries: options.entries,
      onFound: options.onFound,
    });
  }

  get health(): HealthCheck {
    return this.#lookUps.health;
  }

  get isIdle(): boolean {
    return this.#lookUps.isIdle;
  }

  /** Whether the document waits for a look-up or is being looked up. */
  has(key: string): boolean {
    return this.#lookUps.get(key) !== undefined;
  }

  delete(key: string): void {
    this.#lookUps.delete(key);
  }

  foldersChanged(): void {
    this.#lookUps.deleteAll(
      ({ removal }) => this.#deps.folders.stateOf(removal.folder) === 'missing',
    );
    this.#lookUps.startOver();
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#lookUps.run(signal);
  }

  /** Schedules the look-up after a request that the peer accepted, or did not answer. */
  begin(removal: Removal, item: RemovingItem, answer: 'accepted' | 'unanswered'): void {
    const due = this.#deps.clock.now() + holdMs(this.#deps);
    const subject = { removal, isAccepted: answer === 'accepted' };
    this.#add(subject, item, due, 'new');
  }

  /**
   * Schedules the look-up of a removal that an earlier run requested, or that was dropped from
   * memory.
   */
  resume(removal: Removal, item: RemovingItem, requestedAt: number): void {
    // A time in the future comes from an earlier run whose clock was wrong.
    const due = Math.min(this.#deps.clock.now(), requestedAt) + holdMs(this.#deps);
    const mode = this.#lookUps.hasOverflowed ? 'unexpected' : 'new';
    this.#add({ removal, isAccepted: false }, item, due, mode);
  }

  #add(
    subject: Requested<Removal>,
    { url }: RemovingItem,
    due: number,
    mode: 'new' | 'unexpected',
  ): void {
    const key = itemKeyText(subject.removal);
    this.#lookUps.add(new LookUp(subject, { key, url, due, mode, isEvictable: true }));
  }

  judge({ subject }: LookUp<Requested<Removal>>, answer: Answer): Verdict<RemovingItem> {
    const item = this.#requestedItem(subject.removal);
    if (item === undefined) return { kind: 'void' };
    if (answer.kind !== 'document') return { kind: 'unusable', why: answer.failure.message };
    const { current: dialect } = this.#deps.dialect;
    if (dialect === undefined) return { kind: 'unusable', why: 'the kind of peer is not known' };
    return dialect.isRemoved(answer.doc)
      ? { kind: 'expected', found: item }
      : { kind: 'unexpected', why: 'the peer still shows the document' };
  }

  #requestedItem({ folder, path }: ItemKey): RemovingItem | undefined {
    const entry = this.#deps.state.get(folder, path);
    return entry?.status === 'removing' && entry.requestedAt !== undefined ? entry : undefined;
  }

  async settled(_: LookUp<Requested<Removal>>, item: RemovingItem): Promise<void> {
    const { clock, log, state } = this.#deps;
    const { folder, path, url } = item;
    state.put(removed(item, clock.now(), 'the peer does not show it any more'));
    await state.commit();
    // A rename has its own log line.
    const level = isRenamed(item) ? 'debug' : 'info';
    log[level]({ event: 'removed', folder, path, url }, `removed ${itemName(item)} from the peer`);
  }

  async whenAgain(
    { subject: { isAccepted, removal } }: LookUp<Requested<Removal>>,
    answer: Answer,
  ): Promise<Again> {
    const { requestedAt } = this.#requestedItem(removal) ?? {};
    if (requestedAt === undefined) return 'never';
    if (answer.kind !== 'document') return 'later';
    return isAccepted && !this.#isOver(requestedAt) ? 'later' : 'never';
  }

  async unsettled(
    { subject: { isAccepted, removal } }: LookUp<Requested<Removal>>,
    _: Answer,
    again: Again,
  ): Promise<void> {
    if (again !== 'never') return;
    this.#options.onStillShown(removal, isAccepted ? NOT_REMOVED : UNANSWERED);
    await this.#deps.state.commit();
  }

  /** Whether the peer answered for long enough since the request to show that it took effect. */
  #isOver(requestedAt: number): boolean {
    const { clock, queue, settings } = this.#deps;
    const timeoutMs = Math.max(settings.confirm.timeout, 2 * holdMs(this.#deps));
    return Math.min(clock.now() - requestedAt, queue.answeringForMs) >= timeoutMs;
  }
}
