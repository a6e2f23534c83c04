import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JSONFilePreset } from 'lowdb/node';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { Entry } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { lifeOf, pendingRecord } from '../state/records.js';
import { longestPause } from './pause.js';
import type { BenchRow } from './rows.js';

const RECORDS = 100_000;
const BATCH = 50;
const options = { clock: systemClock, log: silentLogger };

/**
 * The state with 100,000 records, beside lowdb's own JSONFile with the same records; then at rest with as many as `--files N`
 * says, beside what is promised of 1,000,000.
 */
export async function stateBench(): Promise<BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), 'peersync-bench-'));
  try {
    const paths = { state: join(root, 'state'), json: join(root, 'db.json') };
    const lives = await livesCommitted(join(root, 'lives'));
    const bare = await livesWritten(join(root, 'bare'));
    const state = await State.open(paths.state, options);
    const records = Array.from({ length: RECORDS }, (_, i) => recordsOf(i)[2]);
    for (const record of records) state.put(record);
    await state.commit();
    const compaction = await longestPause(() => state.compact());
    const json = await JSONFilePreset<Entry[]>(paths.json, []);
    json.data = records;

    const change = await median(100, async (i) => {
      state.put(recordsOf(i * 37)[i % 2 === 0 ? 0 : 1]);
      await state.commit();
    });
    const pauses: number[] = [];
    const rewrite = await median(5, async (i) => {
      json.data[i] = recordsOf(i)[0];
      pauses.push((await longestPause(() => json.write())).pauseMs);
    });
    await state.close();
    const [loaded, read] = [load('state', paths.state), load('json', paths.json)];
    return [
      {
        ...row(`state: one change among ${RECORDS}`, change, rewrite, 'ms'),
        ratio: rewrite / change,
        promise: { text: 'at least 100 times cheaper than JSONFile', kept: rewrite / change >= 100 },
      },
      row('state: 20,000 files x 3 changes, processor time, beside bare JSON and syncs', lives, bare, 'ms'),
      row('state: longest pause while compacting / writing', compaction.pauseMs, Math.max(...pauses), 'ms'),
      row('state: load, beside JSONFile', loaded.ms, read.ms, 'ms'),
      row('state: longest pause while loading', loaded.pauseMs, read.pauseMs, 'ms'),
      row('state: memory when loaded (RSS)', loaded.rssBytes / 1e6, read.rssBytes / 1e6, 'MB'),
      ...(await atRest(join(root, 'rest'), filesAsked())),
    ];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function filesAsked(): number {
  return Number(process.argv[process.argv.indexOf('--files') + 1] || 0) || RECORDS;
}

/** A state of so many confirmed files, 100 in a directory, each of which went the usual way. */
async function atRest(dir: string, files: number): Promise<BenchRow[]> {
  const state = await State.open(dir, options);
  for (let from = 0; from < files; from += 1_000) {
    const paths = Array.from({ length: Math.min(1_000, files - from) }, (_, i) => {
      return `directory-${Math.floor((from + i) / 100)}/file-${from + i}.txt`;
    });
    for (const status of [0, 1, 2] as const) {
      for (const path of paths) state.put(lifeOf(pendingRecord(path))[status]);
      await state.commit();
    }
  }
  const { busyMs } = await longestPause(() => state.compact());
  const { snapshotBytes } = state.figures();
  await state.close();
  const sizes = readdirSync(dir).map((name) => statSync(join(dir, name)).size);
  const all = sizes.reduce((sum, size) => sum + size, 0);
  const { ms, wholeBytes, busyMs: loadBusy, passMs, passBusyMs } = load('state', dir);
  const million = files / 1e6;
  const name = (what: string) => `state, ${files} files at rest: ${what}`;
  const upTo = (what: string, measured: number, limit: number, unit: string): BenchRow => ({
    ...row(name(what), measured, limit, unit),
    promise: { text: `at most ${Math.round(limit)} ${unit}`, kept: measured <= limit },
  });
  return [
    upTo('memory of the process (RSS)', wholeBytes / 1e6, 60 + 270 * million, 'MB'),
    upTo('load', ms, 500 + 4_500 * million, 'ms'),
    upTo('snapshot on disk', snapshotBytes / 1e6, 1 + 250 * million, 'MB'),
    row(name('whole directory, with the generation before'), all / 1e6, (2 * snapshotBytes) / 1e6, 'MB'),
    row(name('longest pause while loading, processor time'), loadBusy, 20, 'ms'),
    row(name('longest pause of a snapshot, processor time'), busyMs, 20, 'ms'),
    row(name('longest pause of a pass over all, processor time'), passBusyMs, 20, 'ms'),
    row(name('a pass over all, parsed'), passMs, 4_000 * million, 'ms'),
  ];
}

function recordsOf(i: number): readonly [Entry, Entry, Entry] {
  return lifeOf(pendingRecord(`directory-${i % 1_000}/file-${i}.md`));
}

/** 20,000 files that become pending, accepted and confirmed, a batch at a time. */
function* batchesOfLives(): Generator<readonly Entry[]> {
  const lives = Array.from({ length: 20_000 }, (_, i) => recordsOf(i));
  for (const status of [0, 1, 2] as const) {
    for (let i = 0; i < lives.length; i += BATCH) yield lives.slice(i, i + BATCH).map((life) => life[status]);
  }
}

/** What committing them costs, in ms of processor time. */
async function livesCommitted(dir: string): Promise<number> {
  const batches = [...batchesOfLives()];
  return await leastProcessorTime(async (run) => {
    const state = await State.open(join(dir, `${run}`), options);
    for (const batch of batches) {
      for (const record of batch) state.put(record);
      await state.commit();
    }
    await state.close();
  });
}

/** What writing and syncing their JSON costs, and nothing else. */
async function livesWritten(path: string): Promise<number> {
  const batches = [...batchesOfLives()];
  return await leastProcessorTime(async () => {
    const file = await open(path, 'w');
    for (const batch of batches) {
      await file.write(batch.map((record) => `${JSON.stringify(record)}\n`).join(''));
      await file.datasync();
    }
    await file.close();
  });
}

async function leastProcessorTime(work: (run: number) => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < 3; run += 1) {
    const before = process.cpuUsage();
    await work(run);
    const { user, system } = process.cpuUsage(before);
    times.push((user + system) / 1_000);
  }
  return Math.min(...times);
}

async function median(runs: number, work: (i: number) => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < runs; i += 1) {
    const started = performance.now();
    await work(i);
    times.push(performance.now() - started);
  }
  return times.sort((a, b) => a - b)[Math.floor(runs / 2)] ?? Number.NaN;
}

interface LoadFigures {
  readonly ms: number;
  readonly pauseMs: number;
  /** Added by what was loaded. */
  readonly rssBytes: number;
  /** Of the whole process. */
  readonly wholeBytes: number;
  readonly passMs: number;
  readonly passBusyMs: number;
  readonly busyMs: number;
}

function load(kind: 'state' | 'json', path: string): LoadFigures {
  const program = join(import.meta.dirname, 'state-child.js');
  return JSON.parse(
    execFileSync(process.execPath, ['--expose-gc', program, kind, path], { encoding: 'utf8' }),
  );
}

function row(name: string, measured: number, baseline: number, unit: string): BenchRow {
  return { name, measured, baseline, ratio: measured / baseline, unit };
}
