import { PeersyncError } from '../lib/errors.js';
import { evidenceOf, type Peerdoc } from '../peer/peerdoc.js';
import type { ConfirmedItem, RemovedItem } from '../state/entry.js';
import { lostLater, removing } from '../state/entry.js';
import type { State } from '../state/state.js';
import { classify } from './batch-sender.js';
import { holdMs, placeName, type UplinkDeps } from './deps.js';

/** What can be looked up once more. */
type Verifiable = ConfirmedItem | RemovedItem;

/** A confirmed item that the peer does not show any more as it was, or a removed one that it shows again. */
export interface Lost {
  readonly kind: 'lost';
  readonly file: string;
  readonly url: string;
  readonly why: string;
  /** Whether it is pushed, or removed, again. */
  readonly repaired: boolean;
}

/** How far it has come, now and then while look-ups are under way. */
export interface Verifying {
  readonly kind: 'verifying';
  readonly checked: number;
  /** How many items there are, where that was counted. */
  readonly of?: number;
  /** Those that are missing, and those that will be looked up once more. */
  readonly lost: number;
}

export interface Verified {
  readonly kind: 'verified';
  readonly checked: number;
  readonly lost: number;
  /** Those whose look-up had an answer that cannot be used; the log names them. */
  readonly failed: number;
}

export type VerifyDeps = Pick<
  UplinkDeps,
  'state' | 'queue' | 'peer' | 'dialect' | 'settings' | 'clock' | 'log'
>;

export interface VerifyOptions {
  /** Where the look-ups queue: one at a time for the audit, two for a person. */
  readonly lane: 'interactive' | 'audit';
  /** Whether what is missing is pushed again, and what came back removed. */
  readonly repair: boolean;
  readonly signal?: AbortSignal;
  /** How many items there are. */
  readonly of?: number;
}

/** A document must stay missing at least so long, in ms. */
const SHORTEST_PATIENCE_MS = 1_000;
/** Between two reports of how far it has come, in ms. */
const REPORT_EVERY_MS = 250;
const OF_ONE_ANSWER = new Set(['answered', 'failing']);
/** When so many are missing, they are looked up once more before it goes on. */
const MOST_MISSING = 1_000;

/**
 * Looks confirmed items up once more, a few at a time. What is missing, or another version, twice with a pause between is
 * reported, and pushed again where that is asked for; so is a removed item that is there, and removed again. An answer that cannot be used costs its item only. The last line sums it up,
 * lines in between tell how far it has come. It ends with its consumer: no look-up begins after that.
 *
 * @throws PeersyncError what a look-up threw that says something of the whole peer: it is away, busy, or refuses credentials
 */
export async function* verify(
  items: Iterable<Verifiable> | AsyncIterable<Verifiable>,
  deps: VerifyDeps,
  { lane, of, repair, signal }: VerifyOptions,
): AsyncGenerator<Lost | Verifying | Verified> {
  const { clock, log, peer, queue, state } = deps;
  const stopping = signal === undefined ? {} : { signal };
  const counts = { checked: 0, lost: 0, failed: 0 };
  /** The items that the peer does not show, and why; of removed ones those that it shows. */
  const missing = new Map<Verifiable, string>();
  const look = async (item: Verifiable) => {
    missing.delete(item);
    if (!isCurrent(state, item)) return;
    try {
      const { url } = item.sent ?? item;
      const doc = await queue.run(lane, (s) => peer.peerdoc({ url }, { signal: s }), stopping);
      const why = item.status === 'removed' ? backBecause(deps, item, doc) : lostBecause(item, doc);
      if (why !== undefined) missing.set(item, why);
    } catch (error) {
      // What says something of the peer as a whole ends it.
      if (!(error instanceof PeersyncError) || !OF_ONE_ANSWER.has(classify(error).kind)) throw error;
      counts.failed += 1;
      const { folder, path, url } = item;
      log.warn(
        { event: 'verify-failed', folder, path, url, code: error.code },
        `could not be looked up: ${placeName(item)}: ${error.message}`,
      );
    }
  };
  const lookAtAll = async function* (all: typeof items) {
    for await (const group of groupsOf(all, lane === 'audit' ? 1 : 2)) {
      if (signal?.aborted) return;
      await Promise.all(group.map(look));
      yield group.length;
    }
  };
  const progress = (): Verifying => ({
    ...{ kind: 'verifying', checked: counts.checked, lost: counts.lost + missing.size },
    ...(of === undefined ? {} : { of }),
  });
  /** Looks up again what is missing; reports what still is. */
  async function* lookAgain(): AsyncGenerator<Lost | Verifying> {
    if (missing.size === 0) return;
    yield progress();
    await clock.sleep(Math.max(SHORTEST_PATIENCE_MS, holdMs(deps)), signal);
    for await (const _ of lookAtAll([...missing.keys()]));
    if (signal?.aborted) return;
    for (const [item, why] of missing) {
      if (!isCurrent(state, item)) continue;
      counts.lost += 1;
      const { folder, path, url } = item;
      const isBack = item.status === 'removed';
      if (repair) state.put(isBack ? removing(item, clock.now(), why) : lostLater(item, why, clock.now()));
      const what = isBack
        ? 'removed before and shown by the peer'
        : 'confirmed before and now lost by the peer';
      const then = repair ? `, ${isBack ? 'removed' : 'pushed'} again` : '';
      log.warn(
        { event: isBack ? 'back' : 'lost', folder, path, url },
        `${what}${then}: ${placeName(item)}: ${why}`,
      );
      yield { kind: 'lost', file: placeName(item), url, why, repaired: repair };
    }
    missing.clear();
    if (repair) await state.commit();
  }
  let reportedAt = clock.now();
  for await (const looked of lookAtAll(items)) {
    counts.checked += looked;
    if (clock.now() - reportedAt >= REPORT_EVERY_MS) {
      reportedAt = clock.now();
      yield progress();
    }
    if (missing.size >= MOST_MISSING) yield* lookAgain();
  }
  yield* lookAgain();
  if (!signal?.aborted) yield { kind: 'verified', ...counts };
}

async function* groupsOf<T>(items: Iterable<T> | AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let group: T[] = [];
  for await (const item of items) {
    if (group.push(item) < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

function lostBecause({ sent }: ConfirmedItem, doc: Peerdoc | undefined): string | undefined {
  const shown = evidenceOf(doc, sent);
  return shown.shown ? undefined : shown.why;
}

/** Why a removed document counts as having come back: not where it belongs to somebody else. */
function backBecause(deps: VerifyDeps, item: RemovedItem, doc: Peerdoc | undefined): string | undefined {
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
  return now?.status === 'confirmed' && now.sent.at === item.sent.at && now.sent.sha256 === item.sent.sha256;
}

/** A round of the audit comes so many times in `every`, but no more rarely than once an hour. */
const ROUNDS = 100;
const LONGEST_ROUND_MS = 3_600_000;
const SHORTEST_ROUND_MS = 100;
const AUDITED_META = 'auditedUntil';

/**
 * Notices slowly, in the background, what the peer lost, and has it pushed again; on peers that may have a removed document
 * again, also that, and has it removed.
 *
 * *Resting* at first; `start` lets it look up every confirmed item once more in every `everyMs`, `stop` lets it rest again.
 *
 * Each item has a moment of its own in every `everyMs`, which its name decides; an item is looked up in the round in which
 * its moment passes. Until when that was done is remembered, so that moments that passed while nothing ran, or while the
 * peer was away, are made up for.
 */
export class Audit {
  readonly #deps: VerifyDeps;
  #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();

  constructor(deps: VerifyDeps) {
    this.#deps = deps;
  }

  /** @param everyMs in what time every confirmed item is looked up once more, in ms; 0 for never */
  start(everyMs: number, onFailure: (error: unknown) => void): void {
    if (everyMs === 0) return;
    this.#stopping = new AbortController();
    this.#loop = this.#run(everyMs, this.#stopping.signal).catch(onFailure);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #run(everyMs: number, signal: AbortSignal): Promise<void> {
    const { clock, dialect, state } = this.#deps;
    if (!(await dialect.known(signal))) return;
    if (typeof state.meta(AUDITED_META) !== 'number') state.setMeta(AUDITED_META, clock.now());
    const roundMs = Math.max(SHORTEST_ROUND_MS, Math.min(LONGEST_ROUND_MS, everyMs / ROUNDS));
    while (!signal.aborted) {
      await clock.sleep(roundMs, signal);
      const to = clock.now();
      const due = this.#due(Number(state.meta(AUDITED_META)), to, everyMs);
      try {
        for await (const _ of verify(due, this.#deps, { lane: 'audit', repair: true, signal }));
      } catch (error) {
        // The peer is away, or we stop: the next round makes up for it.
        if (error instanceof PeersyncError || signal.aborted) continue;
        throw error;
      }
      if (signal.aborted) return;
      state.setMeta(AUDITED_META, to);
      await state.commit();
    }
  }

  /** The items whose moment is after `from` and not after `to`. */
  async *#due(from: number, to: number, everyMs: number): AsyncGenerator<Verifiable> {
    const { dialect, state } = this.#deps;
    const status = ['confirmed', ...(dialect.current?.bringsBack ? (['removed'] as const) : [])] as const;
    for await (const slice of state.entries.slices({ status })) {
      for (const item of slice) {
        const moment = share(placeName(item)) * everyMs;
        if (Math.floor((to - moment) / everyMs) <= Math.floor((from - moment) / everyMs)) continue;
        const isNew = item.since > from && item.since <= to;
        if ((item.status === 'confirmed' || item.status === 'removed') && !isNew) yield item;
      }
    }
  }
}

/** Where a name stands between 0 and 1: FNV-1a, which spreads similar names. */
function share(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i += 1) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return (hash >>> 0) / 2 ** 32;
}
