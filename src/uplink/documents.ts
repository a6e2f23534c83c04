import { createHash, type Hash, hash } from 'node:crypto';
import { basename } from 'node:path';
import type { NewExtract, StoredExtract, StoredPage } from '../content/extracts.js';
import {
  changeOf,
  pieces,
  type ReadOrder,
  type Refusal,
  readWhole,
  refusalFor,
} from '../content/file-reader.js';
import {
  configuredCommand,
  helperExtension,
  type Lack,
  type Programs,
  programsFor,
} from '../content/helpers/programs.js';
import { NOT_TEXT } from '../content/helpers/readable.js';
import type { PageProgress } from '../content/readers/document-reader.js';
import { documentKind, HEAD_BYTES } from '../content/signatures.js';
import { NO_WORDS } from '../content/words.js';
import type { DocumentKind, Encoding, FileStat } from '../lib/file.js';
import type { Rewriting } from '../lib/rewriting.js';
import type { ContentRules } from '../peer/dialects/dialect.js';
import { type EncodedText, encode, type Text, type TextSource } from '../peer/form.js';
import type { ItemKey } from '../state/entries.js';
import type { Failure, Version } from '../state/entry.js';
import { HTML, rewritten, type UploadPlan, uploadPlanOf } from './upload-plan.js';

/** Why nothing of a file can be sent. */
export type Unsendable =
  /** A text without a word, or a document in which its reader found none. */
  | { readonly kind: 'wordless'; readonly reader?: string }
  /**
   * A document that cannot be read. `isMomentary`: another reading may end otherwise, because this
   * one failed for lack of time or memory.
   */
  | {
      readonly kind: 'refused';
      readonly failure: Failure;
      readonly isMomentary?: boolean | undefined;
    }
  /** The file is not in the expected version any more: it has to be looked at again. */
  | { readonly kind: 'stale' }
  /**
   * It is larger than the peer accepts in one document. `textBytes`: the size of the text, if that
   * is sent instead of the file.
   */
  | { readonly kind: 'tooLarge'; readonly textBytes?: number }
  | { readonly kind: 'unreadable'; readonly code: string };

/** The result of reading a file for a push. */
export type Packed =
  | {
      readonly kind: 'content';
      readonly text: Text;
      /** Size of the content that is sent, before it is encoded for the request, in bytes. */
      readonly size: number;
      /** sha256 of the content that is sent, before it is encoded for the request. */
      readonly digest: string;
      /** Media type, if the peer accepts files; '' otherwise. */
      readonly type: string;
      /** Number of words, counted up to 100; undefined if they cannot be counted here. */
      readonly words: number | undefined;
      /** Only for a document whose text is sent. */
      readonly extracted?: StoredPage['extracted'];
      /** Only for a document of which another reading may find more. */
      readonly lacks?: StoredExtract['lacks'];
    }
  /** A document that was not extracted, or whose page is damaged or gone: it is extracted first. */
  | { readonly kind: 'notExtracted' }
  | Unsendable;

/** The result of extracting a document. */
export type Extracted =
  | ({ readonly kind: 'extracted' } & NewExtract)
  | Exclude<Unsendable, { kind: 'tooLarge' }>;

/** A file to be read and encoded. */
export interface PackFile {
  readonly file: string;
  /** See `ReadOrder`. */
  readonly linksWithin?: string | undefined;
  readonly version: Version;
  /** The last modification, as the peer is told it, in ms. @default that of the version */
  readonly lastModified?: number;
  /** The text that was extracted from a document, or its number of words. */
  readonly extract?: StoredExtract | undefined;
}

/** Files to be read and encoded. */
export interface PackOrder {
  readonly rules: ContentRules;
  readonly files: readonly PackFile[];
}

/** A document to be extracted. */
export interface DocumentOrder extends Omit<PackFile, 'extract'> {
  readonly rules: ContentRules;
  /**
   * The text of the document as a page, or only its number of words. `textIfScanned`: its text if a
   * page of it was read by OCR, and its number of words otherwise.
   */
  readonly wanted: 'text' | 'words' | 'textIfScanned';
  /** The file as other machines know it. Without it, the document is read on this machine. */
  readonly item?: ItemKey;
  readonly programs: Programs;
}

/** The form in which a document is sent. */
export interface DocumentForm {
  /** `file`: as it is, and it is not read before. */
  readonly form: DocumentOrder['wanted'] | 'file';
  /** The kind of a document that the peer accepts as it is, too. */
  readonly kind?: DocumentKind | undefined;
  /** What its text depends on besides its content; see `programsFor`. */
  readonly programs: string;
  /** The program without which it is sent as it is. */
  readonly lacks?: Lack;
}

/** The functions that read files. */
export interface Packers {
  /** Reads and encodes small files, all in one call. */
  readonly pack: (order: PackOrder) => Promise<readonly Packed[]>;
  /**
   * Reads a document in a process of its own.
   *
   * @param onProgress called at most a few times a second while a document with pages is read
   */
  readonly extractDocument: (
    order: DocumentOrder,
    onProgress?: (progress: PageProgress) => void,
  ) => Promise<Extracted>;
}

/** Files up to this many bytes are read whole; larger ones are streamed. */
const MAX_WHOLE_BYTES = 256 * 1024;

/**
 * Reads and encodes the files of a batch: small ones together in a thread, large ones each by
 * itself. A document was extracted before: its page is read like a text, if the document itself is
 * still the one that was read.
 *
 * @param onProgress called after each file that takes long
 */
export async function packAll(
  pack: Packers['pack'],
  { files, rules }: PackOrder,
  onProgress: () => void = () => {},
): Promise<readonly Packed[]> {
  const changes = await Promise.all(
    files.map((each) => each.extract?.page && changeOf({ ...each, stat: each.version })),
  );
  const isSmall = ({ extract, version }: PackFile, i: number) =>
    changes[i] === undefined && (extract?.page?.stat ?? version).size <= MAX_WHOLE_BYTES;
  const small = (await pack({ rules, files: files.filter(isSmall) })).values();
  const packed: Packed[] = [];
  for (const [i, each] of files.entries()) {
    const change = changes[i];
    if (change !== undefined) packed.push(refused(change));
    else if (isSmall(each, i)) packed.push(small.next().value ?? STALE);
    else packed.push(await streamed(each, rules));
    onProgress();
  }
  return packed;
}

/**
 * Returns the form in which a document is sent. Its text is sent if the folder asks for it, the
 * peer accepts only text, or the peer reads this kind badly. Scans are sent as text if OCR is
 * installed. A peer that accepts files gets those that nothing here reads as they are.
 *
 * @param asksForText whether the folder asks for the text
 * @throws errors that `refusalFor` explains
 */
export async function formOf(
  { file, linksWithin, version }: PackFile,
  asksForText: boolean,
  { convertHere: badlyRead, takesBinary }: ContentRules,
  programs: Programs,
): Promise<DocumentForm> {
  const name = basename(file);
  const head = await headOf({ file, stat: version, linksWithin });
  const isConfigured = configuredCommand(name, programs) !== undefined;
  const kind = isConfigured ? 'helper' : documentKind(name, head);
  const extension = helperExtension(name, head, programs);
  const { commands, ocr } = programs;
  const as = (form: DocumentForm['form']) => ({
    form,
    programs: programsFor({ kind, extension, onlyWords: form === 'words' }, programs),
  });
  if (asksForText || !takesBinary || isConfigured) return as('text');
  if (kind === 'helper') {
    const isThere = commands[extension]?.program !== undefined;
    return isThere ? { ...as('text'), kind } : { ...as('file'), kind, lacks: extension as Lack };
  }
  if (kind !== undefined && badlyRead.includes(kind)) return { ...as('text'), kind };
  if (kind === 'picture' && ocr === undefined) return { ...as('file'), kind, lacks: 'ocr' };
  const mayBeScan = kind === 'picture' || (kind === 'pdf' && ocr?.pdftoppm !== undefined);
  return { ...as(mayBeScan ? 'textIfScanned' : 'words'), kind };
}

/** The bytes that are sent for a file, and how. */
interface Source {
  readonly order: ReadOrder;
  readonly sha256: string;
  /** @param head the first bytes */
  readonly newPlan: (head: Uint8Array) => UploadPlan;
  /** Returns what it means that the bytes cannot be read, or are others. */
  readonly refused: (refusal: Refusal) => Packed;
}

/** @returns why nothing is read, if so */
function sourceOf(
  { extract, file, linksWithin, version }: PackFile,
  rules: ContentRules,
): Source | Packed {
  const { encoding, sha256 } = version;
  const order = { file, stat: version, linksWithin };
  if (encoding === 'document' && extract === undefined) return NOT_EXTRACTED;
  if (extract?.page === undefined) {
    // A file that was read before the dialect was known may be one that the peer does not accept;
    // the next scan skips it.
    if (cannotTravel(encoding, rules) !== undefined) return STALE;
    const newPlan = (head: Uint8Array) => uploadPlanOf(file, encoding, head, rules);
    return isTooLarge(version, rules) ? TOO_LARGE : { order, sha256, newPlan, refused };
  }
  const { digest, file: page, stat } = extract.page;
  if (isTooLarge(stat, rules)) return { kind: 'tooLarge', textBytes: stat.size };
  const type = rules.takesBinary ? `${HTML}; charset=UTF-8` : '';
  return {
    order: { file: page, stat },
    sha256: digest,
    newPlan: () => ({ type, rewriting: undefined, words: undefined }),
    refused: () => NOT_EXTRACTED,
  };
}

export function isTooLarge({ size }: FileStat, { maxBytes = size }: ContentRules): boolean {
  return size > maxBytes;
}

/**
 * Reads and encodes files, each in its expected version. Blocks while it reads: meant for a thread
 * of its own.
 */
export function pack({ rules, files }: PackOrder): readonly Packed[] {
  return files.map((each) => packOne(each, rules));
}

function packOne(each: PackFile, rules: ContentRules): Packed {
  const source = sourceOf(each, rules);
  if ('kind' in source) return source;
  const { newPlan, order, sha256 } = source;
  const bytes = readWhole(order);
  if (!Buffer.isBuffer(bytes)) return source.refused(bytes);
  if (hash('sha256', bytes, 'hex') !== sha256) return source.refused({ kind: 'raced' });
  const plan = newPlan(bytes);
  const text = rewritten(bytes, plan.rewriting);
  plan.words?.write(text);
  const digest = text === bytes ? sha256 : hash('sha256', text, 'hex');
  const { encoding } = rules;
  const encoded = { encoding, size: text.length, encoded: encode(text, encoding) };
  return contentOf(each, plan, encoded, digest);
}

export const STALE = { kind: 'stale' } as const;
const NOT_EXTRACTED: Packed = { kind: 'notExtracted' };
const TOO_LARGE: Packed = { kind: 'tooLarge' };

/** Returns the content to send, or `wordless` for a text without a word. */
function contentOf(
  { extract }: PackFile,
  { type, words: counter }: UploadPlan,
  text: EncodedText | TextSource,
  digest: string,
): Packed {
  const words = extract === undefined ? counter?.end() : extract.words;
  if (counter !== undefined && words === undefined) return { kind: 'wordless' };
  const { extracted } = extract?.page ?? {};
  return {
    kind: 'content',
    text,
    size: text.size,
    digest,
    type,
    words,
    ...(extracted && { extracted }),
    ...(extract?.lacks && { lacks: extract.lacks }),
  };
}

const NOTHING = new Uint8Array();
/** Size of the pieces in which a streamed file is converted, in bytes. */
const STREAMED_BYTES = 256 * 1024;

/**
 * Packs a file that is too large for memory. It is read twice: once to measure it and to check its
 * version, and again each time it is sent. Uses constant memory.
 */
async function streamed(each: PackFile, rules: ContentRules): Promise<Packed> {
  const source = sourceOf(each, rules);
  if ('kind' in source) return source;
  const { order } = source;
  try {
    const head = await headOf(order);
    const plan = source.newPlan(head);
    const [raw, sent] = [createHash('sha256'), createHash('sha256')];
    let size = 0;
    for await (const piece of rewrittenPieces(order, plan.rewriting, raw)) {
      size += piece.length;
      sent.update(piece);
      plan.words?.write(piece);
    }
    if (raw.digest('hex') !== source.sha256) return source.refused({ kind: 'raced' });
    const text = { size, chunks: () => rewrittenPieces(order, source.newPlan(head).rewriting) };
    return contentOf(each, plan, text, sent.digest('hex'));
  } catch (error) {
    return source.refused(refusalFor(error));
  }
}

/** Returns the first bytes of a file. The version is checked only when the whole file is read. */
async function headOf(order: ReadOrder): Promise<Uint8Array> {
  for await (const piece of pieces(order, HEAD_BYTES)) return Buffer.from(piece);
  return NOTHING;
}

async function* rewrittenPieces(
  order: ReadOrder,
  rewriting: Rewriting | undefined,
  raw?: Hash,
): AsyncGenerator<Uint8Array> {
  for await (const bytes of pieces(order, STREAMED_BYTES)) {
    raw?.update(bytes);
    yield rewriting?.piece(bytes) ?? bytes;
  }
  yield rewriting?.end() ?? NOTHING;
}

/** Returns what a refusal to read a file means for its push. */
export function refused(refusal: Refusal): Extract<Unsendable, { kind: 'stale' | 'unreadable' }> {
  return refusal.kind === 'unreadable' ? refusal : STALE;
}

/**
 * Returns why a file with this encoding cannot be sent to the peer: some peers accept only text.
 *
 * @param rules the rules of the peer's dialect; undefined until it is known, which refuses nothing
 * @param typeName what people call the type of the file, if that is known
 */
export function cannotTravel(
  encoding: Encoding,
  rules: ContentRules | undefined,
  typeName = 'not text',
): Failure | undefined {
  if (encoding === 'unknown-8bit')
    return {
      code: 'UNKNOWN_ENCODING',
      message: 'The file is text in an encoding that is not recognised: its words would be lost.',
      hint: 'Save it as UTF-8, or leave it; files of this kind are skipped.',
    };
  if (encoding !== 'binary' || rules === undefined || rules.takesBinary) return undefined;
  return {
    code: NOT_TEXT,
    message: `The file is ${typeName}. Nothing here reads text from it, and this peer takes only text.`,
    hint: 'Convert it to text or PDF, or leave it; files of this kind are skipped.',
  };
}

/** @param reader the reader that found no word in the document; undefined for a text */
export function withoutWords(reader?: string): Failure {
  return {
    code: NO_WORDS,
    message:
      reader === undefined
        ? 'There is no word in the file, so that no search could find it.'
        : 'There is no text in the file, so that no search could find it.',
    hint: 'It is taken as soon as there is text in it.',
  };
}
