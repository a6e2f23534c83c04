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
import { quoted, shellWord } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import type { Citation } from '../peer/citation.js';
import type { PeerClient } from '../peer/client.js';
import type { Dialect } from '../peer/dialects/dialect.js';
import { dialectNamed } from '../peer/dialects/dialects.js';
import { evidenceOf, type Peerdoc } from '../peer/peerdoc.js';
import type { Sent } from '../state/entry.js';
import type { UplinkPeer } from '../uplink/deps.js';
import { droppedOrigins, originOf } from './address-probe.js';
import { mailOf, pdfOf, sheetOf, wordOf } from './canary-documents.js';
import type { Finding } from './finding.js';
import {
  type Outcome,
  OwnUplink,
  type OwnUplinkOptions,
  type RemovalOutcome,
} from './own-uplink.js';
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

/** A tiny document that shows whether a peer takes its kind, and the addresses of some folders. */
export type Canary = ReturnType<typeof canaryPlan>[number];

const GULLS = 'Gulls sleep on one leg and count the waves until morning.';
const GREETINGS =
  'Greetings from afar: Grüße aus Łódź und Kraków, with one word in each of two tongues.';
const ADDRESS = 'It shows whether this peer takes documents with an address such as this one.';
const GULLS_LOOK = { ascii: 'Gulls sleep on one leg', whole: 'Gulls sleep on one leg' };
const GREETINGS_LOOK = { ascii: 'Greetings from afar', whole: 'Grüße aus Łódź und Kraków' };

/** The functions that make a document of lines, by its kind. Other kinds are text. */
const DOCUMENTS: Readonly<Record<string, (lines: readonly string[]) => Uint8Array>> = {
  PDF: pdfOf,
  Word: wordOf,
  Excel: sheetOf,
  'e-mail': mailOf,
};

/**
 * Returns the documents to push: six kinds below `base`, and one below the URL of each folder that
 * lies elsewhere.
 */
export function canaryPlan(
  base: string,
  folders: readonly { readonly name: string; readonly url: string }[],
  now: number,
) {
  // The stamp tells this canary from an earlier one.
  const stamp = new Date(now).toISOString();
  const canary = (what: string, url: string, text: string, sentence = GULLS_LOOK) => {
    const lines = [
      `This document (${what}) was pushed by peersync at ${stamp}.`,
      'It is a canary: it shows what this peer does with documents of its kind, and means nothing else.',
      text,
    ];
    const bytes = DOCUMENTS[what]?.(lines) ?? Buffer.from(`${lines.join('\n')}\n`);
    const name = url.slice(url.lastIndexOf('/') + 1);
    const wordsSent = lines.join(' ').split(/\s+/).length;
    return {
      /** `address`: only to show whether the peer takes the addresses of its folders. */
      kind: 'canary' as 'canary' | 'address',
      /** Whose addresses it has. */
      folders: [] as readonly string[],
      /** A part of a sentence in ASCII, and the rest of that sentence. */
      sentence,
      what,
      name,
      url,
      bytes,
      wordsSent,
    };
  };
  const below = folders.filter(({ url }) => base.startsWith(url));
  return [
    { ...canary('plain text', `${base}plain.txt`, GULLS), folders: below.map(({ name }) => name) },
    canary('PDF', `${base}document.pdf`, GULLS),
    canary('Word', `${base}document.docx`, GULLS),
    canary('Excel', `${base}table.xlsx`, GULLS),
    canary('e-mail', `${base}message.eml`, GULLS),
    canary('non-ASCII text', `${base}greetings.txt`, GREETINGS, GREETINGS_LOOK),
    ...folders
      .filter((folder) => !below.includes(folder))
      .map(({ name, url }) => ({
        ...canary('plain text', `${url}peersync-canary.txt`, ADDRESS),
        kind: 'address' as const,
        folders: [name],
      })),
  ];
}

/** The report about the peer, with the findings of each canary. */
export interface CanaryReport {
  readonly findings: readonly Finding[];
  readonly canary: ReturnType<typeof reportOf>['canary'] & {
    /** The URLs of the documents that stay in the peer. */
    readonly remaining: readonly string[];
  };
}

/** The outcome of one document. Without an outcome, it was not sent. */
export interface Probed extends Canary {
  readonly outcome: Outcome | undefined;
  readonly visibleMs?: number | undefined;
  /** The number of words that the peer reports. */
  readonly words?: number | undefined;
  /** The sentences that the peer reports. */
  readonly sentences?: Citation['sentences'] | undefined;
}

/** The peer took the document, and would never show it. */
const NEVER_SHOWN: ReadonlySet<string> = new Set(['DOMAIN_GATE', 'NOT_SHOWN']);
/** A document of which the peer shows a smaller part of its words was not read. */
const READ_SHARE = 0.5;

/**
 * Reports which kinds of document the peer takes, reads and shows, and whether it takes the
 * addresses of the folders.
 */
export function reportOf(probed: readonly Probed[], dialect: Dialect, holdMs: number) {
  const visible = probed.flatMap(({ visibleMs }) => visibleMs ?? []);
  const isUnseen = ({ outcome }: Probed) =>
    outcome?.status === 'unseen' ||
    (outcome?.status === 'failed' && NEVER_SHOWN.has(outcome.error.code));
  return {
    findings: [
      ...probed.filter(({ kind }) => kind === 'canary').map((each) => ofDocument(each, dialect)),
      ...probed.flatMap((each) => each.folders.map((folder) => ofAddress(folder, each, dialect))),
    ],
    canary: {
      dialect: dialect.name,
      holdMs,
      takesBinary: dialect.content.takesBinary,
      /**
       * The time from the push until the peer showed the last of them permanently, in ms. Undefined
       * if it never did.
       */
      timeToVisibleMs: visible.length > 0 ? Math.max(...visible) : undefined,
      /** The folders whose documents the peer would take and never show. */
      dropped: probed.filter(isUnseen).flatMap(({ folders }) => folders),
    },
  };
}

/** Returns the conclusions of the report as lines for a person. */
export function canaryText({
  dialect,
  dropped,
  holdMs,
  takesBinary,
  timeToVisibleMs,
}: ReturnType<typeof reportOf>['canary']) {
  const held =
    holdMs === 0 ? 'as soon as the peer shows it' : `shown ${durationText(holdMs)} after its push`;
  return [
    ...(timeToVisibleMs === undefined
      ? []
      : [`The peer showed what was pushed ${durationText(timeToVisibleMs)} after the push.`]),
    'What the daemon will do:',
    `  It speaks the dialect ${dialect}.`,
    `  It confirms a file ${held}.`,
    `  It pushes ${takesBinary ? 'all files: of e-mail, EPUB, Excel and PowerPoint files the text, others that are no text as they are' : 'text and the text of documents; other files are skipped'}.`,
    ...dropped.map((folder) => `  Files of the folder ${quoted(folder)} would end in quarantine.`),
  ];
}

/** Returns whether the peer accepted a kind of document, shows it, and read its words. */
function ofDocument(probed: Probed, dialect: Dialect): Finding {
  const { outcome, what: check, words } = probed;
  if (outcome?.status !== 'confirmed') return ofFailure(check, probed, dialect);
  const unread = unreadBecause(probed);
  if (unread !== undefined)
    return {
      check,
      ok: false,
      message: unread,
      hint: 'What the peer cannot read is not found by its words.',
    };
  const { kind, shown } = outcome.evidence;
  const size = words === undefined ? '' : `, ${words} words`;
  return { check, ok: true, message: `confirmed (${kind}: ${shown})${size}` };
}

/**
 * Returns the evidence that the peer has the document without its words; undefined if there is
 * none.
 */
function unreadBecause({ sentence, sentences = [], words, wordsSent }: Probed): string | undefined {
  const { ascii, whole } = sentence;
  const about = sentences.find(({ text }) => comparable(text).includes(comparable(ascii)));
  if (about !== undefined && !comparable(about.text).includes(comparable(whole)))
    return `the peer changed its letters: "${whole}" became "${about.text}"`;
  // A peer that cannot read a document has only the words of its URL.
  if (about === undefined && words !== undefined && words < wordsSent * READ_SHARE)
    return `the peer shows ${words} words of about ${wordsSent}`;
  return undefined;
}

function comparable(text: string): string {
  return text.normalize('NFC').toLowerCase().replace(/\s+/g, ' ');
}

/** Returns whether the peer accepts and shows the addresses of a folder. */
function ofAddress(folder: string, probed: Probed, dialect: Dialect): Finding {
  const check = `addresses of folder ${folder}`;
  if (probed.outcome?.status !== 'confirmed') return ofFailure(check, probed, dialect);
  return { check, ok: true, message: `${probed.url} is taken and shown` };
}

/** A kind that the peer is not sent is no failure. */
function ofFailure(check: string, { outcome, url }: Probed, { addresses }: Dialect): Finding {
  if (outcome === undefined)
    return { check, ok: true, message: 'not tried: this peer takes only text' };
  const wrong = (message: string, hint: string) => ({ check, ok: false, message, hint });
  if (outcome.status === 'failed') return wrong(outcome.error.message, outcome.error.hint);
  if (outcome.status !== 'unseen') return wrong(`${outcome.status}, and no more`, 'Try it again.');
  const hint = addresses?.hint(addresses.reachOf(url)) ?? 'A longer --timeout waits longer.';
  return wrong(`the peer took ${url} and did not show it: ${outcome.message}`, hint);
}
