import { unzipSync } from 'fflate';
import { HtmlParser } from '../../lib/html-parser.js';
import { checkUnpacked, DocumentError } from './reader.js';

/** The entries of an archive that a reader wants, by name. */
export type Entries = Readonly<Record<string, Uint8Array>>;

/**
 * Unpacks the entries of a ZIP archive that are wanted, and nothing else.
 *
 * @throws DocumentError DOCUMENT_TOO_LARGE for an archive that would fill the memory; an error for what is no archive
 */
export function unpacked(bytes: Uint8Array, isWanted: (name: string) => boolean): Entries {
  let size = 0;
  return unzipSync(bytes, {
    // What an entry has more than it says is not unpacked.
    filter: ({ name, originalSize }) => {
      if (!isWanted(name)) return false;
      size += originalSize;
      checkUnpacked(size);
      return true;
    },
  });
}

/** Names that begin and end so, in the order of the number between: `slide2` before `slide10`. */
export function numbered(entries: Entries, begin: string, end = '.xml'): string[] {
  const numberOf = (name: string) => Number(name.slice(begin.length, -end.length));
  return Object.keys(entries)
    .filter((name) => name.startsWith(begin) && name.endsWith(end) && !Number.isNaN(numberOf(name)))
    .sort((a, b) => numberOf(a) - numberOf(b));
}

/** The content of a whole XML file. Entities that it defines itself are left as they are, so that they cannot multiply. */
export function readXml(
  bytes: Uint8Array | undefined,
  handler: ConstructorParameters<typeof HtmlParser>[0],
): void {
  if (bytes === undefined) return;
  const parser = new HtmlParser(handler, { xmlMode: true });
  parser.write(decoded(bytes));
  parser.end();
}

function decoded(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder('utf-16be').decode(bytes);
  return new TextDecoder().decode(bytes);
}

/** The text of each of these elements where it stands first, by the element's name. */
export function fieldsOf(bytes: Uint8Array | undefined, names: ReadonlySet<string>): Map<string, string> {
  const found = new Map<string, string>();
  let open: string | undefined;
  readXml(bytes, {
    onopentag: (name) => {
      if (open === undefined && names.has(name) && !found.has(name)) open = name;
    },
    ontext: (text) => {
      if (open !== undefined) found.set(open, (found.get(open) ?? '') + text);
    },
    onclosetag: (name) => {
      if (name === open) open = undefined;
    },
  });
  return found;
}

/** @throws DocumentError DOCUMENT_BROKEN without it */
export function entry(entries: Entries, name: string): Uint8Array {
  const found = entries[name];
  if (found === undefined) throw new DocumentError('DOCUMENT_BROKEN', `it has no ${name} in it`);
  return found;
}
