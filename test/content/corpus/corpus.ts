import { spawnSync } from 'node:child_process';
import { gzipSync } from 'node:zlib';
import { strToU8, zipSync } from 'fflate';
import { Random } from '../../support/random.js';
import { docx, eml, epub, openDocument, pdfOf, pptx, rtf, xlsx } from '../documents.js';
import { encoded, LEGACY_TEXTS } from '../legacy-texts.js';
import { tar } from '../tar.js';
import { djvu, doc, msg, postScript, ppt, xls } from './old-documents.js';
import { jpegOf, oneColumn, pdfOfPages, pictureOf, twoColumns } from './pages.js';
import { bmp, cropped, noisy, type Picture, png, tiff, turned, webp } from './pictures.js';
import { type Language, sentences } from './sentences.js';

/**
 * Documents of all types, with texts that are known. The same number makes the same documents, on
 * every machine with the same programs.
 */

/** Something that is not on every machine. */
export type Need =
  | 'tesseract'
  | 'pdftoppm'
  | 'tesseract-ocr-deu'
  | 'catdoc'
  | 'xls2csv'
  | 'catppt'
  | 'djvutxt'
  | 'ps2txt'
  | 'msgconvert'
  | 'prlimit';

interface Draft {
  readonly extension: string;
  readonly bytes: Uint8Array;
}

/** The text of a document that is to be made. */
interface Text {
  readonly sentences: readonly string[];
  readonly text: string;
  /** The position of the document among those of its type. */
  readonly n: number;
}

export interface CorpusType {
  readonly name: string;
  /** Its directory in the corpus. */
  readonly directory: string;
  readonly needs: readonly Need[];
  /** The least share of words to be found; undefined if it is only measured. */
  readonly least: number | undefined;
  /** The language of each document, in turn. */
  readonly languages: readonly Language[];
  readonly make: (text: Text) => Draft;
}

export interface CorpusDocument {
  readonly type: CorpusType;
  /** In the corpus, with `/`. */
  readonly path: string;
  readonly text: string;
  readonly bytes: Uint8Array;
}

const BOTH: readonly Language[] = ['en', 'de'];
const ENGLISH: readonly Language[] = ['en'];
const GERMAN: readonly Language[] = ['de'];
/** The least share of words of formats with text, and of clean scans of 300 dpi. */
const OF_TEXT = 0.99;
const OF_SCANS = 0.95;

function ofText(
  directory: string,
  name: string,
  make: CorpusType['make'],
  more: Partial<CorpusType> = {},
): CorpusType {
  return { directory, name, make, needs: [], least: OF_TEXT, languages: BOTH, ...more };
}

/** A type that is read by OCR. */
function ofScan(
  directory: string,
  name: string,
  make: CorpusType['make'],
  more: Partial<CorpusType> = {},
): CorpusType {
  const { languages = ENGLISH } = more;
  const german: readonly Need[] = languages.includes('de') ? ['tesseract-ocr-deu'] : [];
  const needs: readonly Need[] = ['tesseract', 'pdftoppm', ...german];
  return { directory, name, make, needs, least: OF_SCANS, languages, ...more };
}

const file = (extension: string, bytes: Uint8Array | string): Draft => ({
  extension,
  bytes: typeof bytes === 'string' ? strToU8(bytes) : bytes,
});
const inLatin1 = (text: string) => Buffer.from(text, 'latin1');
const lines = (text: Text) => text.sentences.join('\n');
/** The lines of a picture that have text: the rest of the page is white. */
const WRITTEN_LINES = 1_500;

function picture({ text }: Text): Picture {
  return cropped(pictureOf(oneColumn(text)), WRITTEN_LINES);
}

function source({ n, sentences: all }: Text): Draft {
  if (n % 2 === 0) {
    const comments = all.map((sentence) => `  // ${sentence}`).join('\n');
    return file('ts', `export function work(): void {\n${comments}\n  return;\n}\n`);
  }
  return file('py', `def work():\n    """\n    ${all.join('\n    ')}\n    """\n    return None\n`);
}

/** Escapes what is not ASCII, as the programs do that write RTF. */
function inRtf(text: string): string {
  return inLatin1(text)
    .reduce(
      (all, byte) => all + (byte < 0x80 ? String.fromCharCode(byte) : `\\'${byte.toString(16)}`),
      '',
    )
    .replaceAll('\n', '\\par ');
}

/** The types in the order of the table. */
export const TYPES: readonly CorpusType[] = [
  ofText('txt', 'text, UTF-8 (.txt)', (text) => file('txt', lines(text))),
  ofText('utf16', 'text, UTF-16 (.txt)', (text) => {
    const bytes = Buffer.from(`\ufeff${lines(text)}`, 'utf16le');
    return file('txt', text.n % 2 === 0 ? bytes : bytes.swap16());
  }),
  ofText('latin1', 'text, Windows-1252 (.txt)', (text) => file('txt', inLatin1(lines(text))), {
    languages: GERMAN,
  }),
  ofText('markdown', 'Markdown (.md)', (text) => {
    const [first = '', ...rest] = text.sentences;
    const items = rest.map((sentence, i) => (i % 3 === 0 ? `- ${sentence}` : `${sentence}\n`));
    return file('md', `# ${first}\n\n${items.join('\n')}\n`);
  }),
  ofText('html', 'HTML (.html)', ({ sentences: all, n }) => {
    const body = all.map((sentence) => `<p>${sentence.replace(/(\w+)\.$/, '<b>$1</b>.')}</p>`);
    const page = `<!doctype html>\n<html><head><meta charset="${n % 2 === 0 ? 'utf-8' : 'iso-8859-1'}"></head>\n<body>\n${body.join('\n')}\n</body></html>\n`;
    return file('html', n % 2 === 0 ? page : inLatin1(page));
  }),
  ofText('csv', 'CSV (.csv)', ({ sentences: all }) =>
    file('csv', `number;text\n${all.map((sentence, i) => `${i};"${sentence}"`).join('\n')}\n`),
  ),
  ofText('json', 'JSON (.json)', ({ sentences: all }) =>
    file('json', JSON.stringify({ notes: all.map((text) => ({ text })) }, undefined, 2)),
  ),
  ofText('xml', 'XML (.xml)', ({ sentences: all }) => {
    const notes = all.map((sentence) => `  <note>${sentence}</note>`).join('\n');
    return file('xml', `<?xml version="1.0" encoding="UTF-8"?>\n<notes>\n${notes}\n</notes>\n`);
  }),
  ofText('tex', 'LaTeX (.tex)', (text) =>
    file('tex', `\\documentclass{article}\n\\begin{document}\n${lines(text)}\n\\end{document}\n`),
  ),
  ofText('source', 'source code (.ts, .py)', source),
  ofText('pdf', 'PDF with text (.pdf)', ({ text }) =>
    file('pdf', pdfOf(inLatin1(oneColumn(text)), '')),
  ),
  ofText('docx', 'Word (.docx)', ({ sentences: all }) => file('docx', docx(...all))),
  ofText('pptx', 'PowerPoint (.pptx)', ({ sentences: all }) => file('pptx', pptx(...all))),
  ofText('xlsx', 'Excel (.xlsx)', ({ sentences: all }) => file('xlsx', xlsx(all))),
  ofText('odt', 'OpenDocument text (.odt)', ({ sentences: all }) =>
    file('odt', openDocument('text', ...all)),
  ),
  ofText('ods', 'OpenDocument sheet (.ods)', ({ sentences: all }) =>
    file('ods', openDocument('spreadsheet', ...all)),
  ),
  ofText('odp', 'OpenDocument slides (.odp)', ({ sentences: all }) =>
    file('odp', openDocument('presentation', ...all)),
  ),
  ofText('epub', 'EPUB (.epub)', ({ sentences: all }) => file('epub', epub(...all))),
  ofText('rtf', 'RTF (.rtf)', (text) => file('rtf', rtf(inRtf(lines(text))))),
  ofText('eml', 'e-mail (.eml)', ({ n, sentences: all, text }) => {
    if (n % 2 === 0) return file('eml', eml(text));
    const bytes = docx(...all.slice(4));
    return file('eml', eml(all.slice(0, 4).join(' '), { name: 'letter.docx', bytes }));
  }),
  ofText('mbox', 'mail folder (.mbox)', ({ sentences: all }) =>
    file(
      'mbox',
      Buffer.concat(
        all.map((sentence) => Buffer.concat([strToU8('From ada\n'), eml(sentence), strToU8('\n')])),
      ),
    ),
  ),
  ofText('zip', 'ZIP (.zip)', ({ sentences: all }) =>
    file(
      'zip',
      zipSync({
        'notes/a.txt': strToU8(all.slice(0, 5).join('\n')),
        'letters/b.docx': docx(...all.slice(5)),
      }),
    ),
  ),
  ofText('tar', 'tar (.tar)', (text) =>
    file('tar', tar({ name: 'notes/a.txt', content: lines(text) })),
  ),
  ofText('tar-gz', 'tar, compressed (.tar.gz)', ({ sentences: all }) =>
    file(
      'tar.gz',
      gzipSync(tar(...all.map((sentence, i) => ({ name: `${i}.txt`, content: sentence })))),
    ),
  ),
  ofText('doc', 'Word 97 (.doc)', ({ sentences: all }) => file('doc', doc(...all)), {
    needs: ['catdoc'],
  }),
  ofText('xls', 'Excel 97 (.xls)', ({ sentences: all }) => file('xls', xls(...all)), {
    needs: ['xls2csv'],
  }),
  ofText('ppt', 'PowerPoint 97 (.ppt)', ({ sentences: all }) => file('ppt', ppt(...all)), {
    needs: ['catppt'],
  }),
  ofText(
    'msg',
    'Outlook (.msg)',
    ({ n, sentences: [first = '', ...all] }) => {
      // A letter that is not in Latin-1 makes a difference to the program.
      const subject = n < 3 ? first : `– ${first}`;
      return file('msg', msg(subject, all.join('\r\n')));
    },
    { needs: ['msgconvert'] },
  ),
  ofText('djvu', 'DjVu with text (.djvu)', (text) => file('djvu', djvu(lines(text))), {
    needs: ['djvutxt'],
  }),
  ofText('ps', 'PostScript (.ps)', ({ sentences: all }) => file('ps', postScript(...all)), {
    needs: ['ps2txt'],
    languages: ENGLISH,
  }),
  ofScan('png', 'PNG, 300 dpi (.png)', (text) => file('png', png(picture(text)))),
  ofScan('jpeg', 'JPEG, 300 dpi (.jpg)', ({ text }) => file('jpg', jpegOf(oneColumn(text)).jpeg)),
  ofScan('tiff', 'TIFF, 300 dpi (.tif)', (text) => file('tif', tiff(picture(text)))),
  ofScan('webp', 'WebP, 300 dpi (.webp)', (text) => file('webp', webp(picture(text)))),
  ofScan('bmp', 'BMP, 300 dpi (.bmp)', (text) => file('bmp', bmp(picture(text)))),
  ofScan('scan-english', 'scan, English, 300 dpi (.pdf)', ({ n, text }) => {
    const page = oneColumn(text);
    return file('pdf', pdfOfPages([{ picture: n % 2 === 0 ? pictureOf(page) : jpegOf(page) }]));
  }),
  ofScan(
    'scan-german',
    'scan, German, 300 dpi (.pdf)',
    ({ text }) => file('pdf', pdfOfPages([{ picture: pictureOf(oneColumn(text)) }])),
    { languages: GERMAN },
  ),
  ofScan('scan-columns', 'scan, two columns (.pdf)', ({ text }) =>
    file('pdf', pdfOfPages([{ picture: pictureOf(twoColumns(text)) }])),
  ),
  ofScan(
    'scan-mixed',
    'scan of one page beside a page of text (.pdf)',
    ({ sentences: all }) => {
      const half = Math.ceil(all.length / 2);
      const [first, second] = [all.slice(0, half), all.slice(half)];
      return file(
        'pdf',
        pdfOfPages([
          { text: oneColumn(first.join(' ')) },
          { picture: pictureOf(oneColumn(second.join(' '))) },
        ]),
      );
    },
    { languages: BOTH },
  ),
  ofScan('scan-askew', 'scan, askew by 2° (.pdf)', ({ text }) =>
    file('pdf', pdfOfPages([{ picture: pictureOf(oneColumn(text, 2)) }])),
  ),
  ofScan(
    'scan-noise',
    'scan with grain and specks (.pdf)',
    ({ n, text }) => {
      const scanned = noisy(pictureOf(oneColumn(text)), new Random(n));
      return file('pdf', pdfOfPages([{ picture: scanned }]));
    },
    { least: undefined },
  ),
  ofScan('scan-turned', 'scan, turned by 90°, 180° and 270° (.pdf)', ({ n, text }) =>
    file('pdf', pdfOfPages([{ picture: turned(pictureOf(oneColumn(text)), 1 + (n % 3)) }])),
  ),
];

/** Texts in older encodings are those that have been translated: there are no generated ones. */
export const OLDER_ENCODINGS: CorpusType = ofText(
  'encodings',
  'text, older encodings (.txt)',
  ({ n, text }) => file('txt', encoded(text, LEGACY_TEXTS[n]?.[0] ?? '')),
);

/** Documents of one type, unless more are asked for. */
const USUAL_NUMBER = 5;

/** Makes the documents of a type. @param number in its languages, one after the other */
export function documentsOf(type: CorpusType, number = USUAL_NUMBER): readonly CorpusDocument[] {
  const texts =
    type === OLDER_ENCODINGS
      ? LEGACY_TEXTS.map(([, text]) => [text])
      : Array.from({ length: number }, (_, n) => {
          const language = type.languages[n % type.languages.length] ?? 'en';
          return sentences(language, new Random(seedOf(`${type.directory} ${n}`)));
        });
  return texts.map((all, n) => {
    const text = all.join(' ');
    const { bytes, extension } = type.make({ sentences: all, text, n });
    return { type, path: `${type.directory}/${n}.${extension}`, text, bytes };
  });
}

/** A number that follows from a text. */
function seedOf(text: string): number {
  let seed = 0;
  for (const byte of Buffer.from(text)) seed = (Math.imul(seed, 31) + byte) >>> 0;
  return seed;
}

/** Returns what a type needs and this machine does not have. */
export function missingFor({ needs }: CorpusType): readonly Need[] {
  return needs.filter((need) => !isInstalled(need));
}

const installed = new Map<Need, boolean>();

/** Whether a program starts: Debian's `msgconvert` does not without a recommended package. */
function starts(program: Need): boolean {
  return program !== 'msgconvert' || spawnSync(program, ['--help']).status !== 2;
}

/** Whether a program, or a language of tesseract, is installed. */
export function isInstalled(need: Need): boolean {
  const known = installed.get(need);
  if (known !== undefined) return known;
  const language = /^tesseract-ocr-(\w+)$/.exec(need)?.[1];
  const found =
    language === undefined
      ? spawnSync('sh', ['-c', 'command -v "$1"', 'sh', need]).status === 0 && starts(need)
      : new RegExp(`^${language}$`, 'm').test(
          spawnSync('tesseract', ['--list-langs'], { encoding: 'utf8' }).stdout ?? '',
        );
  installed.set(need, found);
  return found;
}
