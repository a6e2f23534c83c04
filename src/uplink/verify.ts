import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { evidenceOf, type Peerdoc } from '../peer/peerdoc.js';
import type { ConfirmedItem } from '../state/entry.js';
import type { State } from '../state/state.js';
import { missed } from '../state/transitions.js';
import { placeName } from './parts.js';

/** A confirmed item that the peer does not show any more as it was. */
export interface Missed {
  readonly kind: 'missed';
  readonly file: string;
  readonly url: string;
  readonly why: string;
  /** Whether it is pushed again. */
  readonly repaired: boolean;
}

/** How far it has come, now and then while look-ups are under way. */
export interface Verifying {
  readonly kind: 'verifying';
  readonly checked: number;
  /** How many items there are, where that was counted. */
  readonly of?: number;
  /** Those that were told, and those that will be looked up once more. */
  readonly missed: number;
}

export interface Verified {
  readonly kind: 'verified';
  readonly checked: number;
  readonly missed: number;
  /** Those whose look-up had an answer that cannot be used; the log names them. */
  readonly failed: number;
}

export interface VerifyParts {
  readonly state: Pick<State, 'get' | 'put'>;
  readonly commit: () => Promise<void>;
  /** What the peer shows of a document. */
  readonly lookUp: (url: string) => Promise<Peerdoc | undefined>;
  /** Look-ups under way at a time. */
  readonly concurrency: number;
  /** So long a document must stay missing until that is believed, in ms. */
  readonly patienceMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Between two words on how far it has come, in ms. */
const TOLD_EVERY_MS = 250;
/** So many are looked up until those that were missing are looked up again. */
const ROUND = 5_000;

/** What says something of the one answer, and not of the peer as a whole. */
const OF_ONE_ANSWER = new Set([
  'PEER_ANSWER',
  'PEER_ANSWER_TOO_LARGE',
  'PEER_FAILED',
  'PEER_REFUSED',
  'PEER_NAME',
]);

interface Miss {
  readonly item: ConfirmedItem;
  readonly why: string;
}

/**
 * Looks confirmed items up once more, a few at a time. What is missing, or another version, twice with a pause between is
 * told, and pushed again where that is asked for. An answer that cannot be used costs its item only. The last line sums it up,
 * lines in between tell how far it has come. It ends with its consumer: no look-up begins after that.
 *
 * @param options.of how many items there are
 * @throws PeersyncError what a look-up threw that says something of the whole peer: it is away, busy, or refuses credentials
 */
export async function* verify(
  items: Iterable<ConfirmedItem>,
  parts: VerifyParts,
  options: { readonly repair: boolean; readonly signal?: AbortSignal; readonly of?: number },
): AsyncGenerator<Missed | Verifying | Verified> {
  const { clock, commit, log, patienceMs, state } = parts;
  const { repair } = options;
  const of = options.of === undefined ? {} : { of: options.of };
  const leaving = new AbortController();
  const signal = AbortSignal.any([leaving.signal, ...(options.signal ? [options.signal] : [])]);
  let checked = 0;
  let count = 0;
  let failed = 0;
  try {
    for (const round of inRounds(items)) {
      const counts: Counts = { looked: 0, missed: 0, failed: 0 };
      const looking = missesOf(round, parts, signal, counts);
      while (!(await settledWithin(looking, TOLD_EVERY_MS, clock)))
        yield { kind: 'verifying', checked: checked + counts.looked, ...of, missed: count + counts.missed };
      let misses = await looking;
      checked += round.length;
      failed += counts.failed;
      if (misses.length > 0) {
        yield { kind: 'verifying', checked, ...of, missed: count + misses.length };
        await clock.sleep(patienceMs, signal);
        const again = misses.map(({ item }) => item);
        misses = await missesOf(again, parts, signal, { looked: 0, missed: 0, failed: 0 });
      }
      for (const { item, why } of misses) {
        if (!isCurrent(state, item)) continue;
        count += 1;
        if (repair) state.put(missed(item, why, clock.now()));
        const { folder, path, url } = item;
        log.warn(
          { event: 'missed', folder, path, url },
          `confirmed before and now missed in the peer${repair ? ', pushed again' : ''}: ${placeName(item)}: ${why}`,
        );
        yield { kind: 'missed', file: placeName(item), url, why, repaired: repair };
      }
      if (repair && misses.length > 0) await commit();
      if (signal.aborted) return;
    }
    yield { kind: 'verified', checked, missed: count, failed };
  } finally {
    leaving.abort();
  }
}

interface Counts {
  looked: number;
  missed: number;
  failed: number;
}

/** Waits for work, but not longer; says whether it is done. What it throws is for who awaits the work itself. */
async function settledWithin(work: Promise<unknown>, ms: number, clock: Clock): Promise<boolean> {
  const waiting = new AbortController();
  const settled = work.then(
    () => true,
    () => true,
  );
  const late = clock.sleep(ms, waiting.signal).then(() => false);
  try {
    return await Promise.race([settled, late]);
  } finally {
    waiting.abort();
  }
}

function* inRounds(items: Iterable<ConfirmedItem>): Generator<readonly ConfirmedItem[]> {
  let round: ConfirmedItem[] = [];
  for (const item of items) {
    round.push(item);
    if (round.length < ROUND) continue;
    yield round;
    round = [];
  }
  if (round.length > 0) yield round;
}

async function missesOf(
  items: readonly ConfirmedItem[],
  { concurrency, log, lookUp, state }: VerifyParts,
  signal: AbortSignal,
  counts: Counts,
): Promise<Miss[]> {
  const misses: Miss[] = [];
  const rest = items.values();
  const work = async () => {
    for (const item of rest) {
      if (signal.aborted) return;
      if (!isCurrent(state, item)) continue;
      counts.looked += 1;
      let doc: Peerdoc | undefined;
      try {
        doc = await lookUp(item.sent.url);
      } catch (error) {
        if (signal.aborted || !(error instanceof PeersyncError) || !OF_ONE_ANSWER.has(error.code))
          throw error;
        counts.failed += 1;
        const { folder, path, url } = item;
        log.warn(
          { event: 'verify-failed', folder, path, url, code: error.code },
          `could not be looked up: ${placeName(item)}: ${error.message}`,
        );
        continue;
      }
      const shown =
        doc === undefined
          ? { shown: false as const, why: 'the peer does not know the document' }
          : evidenceOf(doc, item.sent);
      if (shown.shown) continue;
      counts.missed += 1;
      misses.push({ item, why: shown.why });
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return misses;
}

function isCurrent(state: Pick<State, 'get'>, item: ConfirmedItem): boolean {
  const now = state.get(item.folder, item.path);
  return now?.status === 'confirmed' && now.sent.at === item.sent.at && now.sent.sha256 === item.sent.sha256;
}
