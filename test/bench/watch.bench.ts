import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FSWatcher } from 'chokidar';
import { DirectoryEvents } from '../../src/watch/fs-events.js';
import type { BenchRow } from './rows.js';

const DIRECTORIES = 1_000;
const FILES_EACH = 100;
/** Files in the one directory that the events come from, and how many come. */
const LARGE = 10_000;
const EVENTS = 50;

interface Figures {
  readonly ms: number;
  readonly pauseMs: number;
  readonly cpuMs: number;
  readonly rssBytes: number;
}

/** Scans of 100,000 files, beside the bare system calls; and events in a large directory, beside a plain chokidar. */
export async function watchBench(): Promise<BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), 'peersync-bench-'));
  try {
    const tree = join(root, 'tree');
    plant(tree);
    const run = (way: string): Figures => {
      const program = join(import.meta.dirname, 'watch-child.js');
      const args = ['--expose-gc', program, way, tree, join(root, `state-${way}`)];
      return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
    };
    // Once before, so that both find the same in the system's cache.
    run('read');
    const [first, read, again, list] = [run('scan'), run('read'), run('again'), run('list')];
    const files = `${DIRECTORIES * FILES_EACH} files`;
    return [
      row(
        `watch: first scan of ${files}, beside reading and hashing`,
        first.ms / 1_000,
        read.ms / 1_000,
        's',
      ),
      row(`watch: scan of ${files} unchanged, beside listing`, again.ms / 1_000, list.ms / 1_000, 's'),
      row('watch: longest pause of the event loop, first scan', first.pauseMs, read.pauseMs, 'ms'),
      row('watch: longest pause of the event loop, unchanged', again.pauseMs, list.pauseMs, 'ms'),
      row(
        'watch: memory of the first scan (RSS) with its state',
        first.rssBytes / 1e6,
        read.rssBytes / 1e6,
        'MB',
      ),
      row('watch: memory of a scan unchanged (RSS)', again.rssBytes / 1e6, list.rssBytes / 1e6, 'MB'),
      row(
        `watch: an event in a directory of ${LARGE} files, processor time`,
        ...(await eventCosts(join(root, 'large'))),
        'ms',
      ),
    ];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** 1,000 directories of 100 files of 4 KB, all long at rest. */
function plant(tree: string): void {
  const past = new Date('2020-01-01T00:00:00Z');
  for (let d = 0; d < DIRECTORIES; d += 1) {
    const directory = join(tree, `part-${d % 100}`, `directory-${d}`);
    mkdirSync(directory, { recursive: true });
    for (let f = 0; f < FILES_EACH; f += 1) {
      const path = join(directory, `file-${f}.txt`);
      writeFileSync(path, `${d} ${f} `.padEnd(4_096, 'text '));
      utimesSync(path, past, past);
    }
  }
}

/** What one event costs with ours and with a plain chokidar, in ms of processor time. */
async function eventCosts(directory: string): Promise<[ours: number, plain: number]> {
  mkdirSync(directory);
  for (let i = 0; i < LARGE; i += 1) writeFileSync(join(directory, `file-${i}`), 'x');
  const events = new DirectoryEvents(() => {});
  await events.watch(directory);
  const ours = await eventCost(directory);
  await events.close();
  const plain = new FSWatcher({ ignoreInitial: true, depth: 0, ignored: (path) => path.includes('file-') });
  await new Promise((resolve) => plain.once('ready', () => resolve(undefined)).add(directory));
  const theirs = await eventCost(directory);
  await plain.close();
  return [ours, theirs];
}

async function eventCost(directory: string): Promise<number> {
  const before = process.cpuUsage();
  for (let i = 0; i < EVENTS; i += 1) {
    writeFileSync(join(directory, `file-${i}`), 'y');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  // A plain chokidar lists at most once a second, and once more after the last event.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / EVENTS;
}

function row(name: string, measured: number, baseline: number, unit: string): BenchRow {
  return { name, measured, baseline, ratio: measured / baseline, unit };
}
