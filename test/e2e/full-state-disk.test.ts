import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { StatusReport } from '../../src/report/status-report.js';
import { afterwards } from '../support/afterwards.js';
import { type Listed, Site } from '../support/site.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const FILES = 5_000;

/** Mounts a file system of so much memory, until the test is over. */
function mountTmpfs(path: string, size: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=700`, 'tmpfs', path], {
    stdio: 'pipe',
  });
  afterwards('test', () => {
    execFileSync('umount', ['-l', path]);
  });
}

function canMount(): boolean {
  const path = temporaryDirectory('file');
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=700', 'tmpfs', path], {
      stdio: 'pipe',
    });
    execFileSync('umount', [path]);
    return true;
  } catch {
    return false;
  }
}

const mounts = canMount();
const why = mounts ? '' : ' (skipped: no tmpfs can be mounted here)';

it.skipIf(!mounts).each(['1500k', '3m'])(
  `the statuses of 5,000 files that are shown while a state disk of %s is full survive a kill${why}`,
  async (size) => {
    const site = await Site.begin({ status: { listen: '127.0.0.1:0' } });
    mountTmpfs(site.stateDirectory, size);
    for (let i = 0; i < FILES; i += 1) site.drop(`inbox/${i % 20}/f${i}.txt`, `file ${i}\n`);
    const daemon = await site.start();
    const isFull = async () =>
      (await site.status()).conditions.some(
        ({ code, subject }) => code === 'STATE_FULL' && subject === 'state',
      );
    await until(isFull, 'the disk is full', 120_000);
    const metricsNow = async () =>
      await (await fetch(new URL('/metrics', (await site.status()).page))).text();
    const isAhead = async () => /^peersync_state_unsaved_changes [1-9]/m.test(await metricsNow());
    await until(isAhead, 'changes wait for the disk', 120_000);

    const { items, figures } = await site.status();
    const listed = await site.list();
    const metrics = await metricsNow();
    const [one] = listed.filter(({ status }) => status !== 'confirmed');
    const { status, history } = await site.why(`inbox/${one?.path}`);
    expect(status).toBe(one?.status);
    expect(history.at(-1)?.status).toBe(one?.status);
    expect(countsOf(listed)).toEqual(nonZero(items));
    for (const [name, count] of Object.entries(nonZero(items)))
      expect(metrics).toContain(`peersync_items{folder="inbox",status="${name}"} ${count}\n`);
    expect(items.confirmed).toBeLessThan(FILES);
    expect(figures?.timeToSearch.find(({ collection }) => collection === 'inbox')?.day.count).toBe(
      items.confirmed,
    );
    // A kill amid another try leaves more on disk than was said, never less.
    const committed = Number(/^peersync_state_journal_bytes (\d+)/m.exec(metrics)?.[1]);
    const isAtRest = () => {
      daemon.child.kill('SIGSTOP');
      if (bytesOf(site.stateDirectory) === committed) return true;
      daemon.child.kill('SIGCONT');
      return false;
    };
    await until(isAtRest, 'no try is under way');
    const ended = await daemon.kill('SIGKILL');
    expect(ended.stderr).toBe('');

    const after = await site.json<StatusReport>('status');
    expect(after.lines[0]?.items).toEqual(items);
    expect(byPath(await site.list())).toEqual(byPath(listed));
  },
);

function bytesOf(stateDirectory: string): number {
  const journals = readdirSync(stateDirectory).filter((name) => name.startsWith('journal-'));
  return journals.reduce((sum, name) => sum + statSync(join(stateDirectory, name)).size, 0);
}

function nonZero(items: Readonly<Record<string, number>>) {
  return Object.fromEntries(Object.entries(items).filter(([, count]) => count > 0));
}

function countsOf(listed: readonly Listed[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of listed) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

function byPath(listed: readonly Listed[]): readonly Listed[] {
  return [...listed].sort((a, b) => (a.path < b.path ? -1 : 1));
}
