import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import { DIALECTS, type PeerClient } from '../peer/client.js';
import type { Dialect } from '../peer/dialect.js';
import { evidenceOf, type SentVersion } from '../peer/peerdoc.js';
import { cannotTravel } from '../uplink/documents.js';
import { type CanaryPlan, readyCanary } from './canary-documents.js';
import { type CanaryReport, type Failure, type Probed, reportOf } from './canary-report.js';
import { pushBatch, untilShown } from './push-and-wait.js';

/** The collection that all canaries are tagged with. */
const CANARY_COLLECTION = 'peersync-canary';

export interface CanaryPatience {
  readonly timeoutMs: number;
  /** `confirm.hold`; that of the dialect unless given, in ms. */
  readonly hold: number | undefined;
  readonly maxInterval: number;
}

/** What a canary asks of the peer; `PeerClient` is one. */
export type CanaryPeer = Pick<PeerClient, 'dialect' | 'detect' | 'push' | 'peerdoc' | 'citation'>;

interface Parts {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** So long ago was a canary changed last, so that this is no moment of its push, in ms. */
const AGE_MS = 3_600_000;
/** A dialect that drops documents without a word is given so many times its hold to show one, as the daemon does. */
const GATE_HOLDS = 3;
const SHORTEST_GATE_MS = 5_000;
/** For the look-ups that are under way when the time is over, in ms. */
const LAST_LOOKS_MS = 5_000;
/** Between two looks of the watch that measures the time-to-visible. */
const LOOKS_PER_HOLD = 40;
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;

/**
 * Pushes canaries, waits until the peer shows them as the daemon would, and looks at what it shows.
 *
 * @throws PeersyncError when the peer's dialect cannot be found out, or `signal` aborted
 */
export async function canary(
  client: CanaryPeer,
  plans: readonly CanaryPlan[],
  patience: CanaryPatience,
  { clock, signal }: Parts,
): Promise<CanaryReport> {
  const over = new AbortController();
  const end = clock.after(patience.timeoutMs + LAST_LOOKS_MS, () => over.abort());
  const parts = { clock, signal: AbortSignal.any([signal, over.signal]) };
  try {
    const deadline = clock.now() + patience.timeoutMs;
    const dialect = DIALECTS[client.dialect ?? (await client.detect({ signal: parts.signal }))];
    const holdMs = patience.hold ?? dialect.holdMs;
    const gatePatience = dialect.hasDomainGate
      ? Math.max(GATE_HOLDS * holdMs, SHORTEST_GATE_MS)
      : patience.timeoutMs;
    const probes: Promise<Probed>[] = [];
    for (const plan of plans) {
      const sent = await pushed(client, plan, dialect, deadline, parts);
      const ownDeadline = plan.kind === 'address' ? clock.now() + gatePatience : deadline;
      const wait = {
        deadline: Math.min(deadline, ownDeadline),
        hold: holdMs,
        maxInterval: patience.maxInterval,
      };
      probes.push('outcome' in sent ? Promise.resolve(sent) : followed(client, sent, wait, parts));
    }
    const probed = await Promise.all(probes);
    signal.throwIfAborted();
    return reportOf(probed, dialect, holdMs);
  } finally {
    end.cancel();
  }
}

interface Pushed extends CanaryPlan {
  readonly sent: SentVersion;
}

/** Pushes one document by itself, so that none suffers from another. */
async function pushed(
  client: CanaryPeer,
  plan: CanaryPlan,
  { content }: Dialect,
  deadline: number,
  parts: Parts,
): Promise<Pushed | Probed> {
  const { document, url } = plan;
  if (cannotTravel(document.encoding, content) !== undefined) return { ...plan, outcome: undefined };
  const modified = Math.floor((parts.clock.now() - AGE_MS) / 1000) * 1000;
  const how = { collection: CANARY_COLLECTION, synchronous: false, commit: false };
  try {
    const ready = readyCanary(document, url, modified, content);
    const [answer] = await pushBatch(client, [ready], how, { ...parts, deadline });
    if (answer?.result.ok === true) return { ...plan, sent: answer.sent };
    const message = answer?.result.ok === false ? answer.result.message : 'no answer for it';
    return { ...plan, outcome: { status: 'refused', message } };
  } catch (error) {
    return { ...plan, outcome: failed(error) };
  }
}

/** Waits until the peer shows a document for good, and looks at what it shows. */
async function followed(
  client: CanaryPeer,
  plan: Pushed,
  patience: Parameters<typeof untilShown>[2],
  parts: Parts,
): Promise<Probed> {
  const { sent, url, kind } = plan;
  const watching = new AbortController();
  try {
    const signal = AbortSignal.any([parts.signal, watching.signal]);
    const watched =
      kind === 'canary' ? watchedSince(client, sent, patience.hold, { ...parts, signal }) : undefined;
    const outcome = await untilShown(client, sent, patience, parts);
    const tookMs = parts.clock.now() - sent.at;
    watching.abort();
    const visibleMs = (await watched) ?? tookMs;
    if (outcome.status !== 'confirmed' || kind === 'address') return { ...plan, outcome };
    const doc = await client.peerdoc({ url }, { signal: parts.signal });
    const citation = await client.citation({ url }, { signal: parts.signal }).catch(failed);
    return { ...plan, outcome, doc, citation, visibleMs };
  } catch (error) {
    return { ...plan, outcome: failed(error) };
  } finally {
    watching.abort();
  }
}

/** Looks on until it is called off. @returns how long after its push the document was there for good, in ms */
async function watchedSince(
  client: CanaryPeer,
  sent: SentVersion,
  hold: number,
  { clock, signal }: Parts,
): Promise<number | undefined> {
  const pause = Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, hold / LOOKS_PER_HOLD));
  let since: number | undefined;
  while (!signal.aborted) {
    try {
      const doc = await client.peerdoc({ url: sent.url }, { signal });
      const isShown = doc !== undefined && evidenceOf(doc, sent).shown;
      since = isShown ? (since ?? clock.now()) : undefined;
    } catch (error) {
      if (!(error instanceof PeersyncError)) throw error;
    }
    await clock.sleep(pause, signal);
  }
  return since === undefined ? undefined : since - sent.at;
}

function failed(error: unknown): Failure {
  if (!(error instanceof PeersyncError)) throw error;
  return { status: 'failed', error };
}
