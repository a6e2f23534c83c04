import { createHash, hash } from 'node:crypto';
import {
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
import { type FileStat, fileStat } from '../lib/file.js';
import { readBuild, VERSION } from '../lib/process.js';
import { isTitledByName } from './signatures.js';

/** The text of a document as a page, in a file of the cache. */
export interface StoredPage {
  readonly file: string;
  readonly stat: FileStat;
  /** sha256 of the page. */
  readonly digest: string;
  /** The reader that found the text, and the number of words that it found. */
  readonly extracted: { readonly reader: string; readonly words: number };
}

/** The result of reading a document, as the cache has it. */
export interface StoredExtract {
  /** Number of words, counted up to 100; undefined if its reader could not count them. */
  readonly words: number | undefined;
  /** Its text; undefined if the document itself is sent. */
  readonly page?: StoredPage;
}

/** The result of reading a document, to be stored. */
export interface NewExtract {
  readonly words: number;
  readonly page?: Pick<StoredPage, 'extracted'> & { readonly bytes: Uint8Array };
}

/** The extensions of the files of an entry. */
const PAGE = '.html';
const RECORD = '.json';
const TEMPORARY = '.tmp';

const count = z.number().int().nonnegative();
const RECORD_SCHEMA = z.object({
  key: z.string(),
  words: count,
  page: z
    .object({
      size: count,
      digest: z.string(),
      extracted: z.object({ reader: z.string(), words: count }),
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

/**
 * The texts of documents on disk, so that no document is read twice: not after a restart, and not
 * under another name.
 *
 * An entry is `KEY.json`, and the page beside it (`KEY.html`) if the text of the document is sent.
 * The record is written last, and its time of modification is when the entry was last used. All of
 * it can be read again from the documents, so nothing is synced. A torn entry shows by its size or
 * its digest: whoever reads the page compares its digest, and has it
 * stored again.
 *
 * When the files take more than the limit, those that were not used for longest are removed.
 */
export class ExtractCache {
  /** Bytes on disk; undefined until the directory was looked through. */
  #bytes: number | undefined;
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
  async find(key: string): Promise<StoredExtract | undefined> {
    const record = await this.#readRecord(key);
    if (record === undefined) return undefined;
    const { page, words } = record;
    const now = this.clock.now() / 1000;
    await utimes(this.#fileOf(key, RECORD), now, now).catch(() => {});
    if (page === undefined) return { words };
    const { digest, extracted, size } = page;
    try {
      // The page is opened at a path without links.
      const file = await realpath(this.#fileOf(key, PAGE));
      const found = fileStat(await stat(file));
      if (found.size !== size) return undefined;
      return { words, page: { file, stat: found, digest, extracted } };
    } catch {
      return undefined;
    }
  }

  /** @throws Error if the disk does not take it */
  async store(key: string, { page, words }: NewExtract): Promise<StoredExtract> {
    return await this.#change(async () => {
      await mkdir(this.directory, { mode: 0o700 }).catch((error: unknown) => {
        if (systemCode(error) !== 'EEXIST') throw error;
      });
      const stored = page && {
        size: page.bytes.length,
        digest: await this.#write(key, PAGE, page.bytes),
        extracted: page.extracted,
      };
      const record: Stored = { key, words, ...(stored && { page: stored }) };
      await this.#write(key, RECORD, Buffer.from(JSON.stringify(record)));
      const found = await this.find(key);
      if (found === undefined) throw new Error('what was written is not there');
      if (this.#bytes === undefined || this.#bytes > this.maxBytes())
        this.#bytes = await this.#makeRoom();
      return found;
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

  async #readRecord(key: string): Promise<Stored | undefined> {
    try {
      const record = RECORD_SCHEMA.parse(
        JSON.parse(await readFile(this.#fileOf(key, RECORD), 'utf8')),
      );
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
      await rm(temporary, { force: true });
      const file = await open(temporary, 'wx', 0o600);
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
    for (const extension of [RECORD, PAGE, TEMPORARY])
      await rm(this.#fileOf(key, extension), { force: true });
  }

  /**
   * Removes what a killed process left and, if the limit is exceeded, the entries that were not
   * used for longest.
   *
   * @returns the bytes on disk afterwards
   */
  async #makeRoom(): Promise<number> {
    const entries = new Map<string, { bytes: number; usedAt: number }>();
    for await (const { name } of await opendir(this.directory)) {
      const found = await stat(join(this.directory, name)).catch(() => undefined);
      if (found?.isFile() !== true) continue;
      const extension = extname(name);
      const key = basename(name, extension);
      const entry = entries.get(key) ?? { bytes: 0, usedAt: 0 };
      entries.set(key, entry);
      entry.bytes += onDisk(found.size);
      // A page without a record stays 0, and goes first.
      if (extension === RECORD) entry.usedAt = found.mtimeMs;
    }
    const oldestFirst = [...entries].sort(([, a], [, b]) => a.usedAt - b.usedAt);
    let bytes = oldestFirst.reduce((sum, [, entry]) => sum + entry.bytes, 0);
    const most = bytes > this.maxBytes() ? KEPT_SHARE * this.maxBytes() : bytes;
    for (const [key, entry] of oldestFirst) {
      if (bytes <= most && entry.usedAt > 0) break;
      await this.#remove(key);
      bytes -= entry.bytes;
    }
    return bytes;
  }
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
