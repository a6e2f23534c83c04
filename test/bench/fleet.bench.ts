import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { docx } from '../content/documents.js';
import { BuiltDaemon } from '../support/built-daemon.js';
import { hasRedis, RedisServer } from '../support/redis-server.js';
import { Workers } from '../support/workers.js';
import { type BenchRow, below, promised, row } from './rows.js';

const CLI = resolve(import.meta.dirname, '../../../dist/cli.js');
const LIMIT_MS = 1_800_000;
/** What a slow document takes, in ms. It waits, so that a few cores can do many at a time. */
const SLOW_MS = 200;
/**
 * Documents that one worker reads at a time; the owner reads one. With two, 4 workers on two cores
 * reach 0.885 of linear.
 */
const SLOTS = 1;
const SLOW_DOCUMENTS = 600;
const QUICK_DOCUMENTS = 600;
/** The words of a quick document, about as many as a letter has. */
const WORDS = 450;
const FILES_A_DIRECTORY = 100;
/** How long the owner needs to see new workers, in ms: a beat of either. */
const SEEN_MS = 11_000;
/** How long the backlog is watched when the memory of Redis is measured, in ms. */
const WATCHED_MS = 60_000;
const MOST_REDIS_MB = 50;

/**
 * Documents with 1, 2 and 4 workers, where each takes a while; the cost of the fleet itself; and
 * the memory of Redis while many documents wait.
 *
 * @param pending the number of documents that wait while the memory is measured
 */
export async function fleetBench(pending: number): Promise<BenchRow[]> {
  if (!hasRedis) {
    process.stderr.write('  not measured without redis-server\n');
    return [];
  }
  const root = mkdtempSync(join(tmpdir(), 'peersync-bench-'));
  try {
    return [
      ...(await workersRows(join(root, 'workers'))),
      ...(await costRows(join(root, 'cost'))),
      ...(await memoryRows(join(root, 'memory'), pending)),
    ];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function workersRows(root: string): Promise<BenchRow[]> {
  const rates: { readonly workers: number; readonly rate: number }[] = [];
  for (const workers of [1, 2, 4]) {
    const fleet = await Fleet.start(join(root, `${workers}`), workers, SLOTS, 1);
    const before = fleet.redisFigure('stats', 'total_commands_processed');
    const rate = await fleet.rate(SLOW_DOCUMENTS, slowDocument, 'slow');
    const commands = fleet.redisFigure('stats', 'total_commands_processed') - before;
    process.stderr.write(
      `  ${workers} workers: ${rate.toFixed(1)} documents/s, ${(commands / SLOW_DOCUMENTS).toFixed(1)} commands of Redis a document\n`,
    );
    rates.push({ workers, rate });
    await fleet.stop();
  }
  const [first] = rates;
  return rates.map(({ rate, workers }) => {
    const slots = (count: number) => 1 + count * SLOTS;
    const linear = ((first?.rate ?? Number.NaN) * slots(workers)) / slots(1);
    const what = `fleet: documents of ${SLOW_MS} ms, an owner and ${workers} workers`;
    const result = row(what, rate, linear, 'documents/s');
    return promised(result, '0.9 of linear', result.ratio >= 0.9);
  });
}

/** The same readers, once all of the owner, and once half of them of a worker. */
async function costRows(root: string): Promise<BenchRow[]> {
  const alone = await Fleet.start(join(root, 'alone'), 0, 1, 2);
  const aloneRate = await alone.rate(QUICK_DOCUMENTS, quickDocument, 'docx');
  await alone.stop();
  const shared = await Fleet.start(join(root, 'shared'), 1, 1, 1);
  const rate = await shared.rate(QUICK_DOCUMENTS, quickDocument, 'docx');
  await shared.stop();
  const result = row(
    'fleet: quick documents, an owner and a worker with a reader each, beside an owner with two',
    rate,
    aloneRate,
    'documents/s',
  );
  return [promised(result, 'at 0.9 of it', result.ratio >= 0.9)];
}

async function memoryRows(root: string, pending: number): Promise<BenchRow[]> {
  const fleet = await Fleet.start(root, 2, SLOTS, 1);
  const prepared = plant(join(root, 'prepared'), pending, slowDocument, 'slow');
  renameSync(prepared, join(root, 'bench', 'all'));
  const { daemon } = fleet;
  await daemon.until(
    async () => (await daemon.count('pending')) > 0.9 * pending,
    'nearly all documents wait',
    LIMIT_MS,
  );
  await pause(WATCHED_MS);
  const megabytes = fleet.redisFigure('memory', 'used_memory_peak') / 1e6;
  await fleet.stop('SIGKILL');
  const what = `fleet: most memory of Redis while ${pending} documents wait`;
  return [below(what, megabytes, MOST_REDIS_MB, 'MB')];
}

/** An owner with a Redis, and perhaps workers. */
class Fleet {
  private constructor(
    private readonly root: string,
    readonly daemon: BuiltDaemon,
    private readonly redis: RedisServer,
    private readonly workers: Workers,
  ) {}

  /**
   * @param slots the number of documents that each worker reads at a time
   * @param slotsHere the number that the owner reads at a time
   */
  static async start(
    root: string,
    workers: number,
    slots: number,
    slotsHere: number,
  ): Promise<Fleet> {
    mkdirSync(root, { recursive: true });
    const reader = join(root, 'slow.sh');
    writeFileSync(reader, `#!/bin/sh\nsleep ${SLOW_MS / 1_000}\ncat "$1"\n`, { mode: 0o755 });
    const redis = new RedisServer(root);
    await redis.start();
    const daemon = await BuiltDaemon.of({
      cli: CLI,
      directory: root,
      parts: {
        folders: [{ name: 'bench', settle: '0s' }],
        documents: { concurrency: slotsHere, commands: { '.slow': [reader, '{file}'] } },
        ...(workers > 0 && { fleet: { redis: redis.url, concurrency: slots } }),
      },
    });
    // The place of a disk that is not mounted is empty.
    writeFileSync(join(root, 'bench', 'first.txt'), 'The first file.\n');
    const started = new Workers(CLI, root);
    await daemon.start();
    await daemon.confirmed(1, LIMIT_MS);
    if (workers > 0) {
      await started.start(workers, daemon.config);
      await pause(SEEN_MS);
    }
    return new Fleet(root, daemon, redis, started);
  }

  /** Drops documents. @returns the number that are confirmed in a second */
  async rate(count: number, make: (n: number) => Uint8Array, extension: string): Promise<number> {
    const prepared = plant(join(this.root, 'prepared'), count, make, extension);
    renameSync(prepared, join(this.root, 'bench', 'all'));
    return count / ((await this.daemon.confirmed(count + 1, LIMIT_MS)) / 1_000);
  }

  /** Returns a figure that Redis tells of itself. */
  redisFigure(section: string, name: string): number {
    const info = execFileSync('redis-cli', ['-s', this.redis.socket, 'info', section], {
      encoding: 'utf8',
    });
    return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]);
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await this.workers.stop(signal);
    await this.daemon.kill(signal);
    await this.redis.kill();
  }
}

function plant(
  directory: string,
  count: number,
  make: (n: number) => Uint8Array,
  extension: string,
): string {
  for (let n = 0; n < count; n += 1) {
    const inner = join(directory, `${Math.floor(n / FILES_A_DIRECTORY)}`);
    if (n % FILES_A_DIRECTORY === 0) mkdirSync(inner, { recursive: true });
    writeFileSync(join(inner, `${n}.${extension}`), make(n));
  }
  return directory;
}

function slowDocument(n: number): Uint8Array {
  return Buffer.from(`The slow document number ${n}, with the word slow${n}.\n`);
}

function quickDocument(n: number): Uint8Array {
  const words = Array.from({ length: WORDS }, (_, i) => `word${(n * 7_919 + i * 104_729) % 5_000}`);
  return docx(words.join(' '));
}
