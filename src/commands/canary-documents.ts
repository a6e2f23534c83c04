import { createHash } from 'node:crypto';
import { HEAD_BYTES } from '../content/signatures.js';
import type { Encoding } from '../lib/file.js';
import type { ContentRules } from '../peer/dialect.js';
import { fileContent, textContent, treated } from '../uplink/documents.js';
import type { ReadyFile } from './push-files.js';

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
  const content = rules.takesBinary
    ? fileContent(name, encoding, bytes.subarray(0, HEAD_BYTES))
    : textContent(encoding);
  const text = treated(bytes, content.treatment, encoding);
  const digest = createHash('sha256').update(text).digest('hex');
  return { ...{ file: name, url, text, size: text.length, digest, type: content.type, mtimeMs } };
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
