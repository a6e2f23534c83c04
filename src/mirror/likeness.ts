/** What content is, as far as a mistake would show: told from its media type, its first bytes, or a file name. */
export type Likeness = 'html' | 'xml' | 'json' | 'text' | 'other';

/** More than this is no error page. */
export const SMALL_BYTES = 4096;

const CANONICAL: Readonly<Record<Likeness, string>> = {
  html: 'text/html',
  xml: 'application/xml',
  json: 'application/json',
  text: 'text/plain',
  other: 'application/octet-stream',
};

const HTML = /^(?:<!--[\s\S]*?-->|<\?[\s\S]*?\?>|\s)*<(?:!doctype\s+html|html|head|body|title|meta)[\s>]/i;
const XML = /^\s*<(?:\?xml|[a-z_!])/i;
const JSON_BEGIN = /^\s*(?:\{\s*["}]|\[\s*[[{"\]\d])/;

/**
 * What the answer is. Its bytes come before what the peer says of it: gateways put login pages under any type.
 *
 * @param begin its first bytes, SMALL_BYTES of them unless it is shorter
 */
export function likenessOf(type: string | undefined, begin: Uint8Array): Likeness {
  const text = textOf(begin);
  if (HTML.test(text)) return 'html';
  const said = likenessOfType(type);
  if (said === 'html') return 'html';
  if (XML.test(text)) return 'xml';
  if (JSON_BEGIN.test(text)) return 'json';
  return said;
}

export function likenessOfType(type: string | undefined): Likeness {
  if (type === undefined) return 'other';
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html';
  if (/[/+]xml$/.test(type)) return 'xml';
  if (/[/+](?:nd)?json$/.test(type)) return 'json';
  return type.startsWith('text/') ? 'text' : 'other';
}

const BY_EXTENSION: readonly (readonly [pattern: RegExp, likeness: Likeness])[] = [
  [/\.x?html?$/i, 'html'],
  [/\.(?:xml|rss|atom|svg|xsl)$/i, 'xml'],
  [/\.(?:json|ndjson|jsonl|geojson)$/i, 'json'],
  [/\.(?:txt|md|csv|tsv|log|ini|conf|ya?ml)$/i, 'text'],
];

export function likenessOfName(name: string): Likeness {
  return BY_EXTENSION.find(([pattern]) => pattern.test(name))?.[1] ?? 'other';
}

/** The media type to remember it by: the peer's where that fits what was seen. */
export function typeFor(likeness: Likeness, said: string | undefined): string {
  return said !== undefined && likenessOfType(said) === likeness ? said : CANONICAL[likeness];
}

/** The words of a small answer that make it look like an error, or undefined. */
export function errorWords(whole: Uint8Array): string | undefined {
  const found = /[^\n]{0,40}\b(?:error|exception|fault)\b[^\n]{0,60}/i.exec(textOf(whole));
  return found?.[0].replace(/\p{C}/gu, ' ').trim();
}

function textOf(bytes: Uint8Array): string {
  const [a, b] = bytes;
  const encoding = a === 0xff && b === 0xfe ? 'utf-16le' : a === 0xfe && b === 0xff ? 'utf-16be' : 'utf-8';
  return new TextDecoder(encoding).decode(bytes);
}
