import { extname } from 'node:path';
import type { DocumentKind } from '../../lib/file.js';
import { signedType } from '../signatures.js';

/**
 * The programs that a process may use while it reads a document. They are sent with each document
 * as JSON.
 */
export interface Programs {
  /** Set if OCR is on and installed. */
  readonly ocr?: OcrProgram;
  /** Why scans and pictures are not read, if `ocr` is not set. */
  readonly noOcr?: 'off' | 'missing' | 'no language';
  /**
   * The programs for files that nothing built in reads, by extension in lower case with its dot:
   * those of `documents.commands`, and those of `HELPERS` that are installed.
   */
  readonly commands: Readonly<Record<string, Command>>;
  /** The size and the time of each program, by its absolute path. An update changes them. */
  readonly versions?: Readonly<Record<string, string>>;
  /** Maximum time of a command for one document, in ms. @default 2 minutes */
  readonly commandTimeoutMs?: number;
  /** Absolute path of `prlimit`, which limits the memory and the processor time of a program. */
  readonly prlimit?: string;
}

/** No program is installed. */
export const NO_PROGRAMS: Programs = { commands: {}, noOcr: 'missing' };

/** The programs of OCR. */
export interface OcrProgram {
  /** Absolute path of `tesseract`. */
  readonly tesseract: string;
  /** Absolute path of `pdftoppm`, without which only pictures are read. */
  readonly pdftoppm?: string;
  /** Languages as tesseract names them: `deu+eng`. */
  readonly languages: string;
  /** Whether tesseract can tell how a page is rotated (`osd` is installed). */
  readonly findsRotation: boolean;
  /** Resolution in which pages of a PDF are drawn, in dots per inch. */
  readonly dpi: number;
  /** Maximum number of pages of one document that are read by OCR. */
  readonly maxPages: number;
  /** Maximum time for one page, in ms. */
  readonly pageTimeoutMs: number;
}

/** A program that writes the text of a file to its standard output. */
export interface Command {
  /** Absolute path; undefined if the program is not installed. */
  readonly program?: string;
  /** Its name, as the configuration or `HELPERS` has it. */
  readonly name: string;
  /** Absolute path of the program that it has do the work, if it is a script. */
  readonly runs?: string;
  /** Its arguments, in which `{file}` stands for the absolute path of the file. */
  readonly args: readonly string[];
  /** The format of its output: text, or a message as mail programs save it. */
  readonly output: 'text' | 'mail';
  /** Whether `documents.commands` has it. Then it comes before all that is built in. */
  readonly isConfigured?: true;
}

/** A program that reads an old or rare format. */
export interface Helper {
  /** Extensions in lower case, with the dot. */
  readonly extensions: readonly string[];
  readonly program: string;
  /** The program that it has do the work, if it is a script. An update of that counts, too. */
  readonly runs?: string;
  readonly args: readonly string[];
  readonly output: Command['output'];
  /** The package of Debian that has it. */
  readonly package: string;
  /** The files that it reads, as people call them. */
  readonly reads: string;
}

const AS_UTF8 = '-dutf-8';

/** The programs that are used when they are installed. */
export const HELPERS: readonly Helper[] = [
  {
    extensions: ['.doc', '.dot'],
    program: 'catdoc',
    args: [AS_UTF8, '-w', '{file}'],
    output: 'text',
    package: 'catdoc',
    reads: 'old Word documents',
  },
  {
    extensions: ['.xls', '.xlt'],
    program: 'xls2csv',
    args: [AS_UTF8, '{file}'],
    output: 'text',
    package: 'catdoc',
    reads: 'old Excel workbooks',
  },
  {
    extensions: ['.ppt', '.pps', '.pot'],
    program: 'catppt',
    args: [AS_UTF8, '{file}'],
    output: 'text',
    package: 'catdoc',
    reads: 'old PowerPoint presentations',
  },
  {
    extensions: ['.msg'],
    program: 'msgconvert',
    args: ['--outfile', '-', '{file}'],
    output: 'mail',
    package: 'libemail-outlook-message-perl',
    reads: 'Outlook messages',
  },
  {
    extensions: ['.djvu', '.djv'],
    program: 'djvutxt',
    args: ['{file}'],
    output: 'text',
    package: 'djvulibre-bin',
    reads: 'DjVu documents',
  },
  {
    extensions: ['.ps', '.eps'],
    program: 'ps2txt',
    runs: 'gs',
    args: ['{file}'],
    output: 'text',
    package: 'ghostscript',
    reads: 'PostScript files',
  },
];

/** The extension under which a file of a type is found in `commands`, whatever its name is. */
const EXTENSION_OF_TYPE: Readonly<Record<string, string>> = {
  'application/postscript': '.ps',
  'image/vnd.djvu': '.djvu',
};

/** Returns the program of `documents.commands` that reads a file of this name, if there is one. */
export function configuredCommand(name: string, { commands }: Programs): Command | undefined {
  const command = commands[extensionOf(name)];
  return command?.isConfigured ? command : undefined;
}

/**
 * Returns the extension under which `commands` has the program that reads a file of the kind
 * `helper`: that of its name if the configuration names a program for it, or else by its first
 * bytes, if they show it.
 */
export function helperExtension(name: string, head: Uint8Array, programs: Programs): string {
  const isConfigured = configuredCommand(name, programs) !== undefined;
  return (isConfigured ? undefined : extensionByContent(head)) ?? extensionOf(name);
}

/** Returns that extension for a file whose first bytes show its type; undefined for any other. */
export function extensionByContent(head: Uint8Array): string | undefined {
  return EXTENSION_OF_TYPE[signedType(head)?.type ?? ''];
}

/** The extensions of files whose first bytes show their type, whatever their names are. */
export const EXTENSIONS_BY_CONTENT: readonly string[] = Object.values(EXTENSION_OF_TYPE);

/** The kinds of document in which there may be documents of any other kind. */
const CONTAINERS: ReadonlySet<DocumentKind | undefined> = new Set(['archive', 'mail', 'mbox']);

/** A document, as far as it decides which programs may be used to read it. */
interface Readable {
  readonly kind: DocumentKind | undefined;
  /** See `helperExtension`. */
  readonly extension: string;
  /** Whether only its words are counted. OCR is not used for that. */
  readonly onlyWords: boolean;
}

/**
 * Returns what the text of a document depends on besides its content, as text: the programs that
 * may be used to read it, their versions and their options. Limits of time do not count: a text of
 * which they cut something off is not kept.
 *
 * A PDF may have attached files that a program reads. It depends on none of these programs here;
 * `Tools.lacks` has those that were missing.
 */
export function programsFor(
  { extension, kind, onlyWords }: Readable,
  { commands, noOcr, ocr, versions = {} }: Programs,
): string {
  const command = kind === 'helper' ? commands[extension] : undefined;
  if (CONTAINERS.has(kind) || command?.output === 'mail')
    return JSON.stringify([commands, ocr, noOcr, versions]);
  if (kind === 'helper') {
    const paths = [command?.program ?? '', ...(command?.runs === undefined ? [] : [command.runs])];
    return JSON.stringify([command, ...paths.map((path) => versions[path])]);
  }
  if ((kind !== 'pdf' && kind !== 'picture') || onlyWords) return '';
  const used = [ocr?.tesseract, ocr?.pdftoppm].map((program = '') => versions[program]);
  return JSON.stringify([ocr, noOcr, used]);
}

/**
 * Something that was missing while a document was read, as text:
 *
 * - `ocr`, for pictures;
 * - `ocr of pdf`, which needs `pdftoppm`, too;
 * - an extension such as `.doc`: the program of `Programs.commands`;
 * - `time`: a part was not read because a program took too long, or failed. Only a person has such
 *   a document read again.
 */
export type Lack = 'ocr' | 'ocr of pdf' | 'time' | `.${string}`;

/** Whether a program that was missing is there, so that the document has to be read again. */
export function isThereNow({ commands, ocr }: Programs, lacks: readonly string[] = []): boolean {
  return lacks.some((lack) => {
    if (lack === 'ocr') return ocr !== undefined;
    return lack === 'ocr of pdf'
      ? ocr?.pdftoppm !== undefined
      : commands[lack]?.program !== undefined;
  });
}

/** Returns the program that reads files with this extension if it is installed. */
export function helperFor(extension: string): Helper | undefined {
  return HELPERS.find(({ extensions }) => extensions.includes(extension));
}

/** Returns the extension in lower case, with the dot. A name such as `.doc` has none. */
export function extensionOf(name: string): string {
  return extname(name).toLowerCase();
}
