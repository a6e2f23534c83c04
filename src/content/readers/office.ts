import { posix } from 'node:path';
import { unzipSync } from 'fflate';
import { HtmlParser } from '../../lib/html-parser.js';
import { decodedPart } from '../../lib/text.js';
import {
  DocumentError,
  type DocumentReader,
  dateOf,
  mayGoOn,
  TextCollector,
} from './document-reader.js';
import { readHtml } from './html.js';
import { isOwnName } from './own-names.js';

/**
 * Readers of documents that are ZIP archives of XML files: Office Open XML, OpenDocument and EPUB.
 * They read XML as a stream of elements, because the tree of a large sheet would fill the memory.
 */

/** The entries of an archive, by name. */
type Entries = Readonly<Record<string, Uint8Array>>;

/**
 * Maximum number of bytes unpacked from one archive. With its text, they fit into the memory that
 * `document-process.ts` allows.
 */
const MAX_UNPACKED_BYTES = 200_000_000;

/**
 * Unpacks the entries whose names match.
 *
 * @throws DocumentError DOCUMENT_TOO_LARGE for an archive that would fill the memory
 */
function unpacked(bytes: Uint8Array, wanted: RegExp): Entries {
  let size = 0;
  return unzipSync(bytes, {
    // An entry is unpacked only up to its declared size.
    filter: ({ name, originalSize }) => {
      if (!wanted.test(name)) return false;
      size += originalSize;
      if (size <= MAX_UNPACKED_BYTES) return true;
      const why = `it unpacks to more than ${MAX_UNPACKED_BYTES / 1e6} million bytes`;
      throw new DocumentError('DOCUMENT_TOO_LARGE', { why });
    },
  });
}

/** @throws DocumentError DOCUMENT_BROKEN if there is no such entry */
function entry(entries: Entries, name: string): Uint8Array {
  const found = entries[name];
  if (found === undefined)
    throw new DocumentError('DOCUMENT_BROKEN', { why: `it has no ${name} in it` });
  return found;
}

/**
 * Parses a whole XML file. Entities that the file defines are not expanded, so that they cannot
 * multiply.
 */
function readXml(
  bytes: Uint8Array | undefined,
  handler: ConstructorParameters<typeof HtmlParser>[0],
): void {
  if (bytes === undefined) return;
  const isUtf16 =
    (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
  const encoding = isUtf16 ? `utf-16${bytes[0] === 0xff ? 'le' : 'be'}` : 'utf-8';
  const parser = new HtmlParser(handler, { xmlMode: true });
  parser.write(new TextDecoder(encoding).decode(bytes));
  parser.end();
}

/** Returns the name of an element without its prefix, which the writing program may choose. */
const localName = (name: string) => name.slice(name.indexOf(':') + 1);

const FIELDS = new Set([
  'dc:title',
  'dc:creator',
  'dc:language',
  'dcterms:modified',
  'dcterms:created',
  'meta:initial-creator',
  'dc:date',
  'meta:creation-date',
]);

/** Returns the metadata of a document: the text of the first element of each kind. */
function properties(bytes: Uint8Array | undefined) {
  const found = new Map<string, string>();
  let open: string | undefined;
  readXml(bytes, {
    onopentag: (name) => {
      if (open === undefined && FIELDS.has(name) && !found.has(name)) open = name;
    },
    ontext: (text) => {
      if (open !== undefined) found.set(open, (found.get(open) ?? '') + text);
    },
    onclosetag: (name) => {
      if (name === open) open = undefined;
    },
  });
  const first = (...names: string[]) => names.map((name) => found.get(name)?.trim()).find(Boolean);
  return {
    title: first('dc:title'),
    author: first('dc:creator', 'meta:initial-creator'),
    date: dateOf(first('dcterms:modified', 'dc:date', 'dcterms:created', 'meta:creation-date')),
    language: first('dc:language'),
  };
}

const words = (text: string) => new Set(text.split(' '));
/**
 * The meaning of the elements of a format, by name. A name has its prefix if another element has
 * the same name.
 */
interface ElementRoles {
  /** Elements that contain text of the document. */
  readonly text: ReadonlySet<string>;
  /**
   * Elements that are lines of their own: their end ends a line, and so does their start within
   * another one.
   */
  readonly paragraphs: ReadonlySet<string>;
  /** Elements that stand for characters. */
  readonly literals: ReadonlyMap<string, string>;
  /**
   * Elements whose content is skipped: properties, deleted text, authors and dates of comments,
   * duplicates.
   */
  readonly hidden: ReadonlySet<string>;
}

/** Word documents; also slides, drawings, charts and comments of all Office formats. */
const OPEN_XML: ElementRoles = {
  text: words('t v text'),
  paragraphs: words('p pt text comment'),
  literals: new Map(
    Object.entries({ tab: '\t', ptab: '\t', br: '\n', cr: '\n', noBreakHyphen: '-', den: '/' }),
  ),
  hidden: words('pPr rPr sectPr rt Fallback numCache'),
};
const OPEN_DOCUMENT: ElementRoles = {
  text: words('p h'),
  paragraphs: words('p h svg:title svg:desc'),
  literals: new Map(Object.entries({ tab: '\t', 'line-break': '\n', s: ' ' })),
  hidden: words('tracked-changes note-citation ruby-text dc:creator dc:date meta:creator-initials'),
};

function addText(bytes: Uint8Array | undefined, into: TextCollector, roles: ElementRoles): void {
  let [counts, hidden, open] = [0, 0, 0];
  const is = (name: string, those: ReadonlySet<string>) =>
    those.has(localName(name)) || those.has(name);
  readXml(bytes, {
    onopentag: (name) => {
      if (is(name, roles.hidden)) hidden += 1;
      if (hidden > 0) return;
      if (is(name, roles.text)) counts += 1;
      into.add(roles.literals.get(localName(name)) ?? '');
      if (!is(name, roles.paragraphs)) return;
      // A text box or a note is inside the paragraph that it belongs to.
      if (open > 0) into.add('\n');
      open += 1;
    },
    ontext: (text) => {
      if (counts > 0 && hidden === 0) into.add(text);
    },
    onclosetag: (name) => {
      if (hidden === 0 && is(name, roles.text)) counts -= 1;
      if (hidden === 0 && is(name, roles.paragraphs)) {
        open -= 1;
        into.add('\n');
      }
      if (is(name, roles.hidden)) hidden -= 1;
    },
  });
}

/** Files with metadata, which is not part of the text. */
const METADATA_FILES =
  /^(docProps\/core|meta|META-INF\/manifest|xl\/(workbook|sharedStrings|styles))\.xml$/;
/**
 * Files with text outside the body: headers, notes, comments, drawings and charts. The comments of
 * sheets are in a directory if openpyxl wrote them, or if they are threads.
 */
const SECONDARY_FILES =
  /^(word\/(header|footer|footnotes|endnotes|comments)\d*|(word|ppt|xl)\/(diagrams\/data|charts\/chart|drawings\/drawing|comments)\d+|ppt\/(notesSlides|comments)\/[^/]+|xl\/(comments|threadedComments)\/[^/]+|styles)\.xml$/;
const COMMENTS = /^xl\/comments/;
const THREADS = /^xl\/threadedComments\//;
const { compare } = new Intl.Collator('en', { numeric: true });

/**
 * Makes the reader of an office format.
 *
 * @param body matches the files with the text, read in the order of the numbers in their names
 * @param begin called with the entries before the text is read; returns the function that reads
 *   each file of the body
 */
function office(
  name: string,
  body: RegExp,
  roles: ElementRoles,
  begin: (entries: Entries, into: TextCollector) => typeof addText = () => addText,
): DocumentReader {
  const wanted = new RegExp(
    [body, SECONDARY_FILES, METADATA_FILES].map(({ source }) => `(?:${source})`).join('|'),
  );
  return {
    name,
    read: (bytes, context) => {
      // The signature of OLE2: a document with a password, or one from before Office 2007.
      if (bytes[0] === 0xd0 && bytes[1] === 0xcf)
        throw encrypted('it has a password, or is of a version before 2007');
      const entries = unpacked(bytes, wanted);
      if (Buffer.from(entries['META-INF/manifest.xml'] ?? []).includes('encryption-data'))
        throw encrypted();
      const names = Object.keys(entries).sort(compare);
      const bodies = names.filter((each) => body.test(each));
      if (bodies.length === 0)
        throw new DocumentError('DOCUMENT_BROKEN', { why: 'it has no text or table in it' });
      const text = new TextCollector();
      const add = begin(entries, text);
      for (const each of bodies) if (mayGoOn(context)) add(entries[each], text, roles);
      const hasThreads = names.some((each) => THREADS.test(each));
      for (const each of names.filter((each) => SECONDARY_FILES.test(each))) {
        if (!mayGoOn(context)) break;
        if (COMMENTS.test(each)) addComments(entries[each], text, hasThreads);
        else addText(entries[each], text, roles);
      }
      return {
        text: text.end(),
        ...properties(entries['docProps/core.xml'] ?? entries['meta.xml']),
      };
    },
  };
}

function encrypted(why = 'it is encrypted'): DocumentError {
  return new DocumentError('DOCUMENT_ENCRYPTED', { why });
}

export const word = office('Word', /^word\/document\d*\.xml$/, OPEN_XML);
export const slides = office('PowerPoint', /^ppt\/slides\/[^/]+\.xml$/, OPEN_XML);
/** Text documents, sheets and presentations. */
export const openDocument = office('OpenDocument', /^content\.xml$/, OPEN_DOCUMENT);

/** Excel: the names that people gave to the sheets, then the sheets, one line per row. */
export const sheets = office('Excel', /^xl\/worksheets\/[^/]+\.xml$/, OPEN_XML, (entries, into) => {
  let firstDay = Date.UTC(1899, 11, 30);
  readXml(entry(entries, 'xl/workbook.xml'), {
    onopentag: (name, { date1904, name: sheet }) => {
      const isSheet = localName(name) === 'sheet' && sheet !== undefined;
      // The first line of a text is the title of a document that has no other.
      if (isSheet && isOwnName(sheet)) into.add(`${sheet}\n`);
      if (date1904 === '1' || date1904 === 'true') firstDay = Date.UTC(1904, 0, 1);
    },
  });
  const shared = sharedStrings(entries['xl/sharedStrings.xml']);
  const isDate = dateStyles(entries['xl/styles.xml']);
  const shown = (type: string, style: string, value: string): string => {
    if (type === 's') return shared[Number(value)] ?? '';
    const at = new Date(firstDay + Math.round(Number(value) * 86_400) * 1_000);
    if (type !== '' && type !== 'n') return value;
    if (!isDate[Number(style)] || Number.isNaN(at.getTime())) return value;
    return at
      .toISOString()
      .slice(0, Number.isInteger(Number(value)) ? 10 : 16)
      .replace('T', ' ');
  };
  return (bytes) => {
    let [type, style, value, isValue] = ['', '', '', false];
    readXml(bytes, {
      onopentag: (tag, { s = '0', t = '' }) => {
        const name = localName(tag);
        if (name === 'c') [type, style, value] = [t, s, ''];
        isValue = name === 'v' || name === 't';
      },
      ontext: (text) => {
        if (isValue) value += text;
      },
      onclosetag: (tag) => {
        isValue = false;
        if (localName(tag) === 'row') into.add('\n');
        if (localName(tag) === 'c' && value !== '') into.add(`${shown(type, style, value)}\t`);
      },
    });
  };
});

/** The author of a comment that repeats a thread for older versions of Excel. */
const THREAD_AUTHOR = /^tc=\{/;

/**
 * Adds the comments of a sheet.
 * @param hasThreads whether the threads are read, so that what repeats them is left out
 */
function addComments(
  bytes: Uint8Array | undefined,
  into: TextCollector,
  hasThreads: boolean,
): void {
  const authors: string[] = [];
  let [open, text, author] = ['', '', ''];
  readXml(bytes, {
    onopentag: (tag, { authorId = '' }) => {
      open = localName(tag);
      if (open === 'author') authors.push('');
      if (open === 'comment') [text, author] = ['', authors[Number(authorId)] ?? ''];
    },
    ontext: (part) => {
      if (open === 'author') authors.push((authors.pop() ?? '') + part);
      if (open === 't') text += part;
    },
    onclosetag: (tag) => {
      open = '';
      if (localName(tag) !== 'comment') return;
      if (!hasThreads || !THREAD_AUTHOR.test(author)) into.add(`${text}\n`);
    },
  });
}

/** Returns the texts that cells refer to by number, without their phonetic readings (`rPh`). */
function sharedStrings(bytes: Uint8Array | undefined): string[] {
  const strings: string[] = [];
  let [current, isText, isPhonetic] = ['', false, false];
  readXml(bytes, {
    onopentag: (tag) => {
      const name = localName(tag);
      if (name === 'si') current = '';
      else if (name === 'rPh') isPhonetic = true;
      else if (name === 't') isText = !isPhonetic;
    },
    ontext: (text) => {
      if (isText) current += text;
    },
    onclosetag: (tag) => {
      const name = localName(tag);
      if (name === 'si') strings.push(current);
      else if (name === 'rPh') isPhonetic = false;
      else if (name === 't') isText = false;
    },
  });
  return strings;
}

/** Returns, for each cell style, whether it shows a number as a date. */
function dateStyles(bytes: Uint8Array | undefined): boolean[] {
  const codes = new Map<string, string>();
  const isDate: boolean[] = [];
  let isInCellFormats = false;
  readXml(bytes, {
    onopentag: (tag, { formatCode = '', numFmtId = '' }) => {
      const name = localName(tag);
      if (name === 'numFmt') codes.set(numFmtId, formatCode.replace(/"[^"]*"|\[[^\]]*\]|\\./g, ''));
      else if (name === 'cellXfs') isInCellFormats = true;
      // Built-in number formats: 14 to 17 and 22 are dates.
      else if (name === 'xf' && isInCellFormats)
        isDate.push(/^(1[4-7]|22)$/.test(numFmtId) || /[dy]/i.test(codes.get(numFmtId) ?? ''));
    },
    onclosetag: (tag) => {
      if (localName(tag) === 'cellXfs') isInCellFormats = false;
    },
  });
  return isDate;
}

/** Books: pages of HTML, in reading order. */
export const epub: DocumentReader = {
  name: 'EPUB',
  read: (bytes, context) => {
    const entries = unpacked(bytes, /\.(x?html?|xml|opf)$/i);
    let root = '';
    readXml(entry(entries, 'META-INF/container.xml'), {
      onopentag: (name, attributes) => {
        if (localName(name) === 'rootfile' && root === '') root = attributes['full-path'] ?? '';
      },
    });
    const pages = new Map<string, string>();
    const order: string[] = [];
    readXml(entry(entries, root), {
      onopentag: (name, { href = '', id = '', idref = '' }) => {
        if (localName(name) === 'item')
          pages.set(id, posix.join(posix.dirname(root), decodedPart(href)));
        else if (localName(name) === 'itemref') order.push(idref);
      },
    });
    // Encrypted fonts do not make a book unreadable; encrypted pages do.
    const hidden = Buffer.from(entries['META-INF/encryption.xml'] ?? []).toString();
    const text = new TextCollector();
    for (const id of order) {
      if (!mayGoOn(context)) break;
      const name = pages.get(id) ?? '';
      if (hidden.includes(`"${name}"`)) throw encrypted();
      if (entries[name] !== undefined)
        text.add(`${readHtml(Buffer.from(entries[name]).toString()).text}\n\n`);
    }
    return { text: text.end(), ...properties(entries[root]) };
  },
};
