import { hash } from 'node:crypto';
import { messageOf } from '../../lib/errors.js';
import { formatDuration } from '../../lib/units.js';
import { MAX_SIDE, type Ocr, type PageSize } from '../helpers/ocr.js';
import type { Programs } from '../helpers/programs.js';
import { ProgramError } from '../helpers/tools.js';
import type { OcrPage } from '../page-store.js';
import { DocumentError, MomentaryError } from './document-reader.js';

/**
 * Changes when the same page gives another text: when pages are drawn or read in another way. Pages
 * that were stored before are then read again.
 */
const FORMAT = 1;

/** Maximum number of pixels of a picture that is read. Reading takes 10 bytes for each. */
const MAX_PIXELS = 100_000_000;

/** The size of a picture in pixels. */
export interface PixelSize {
  readonly width: number;
  readonly height: number;
}

/** A picture is one page and needs no private copy for the programs. */
export type ScanKind = 'pdf' | 'tiff' | 'picture';

/**
 * One file whose pages are read by OCR.
 *
 * A page that was read is stored at once. One that cannot be read, or takes too long, is recorded,
 * and the others are read.
 */
export class Scan {
  /** Numbers of the pages that could not be read. They count from 1. */
  readonly unread: number[] = [];
  /** Why the first of them could not be read. */
  #failure: DocumentError | undefined;
  /** Its reason, without a full stop. */
  #reason: string | undefined;
  /** A private copy of the file. */
  #copy: { readonly file: string; readonly sha256: string } | undefined;

  /**
   * @param bytes returns the whole file
   * @param isStored whether its pages are stored
   */
  constructor(
    private readonly ocr: Ocr,
    private readonly kind: ScanKind,
    private readonly bytes: () => Uint8Array | Promise<Uint8Array>,
    private readonly isStored = true,
  ) {}

  /**
   * Reads a page of a PDF.
   *
   * @param number counts from 1
   * @returns its text, empty if there is none; undefined if it was not read
   * @throws DocumentError NO_OCR
   */
  async pageOfPdf(number: number, size: PageSize): Promise<string | undefined> {
    if (!this.ocr.takePage()) return undefined;
    return await this.#read(number, async () => {
      const { file } = await this.copy();
      return await this.ocr.readPageOfPdf(file, number, size);
    });
  }

  /** Reads a page of a picture, as `pageOfPdf` does. Only a TIFF has more than one page. */
  async pageOfPicture(number: number, size: PixelSize): Promise<string | undefined> {
    const why = excess(size);
    if (why !== undefined)
      return this.#skip(number, why, new DocumentError('DOCUMENT_TOO_LARGE', { why }));
    if (!this.ocr.takePage()) return undefined;
    return await this.#read(number, async () => {
      if (this.kind === 'picture') return await this.ocr.readPicture({ bytes: await this.bytes() });
      const { file } = await this.copy();
      return await this.ocr.readPicture({ file, page: number - 1 });
    });
  }

  /** Returns the private copy, which is made once. @throws DocumentError if there is no room */
  async copy(): Promise<{ readonly file: string; readonly sha256: string }> {
    if (this.#copy !== undefined) return this.#copy;
    const bytes = await this.bytes();
    try {
      const file = this.ocr.file(bytes, `.${this.kind}`);
      this.#copy = { file, sha256: hash('sha256', bytes, 'hex') };
      return this.#copy;
    } catch (error) {
      const why = `it cannot be copied for OCR (${messageOf(error)})`;
      throw new MomentaryError('DOCUMENT_TOO_LARGE', { why }, { cause: error });
    }
  }

  /** Why the first unread page could not be read; undefined if all were read. */
  get failure(): DocumentError | undefined {
    return this.#failure;
  }

  /** The same as a sentence. */
  get leftOut(): string | undefined {
    const why = this.#reason;
    return why && `${why.slice(0, 1).toUpperCase()}${why.slice(1)}.`;
  }

  /** Removes the private copy. */
  close(): void {
    if (this.#copy !== undefined) this.ocr.remove(this.#copy.file);
  }

  /** Reads a page, unless it was read before. */
  async #read(number: number, read: () => Promise<OcrPage>): Promise<string | undefined> {
    const { program, tools } = this.ocr;
    const store = this.isStored ? tools.pages : undefined;
    try {
      const key = store && (await this.#keyOf(number));
      let page = key === undefined ? undefined : store?.read(key);
      if (page === undefined) {
        page = await read();
        if (key !== undefined) store?.write(key, page);
      }
      this.ocr.add(page);
      return page.text;
    } catch (error) {
      if (!(error instanceof ProgramError)) throw error;
      if (isUnusable(error)) throw unusable(error);
      const limit = formatDuration(program.pageTimeoutMs);
      const isSlow = error.kind === 'timeout';
      const why = isSlow
        ? `OCR of a page takes longer than ${limit}`
        : `OCR of a page fails, because ${error.message}`;
      const code = isSlow ? 'DOCUMENT_TOO_LARGE' : 'DOCUMENT_BROKEN';
      tools.lacks.add('time');
      return this.#skip(number, why, new MomentaryError(code, { why }));
    }
  }

  /** Returns the key of a page in the store. */
  async #keyOf(number: number): Promise<string> {
    const { dpi, findsRotation, languages } = this.ocr.program;
    const sha256 =
      this.kind === 'picture'
        ? hash('sha256', await this.bytes(), 'hex')
        : (await this.copy()).sha256;
    const drawnAt = this.kind === 'pdf' ? dpi : undefined;
    const parts = [FORMAT, sha256, number, languages, findsRotation, drawnAt];
    return hash('sha256', JSON.stringify(parts), 'hex');
  }

  #skip(number: number, why: string, failure: DocumentError): undefined {
    this.unread.push(number);
    this.ocr.addUnread();
    this.#failure ??= failure;
    this.#reason ??= why;
    return undefined;
  }
}

const UNUSABLE_HINT =
  'Check it with `tesseract --list-langs`, then run `peersync retry PATH`; or set ' +
  '`documents.ocr` to "off".';

/** A program that could not be executed, or a language whose data are damaged. */
const UNUSABLE = /ended with code 12[67]\b|couldn't load any languages/i;

/** Whether a program fails for every page. */
function isUnusable({ kind, message }: ProgramError): boolean {
  return kind === 'not started' || UNUSABLE.test(message);
}

function unusable(error: ProgramError): DocumentError {
  const values = { why: 'a scan', missing: `OCR does not work: ${error.message}` };
  return new DocumentError('NO_OCR', values, { hint: UNUSABLE_HINT, cause: error });
}

/** Returns why a picture is too large for OCR; undefined if it is not. */
function excess({ height, width }: PixelSize): string | undefined {
  if (width * height > MAX_PIXELS)
    return `it has ${Math.round((width * height) / 1e6)} million pixels, and OCR reads up to ${MAX_PIXELS / 1e6} million`;
  if (Math.max(width, height) > MAX_SIDE)
    return `a side of it has more than ${MAX_SIDE} pixels, which is too much for OCR`;
  return undefined;
}

const AGAIN = 'The file is then taken up by itself.';
const INSTALL_DRAWING = `Install it: \`sudo apt-get install poppler-utils\`. ${AGAIN}`;
const INSTALL_LANGUAGE = `Install one: \`sudo apt-get install tesseract-ocr-eng\`. ${AGAIN}`;
const SWITCH_ON = 'Set it to "auto" and run `peersync reload`; or keep the file out with `ignore`.';

/**
 * Returns the error of a file that needs OCR where there is none.
 *
 * @param what people call the file: `a scan`
 * @param programs undefined if no programs may be used
 */
export function noOcr(what: string, programs: Programs | undefined): DocumentError {
  const { missing, hint } = lackOf(programs);
  return new DocumentError('NO_OCR', { why: what, missing }, { hint });
}

/** Returns why files that need OCR are not read, as a part of a sentence. */
export function lackOf(programs: Programs | undefined): {
  readonly missing: string;
  /** Undefined if OCR has to be installed. */
  readonly hint: string | undefined;
} {
  const { noOcr: reason, ocr } = programs ?? {};
  if (ocr !== undefined) return { missing: 'pdftoppm is missing', hint: INSTALL_DRAWING };
  if (reason === 'off') return { missing: '`documents.ocr` is "off"', hint: SWITCH_ON };
  if (reason === 'no language')
    return { missing: 'no language of OCR is installed', hint: INSTALL_LANGUAGE };
  return { missing: 'no OCR is installed', hint: undefined };
}

/** Formats numbers of pages in ascending order: `3, 7-9`. */
export function pageList(numbers: readonly number[]): string {
  const ranges: [first: number, last: number][] = [];
  for (const number of numbers) {
    const range = ranges.at(-1);
    if (range !== undefined && number === range[1] + 1) range[1] = number;
    else ranges.push([number, number]);
  }
  return ranges
    .map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`))
    .join(', ');
}
