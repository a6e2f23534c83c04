import { createHash } from 'node:crypto';
import type { PeersyncError } from '../lib/errors.js';
import type { Encoding } from '../lib/file.js';
import type { Citation } from '../peer/citation.js';
import type { ContentRules, Dialect, DialectName } from '../peer/dialect.js';
import type { Peerdoc, SentVersion } from '../peer/peerdoc.js';
import { rewritten, wayOf } from '../uplink/documents.js';
import { DomainGate, gateHint, reachOf } from '../uplink/failure-attribution.js';
import type { Outcome, ReadyFile } from './push-files.js';

/** A tiny document that shows whether a peer takes its kind. */
export interface CanaryDocument {
  readonly what: string;
  /** The last name of its URL. */
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly encoding: Encoding;
  /** What one of its sentences holds in ASCII, and what the same sentence then holds too. */
  readonly sentence: { readonly ascii: string; readonly whole: string };
  /** How many words it has. */
  readonly words: number;
}

/** A document to push, and the folders of which it shows whether the peer takes their addresses. */
export interface CanaryPlan {
  /** `address`: only to show whether the peer takes the addresses of its folders. */
  readonly kind: 'canary' | 'address';
  readonly document: CanaryDocument;
  readonly url: string;
  readonly folders: readonly string[];
}

/** Text without a line break, each time another one, so that an earlier canary is not taken for this one. */
function linesOf(kind: string, stamp: string, sentence: string): readonly string[] {
  return [
    `This is ${kind} that peersync pushed at ${stamp}.`,
    'It is a canary: it shows what this peer does with documents of its kind, and means nothing else.',
    sentence,
  ];
}

/** The three documents of one canary; `stamp` tells this one from those before. */
function canaryDocuments(stamp: string): readonly [CanaryDocument, CanaryDocument, CanaryDocument] {
  const gulls = 'Gulls sleep on one leg and count the waves until morning.';
  const greetings = 'Greetings from afar: Grüße aus Łódź und Kraków, with one word in each of two tongues.';
  return [
    textDocument('plain text', 'plain.txt', linesOf('plain text', stamp, gulls), gulls.slice(0, 22)),
    {
      ...textDocument('PDF', 'document.pdf', linesOf('a PDF', stamp, gulls), gulls.slice(0, 22)),
      bytes: pdfOf(linesOf('a PDF', stamp, gulls)),
      encoding: 'binary',
    },
    {
      ...textDocument('non-ASCII text', 'greetings.txt', linesOf('text', stamp, greetings), ''),
      sentence: { ascii: 'Greetings from afar', whole: 'Grüße aus Łódź und Kraków' },
    },
  ];
}

/** The document that shows whether the peer takes what lies below a folder's URL. */
function folderDocument(stamp: string): CanaryDocument {
  const sentence = 'It shows whether this peer takes documents with an address such as this one.';
  const lines = linesOf('plain text', stamp, sentence);
  return textDocument('plain text', 'peersync-canary.txt', lines, sentence.slice(0, 30));
}

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

function textDocument(what: string, name: string, lines: readonly string[], phrase: string): CanaryDocument {
  const text = lines.join('\n');
  return {
    ...{ what, name, bytes: Buffer.from(`${text}\n`), encoding: 'utf-8' },
    sentence: { ascii: phrase, whole: phrase },
    words: text.split(/\s+/).length,
  };
}

/** The document as it travels in a dialect with these rules, as a file of a folder does. */
export function readyCanary(
  { name, bytes, encoding }: CanaryDocument,
  url: string,
  mtimeMs: number,
  rules: ContentRules,
): ReadyFile {
  const { rewriting, type } = wayOf(name, encoding, bytes, rules);
  const text = rewritten(bytes, rewriting);
  const digest = createHash('sha256').update(text).digest('hex');
  return { ...{ file: name, url, text, size: text.length, digest, type, mtimeMs } };
}

/** A PDF of one page that shows lines of ASCII. */
function pdfOf(lines: readonly string[]): Uint8Array {
  const shown = lines.map((line) => `(${line.replace(/[\\()]/g, '\\$&')}) Tj T*`).join('\n');
  const stream = `BT /F1 10 Tf 14 TL 72 720 Td\n${shown}\nET`;
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
  ];
  let file = '%PDF-1.4\n%\xe2\xe3\xcf\xd3\n';
  const places: string[] = [];
  objects.forEach((object, i) => {
    places.push(`${String(file.length).padStart(10, '0')} 00000 n \n`);
    file += `${i + 1} 0 obj\n${object}\nendobj\n`;
  });
  const size = objects.length + 1;
  const end = `xref\n0 ${size}\n0000000000 65535 f \n${places.join('')}trailer\n<< /Size ${size} /Root 1 0 R >>\n`;
  return Buffer.from(`${file}${end}startxref\n${file.length}\n%%EOF\n`, 'latin1');
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

export interface Failure {
  readonly status: 'failed';
  readonly error: PeersyncError;
}

/** What became of one document; no outcome: it was not sent. */
export interface Probed extends CanaryPlan {
  readonly outcome: Outcome | Failure | undefined;
  readonly sent?: SentVersion | undefined;
  readonly doc?: Peerdoc | undefined;
  readonly citation?: Citation | Failure | undefined;
  readonly visibleMs?: number | undefined;
}

/** A document of which the peer shows a smaller part of its words was not read. */
const READ_SHARE = 0.5;

/**
 * What a canary tells of the peer: which kinds of document it takes, reads and shows, what of the first it shows where, and whether
 * it takes the addresses of the folders.
 */
export function reportOf(probed: readonly Probed[], dialect: Dialect, holdMs: number): CanaryReport {
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

function works(check: string, message: string): CanaryRow {
  return { check, status: 'works', message };
}

function fails(check: string, message: string, hint?: string): CanaryRow {
  return { check, status: 'fails', message, ...(hint === undefined ? {} : { hint }) };
}

function notTried(check: string, message: string): CanaryRow {
  return { check, status: 'not tried', message };
}

/** Whether the peer took a kind of document, shows it, and read its words. */
function documentRow(probed: Probed, dialect: Dialect): CanaryRow {
  const { document, outcome, url } = probed;
  const check = document.what;
  if (outcome === undefined) return notTried(check, 'not sent: this peer takes only text');
  if (outcome.status !== 'confirmed') return { check, status: 'fails', ...troubleOf(outcome, url, dialect) };
  const unread = unreadBecause(probed);
  if (unread !== undefined)
    return fails(check, unread, 'What the peer cannot read is not found by its words.');
  const { kind } = outcome.evidence;
  const words = probed.doc?.words === undefined ? '' : `, ${probed.doc.words} words`;
  return works(check, `confirmed (${kind}: ${outcome.evidence.shown})${words}`);
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
      ? fails('document page', 'the document is gone again')
      : works('document page', shown.join(', ') || 'shows the document');
  return [document, citationRow(citation)];
}

function citationRow(citation: Probed['citation']): CanaryRow {
  const check = 'citations';
  if (citation === undefined) return fails(check, 'the peer knows none of a document that it shows');
  if ('status' in citation) return fails(check, citation.error.message, citation.error.hint);
  return works(check, `${citation.sentences.length} sentences shown`);
}

function lastModifiedRow({ doc, sent }: Probed, { content }: Dialect): CanaryRow {
  const check = 'last modified';
  if (!content.takesBinary) return notTried(check, 'not sent: this dialect has no place for it');
  if (sent?.lastModified === undefined)
    return notTried(check, 'the clock of the peer is too far behind ours to tell');
  if (doc?.lastModified !== undefined && Math.floor(doc.lastModified / 1000) * 1000 === sent.lastModified)
    return works(check, 'kept to the second');
  return fails(check, 'not kept: versions are told apart by load date or size');
}

function addressRow(folder: string, probed: Probed, gate: DomainGate, dialect: Dialect): CanaryRow {
  const { outcome, sent, url } = probed;
  const check = `folder ${folder}`;
  if (outcome?.status === 'confirmed') return works(check, `${url} is taken and shown`);
  if (outcome === undefined) return notTried(check, 'not sent');
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
