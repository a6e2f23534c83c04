import { mkdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { systemClock } from '../lib/clock.js';

/** The extension of the files. `ExtractCache` removes the oldest ones. */
export const OCR_PAGE_EXTENSION = '.page';

const PAGE_SCHEMA = z.object({
  /** Empty for a blank page. */
  text: z.string(),
  /** Number of words. */
  words: z.number().int().nonnegative(),
  /** Mean confidence of the words, from 0 to 100; 0 if there are none. */
  confidence: z.number().min(0).max(100),
});

/** A page that was read by OCR. */
export type OcrPage = Readonly<z.output<typeof PAGE_SCHEMA>>;

/**
 * The pages that were read by OCR, each in a file as soon as it was read, so that none is read
 * again: a page takes seconds, and a scan of 500 pages may be interrupted at page 400.
 *
 * The files are in the directory of the `ExtractCache`, which bounds them. All of it can be read
 * again from the documents, so nothing is synced, and a page that cannot be written is not kept.
 */
export class PageStore {
  /** @param directory is made when it is needed; the one above it must be there */
  constructor(private readonly directory: string) {}

  /** Returns a page; undefined if it is not there, or is torn. */
  read(key: string): OcrPage | undefined {
    const file = this.#fileOf(key);
    try {
      const page = PAGE_SCHEMA.parse(JSON.parse(readFileSync(file, 'utf8')));
      const now = systemClock.now() / 1000;
      attempt(() => utimesSync(file, now, now));
      return page;
    } catch {
      return undefined;
    }
  }

  /** Writes a page, unless the disk does not take it. */
  write(key: string, page: OcrPage): void {
    const file = this.#fileOf(key);
    // Another process may write the same page.
    const temporary = `${file}.${process.pid}.tmp`;
    attempt(() => mkdirSync(this.directory, { mode: 0o700 }));
    try {
      writeFileSync(temporary, JSON.stringify(page), { mode: 0o600 });
      renameSync(temporary, file);
    } catch {
      attempt(() => rmSync(temporary, { force: true }));
    }
  }

  #fileOf(key: string): string {
    return join(this.directory, `${key}${OCR_PAGE_EXTENSION}`);
  }
}

/** Does what does no harm if it fails. */
function attempt(act: () => void): void {
  try {
    act();
  } catch {
    // A directory that cannot be made shows when a file is written in it.
  }
}
