import { createHash, hash } from 'node:crypto';
import {
  type FileHandle,
  mkdir,
  open,
  opendir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  utimes,
} from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { z } from 'zod';
import type { Clock } from '../lib/clock.js';
import { systemCode } from '../lib/errors.js';
import { extractedBy } from '../lib/extracted-by.js';
import { type ExtractedBy, type FileStat, fileStat } from '../lib/file.js';
import { readBuild, VERSION } from '../lib/process.js';
import { nextTurn } from '../lib/slices.js';
import { OCR_PAGE_EXTENSION } from './page-store.js';
import { REFUSAL_EXTENSION, REFUSAL_SCHEMA, type StoredRefusal } from './refusals.js';
import { isTitledByName } from './signatures.js';

/** The text of a document as a page, in a file of the cache. */
export interface StoredPage {
  readonly file: string;
  readonly stat: FileStat;
  /** sha256 of the page. */
  readonly digest: string;
  readonly extracted: ExtractedBy;
}

/** The result of reading a document, as the cache has it. */
export interface StoredExtract {
  /** Number of words, counted up to 100; undefined if its reader could not count them. */
  readonly words: number | undefined;
  /** The things that were missing: with one of them, more would be found. See `Lack`. */
  readonly lacks?: readonly string[] | undefined;
  /** Its text; undefined if the document itself is sent. */
  readonly page?: StoredPage;
}

/** The result of reading a document, to be stored. */
export interface NewExtract extends Pick<StoredExtract, 'lacks'> {
  readonly words: number;
  readonly page?: Pick<StoredPage, 'extracted'> & { readonly bytes: Uint8Array };
}

/** The extensions of the files of an entry. */
const PAGE = '.html';
const RECORD = '.json';
const TEMPORARY = '.tmp';
/** The files whose time of modification is when they were last used. */
const USED_FILES: ReadonlySet<string> = new Set([RECORD, REFUSAL_EXTENSION, OCR_PAGE_EXTENSION]);

const count = z.number().int().nonnegative();
const RECORD_SCHEMA = z.object({
  key: z.string(),
  words: count,
  lacks: z.array(z.string()).optional(),
  page: z
    .object({
      size: count,
      digest: z.string(),
      extracted: extractedBy,
    })
    .optional(),
});
type Stored = z.output<typeof RECORD_SCHEMA>;

/** Files take whole blocks of this many bytes on most disks. */
const BLOCK_BYTES = 4096;
/** Size of the pieces in which a page is written, in bytes. */
const PIECE_BYTES = 1024 * 1024;
/** A full cache is emptied to this share of its limit, so that not every new page empties it. */
const KEPT_SHARE = 0.9;
/** Number of files of the cache that are looked at together. */
const STATS_AT_ONCE = 64;
/** Keys that begin with the same characters are in one slice: of 100,000 keys, 400. */
const SLICE_CHARACTERS = 2;
/**
 * Interval at which the files are counted anew while entries are stored, in ms: other processes
 * store pages of scans. Eight processes store about 100 MB in this time.
 */
const COUNT_MS = 10 * 60_000;

/**
 * The texts of documents on disk, so that no document is read twice: not after a restart, and not
 * under another name.
 *
 * An entry is `KEY.json`, and the page beside it (`KEY.html`) if the text of the document is sent.
 * A document of which there is nothing to send has `KEY.none` instead. The record is written last,
 * and its time of modification is when the entry was last used. All of it can be read again from
 * the documents, so nothing is synced. A torn entry shows by its size or its digest: whoever reads
 * the page compares its digest, and has it stored again.
 *
 * In the same directory, a `PageStore` keeps the pages of scans, each in one file.
 *
 * When the files take more than the limit, those that were not used for longest are removed.
 */
export class ExtractCache {
  /** Bytes on disk; undefined until they were counted. */
  #bytes: number | undefined;
  /** Time when they were counted, in ms since the epoch. */
  #countedAt = 0;
  /** The end of the last change: changes are made one after the other. */
  #lastChange: Promise<unknown> = Promise.resolve();

  /**
   * @param directory is made when it is needed; the one above it must be there
   * @param maxBytes returns the most bytes on disk
   */
  constructor(
    private readonly directory: string,
    private readonly clock: Clock,
    private readonly maxBytes: () => number,
  ) {}

  /** Returns an entry; undefined if there is none, or it is torn. */
  async find(key: string): Promise<StoredExtract | StoredRefusal | undefined> {
    return (await this.#findExtract(key)) ?? (await this.#findRefusal(key));
  }

  async #findExtract(key: string): Promise<StoredExtract | undefined> {
    const record = await this.#readRecord(key, RECORD, RECORD_SCHEMA);
    if (record === undefined) return undefined;
    await this.#touch(key, RECORD);
    return await this.#extractOf(key, record).catch(() => undefined);
  }

  /** @throws Error if its page is not there */
  async #extractOf(key: string, { lacks, page, words }: Omit<Stored, 'key'>) {
    if (page === undefined) return { words, lacks };
    const { digest, extracted, size } = page;
    // The page is opened at a path without links.
    const file = await realpath(this.#fileOf(key, PAGE));
    const found = fileStat(await stat(file));
    if (found.size !== size) throw new Error('the page has another size');
    return { words, lacks, page: { file, stat: found, digest, extracted } };
  }

  async #findRefusal(key: string): Promise<StoredRefusal | undefined> {
    const record = await this.#readRecord(key, REFUSAL_EXTENSION, REFUSAL_SCHEMA);
    if (record !== undefined) await this.#touch(key, REFUSAL_EXTENSION);
    return record?.refusal;
  }

  /** @throws Error if the disk does not take it */
  async store(key: string, { lacks, page, words }: NewExtract): Promise<StoredExtract> {
    return await this.#change(async () => {
      const stored = page && {
        size: page.bytes.length,
        digest: await this.#write(key, PAGE, page.bytes),
        extracted: page.extracted,
      };
      const record: Stored = { key, words, lacks: lacks && [...lacks], page: stored };
      await this.#write(key, RECORD, Buffer.from(JSON.stringify(record)));
      await this.#touch(key, RECORD);
      const extract = await this.#extractOf(key, record);
      await this.#limit();
      return extract;
    });
  }

  /**
   * Stores why there is nothing to send of a document, in place of a text that was stored.
   *
   * @throws Error if the disk does not take it
   */
  async storeRefusal(key: string, refusal: StoredRefusal): Promise<void> {
    await this.#change(async () => {
      await this.#remove(key);
      await this.#write(key, REFUSAL_EXTENSION, Buffer.from(JSON.stringify({ key, refusal })));
      await this.#touch(key, REFUSAL_EXTENSION);
      await this.#limit();
    });
  }

  #fileOf(key: string, extension: string): string {
    return join(this.directory, `${key}${extension}`);
  }

  async #change<T>(change: () => Promise<T>): Promise<T> {
    const turn = this.#lastChange.then(change);
    this.#lastChange = turn.catch(() => {});
    return await turn;
  }

  /** Creates a file. A killed process may have left it, and the directory may be missing. */
  async #create(path: string): Promise<FileHandle> {
    const create = async () => await open(path, 'wx', 0o600);
    try {
      return await create();
    } catch (error) {
      const code = systemCode(error);
      if (code === 'ENOENT') await mkdir(this.directory, { mode: 0o700 });
      else if (code === 'EEXIST') await rm(path);
      else throw error;
      return await create();
    }
  }

  /** Records that an entry was used. */
  async #touch(key: string, extension: string): Promise<void> {
    const now = this.clock.now() / 1000;
    await utimes(this.#fileOf(key, extension), now, now).catch(() => {});
  }

  async #readRecord<T extends { readonly key: string }>(
    key: string,
    extension: string,
    schema: z.ZodType<T>,
  ): Promise<T | undefined> {
    try {
      const record = schema.parse(JSON.parse(await readFile(this.#fileOf(key, extension), 'utf8')));
      return record.key === key ? record : undefined;
    } catch {
      // It is torn or not there, and the document is read again.
      return undefined;
    }
  }

  /** Replaces a file. @returns sha256 of its bytes */
  async #write(key: string, extension: string, bytes: Uint8Array): Promise<string> {
    const temporary = this.#fileOf(key, TEMPORARY);
    const sha256 = createHash('sha256');
    try {
      const file = await this.#create(temporary);
      try {
        for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
          const piece = bytes.subarray(at, at + PIECE_BYTES);
          sha256.update(piece);
          await file.writeFile(piece);
        }
      } finally {
        await file.close();
      }
      await rename(temporary, this.#fileOf(key, extension));
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {});
      throw error;
    }
    if (this.#bytes !== undefined) this.#bytes += onDisk(bytes.length);
    return sha256.digest('hex');
  }

  async #remove(key: string): Promise<void> {
    const extensions = [RECORD, PAGE, OCR_PAGE_EXTENSION, REFUSAL_EXTENSION, TEMPORARY];
    const files = extensions.map((extension) => this.#fileOf(key, extension));
    await Promise.all(files.map(async (file) => await rm(file, { force: true })));
  }

  /** Removes entries, if there may be too many bytes. */
  async #limit(): Promise<void> {
    const isRecent = this.clock.now() - this.#countedAt < COUNT_MS;
    if (this.#bytes !== undefined && isRecent && this.#bytes <= this.maxBytes()) return;
    this.#bytes = await this.#makeRoom();
    this.#countedAt = this.clock.now();
  }

  /**
   * Removes what a killed process left and, if the limit is exceeded, the entries that were not
   * used for longest.
   *
   * @returns the bytes on disk afterwards
   */
  async #makeRoom(): Promise<number> {
    const slices: Entry[][] = [];
    let bytes = 0;
    for (const entries of await this.#slices()) {
      const slice = [...entries.values()].sort((a, b) => b.usedAt - a.usedAt);
      for (const entry of slice) bytes += entry.bytes;
      slices.push(slice);
      await nextTurn();
    }
    const most = bytes > this.maxBytes() ? KEPT_SHARE * this.maxBytes() : bytes;
    for (;;) {
      const oldest = takeOldest(slices);
      if (oldest === undefined || (bytes <= most && oldest.usedAt > 0)) return bytes;
      await this.#remove(oldest.key);
      bytes -= oldest.bytes;
    }
  }

  /**
   * Returns the entries by key, in slices: to sort all together, or to let one map of them grow,
   * would hold the event loop.
   */
  async #slices(): Promise<Iterable<ReadonlyMap<string, Entry>>> {
    const slices = new Map<string, Map<string, Entry>>();
    const look = async (names: readonly string[]) => {
      const found = await Promise.all(
        names.map(async (name) => await stat(join(this.directory, name)).catch(() => undefined)),
      );
      for (const [i, name] of names.entries()) {
        const file = found[i];
        if (file?.isFile() !== true) continue;
        const extension = extname(name);
        const key = basename(name, extension);
        const begin = key.slice(0, SLICE_CHARACTERS);
        const slice = slices.get(begin) ?? new Map<string, Entry>();
        slices.set(begin, slice);
        const entry = slice.get(key) ?? { key, bytes: 0, usedAt: 0 };
        slice.set(key, entry);
        entry.bytes += onDisk(file.size);
        // The page of a document without its record, and a temporary file, stay 0 and go first.
        if (USED_FILES.has(extension)) entry.usedAt = Math.max(entry.usedAt, file.mtimeMs);
      }
    };
    let names: string[] = [];
    for await (const { name } of await opendir(this.directory)) {
      names.push(name);
      if (names.length < STATS_AT_ONCE) continue;
      await look(names);
      names = [];
    }
    await look(names);
    return slices.values();
  }
}

/** The files of one entry. */
interface Entry {
  readonly key: string;
  bytes: number;
  /** In ms since the epoch; 0 if there is no record. */
  usedAt: number;
}

/** Takes the entry that was not used for longest. Each slice has its own at its end. */
function takeOldest(slices: readonly Entry[][]): Entry | undefined {
  let oldest: Entry[] | undefined;
  for (const slice of slices) {
    const usedAt = slice.at(-1)?.usedAt ?? Number.POSITIVE_INFINITY;
    if (usedAt < (oldest?.at(-1)?.usedAt ?? Number.POSITIVE_INFINITY)) oldest = slice;
  }
  return oldest?.pop();
}

/** This program. Another one may find other words, or another title. */
const PROGRAM = JSON.stringify([VERSION, readBuild().commit, readBuild().modified]);

/**
 * Returns the key of an entry.
 *
 * @param sha256 of the document
 * @param name the name of its file. Only the extension counts: with the first bytes, it decides
 *   which reader reads the document. The whole name counts if it is the title.
 * @param variant what is read in it
 */
export function extractKey(sha256: string, name: string, variant: string): string {
  const counted = isTitledByName(name) ? name : extname(name).toLowerCase();
  return hash('sha256', JSON.stringify([sha256, counted, variant, PROGRAM]), 'hex');
}

/** Returns how many bytes a file of this size takes on most disks. */
function onDisk(size: number): number {
  return Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
}
