import { isSameUrl } from './answer.js';
import type { Peerdoc } from './peerdoc.js';

/** What was pushed, and when. */
export interface SentVersion {
  /** Bytes of the text as it travelled (UTF-8). */
  readonly size: number;
  /** sha256 of the text as it travelled, lower-case hex. */
  readonly digest: string;
  readonly url: string;
  readonly collection: string;
  /** When it was pushed, by our clock, in ms since the epoch. */
  readonly at: number;
  /** When the push began, by the peer's clock (whole seconds, as ms). */
  readonly peerAt?: number;
  /** Its last modification as it was told to the peer, in ms since the epoch; only where the peer keeps it as it is. */
  readonly lastModified?: number;
  /** How many words it has, 10 or more; only where the peer shows how many it indexed (YaCy). */
  readonly words?: number;
}

/** What can show that a document is the version that was pushed, strongest first. */
export type EvidenceKind = 'digest' | 'lastModified' | 'loadDate' | 'size' | 'present';

export type VersionShown =
  /** `text`: what the peer showed. */
  | { readonly shown: true; readonly kind: EvidenceKind; readonly text: string }
  /** `isWithoutText`: it is the version that was sent, but its text is not in the index. */
  | { readonly shown: false; readonly why: string; readonly isWithoutText?: true };

/** How far our clock and the peer's may be apart where only ours is known, in ms. */
const SLACK_MS = 2_000;

/**
 * Whether the peer shows the version that was sent, and what tells so.
 *
 * The document must be the one that was sent and stand in its collection. Then a digest decides alone. Without one,
 * anything that contradicts is enough to say no: another size, no words, a load date before the push; and what agrees is
 * evidence, the strongest first. A last modification counts where one was pushed: in whole seconds, as peers keep it.
 */
export function evidenceOf(doc: Peerdoc, sent: SentVersion): VersionShown {
  const misplaced = misplacedBecause(doc, sent);
  if (misplaced !== undefined) return { shown: false, why: misplaced };
  if (doc.digest !== undefined) {
    return doc.digest === sent.digest
      ? { shown: true, kind: 'digest', text: `sha256 ${doc.digest}` }
      : { shown: false, why: `the peer shows other content (sha256 ${doc.digest})` };
  }
  const contradiction = contradictionIn(doc, sent);
  if (contradiction !== undefined) return { shown: false, why: contradiction };
  if (isWithoutText(doc, sent)) {
    const why = `the peer indexed none of its text (${doc.words} words, which are those of its URL)`;
    return { shown: false, why, isWithoutText: true };
  }
  if (doc.lastModified !== undefined && isSameSecond(doc.lastModified, sent.lastModified))
    return { shown: true, kind: 'lastModified', text: moment(doc.lastModified) };
  if (doc.loadDate !== undefined) return { shown: true, kind: 'loadDate', text: moment(doc.loadDate) };
  if (doc.size !== undefined) return { shown: true, kind: 'size', text: `${doc.size} bytes` };
  return { shown: true, kind: 'present', text: doc.url ?? doc.urlhash ?? 'the document' };
}

function misplacedBecause(doc: Peerdoc, sent: SentVersion): string | undefined {
  if (doc.url !== undefined && !isSameUrl(doc.url, sent.url))
    return `the peer shows another document, ${doc.url}`;
  const { collections } = doc;
  if (collections === undefined) return undefined;
  const missing = sent.collection
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && !collections.includes(name));
  if (missing.length === 0) return undefined;
  return `the peer shows it in [${collections.join(', ')}], not in ${missing.join(', ')}`;
}

function contradictionIn(doc: Peerdoc, sent: SentVersion): string | undefined {
  const { size, words, loadDate, lastModified } = doc;
  if (sent.size > 0 && size === 0) return 'the peer has an empty document';
  if (sent.size > 0 && words === 0) return 'the peer has a document without words';
  if (size !== undefined && size !== sent.size) {
    return `the peer shows a version of ${size} bytes, and ${sent.size} were pushed`;
  }
  if (isOtherDate(doc, sent))
    return `the peer shows another version, last modified ${moment(lastModified ?? 0)}`;
  if (loadDate !== undefined && isBefore(loadDate, doc, sent)) {
    return `the peer shows an older version, loaded ${moment(loadDate)}`;
  }
  return undefined;
}

/** Whether there are no more words than those of the URL, which YaCy indexes where it drops a text (measured with 1.92). */
function isWithoutText({ words }: Peerdoc, sent: SentVersion): boolean {
  if (words === undefined || sent.words === undefined) return false;
  const ofUrl = mostWordsOf(sent.url);
  return words <= ofUrl && sent.words > ofUrl;
}

/** How many words a URL gives at most; YaCy also takes apart what is written like `camelCase` or `b6`. */
function mostWordsOf(url: string): number {
  let words = 0;
  for (const [run] of unescaped(url).matchAll(/[\p{L}\p{N}]+/gu)) {
    const parts = run.match(/\p{N}+|\p{Lu}*[^\p{N}\p{Lu}]*/gu)?.filter((part) => part !== '').length ?? 1;
    words += parts > 1 ? parts + 1 : 1;
  }
  return words;
}

function unescaped(url: string): string {
  try {
    return decodeURIComponent(url);
  } catch {
    return url;
  }
}

/**
 * A document that tells an earlier date of its own (a PDF, a page with a date in its head) keeps that in YaCy
 * (Segment.storeDocument of its source); then the load date has to tell the versions apart.
 */
function isOtherDate({ lastModified, loadDate }: Peerdoc, sent: SentVersion): boolean {
  if (sent.lastModified === undefined || lastModified === undefined) return false;
  if (isSameSecond(lastModified, sent.lastModified)) return false;
  return lastModified > sent.lastModified || loadDate === undefined;
}

function isSameSecond(a: number, b: number | undefined): boolean {
  return b !== undefined && wholeSeconds(a) === wholeSeconds(b);
}

/**
 * Peers keep load dates in whole seconds. By the peer's own clock that is compared as it is. Where the push told
 * nothing of that clock, this look-up does: its date against ours is how far the two are apart.
 */
function isBefore(loadDate: number, doc: Peerdoc, sent: SentVersion): boolean {
  if (sent.peerAt !== undefined) return wholeSeconds(loadDate) < wholeSeconds(sent.peerAt);
  const ahead = doc.peerAt === undefined ? 0 : doc.peerAt - doc.at;
  return loadDate < sent.at + ahead - SLACK_MS;
}

function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000);
}

function moment(ms: number): string {
  return new Date(ms).toISOString();
}
