import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { scansBesideNotes } from '../support/scans-beside-notes.js';
import { type BenchRow, below, promised, row } from './rows.js';

const CLI = resolve(import.meta.dirname, '../../../dist/cli.js');
/** As the promise names them; the test of the same is smaller. */
const NOTES = 500;
const KILLS = 5;
const MS_A_PAGE = 30_000;

/**
 * Scans and notes that are dropped together: how long the notes take, and what is read again after
 * the daemon was killed.
 *
 * @param scans their number, each of one page
 */
export async function scansBench(scans: number): Promise<BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), 'peersync-bench-'));
  const concurrency = Math.max(1, availableParallelism() - 1);
  try {
    const outcome = await scansBesideNotes(root, CLI, {
      scans,
      pagesEach: 1,
      notes: NOTES,
      kills: KILLS,
      concurrency,
      msAPage: MS_A_PAGE,
    });
    for (const command of outcome.left) process.stderr.write(`  left behind: ${command}\n`);
    const { aloneMs, allMs, besideMs, confirmed, left, pages, readings } = outcome;
    const notes = row(
      `scans: ${NOTES} notes beside ${scans} scans, beside the notes alone`,
      besideMs / 1_000,
      aloneMs / 1_000,
      's',
    );
    const mostMs = 1.2 * aloneMs + 3_000;
    const kills = `scans: after ${KILLS} times kill -9`;
    const all = row(`${kills}, files confirmed`, confirmed, scans + NOTES, 'files');
    return [
      promised(notes, 'at most 1.2 of it and 3 s', besideMs <= mostMs),
      below(`${kills}, pages that were read`, readings, pages + KILLS * concurrency, 'pages'),
      below(`${kills}, programs left behind`, left.length, 0, 'processes'),
      promised(all, 'all', confirmed === scans + NOTES),
      row(
        `scans: pages of ${scans} scans, dropped to confirmed`,
        pages / (allMs / 1_000),
        Number.NaN,
        'pages/s',
      ),
    ];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
