import { closeSync, fstatSync, openSync, readSync, rmSync } from 'node:fs';
import { systemClock } from '../../lib/clock.js';
import type { ExtractedBy } from '../../lib/file.js';
import { counted, numberText } from '../../lib/text.js';
import type { OcrPage } from '../page-store.js';
import { meanConfidence, ocrPage, ocrWords } from './ocr-text.js';
import type { OcrProgram } from './programs.js';
import { ProgramError, type Tools } from './tools.js';

/** The size of a page of a PDF, in points (1/72 inch). */
export interface PageSize {
  readonly width: number;
  readonly height: number;
}

/** A picture, or a page of one. */
export type Picture =
  | { readonly bytes: Uint8Array }
  /** A private file. `page` of a TIFF counts from 0. */
  | { readonly file: string; readonly page?: number };

const POINTS_PER_INCH = 72;
/** Maximum number of pixels of a drawn page. A page of 300 dpi in A4 has 8.7 million. */
const MAX_PIXELS = 40_000_000;
/** Maximum size of the file of a drawn page, in bytes. Its sides are rounded up. */
const MAX_DRAWN_BYTES = 44_000_000;
/** Maximum number of pixels of a side of a picture. Tesseract refuses larger ones. */
export const MAX_SIDE = 32_767;
/** Maximum size of the words of a page with their places, in bytes. */
const MAX_TSV_BYTES = 32 * 2 ** 20;
/** Options of tesseract: what is found on a page besides its words. */
const LAYOUT = ['--psm', '3'];
const LAYOUT_AND_ROTATION = ['--psm', '1'];
/** Mean confidence from which words are certain. Those of a page upside down have less than 30. */
const CERTAIN = 70;
/** A page in which no two pixels differ by this many of the 256 shades is blank. */
const CONTRAST = 32;
/** Size of the pieces in which that is looked for, in bytes. Few pages need more than three. */
const PIECE_BYTES = 256 * 1024;

/** The name of the private file of a drawn page. */
const DRAWN = 'page.pgm';

/** A page without anything on it. */
const BLANK: OcrPage = { text: '', words: 0, confidence: 0 };

/**
 * OCR by tesseract, for one document and those that are nested in it: they share the number of
 * pages that are read (`maxPages`).
 */
export class Ocr {
  /** Number of pages that were to be read, the blank ones and those from the store included. */
  #pages = 0;
  /** Number of pages that were beyond `maxPages`. */
  #leftOut = 0;
  /** Number of pages that could not be read. */
  #unread = 0;
  /** Number of private files so far. */
  #files = 0;
  /** Number of pages on which there was something. */
  #readPages = 0;
  #words = 0;
  /** The confidences of all words, added up. */
  #confidences = 0;

  constructor(
    readonly tools: Tools,
    readonly program: OcrProgram,
  ) {}

  /** Whether pages of PDFs can be drawn. */
  get drawsPages(): boolean {
    return this.program.pdftoppm !== undefined;
  }

  /** Returns whether another page may be read. Each call counts as one page. */
  takePage(): boolean {
    const isTaken = this.#pages < this.program.maxPages;
    if (isTaken) this.#pages += 1;
    else this.#leftOut += 1;
    return isTaken;
  }

  /** Adds a page that was read, or was read earlier, to the record. */
  add({ confidence, text, words }: OcrPage): void {
    if (text === '') return;
    this.#readPages += 1;
    this.#words += words;
    this.#confidences += confidence * words;
  }

  /** Records that a page could not be read. */
  addUnread(): void {
    this.#unread += 1;
  }

  /**
   * Returns the record of the outermost document with that of all pages.
   *
   * @param read its own record. An archive or a message has no pages itself.
   */
  found(read: Partial<ExtractedBy> = {}): Partial<ExtractedBy> {
    const most = numberText(this.program.maxPages);
    const sentences = [read.leftOut];
    if (this.#leftOut > 0)
      sentences.push(
        `OCR left out ${counted(this.#leftOut, 'page')}, because \`documents.maxPages\` is ${most}.`,
      );
    if (this.#unread > 0 && read.pages === undefined)
      sentences.push(`OCR could not read ${counted(this.#unread, 'page')} of the files in it.`);
    const leftOut = sentences.filter(Boolean).join(' ');
    return {
      ...read,
      ...(this.#pages > 0 && { ocrPages: this.#readPages }),
      ...(this.#words > 0 && { confidence: Math.round(this.#confidences / this.#words) }),
      ...(leftOut !== '' && { leftOut }),
    };
  }

  /**
   * Writes a private file for the programs. It is removed after the document, or by `remove`.
   * @returns its absolute path
   */
  file(bytes: Uint8Array, extension: string): string {
    this.#files += 1;
    return this.tools.file(`scan-${this.#files}${extension}`, bytes);
  }

  remove(file: string): void {
    rmSync(file, { force: true });
  }

  /**
   * Draws and reads a page of a PDF.
   *
   * @param number counts from 1
   * @throws ProgramError
   */
  async readPageOfPdf(file: string, number: number, size: PageSize): Promise<OcrPage> {
    const { dpi: most, pageTimeoutMs, pdftoppm = '' } = this.program;
    const dpi = resolutionOf(size, most);
    const startedAt = systemClock.now();
    try {
      const call = {
        program: pdftoppm,
        // The crop box is the part of a page that people see.
        args: ['-gray', '-cropbox', '-r', `${dpi}`, '-f', `${number}`, '-l', `${number}`, file],
        maxOutputBytes: MAX_DRAWN_BYTES,
        timeoutMs: pageTimeoutMs,
      };
      const drawn = await this.tools.runToFile(call, DRAWN);
      const isBlank = isBlankPage(drawn);
      if (isBlank === undefined) this.#drewNothing();
      if (isBlank) return BLANK;
      const leftMs = Math.max(1, pageTimeoutMs - (systemClock.now() - startedAt));
      return await this.#recognise({ file: drawn }, leftMs, ['--dpi', `${dpi}`]);
    } finally {
      this.remove(this.tools.pathOf(DRAWN));
    }
  }

  /**
   * Called when a drawn page is not whole. pdftoppm takes no notice of a full disk, on which this
   * process can write nothing, either.
   *
   * @throws ShortageError if the disk is full
   * @throws ProgramError otherwise
   */
  #drewNothing(): never {
    this.remove(this.file(Buffer.alloc(PIECE_BYTES), '.probe'));
    throw new ProgramError('failed', 'pdftoppm: it drew nothing');
  }

  /** @throws ProgramError */
  async readPicture(picture: Picture): Promise<OcrPage> {
    return await this.#recognise(picture, this.program.pageTimeoutMs, []);
  }

  /**
   * Reads a picture. Only if its words are doubtful, it may be upside down: finding out takes a
   * fifth of the time.
   */
  async #recognise(
    picture: Picture,
    timeoutMs: number,
    options: readonly string[],
  ): Promise<OcrPage> {
    const startedAt = systemClock.now();
    const words = ocrWords(await this.#run(picture, timeoutMs, [...LAYOUT, ...options]));
    const isDoubtful = words.length > 0 && meanConfidence(words) < CERTAIN;
    if (!isDoubtful || !this.program.findsRotation) return ocrPage(words);
    const tookMs = systemClock.now() - startedAt;
    // The second reading takes a little longer than the first one.
    if (timeoutMs < 3 * tookMs) return ocrPage(words);
    try {
      const again = [...LAYOUT_AND_ROTATION, ...options];
      const turned = ocrWords(await this.#run(picture, timeoutMs - tookMs, again));
      return ocrPage(meanConfidence(turned) > meanConfidence(words) ? turned : words);
    } catch (error) {
      if (error instanceof ProgramError) return ocrPage(words);
      throw error;
    }
  }

  /** Runs tesseract. @returns the words, as TSV */
  async #run(picture: Picture, timeoutMs: number, options: readonly string[]): Promise<string> {
    const { languages, tesseract } = this.program;
    const isFile = 'file' in picture;
    const page =
      isFile && picture.page !== undefined ? ['-c', `tessedit_page_number=${picture.page}`] : [];
    const input = isFile ? picture.file : 'stdin';
    const tsv = await this.tools.run({
      program: tesseract,
      args: [input, 'stdout', '-l', languages, ...options, ...page, 'tsv'],
      // With several threads, a page takes seven times as long.
      env: { OMP_THREAD_LIMIT: '1' },
      ...(!isFile && { input: picture.bytes }),
      maxOutputBytes: MAX_TSV_BYTES,
      timeoutMs,
    });
    return tsv.toString();
  }
}

/** Returns the OCR of a document that is nested in no other one; undefined if there is none. */
export function ocrOf(tools: Tools | undefined): Ocr | undefined {
  const program = tools?.programs.ocr;
  return tools !== undefined && program !== undefined ? new Ocr(tools, program) : undefined;
}

/**
 * Returns the resolution in which a page is drawn, in dots per inch: lower than the usual one for a
 * page that would have too many pixels.
 */
export function resolutionOf({ height, width }: PageSize, most: number): number {
  const area = (width * height) / POINTS_PER_INCH ** 2;
  const side = Math.max(width, height) / POINTS_PER_INCH;
  return Math.max(1, Math.floor(Math.min(most, Math.sqrt(MAX_PIXELS / area), MAX_SIDE / side)));
}

/**
 * Returns whether nothing is on a page; undefined if it is not a whole picture in shades of grey.
 *
 * @param path a PGM
 */
function isBlankPage(path: string): boolean | undefined {
  const file = openSync(path, 'r');
  try {
    const piece = Buffer.alloc(PIECE_BYTES);
    let length = readSync(file, piece, 0, PIECE_BYTES, null);
    const header = /^P5\s+(\d+)\s+(\d+)\s+255\s/.exec(piece.toString('latin1', 0, 64));
    if (header === null) return undefined;
    const [{ length: begin }, width, height] = header;
    if (fstatSync(file).size < begin + Number(width) * Number(height)) return undefined;
    let [darkest, lightest] = [255, 0];
    for (let at = begin; length > 0; at = 0) {
      for (; at < length; at += 1) {
        const shade = piece[at] ?? 0;
        if (shade < darkest) darkest = shade;
        if (shade > lightest) lightest = shade;
      }
      if (lightest - darkest >= CONTRAST) return false;
      length = readSync(file, piece, 0, PIECE_BYTES, null);
    }
    return true;
  } finally {
    closeSync(file);
  }
}
