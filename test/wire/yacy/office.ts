import { unzipSync } from 'fflate';

/**
 * Returns the text that the parsers of the peer read from documents other than PDF; undefined if
 * they read none.
 */
export function officeText(mime: string, data: Buffer): string | undefined {
  return textOf(mime, data) || undefined;
}

function textOf(mime: string, data: Buffer): string | undefined {
  if (mime.endsWith('.wordprocessingml.document'))
    return spaced(entriesOf(data)['word/document.xml'], /<w:delText>.*?<\/w:delText>/gs);
  if (mime === 'application/vnd.oasis.opendocument.text')
    return spaced(
      entriesOf(data)['content.xml'],
      /<text:tracked-changes>.*?<\/text:tracked-changes>/gs,
    );
  if (mime.endsWith('.presentationml.presentation')) return slides(entriesOf(data));
  if (mime.endsWith('.spreadsheetml.sheet')) return sheets(entriesOf(data));
  if (mime === 'application/rtf') return richText(data.toString('latin1'));
  // Section 11: of e-mail and EPUB it reads nothing.
  return undefined;
}

type Entries = Readonly<Record<string, string>>;

/** Nothing of an archive that is broken. */
function entriesOf(data: Buffer): Entries {
  try {
    const entries = Object.entries(unzipSync(data));
    return Object.fromEntries(
      entries.map(([name, bytes]) => [name, Buffer.from(bytes).toString()]),
    );
  } catch {
    return {};
  }
}

function decoded(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
}

/** Whole, with blanks between paragraphs. */
function spaced(xml = '', hidden: RegExp): string {
  const text = xml.replace(hidden, '').replace(/<[^>]*>/g, ' ');
  return decoded(text).replace(/\s+/g, ' ').trim();
}

function textsIn(xml: string, element: string): string[] {
  const found = xml.matchAll(new RegExp(`<${element}[^>]*>([^<]*)</${element}>`, 'g'));
  return [...found].map(([, text = '']) => decoded(text));
}

/** Section 11: the text of all paragraphs, with nothing between them. */
function slides(entries: Entries): string {
  const names = Object.keys(entries).filter((name) => /^ppt\/slides\/[^/]+\.xml$/.test(name));
  return names.flatMap((name) => textsIn(entries[name] ?? '', 'a:t')).join('');
}

/** Section 11: numbers of the cells or strings, with nothing between them. */
function sheets(entries: Entries): string {
  const names = Object.keys(entries).filter((name) => /^xl\/worksheets\/[^/]+\.xml$/.test(name));
  return names.flatMap((name) => textsIn(entries[name] ?? '', 'v')).join('');
}

function richText(rtf: string): string {
  return rtf
    .replace(/\{\\(\*|fonttbl|info|pict)[^{}]*(\{[^{}]*\}[^{}]*)*\}/g, '')
    .replace(/\\'([0-9a-f]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\\[a-z]+-?\d* ?|[{}]/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}
