import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Citation } from '../peer/citation.js';
import type { PeerClient } from '../peer/client.js';
import type { Dialect, DialectName } from '../peer/dialect.js';
import { DIALECTS } from '../peer/dialects.js';
import type { Peerdoc } from '../peer/peerdoc.js';
import { evidenceOf, type SentVersion } from '../peer/version-shown.js';
import { cannotTravel } from '../uplink/can-travel.js';
import { DomainGate, gateHint, reachOf } from '../uplink/domain-gate.js';
import { type CanaryDocument, canaryDocuments, folderDocument, readyCanary } from './canary-documents.js';
import { type Outcome, pushBatch, untilShown } from './push-and-wait.js';

/** The collection that all canaries are tagged with. */
export const CANARY_COLLECTION = 'peersync-canary';

/** A document to push, and the folders of which it shows whether the peer takes their addresses. */
export interface CanaryPlan {
  /** `address`: only to show whether the peer takes the addresses of its folders. */
  readonly kind: 'canary' | 'address';
  readonly document: CanaryDocument;
  readonly url: string;
  readonly folders: readonly string[];
}

export interface CanaryRow {
  readonly check: string;
  readonly status: 'works' | 'fails' | 'not tried';
  readonly message: string;
  readonly hint?: string;
}

export interface CanaryReport {
  readonly dialect: DialectName;
  /** How long a document has to be shown until it counts, in ms. */
  readonly holdMs: number;
  readonly takesBinary: boolean;
  /** From the push until the peer showed the last of them for good, in ms; undefined when it never did. */
  readonly timeToVisibleMs?: number | undefined;
  readonly rows: readonly CanaryRow[];
  /** The folders whose documents the peer would take and never show. */
  readonly dropped: readonly string[];
}

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

interface Failure {
  readonly status: 'failed';
  readonly error: PeersyncError;
}

/** What became of one document; no outcome: it was not sent. */
interface Probed extends CanaryPlan {
  readonly outcome: Outcome | Failure | undefined;
  readonly sent?: SentVersion | undefined;
  readonly doc?: Peerdoc | undefined;
  readonly citation?: Citation | Failure | undefined;
  readonly visibleMs?: number | undefined;
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
/** A document of which the peer shows a smaller part of its words was not read. */
const READ_SHARE = 0.5;

/** What is pushed: three kinds of document below `base`, and one below the URL of each folder that lies elsewhere. */
export function canaryPlan(
  base: string,
  folders: readonly { readonly name: string; readonly url: string }[],
  now: number,
): readonly CanaryPlan[] {
  const stamp = new Date(now).toISOString();
  const plans: CanaryPlan[] = canaryDocuments(stamp).map((document, i) => ({
    kind: 'canary',
    document,
    url: base + document.name,
    folders: i > 0 ? [] : folders.filter(({ url }) => base.startsWith(url)).map(({ name }) => name),
  }));
  for (const { name, url } of folders) {
    if (base.startsWith(url)) continue;
    const document = folderDocument(stamp);
    plans.push({ kind: 'address', document, url: url + document.name, folders: [name] });
  }
  return plans;
}

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
    const deadline = clock.monotonic() + patience.timeoutMs;
    const dialect = DIALECTS[client.dialect ?? (await client.detect({ signal: parts.signal }))];
    const holdMs = patience.hold ?? dialect.holdMs;
    const gatePatience = dialect.hasDomainGate
      ? Math.max(GATE_HOLDS * holdMs, SHORTEST_GATE_MS)
      : patience.timeoutMs;
    const probes: Promise<Probed>[] = [];
    for (const plan of plans) {
      const sent = await pushed(client, plan, dialect, deadline, parts);
      const ownDeadline = plan.kind === 'address' ? clock.monotonic() + gatePatience : deadline;
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

function reportOf(probed: readonly Probed[], dialect: Dialect, holdMs: number): CanaryReport {
  const [first] = probed;
  const gate = new DomainGate();
  for (const { url, sent, outcome } of probed)
    if (outcome?.status === 'confirmed' && sent !== undefined) gate.saw(url, sent.at);
  const folderRows: CanaryRow[] = [];
  const dropped: string[] = [];
  for (const each of probed) {
    for (const folder of each.folders) {
      const row = addressRow(folder, each, gate, dialect);
      folderRows.push(row);
      if (row.status === 'fails' && each.outcome?.status === 'unseen') dropped.push(folder);
    }
  }
  const { takesBinary } = dialect.content;
  const visible = probed.flatMap(({ visibleMs }) => (visibleMs === undefined ? [] : [visibleMs]));
  return {
    ...{ dialect: dialect.name, holdMs, takesBinary, dropped },
    ...(visible.length === 0 ? {} : { timeToVisibleMs: Math.max(...visible) }),
    rows: [
      ...probed.filter(({ kind }) => kind === 'canary').map((each) => documentRow(each, dialect)),
      ...(first?.outcome?.status === 'confirmed'
        ? [...viewRows(first), lastModifiedRow(first, dialect)]
        : []),
      ...folderRows,
    ],
  };
}

/** Whether the peer took a kind of document, shows it, and read its words. */
function documentRow(probed: Probed, dialect: Dialect): CanaryRow {
  const { document, outcome, url } = probed;
  const check = document.what;
  if (outcome === undefined)
    return { check, status: 'not tried', message: 'not sent: this peer takes only text' };
  if (outcome.status !== 'confirmed') return { check, status: 'fails', ...troubleOf(outcome, url, dialect) };
  const unread = unreadBecause(probed);
  if (unread !== undefined)
    return {
      check,
      status: 'fails',
      message: unread,
      hint: 'What the peer cannot read is not found by its words.',
    };
  const { kind } = outcome.evidence;
  const words = probed.doc?.words === undefined ? '' : `, ${probed.doc.words} words`;
  return { check, status: 'works', message: `confirmed (${kind}: ${outcome.evidence.shown})${words}` };
}

/** What shows that the peer has the document and not its words; undefined where nothing does. */
function unreadBecause({ document, doc, citation }: Probed): string | undefined {
  const { ascii, whole } = document.sentence;
  const sentences = citation === undefined || 'status' in citation ? [] : citation.sentences;
  const about = sentences.find(({ text }) => comparable(text).includes(comparable(ascii)));
  if (about !== undefined && !comparable(about.text).includes(comparable(whole)))
    return `the peer changed its letters: "${whole}" became "${about.text}"`;
  // The words of the URL are what is left of a document that a peer cannot read.
  if (about === undefined && doc?.words !== undefined && doc.words < document.words * READ_SHARE)
    return `the peer shows ${doc.words} words of about ${document.words}`;
  return undefined;
}

function comparable(text: string): string {
  return text.normalize('NFC').toLowerCase().replace(/\s+/g, ' ');
}

function viewRows({ doc, citation }: Probed): CanaryRow[] {
  const shown = [
    ...(doc?.words === undefined ? [] : [`${doc.words} words`]),
    ...(doc?.size === undefined ? [] : [`${doc.size} bytes`]),
  ];
  const document: CanaryRow =
    doc === undefined
      ? { check: 'document page', status: 'fails', message: 'the document is gone again' }
      : { check: 'document page', status: 'works', message: shown.join(', ') || 'shows the document' };
  return [document, citationRow(citation)];
}

function citationRow(citation: Probed['citation']): CanaryRow {
  const check = 'citations';
  if (citation === undefined)
    return { check, status: 'fails', message: 'the peer knows none of a document that it shows' };
  if ('status' in citation)
    return { check, status: 'fails', message: citation.error.message, hint: citation.error.hint };
  return { check, status: 'works', message: `${citation.sentences.length} sentences shown` };
}

function lastModifiedRow({ doc, sent }: Probed, { content }: Dialect): CanaryRow {
  const check = 'last modified';
  if (!content.takesBinary)
    return { check, status: 'not tried', message: 'not sent: this dialect has no place for it' };
  if (sent?.lastModified === undefined)
    return { check, status: 'not tried', message: 'the clock of the peer is too far behind ours to tell' };
  if (doc?.lastModified !== undefined && Math.floor(doc.lastModified / 1000) * 1000 === sent.lastModified)
    return { check, status: 'works', message: 'kept to the second' };
  return { check, status: 'fails', message: 'not kept: versions are told apart by load date or size' };
}

function addressRow(folder: string, probed: Probed, gate: DomainGate, dialect: Dialect): CanaryRow {
  const { outcome, sent, url } = probed;
  const check = `folder ${folder}`;
  if (outcome?.status === 'confirmed')
    return { check, status: 'works', message: `${url} is taken and shown` };
  if (outcome === undefined) return { check, status: 'not tried', message: 'not sent' };
  const isGated =
    outcome.status === 'unseen' && dialect.hasDomainGate && sent !== undefined && gate.explains(url, sent.at);
  return { check, status: 'fails', ...(isGated ? gate.trouble(url) : troubleOf(outcome, url, dialect)) };
}

function troubleOf(
  outcome: Exclude<Probed['outcome'], undefined>,
  url: string,
  { hasDomainGate }: Dialect,
): { readonly message: string; readonly hint?: string } {
  switch (outcome.status) {
    case 'failed':
      return { message: outcome.error.message, hint: outcome.error.hint };
    case 'refused':
      return { message: `the peer refused ${url}: ${outcome.message}` };
    case 'unseen':
      return {
        message: `the peer took ${url} and did not show it: ${outcome.message}`,
        hint: hasDomainGate ? gateHint(reachOf(url)) : 'A longer --timeout waits longer.',
      };
    default:
      return { message: `${outcome.status}, and no more` };
  }
}
