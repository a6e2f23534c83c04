import { expect, it } from 'vitest';
import { isInstalled } from '../content/corpus/corpus.js';
import { CLI } from '../support/cli.js';
import { scansBesideNotes } from '../support/scans-beside-notes.js';
import { temporaryDirectory } from '../support/temp.js';

const LIMIT_MS = 600_000;
const hasOcr = isInstalled('tesseract') && isInstalled('pdftoppm');

// The same with 200 scans and 500 notes: `npm run bench -- scans`.
it.skipIf(!hasOcr)(
  'scans hold up no note, and after kill -9 only pages under way are read again (needs tesseract and pdftoppm)',
  { timeout: LIMIT_MS },
  async () => {
    const load = { scans: 6, pagesEach: 3, notes: 50, kills: 2, concurrency: 2, msAPage: 15_000 };
    const outcome = await scansBesideNotes(temporaryDirectory(), CLI, load);
    const { aloneMs, allMs, besideMs, pages, readings, readingsBeside } = outcome;
    console.log(
      `notes alone ${seconds(aloneMs)}, beside scans ${seconds(besideMs)}, after ${readingsBeside} pages;`,
      `${pages} pages, read ${readings} times, all after ${seconds(allMs)}`,
    );
    expect(outcome.left).toEqual([]);
    expect(outcome.confirmed).toBe(load.scans + load.notes);
    expect(readings).toBeGreaterThanOrEqual(pages);
    expect(readings).toBeLessThanOrEqual(pages + load.kills * load.concurrency);
    // The pages are a clock that is as slow as the machine.
    expect(readingsBeside).toBeLessThan(pages / 2);
  },
);

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
