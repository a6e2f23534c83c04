import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { consent, type Prompt } from '../cli/consent.js';
import { isThere } from '../cli/global-options.js';
import { counted, safe } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import type { Config } from '../config/config.js';
import { normaliseBase } from '../config/url.js';
import { systemClock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { shellWord } from '../lib/text.js';
import type { PeerClient } from '../peer/client.js';
import type { AddressPolicy, Dialect, Reach } from '../peer/dialects/dialect.js';
import { dialectNamed } from '../peer/dialects/dialects.js';
import { PeerError } from '../peer/errors.js';
import { evidenceOf, type Peerdoc } from '../peer/peerdoc.js';
import type { PushItem } from '../peer/push.js';
import type { Sent } from '../state/entry.js';
import type { UplinkPeer } from '../uplink/deps.js';
import { type Canary, canaryPlan } from './canary-documents.js';
import { type CanaryReport, type Probed, reportOf } from './canary-report.js';
import type { Finding } from './finding.js';
import { OwnUplink, type OwnUplinkOptions, type RemovalOutcome } from './own-uplink.js';
import { withPeer } from './peer.js';
import { type ReadFile, readTarget } from './push.js';

/**
 * Pushes canaries to the configured peer after a person agreed, and removes them again if the peer
 * can do that.
 *
 * @throws UsageError for a URL that is invalid, or that is the document of a file of a folder
 * @throws PeersyncError NOT_CONFIRMED, STOPPED, and the errors of detecting the dialect
 */
export async function checkCanary(
  config: Config,
  how: { readonly url: string | undefined; readonly yes: boolean; readonly timeoutMs: number },
  log: Logger,
  prompt: Prompt,
): Promise<CanaryReport> {
  const { folders } = config;
  const base =
    how.url === undefined ? `${folders[0]?.url ?? ''}peersync-canary/` : normaliseBase(how.url);
  if (base === undefined)
    throw new UsageError(
      `--url: received "${how.url}".`,
      'Give an http, https, ftp or file URL without credentials, query and fragment, such as https://files.example.org/canary/.',
    );
  const plan = canaryPlan(base, folders, systemClock.now());
  for (const { url } of plan) {
    const folder = folders.find((each) => url.startsWith(each.url));
    const file = folder && join(folder.path, decodeURIComponent(url.slice(folder.url.length)));
    if (file !== undefined && (await isThere(file)))
      throw new UsageError(
        `The canary ${url} would replace the document of ${file}.`,
        'Give another --url.',
      );
  }
  return withPeer(config, log, async (client, signal) => {
    if (!how.yes) {
      const urls = plan.map(({ url }) => `  ${safe(url)}\n`).join('');
      const { addresses } = dialectNamed(client.dialect ?? (await client.detect({ signal })));
      const probe = addresses?.probeUrl(addresses.reachOf(base) === 'local' ? 'global' : 'local');
      const more =
        probe === undefined ? '' : `  ${probe} (only where the peer takes none of these)\n`;
      const what = counted(plan.length, 'tiny document');
      // The answer shows whether it is an embedded peer.
      if (client.isEmbedded === undefined) await client.ping({ signal });
      const begin = canRemove(client, dialectNamed(client.dialect ?? 'standard'))
        ? `${what} will be pushed, and removed again:`
        : `${what} will stay in the index, for this peer has no way to remove any:`;
      if (prompt.isTerminal) prompt.output.write(`${begin}\n${urls}${more}`);
      await consent('Push them? Type "yes": ', 'yes', prompt, signal, 'Nothing was pushed');
    }
    return pushCanaries(client, plan, { config, timeoutMs: how.timeoutMs, log, signal });
  });
}

/** The requests that canaries need. `PeerClient` has them. */
export type CanaryPeer = UplinkPeer &
  Pick<PeerClient, 'dialect' | 'detect' | 'citation' | 'isEmbedded'>;

const COLLECTION = 'peersync-canary';
/** The age of a canary's last change, in ms. It differs from the time of the push. */
const AGE_MS = 3_600_000;

/**
 * Pushes canaries as the daemon would, waits until the peer shows them, examines them, and removes
 * them if it can.
 *
 * @throws PeersyncError if the dialect of the peer cannot be detected, or `signal` aborted
 */
export async function pushCanaries(
  client: CanaryPeer,
  plan: readonly Canary[],
  options: OwnUplinkOptions,
): Promise<CanaryReport> {
  const { config, signal } = options;
  const dialect = dialectNamed(client.dialect ?? (await client.detect({ signal })));
  const uplink = await OwnUplink.open(client, dialect, options);
  const directory = await mkdtemp(join(tmpdir(), 'peersync-canary-'));
  const probed = plan.map((canary): Probed => ({ ...canary, outcome: undefined }));
  try {
    const files: (ReadFile & { readonly i: number })[] = [];
    for (const [i, { bytes, name, url }] of plan.entries()) {
      const file = join(directory, `${i}-${name}`);
      await writeFile(file, bytes);
      const modified = Math.floor((systemClock.now() - AGE_MS) / 1000);
      await utimes(file, modified, modified);
      const found = await readTarget({ file, url }, dialect.content).catch(unknown);
      if (found !== undefined) files.push({ ...found, i });
    }
    const dropped = await droppedBy(client, dialect, files, plan, signal);
    for (const [i, error] of dropped)
      if (probed[i]) probed[i] = { ...probed[i], outcome: { status: 'failed', error } };
    const others = files.filter(({ i }) => !dropped.has(i));
    const sent = new Map<number, Sent>();
    await uplink.push(others, { collection: COLLECTION }, ({ i }, outcome, entry) => {
      let visibleMs: number | undefined;
      if (entry?.status === 'confirmed') {
        sent.set(i, entry.sent);
        visibleMs = entry.evidence.at - entry.sent.at;
      }
      if (probed[i] !== undefined) probed[i] = { ...probed[i], outcome, visibleMs };
    });
    const looks = probed.map(async (each, i): Promise<Probed> => {
      if (each.kind === 'address' || each.outcome?.status !== 'confirmed') return each;
      const { url } = each;
      const doc = await client.peerdoc({ url }, { signal }).catch(unknown);
      const citation = await client.citation({ url }, { signal }).catch(unknown);
      return { ...each, words: wordsOfVersion(doc, sent.get(i)), sentences: citation?.sentences };
    });
    const { findings, canary } = reportOf(
      await Promise.all(looks),
      dialect,
      config.confirm.hold ?? dialect.holdMs,
    );
    const taken = probed.filter(
      ({ outcome }) => outcome !== undefined && outcome.status !== 'failed',
    );
    const { finding, remaining } = await cleanUp(client, uplink, taken, dialect);
    return {
      findings: finding === undefined ? findings : [...findings, finding],
      canary: { ...canary, remaining },
    };
  } finally {
    await uplink.close();
    await rm(directory, { recursive: true });
  }
}

/**
 * Returns the number of words of the document, if it is the version that was sent: a peer may show
 * an earlier canary of the same URL again.
 */
function wordsOfVersion(doc: Peerdoc | undefined, sent: Sent | undefined): number | undefined {
  if (sent === undefined) return undefined;
  const shown = evidenceOf(doc, sent);
  return shown.shown || 'isWithoutText' in shown ? doc?.words : undefined;
}

/**
 * Returns whether the peer removes documents. Other peers keep them, or an empty one in their
 * place.
 */
function canRemove({ isEmbedded }: Pick<CanaryPeer, 'isEmbedded'>, dialect: Dialect): boolean {
  return isEmbedded === true || dialect.removesDocuments;
}

/** Removes the canaries if the peer can do it, and reports those that stay. */
async function cleanUp(
  client: CanaryPeer,
  uplink: OwnUplink,
  taken: readonly Probed[],
  dialect: Dialect,
): Promise<{ readonly finding?: Finding; readonly remaining: readonly string[] }> {
  const check = 'canaries';
  const urls = taken.map(({ url }) => url);
  if (urls.length === 0) return { remaining: [] };
  if (!canRemove(client, dialect)) {
    const message = `${theyStay(urls)}: this peer has no way to remove documents`;
    return { finding: { check, ok: true, message }, remaining: urls };
  }
  const left = new Map<string, RemovalOutcome>();
  await uplink.remove(urls, (url, outcome) => {
    if (outcome.status !== 'removed') left.set(url, outcome);
  });
  const remaining = [...left.keys()];
  const [first] = left.values();
  if (first === undefined) {
    const what = counted(urls.length, 'document');
    const message = `removed again: ${what} pushed, and the peer shows none of them any more`;
    return { finding: { check, ok: true, message }, remaining };
  }
  const hint = `Remove them later: \`peersync push --remove ${remaining.map(shellWord).join(' ')}\`.`;
  return {
    finding: { check, ok: false, message: `${theyStay(remaining)}: ${wordsOf(first)}`, hint },
    remaining,
  };
}

function theyStay(urls: readonly string[]): string {
  const what = counted(urls.length, 'document stays', 'documents stay');
  return `${what} in the peer, in the collection ${COLLECTION} (${urls.join(', ')})`;
}

function wordsOf(outcome: RemovalOutcome): string {
  if (outcome.status === 'failed') return outcome.error.message;
  return outcome.status === 'remains'
    ? outcome.message
    : 'the peer shows empty ones in their place';
}

/**
 * Returns the documents whose addresses the peer drops, by their number in the plan, and a text
 * about them.
 */
async function droppedBy(
  client: CanaryPeer,
  { addresses }: Dialect,
  files: readonly (ReadFile & { readonly i: number })[],
  plan: readonly Canary[],
  signal: AbortSignal,
): Promise<ReadonlyMap<number, PeersyncError>> {
  const errors = new Map<number, PeersyncError>();
  if (addresses === undefined) return errors;
  const documents = files.flatMap(({ i, url, version }) => {
    const { bytes, what } = plan[i] ?? {};
    if (bytes === undefined || what !== 'plain text') return [];
    return [{ url, collection: COLLECTION, data: bytes, lastModified: version.mtimeMs }];
  });
  const origins = await droppedOrigins(client, addresses, documents, signal);
  for (const { i, url } of files) {
    if (!origins.has(originOf(url))) continue;
    const { code, message } = addresses.dropped(url);
    const hint = `${addresses.hint(addresses.reachOf(url))} Then \`peersync retry --all\`.`;
    errors.set(i, new PeersyncError({ code, message, hint }));
  }
  return errors;
}

/**
 * Reports a document that cannot be sent as such, and a confirmed one even if the peer cannot be
 * asked for more details of it.
 */
function unknown(error: unknown): undefined {
  if (!(error instanceof PeersyncError)) throw error;
}

/**
 * Finds out which addresses the peer drops because of the reach of its network. It compares
 * documents of the two reaches: an origin is dropped if its document is refused while one of the
 * other reach is accepted. If no document has the other reach, one more is pushed at `probeUrl`.
 *
 * A YaCy answers a synchronous push after it has indexed the document, and with an error (500) if
 * its network does not take it (measured, 1.92). Only that answer counts: a look-up may come too
 * late for the moment in which a new document is shown.
 *
 * @returns the origins that are dropped; undecidable ones are not among them
 */
async function droppedOrigins(
  peer: UplinkPeer,
  addresses: AddressPolicy,
  documents: readonly PushItem[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const [sample] = documents;
  const refused: string[] = [];
  const taken = new Set<Reach>();
  for (const document of firstOfEach(documents)) {
    if (await isTaken(peer, document, signal)) taken.add(addresses.reachOf(document.url));
    else refused.push(document.url);
  }
  const dropped = new Set<string>();
  for (const url of refused) {
    const other = addresses.reachOf(url) === 'local' ? 'global' : 'local';
    const probe = sample && { ...sample, url: addresses.probeUrl(other) };
    if (!taken.has(other) && probe && (await isTaken(peer, probe, signal))) taken.add(other);
    if (taken.has(other) && !taken.has(addresses.reachOf(url))) dropped.add(originOf(url));
  }
  return dropped;
}

/** Scheme and host of an address. */
export function originOf(url: string): string {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/]*/i.exec(url)?.[0] ?? url;
}

function firstOfEach(documents: readonly PushItem[]): Iterable<PushItem> {
  const first = new Map<string, PushItem>();
  for (const document of documents) {
    const origin = originOf(document.url);
    if (!first.has(origin)) first.set(origin, document);
  }
  return first.values();
}

async function isTaken(
  peer: UplinkPeer,
  document: PushItem,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const { results } = await peer.push([document], { synchronous: true, signal });
    return results.every(({ ok }) => ok);
  } catch (error) {
    if (signal.aborted || !(error instanceof PeerError)) throw error;
    return false;
  }
}
