import { DocumentError, dateOf, type Extract, type Reader, TextCollector } from './reader.js';
import { type Entries, entry, fieldsOf, numbered, readXml, unpacked } from './zip.js';

/**
 * Documents of Office Open XML and OpenDocument: archives of XML files. Their text is read as a stream of elements, because a
 * tree of a large sheet would fill the memory.
 */

/** Which elements of a format stand for what. */
interface Marks {
  /** The text in these counts. */
  readonly text: ReadonlySet<string>;
  /** These end a line where they end. */
  readonly paragraphs: ReadonlySet<string>;
  /** What stands for itself. */
  readonly signs: Readonly<Record<string, string>>;
  /** What is in these is not read: properties, deleted text, what stands there twice. */
  readonly hidden: ReadonlySet<string>;
}

const WORD: Marks = {
  text: new Set(['w:t']),
  paragraphs: new Set(['w:p']),
  signs: { 'w:tab': '\t', 'w:br': '\n', 'w:cr': '\n', 'w:noBreakHyphen': '-' },
  hidden: new Set(['w:pPr', 'w:rPr', 'w:sectPr', 'mc:Fallback']),
};
const DRAWING: Marks = {
  text: new Set(['a:t']),
  paragraphs: new Set(['a:p']),
  signs: { 'a:br': '\n', 'a:tab': '\t' },
  hidden: new Set(['mc:Fallback']),
};
const OPEN_DOCUMENT: Marks = {
  text: new Set(['text:p', 'text:h']),
  paragraphs: new Set(['text:p', 'text:h']),
  signs: { 'text:tab': '\t', 'text:line-break': '\n', 'text:s': ' ' },
  hidden: new Set(['text:tracked-changes']),
};

function addText(bytes: Uint8Array | undefined, marks: Marks, into: TextCollector): void {
  let [counts, hidden] = [0, 0];
  readXml(bytes, {
    onopentag: (name) => {
      if (marks.hidden.has(name)) hidden += 1;
      if (hidden > 0) return;
      if (marks.text.has(name)) counts += 1;
      const sign = marks.signs[name];
      if (sign !== undefined) into.add(sign);
    },
    ontext: (text) => {
      if (counts > 0 && hidden === 0) into.add(text);
    },
    onclosetag: (name) => {
      if (hidden === 0 && marks.text.has(name)) counts -= 1;
      if (hidden === 0 && marks.paragraphs.has(name)) into.add('\n');
      if (marks.hidden.has(name)) hidden -= 1;
    },
  });
}

const TITLE = 'dc:title';
const FIELDS = new Set([
  ...[TITLE, 'dc:creator', 'dc:language', 'dcterms:modified', 'dcterms:created'],
  ...['meta:initial-creator', 'dc:date', 'meta:creation-date'],
]);

/** What the file tells of itself. */
function properties(bytes: Uint8Array | undefined): Omit<Extract, 'text'> {
  const fields = fieldsOf(bytes, FIELDS);
  const first = (...names: string[]) => names.map((name) => fields.get(name)?.trim()).find(Boolean);
  return {
    title: first(TITLE),
    author: first('dc:creator', 'meta:initial-creator'),
    date: dateOf(first('dcterms:modified', 'dc:date', 'dcterms:created', 'meta:creation-date')),
    language: first('dc:language'),
  };
}

const CORE = 'docProps/core.xml';
const BESIDE_WORD = ['footnotes', 'endnotes', 'comments'].map((name) => `word/${name}.xml`);

/** Word: the body, then headers, footers, notes and comments. */
export const word: Reader = {
  name: 'Word',
  read: (bytes) => {
    const body = 'word/document.xml';
    const isBeside = (name: string) =>
      /^word\/(header|footer)\d*\.xml$/.test(name) || BESIDE_WORD.includes(name);
    const entries = unpackedOffice(bytes, (name) => name === body || isBeside(name));
    const text = new TextCollector();
    addText(entry(entries, body), WORD, text);
    for (const name of Object.keys(entries).filter(isBeside).sort()) addText(entries[name], WORD, text);
    return { text: text.end(), ...properties(entries[CORE]) };
  },
};

/** PowerPoint: slide by slide, each with its notes. */
export const slides: Reader = {
  name: 'PowerPoint',
  read: (bytes) => {
    const entries = unpackedOffice(bytes, (name) =>
      /^ppt\/(slides|notesSlides)\/[a-zA-Z]+\d+\.xml$/.test(name),
    );
    const shown = numbered(entries, 'ppt/slides/slide');
    if (shown.length === 0) throw new DocumentError('DOCUMENT_BROKEN', 'it has no slides in it');
    const text = new TextCollector();
    for (const name of shown) {
      addText(entries[name], DRAWING, text);
      addText(entries[name.replace('slides/slide', 'notesSlides/notesSlide')], DRAWING, text);
      text.add('\n');
    }
    return { text: text.end(), ...properties(entries[CORE]) };
  },
};

/** Excel: sheet by sheet, a line a row, and the text of drawings. */
export const sheets: Reader = {
  name: 'Excel',
  read: (bytes) => {
    const [strings, book] = ['xl/sharedStrings.xml', 'xl/workbook.xml'];
    const isSheet = (name: string) => /^xl\/(worksheets\/sheet|drawings\/drawing)\d+\.xml$/.test(name);
    const entries = unpackedOffice(bytes, (name) => name === strings || name === book || isSheet(name));
    entry(entries, book);
    const text = new TextCollector();
    readXml(entries[book], {
      onopentag: (name, { name: sheet }) => {
        if (name === 'sheet' && sheet !== undefined) text.add(`${sheet}\n`);
      },
    });
    const shared = sharedStrings(entries[strings]);
    for (const name of numbered(entries, 'xl/worksheets/sheet')) addCells(entries[name], shared, text);
    for (const name of numbered(entries, 'xl/drawings/drawing')) addText(entries[name], DRAWING, text);
    return { text: text.end(), ...properties(entries[CORE]) };
  },
};

/** Texts that cells name by their number. How they are pronounced (`rPh`) is left out. */
function sharedStrings(bytes: Uint8Array | undefined): string[] {
  const strings: string[] = [];
  let [current, isText, isSpoken] = ['', false, false];
  readXml(bytes, {
    onopentag: (name) => {
      if (name === 'si') current = '';
      else if (name === 'rPh') isSpoken = true;
      else if (name === 't') isText = !isSpoken;
    },
    ontext: (text) => {
      if (isText) current += text;
    },
    onclosetag: (name) => {
      if (name === 'si') strings.push(current);
      else if (name === 'rPh') isSpoken = false;
      else if (name === 't') isText = false;
    },
  });
  return strings;
}

function addCells(bytes: Uint8Array | undefined, shared: readonly string[], into: TextCollector): void {
  let [type, value, isValue] = ['', '', false];
  readXml(bytes, {
    onopentag: (name, { t = '' }) => {
      if (name === 'c') [type, value] = [t, ''];
      isValue = name === 'v' || name === 't';
    },
    ontext: (text) => {
      if (isValue) value += text;
    },
    onclosetag: (name) => {
      isValue = false;
      if (name === 'row') into.add('\n');
      if (name !== 'c' || value === '') return;
      into.add(`${type === 's' ? (shared[Number(value)] ?? '') : value}\t`);
    },
  });
}

/** Texts, sheets and presentations of OpenDocument. */
export const openDocument: Reader = {
  name: 'OpenDocument',
  read: (bytes) => {
    const [content, meta, manifest] = ['content.xml', 'meta.xml', 'META-INF/manifest.xml'];
    const wanted = new Set([content, meta, manifest]);
    const entries = unpackedOffice(bytes, (name) => wanted.has(name));
    if (Buffer.from(entries[manifest] ?? []).includes('encryption-data')) throw encrypted();
    const text = new TextCollector();
    addText(entry(entries, content), OPEN_DOCUMENT, text);
    return { text: text.end(), ...properties(entries[meta]) };
  },
};

/** @throws DocumentError DOCUMENT_ENCRYPTED for the container in which Office keeps what a password protects */
function unpackedOffice(bytes: Uint8Array, isWanted: (name: string) => boolean): Entries {
  if (bytes[0] === 0xd0 && bytes[1] === 0xcf) throw encrypted();
  return unpacked(bytes, (name) => name === CORE || isWanted(name));
}

function encrypted(): DocumentError {
  return new DocumentError('DOCUMENT_ENCRYPTED', 'it is encrypted');
}
