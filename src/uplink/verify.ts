import { type EvidenceKind, evidenceOf, type Peerdoc } from '../peer/peerdoc.js';
import type { ConfirmedItem, Destination, Entry, RemovedItem } from '../state/entry.js';
import { itemName } from '../state/entry.js';
import type { State } from '../state/state.js';
import { lostLater, removing } from '../state/transitions.js';
import { type Deps, holdMs, itemKeyText } from './deps.js';
import { type Answer, type Judge, LookUp, type Verdict } from './look-up.js';
import { LookUpPass } from './look-up-pass.js';

/** An item whose document can be verified. */
export type Verifiable = ConfirmedItem | RemovedItem;

export const VERIFIABLE = ['confirmed', 'removed'] as const;

export function isVerifiable(entry: Entry): entry is Verifiable {
  return entry.status === 'confirmed' || entry.status === 'removed';
}

/** Returns all items that can be verified, or a random sample of `most`, with their number. */
export async function itemsToVerify(
  { entries }: Pick<State, 'entries'>,
  most = Number.POSITIVE_INFINITY,
): Promise<{
  readonly items: Iterable<Verifiable> | AsyncIterable<Verifiable>;
  readonly of: number;
}> {
  const { confirmed, removed } = entries.counts();
  const of = Math.min(most, confirmed + removed);
  if (most === Number.POSITIVE_INFINITY) return { items: verifiable(entries), of };
  const sample: Verifiable[] = [];
  let seen = 0;
  for await (const item of verifiable(entries)) {
    seen += 1;
    const place = seen <= most ? seen - 1 : Math.floor(Math.random() * seen);
    if (place < most) sample[place] = item;
  }
  return { items: sample, of };
}

async function* verifiable(entries: State['entries']): AsyncGenerator<Verifiable> {
  for await (const slice of entries.slices({ status: VERIFIABLE }))
    for (const item of slice) if (isVerifiable(item)) yield item;
}

/** An item whose document in the peer is not as the state says. */
export interface Deviation {
  /**
   * `lost`: confirmed, but the peer does not show that version any more; `back`: removed, but the
   * peer shows it again.
   */
  readonly kind: 'lost' | 'back';
  readonly file: string;
  readonly url: string;
  readonly why: string;
  /** Whether it will be pushed or removed again. */
  readonly repaired: boolean;
}

/** The progress, reported from time to time. */
export interface Verifying {
  readonly kind: 'verifying';
  readonly checked: number;
  /** The number of items to verify, if it is known. */
  readonly of?: number;
  /** Numbers of deviations: those reported, and those that wait for a second look-up. */
  readonly lost: number;
  readonly back: number;
}

export interface Verified {
  readonly kind: 'verified';
  /** The number of items that were looked up. */
  readonly checked: number;
  /** The number of removed items among them; the others are confirmed. */
  readonly removed: number;
  readonly lost: number;
  readonly back: number;
  /** The number of items whose answer cannot be used; the log names them. */
  readonly failed: number;
}

type EvidenceRule = 'any' | 'asConfirmed' | 'versionSpecific';

export interface VerifyOptions {
  /**
   * The queue lane of the look-ups. In `audit` there is one look-up at a time, in `interactive`
   * there are two.
   */
  readonly lane: 'interactive' | 'audit';
  /** Whether lost documents are pushed again, and documents that are back are removed again. */
  readonly repair: boolean;
  readonly signal?: AbortSignal;
  /** The number of items to verify, for the progress reports. */
  readonly of?: number;
  /**
   * Which evidence counts, if another version may have been pushed. With `versionSpecific`, only
   * evidence that no other version can give; with `asConfirmed`, also the load date that confirmed
   * the item. @default `any`
   */
  readonly evidence?: EvidenceRule;
}

/** Minimum time between the two look-ups of a deviating document, in ms. */
const SHORTEST_PAUSE_MS = 1_000;
/** Interval of the progress reports, in ms. */
const REPORT_EVERY_MS = 250;
/** Evidence that no other version of a document gives. */
const VERSION_SPECIFIC: ReadonlySet<EvidenceKind> = new Set(['digest', 'lastModified']);
/** Number of look-ups at a time, for each lane. */
const CONCURRENCY = { audit: 1, interactive: 2 } as const;
/** Number of deviating items at which they are looked up again before other items. */
const MAX_DEVIATING = 1_000;

/**
 * Looks items up, one or two at a time. An item deviates if it is confirmed and the peer shows no
 * document or another version, or if it is removed and the peer shows it. A deviating item is
 * looked up again after a pause. If it still deviates, it is reported, and with `repair` pushed or
 * removed again. An unusable answer affects only its item. Progress reports come in between, a
 * summary comes last. No look-up begins after the consumer has ended the iteration.
 *
 * @throws PeersyncError the error of a look-up that concerns the whole peer: it is away, busy, or
 *   refuses the credentials
 */
export function verify(
  items: Iterable<Verifiable> | AsyncIterable<Verifiable>,
  deps: Deps,
  options: VerifyOptions,
): AsyncGenerator<Deviation | Verifying | Verified> {
  return new Verification(deps, options).run(items);
}

/**
 * The judge of the look-ups of `verify`. It expects a deviation: the state says that the last
 * answer was otherwise, so a deviation counts only if it lasts for the pause. An answer without a
 * deviation ends the look-up.
 */
class Verification implements Judge<Verifiable, string> {
  readonly #deps: Deps;
  readonly #options: VerifyOptions;
  readonly #pass: LookUpPass<Verifiable, string>;
  readonly #counts = { checked: 0, removed: 0, lost: 0, back: 0, failed: 0 };
  /** The items that deviated twice and are not reported yet, with the reason. */
  #deviating: { readonly item: Verifiable; readonly why: string }[] = [];

  constructor(deps: Deps, options: VerifyOptions) {
    const { lane, signal } = options;
    this.#deps = deps;
    this.#options = options;
    this.#pass = new LookUpPass(deps, this, {
      lane,
      concurrency: CONCURRENCY[lane],
      holdMs: () => Math.max(SHORTEST_PAUSE_MS, holdMs(deps)),
      signal,
    });
  }

  async *run(
    items: Iterable<Verifiable> | AsyncIterable<Verifiable>,
  ): AsyncGenerator<Deviation | Verifying | Verified> {
    const { clock } = this.#deps;
    let reportedAt = clock.now();
    for await (const looks of this.#pass.run(this.#lookUps(items))) {
      this.#counts.checked += looks.length;
      this.#counts.removed += looks.filter(({ subject }) => subject.status === 'removed').length;
      if (clock.now() - reportedAt >= REPORT_EVERY_MS) {
        reportedAt = clock.now();
        yield this.#progress();
      }
      if (this.#pass.waiting.length >= MAX_DEVIATING) yield* this.#recheck();
    }
    yield* this.#recheck();
    if (!this.#pass.isStopped) yield { kind: 'verified', ...this.#counts };
  }

  async *#lookUps(
    items: Iterable<Verifiable> | AsyncIterable<Verifiable>,
  ): AsyncGenerator<LookUp<Verifiable>> {
    for await (const item of items) {
      const { url } = item.sent ?? item;
      const due = this.#deps.clock.now();
      yield new LookUp(item, { key: itemKeyText(item), url, due, mode: 'unexpected' });
    }
  }

  #progress(): Verifying {
    const { checked, lost, back } = this.#counts;
    const { waiting } = this.#pass;
    const isBack = waiting.filter(({ subject }) => subject.status === 'removed').length;
    const { of } = this.#options;
    return {
      kind: 'verifying',
      checked,
      lost: lost + waiting.length - isBack,
      back: back + isBack,
      ...(of !== undefined && { of }),
    };
  }

  /** Looks the deviating items up again, and reports those that still deviate. */
  async *#recheck(): AsyncGenerator<Deviation | Verifying> {
    if (this.#pass.waiting.length === 0) return;
    yield this.#progress();
    await this.#pass.again();
    if (this.#pass.isStopped) return;
    for (const { item, why } of this.#deviating)
      if (isCurrent(this.#deps.state, item)) yield this.#report(item, why);
    this.#deviating = [];
    if (this.#options.repair) await this.#deps.state.commit();
  }

  #report(item: Verifiable, why: string): Deviation {
    const { clock, log, state } = this.#deps;
    const { repair } = this.#options;
    const { folder, path, url } = item;
    const isBack = item.status === 'removed';
    const kind = isBack ? 'back' : 'lost';
    this.#counts[kind] += 1;
    if (repair)
      state.put(isBack ? removing(item, clock.now(), why) : lostLater(item, why, clock.now()));
    const what = isBack
      ? 'removed before and shown by the peer'
      : 'confirmed before and now lost by the peer';
    const then = repair ? `, ${isBack ? 'removed' : 'pushed'} again` : '';
    log.warn({ event: kind, folder, path, url }, `${what}${then}: ${itemName(item)}: ${why}`);
    return { kind, file: `${folder}/${path}`, url, why, repaired: repair };
  }

  judge({ subject: item }: LookUp<Verifiable>, answer: Answer): Verdict<string> {
    if (!isCurrent(this.#deps.state, item)) return { kind: 'void' };
    if (answer.kind !== 'document') return { kind: 'unusable', why: answer.failure.message };
    const { evidence = 'any' } = this.#options;
    const why =
      item.status === 'removed'
        ? whyBack(this.#deps, item, answer.doc)
        : whyLost(item, answer.doc, evidence);
    return why === undefined
      ? { kind: 'unexpected', why: 'it is as the state says' }
      : { kind: 'expected', found: why };
  }

  async settled({ subject: item }: LookUp<Verifiable>, why: string): Promise<void> {
    this.#deviating.push({ item, why });
  }

  async whenAgain(): Promise<'never'> {
    return 'never';
  }

  async unsettled({ subject: item }: LookUp<Verifiable>, answer: Answer): Promise<void> {
    // An error that concerns the whole peer ends the verification.
    if (answer.kind === 'peerFailed') throw answer.failure;
    if (answer.kind === 'document') return;
    this.#counts.failed += 1;
    const { folder, path, url } = item;
    const { code, message } = answer.failure;
    this.#deps.log.warn(
      { event: 'verify-failed', folder, path, url, code },
      `could not be looked up: ${itemName(item)}: ${message}`,
    );
  }
}

function whyLost(
  { evidence, sent }: ConfirmedItem,
  doc: Peerdoc | undefined,
  rule: EvidenceRule,
): string | undefined {
  const shown = evidenceOf(doc, sent);
  if (!shown.shown) return shown.why;
  if (rule === 'any' || VERSION_SPECIFIC.has(shown.kind)) return undefined;
  const isAsConfirmed = shown.kind === 'loadDate' && shown.text === evidence.shown;
  return rule === 'asConfirmed' && isAsConfirmed
    ? undefined
    : 'the peer may have been sent another version';
}

/**
 * Returns why a removed document counts as back; undefined if it is not shown, or belongs to
 * another file or another source.
 */
export function whyBack(
  deps: Pick<Deps, 'dialect' | 'state'>,
  item: Destination,
  doc: Peerdoc | undefined,
): string | undefined {
  if (
    deps.dialect.current?.isRemoved(doc) !== false ||
    deps.state.entries.ownerOf(item.url, item) !== undefined
  )
    return undefined;
  const collections = item.collection.split(',').map((name) => name.trim());
  const isOurs =
    doc?.collections === undefined || collections.some((name) => doc.collections?.includes(name));
  return isOurs ? 'the peer shows the document again' : undefined;
}

function isCurrent(state: Pick<State, 'get'>, item: Verifiable): boolean {
  const now = state.get(item.folder, item.path);
  if (item.status === 'removed') return now?.status === 'removed' && now.since === item.since;
  return (
    now?.status === 'confirmed' &&
    now.sent.at === item.sent.at &&
    now.sent.sha256 === item.sent.sha256
  );
}
