import { quoted } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import type { Citation } from '../peer/citation.js';
import type { Dialect } from '../peer/dialects/dialect.js';
import type { Canary } from './canary-documents.js';
import type { Finding } from './finding.js';
import type { Outcome } from './own-uplink.js';

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
    `  It pushes ${takesBinary ? 'all files: of e-mail, archives, EPUB, Excel and PowerPoint files the text, others that are no text as they are' : 'text and the text of documents; other files are skipped'}.`,
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
