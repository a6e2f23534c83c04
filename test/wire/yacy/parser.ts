import { inflateSync } from 'node:zlib';

/** What the peer reads in a document; undefined where it has no parser for it, and knows the words of the URL only. */
export interface Parsed {
  readonly title: string;
  readonly text: string;
  readonly doctype: 'h' | 't' | 'p';
}

const BY_EXTENSION: Readonly<Record<string, string>> = {
  txt: 'text/plain',
  htm: 'text/html',
  html: 'text/html',
  pdf: 'application/pdf',
};

export function parse(url: string, contentType: string | undefined, data: Buffer): Parsed | undefined {
  const extension = /\.([a-z0-9]+)$/i.exec(url)?.[1]?.toLowerCase() ?? '';
  const [mime = '', ...parameters] = (contentType || BY_EXTENSION[extension] || '').split(';');
  const charset = /charset="?([^"; ]+)/i.exec(parameters.join(';'))?.[1];
  switch (mime.trim().toLowerCase()) {
    case 'text/plain':
      return markup(data, charset, 't');
    case 'text/html':
    case 'application/xhtml+xml':
      return markup(data, charset, 'h');
    case 'application/pdf':
      return pdf(data);
    default:
      return undefined;
  }
}

/** Plain text too is read as if it were HTML. */
function markup(data: Buffer, charset: string | undefined, doctype: 'h' | 't'): Parsed | undefined {
  const source = new TextDecoder(charset ?? 'utf-8').decode(data);
  const unreadable = source.match(/(?![\t\n\f\r])[\p{Cc}\ufffd]/gu)?.length ?? 0;
  if (unreadable > source.length / 20) return undefined;
  const title = /<title[^>]*>(.*?)<\/title>/is.exec(source)?.[1] ?? '';
  const text = source.replace(/<!--.*?(-->|$)/gs, ' ').replace(/<(script|style|title)\b.*?<\/\1>/gis, ' ');
  return { title: shown(title), text: shown(withoutTags(entities(withoutTags(text)))), doctype };
}

/** A `<` without an end swallows all that follows. */
function withoutTags(text: string): string {
  return text.replace(/<[^>]*(>|$)/g, ' ');
}

function entities(text: string): string {
  const known: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', nbsp: ' ' };
  return text
    .replace(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)))
    .replace(/&(lt|gt|amp|quot|nbsp);/g, (whole, name: string) => known[name] ?? whole);
}

function shown(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** The strings that a simple PDF shows; one that is broken shows none. */
function pdf(data: Buffer): Parsed | undefined {
  const file = data.toString('latin1');
  if (!file.startsWith('%PDF-') || !file.includes('%%EOF')) return undefined;
  let text = '';
  for (const [, dictionary = '', stream = ''] of file.matchAll(
    /<<(.*?)>>\s*stream\r?\n(.*?)\r?\nendstream/gs,
  )) {
    const bytes = Buffer.from(stream, 'latin1');
    const content = dictionary.includes('/FlateDecode') ? inflateSync(bytes) : bytes;
    for (const [, string = ''] of content.toString('latin1').matchAll(/\(((?:\\.|[^\\)])*)\)\s*Tj/g)) {
      text += ` ${string.replace(/\\(.)/g, '$1')}`;
    }
  }
  return text === '' ? undefined : { title: '', text: shown(text), doctype: 'p' };
}
