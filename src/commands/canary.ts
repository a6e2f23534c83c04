import { join } from 'node:path';
import type { Config } from '../config/config.js';
import { normaliseBase } from '../config/url.js';
import { type Clock, systemClock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { durationText } from '../lib/units.js';
import { DIALECTS, type PeerClient } from '../peer/client.js';
import type { Dialect } from '../peer/dialect.js';
import type { SentVersion } from '../peer/peerdoc.js';
import { cannotTravel } from '../uplink/documents.js';
import {
  type CanaryPlan,
  type CanaryReport,
  canaryPlan,
  type Failure,
  type Probed,
  readyCanary,
  reportOf,
} from './canary-report.js';
import { isThere, UsageError } from './context.js';
import { withPeer } from './peer.js';
import { pushBatch, untilShown } from './push-files.js';
import { type Asked, consent } from './terminal.js';
import { columns, counted, safe } from './text.js';

export interface CanaryOptions {
  readonly url: string | undefined;
  readonly yes: boolean;
  readonly timeoutMs: number;
}

/**
 * Pushes canaries to the configured peer, once somebody agreed: the peer keeps them.
 *
 * @throws UsageError for a URL that is none, or that is the document of a file of a folder
 * @throws PeersyncError NOT_CONFIRMED, STOPPED, and what finding out the dialect throws
 */
export async function checkCanary(
  config: Config,
  { url, yes, timeoutMs }: CanaryOptions,
  log: Logger,
  asked: Asked,
): Promise<CanaryReport> {
  const clock = systemClock;
  const plans = canaryPlan(baseOf(url, config), config.folders, clock.now());
  await refuseFiles(plans, config);
  const { hold, maxInterval } = config.confirm;
  return withPeer(config, log, async (client, signal) => {
    if (!yes) {
      if (asked.isTerminal) asked.output.write(questionText(plans));
      await consent('Push them? Type "yes": ', 'yes', asked, signal, 'Nothing was pushed');
    }
    return canary(client, plans, { timeoutMs, hold, maxInterval }, { clock, signal });
  });
}

/** Below which URL the canaries go. */
function baseOf(url: string | undefined, { folders }: Config): string {
  if (url === undefined) return `${folders[0]?.url ?? ''}peersync-canary/`;
  const base = normaliseBase(url);
  if (base !== undefined) return base;
  throw new UsageError(
    `--url: received "${url}".`,
    'Give an http, https, ftp or file URL without credentials, query and fragment, such as https://files.example.org/canary/.',
  );
}

/** A canary must not take the place of a file's document. */
async function refuseFiles(plans: readonly CanaryPlan[], { folders }: Config): Promise<void> {
  for (const { url } of plans) {
    for (const folder of folders) {
      if (!url.startsWith(folder.url)) continue;
      const file = join(folder.path, decodeURIComponent(url.slice(folder.url.length)));
      if (await isThere(file))
        throw new UsageError(
          `The canary ${url} would replace the document of ${file}.`,
          'Give another --url.',
        );
    }
  }
}

function questionText(plans: readonly CanaryPlan[]): string {
  const urls = plans.map(({ url }) => `  ${safe(url)}\n`).join('');
  return `${counted(plans.length, 'tiny document')} will stay in the index, for a peer's interface cannot remove any:\n${urls}`;
}

/** The report for a person, line by line. */
export function canaryText(report: CanaryReport): string[] {
  const { rows, timeToVisibleMs } = report;
  const shown = rows.map(({ check, status, message }) => [WORDS[status], check, safe(message)]);
  const hints = new Set(rows.flatMap(({ hint }) => (hint === undefined ? [] : [safe(hint)])));
  const visible =
    timeToVisibleMs === undefined ? 'not known' : `${durationText(timeToVisibleMs)} after the push`;
  return [
    ...columns([...shown, ['', 'time to visible', visible]]),
    ...[...hints].map((hint) => `  ${hint}`),
    'What the daemon will do:',
    ...daemonText(report).map((line) => `  ${line}`),
  ];
}

const WORDS = { works: 'ok', fails: 'TROUBLE', 'not tried': '-' } as const;

function daemonText({ dialect, holdMs, takesBinary, dropped }: CanaryReport): string[] {
  return [
    `It speaks the dialect ${dialect}.`,
    holdMs === 0
      ? 'It confirms a file as soon as the peer shows it.'
      : `It confirms a file when the peer still shows it ${durationText(holdMs)} after its push.`,
    takesBinary
      ? 'It pushes all files, those that are no text as they are.'
      : 'It pushes text files; those that are no text are passed over.',
    ...dropped.map((folder) => `Files of the folder ${safe(folder)} would end in quarantine.`),
  ];
}

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
  const { signal } = parts;
  try {
    if (kind === 'address') return { ...plan, outcome: await untilShown(client, sent, patience, parts) };
    let visibleMs: number | undefined;
    const onShown = (at: number) => {
      visibleMs = at - sent.at;
    };
    const outcome = await untilShown(client, sent, { ...patience, onShown }, parts);
    if (outcome.status !== 'confirmed') return { ...plan, outcome };
    const doc = await client.peerdoc({ url }, { signal });
    const citation = await client.citation({ url }, { signal }).catch(failed);
    return { ...plan, outcome, doc, citation, visibleMs };
  } catch (error) {
    return { ...plan, outcome: failed(error) };
  }
}

function failed(error: unknown): Failure {
  if (!(error instanceof PeersyncError)) throw error;
  return { status: 'failed', error };
}
