import type { AlarmCode } from './errors.js';
import type { MirrorRecord } from './record.js';

/** What content is, as far as a mistake would show: told from its media type, its first bytes, or a file name. */
type ContentKind = 'html' | 'xml' | 'json' | 'text' | 'other';

/** More than this is no error page. */
export const SMALL_BYTES = 4096;

/** What is known of an object before it comes. */
export interface Expected {
  /** Its name in the peer, which tells what it is where nothing was here before. */
  readonly data: string;
  readonly before: Pick<MirrorRecord, 'type' | 'bytes'> | undefined;
  /** The alarms that a person accepts. */
  readonly accepted: readonly string[];
}

/** An object may be taken, and is remembered by this media type; or it may not. */
export type Checked = { readonly type: string } | { readonly alarm: AlarmCode; readonly detail?: string };

/**
 * Whether a shared object is what it was, as far as its first bytes tell: not where nothing comes at all, a page of HTML where
 * there was none, a short text about an error, or XML or JSON where there was something else.
 *
 * @param head as `withHead` gives it
 * @param said the media type that the peer gave
 */
export function checkContent(
  head: Uint8Array,
  said: string | undefined,
  { data, before, accepted }: Expected,
): Checked {
  const kind = kindOf(said, head);
  const was = before?.type === undefined ? kindOfName(data) : kindOfType(before.type);
  const type = said !== undefined && kindOfType(said) === kind ? said : CANONICAL[kind];
  if (head.length === 0 && before?.bytes !== 0 && !accepted.includes('SHARE_EMPTY')) {
    return { alarm: 'SHARE_EMPTY' };
  }
  if (kind === 'html' && was !== 'html' && !accepted.includes('SHARE_HTML')) return { alarm: 'SHARE_HTML' };
  const mayBeError = head.length < SMALL_BYTES && kind !== was && kind !== 'other';
  if (mayBeError && !accepted.includes('SHARE_ERROR_PAGE')) {
    const detail = errorWords(head);
    if (detail !== undefined) return { alarm: 'SHARE_ERROR_PAGE', detail };
  }
  if (before?.type === undefined) return { type };
  const isOther = before.bytes !== 0 && kind !== was && (kind === 'xml' || kind === 'json');
  const isTaken = accepted.includes('SHARE_TYPE') || accepted.includes('SHARE_ERROR_PAGE');
  if (isOther && !isTaken) return { alarm: 'SHARE_TYPE', detail: `${before.type} before, ${type} now` };
  // An empty answer tells nothing of what the object is.
  return { type: head.length === 0 ? before.type : type };
}

/** The first SMALL_BYTES of a stream, fewer only where it is shorter, and the whole of it. */
export async function withHead(
  chunks: AsyncIterable<Uint8Array>,
): Promise<{ readonly head: Uint8Array; readonly all: AsyncIterable<Uint8Array> }> {
  const iterator = chunks[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  let size = 0;
  while (size < SMALL_BYTES) {
    const next = await iterator.next();
    if (next.done) break;
    first.push(next.value);
    size += next.value.length;
  }
  async function* all(): AsyncGenerator<Uint8Array> {
    try {
      yield* first;
      for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
    } finally {
      await iterator.return?.();
    }
  }
  return { head: Buffer.concat(first).subarray(0, SMALL_BYTES), all: all() };
}

const CANONICAL: Readonly<Record<ContentKind, string>> = {
  html: 'text/html',
  xml: 'application/xml',
  json: 'application/json',
  text: 'text/plain',
  other: 'application/octet-stream',
};

const HTML = /^(?:<!--[\s\S]*?-->|<\?[\s\S]*?\?>|\s)*<(?:!doctype\s+html|html|head|body|title|meta)[\s>]/i;
const XML = /^\s*<(?:\?xml|[a-z_!])/i;
const JSON_BEGIN = /^\s*(?:\{\s*["}]|\[\s*[[{"\]\d])/;

/** The bytes come before what the peer says of them: gateways put login pages under any type. */
function kindOf(type: string | undefined, head: Uint8Array): ContentKind {
  const text = textOf(head);
  const said = kindOfType(type);
  if (HTML.test(text) || said === 'html') return 'html';
  if (XML.test(text)) return 'xml';
  return JSON_BEGIN.test(text) ? 'json' : said;
}

function kindOfType(type: string | undefined): ContentKind {
  if (type === undefined) return 'other';
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html';
  if (/[/+]xml$/.test(type)) return 'xml';
  if (/[/+](?:nd)?json$/.test(type)) return 'json';
  return type.startsWith('text/') ? 'text' : 'other';
}

function kindOfName(name: string): ContentKind {
  if (/\.x?html?$/i.test(name)) return 'html';
  if (/\.(?:xml|rss|atom|svg|xsl)$/i.test(name)) return 'xml';
  if (/\.(?:json|ndjson|jsonl|geojson)$/i.test(name)) return 'json';
  return /\.(?:txt|md|csv|tsv|log|ini|conf|ya?ml)$/i.test(name) ? 'text' : 'other';
}

/** The words of a small answer that make it look like an error, or undefined. */
function errorWords(whole: Uint8Array): string | undefined {
  const found = /[^\n]{0,40}\b(?:error|exception|fault)\b[^\n]{0,60}/i.exec(textOf(whole));
  return found?.[0].replace(/\p{C}/gu, ' ').trim();
}

function textOf(bytes: Uint8Array): string {
  const [a, b] = bytes;
  const encoding = a === 0xff && b === 0xfe ? 'utf-16le' : a === 0xfe && b === 0xff ? 'utf-16be' : 'utf-8';
  return new TextDecoder(encoding).decode(bytes);
}
