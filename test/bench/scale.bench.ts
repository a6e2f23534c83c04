import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Answered } from './answering-server.js';
import type { Probed } from './loop-probe.js';
import { type BenchRow, below, row as plainRow, promised } from './rows.js';
import { NotReached, ScaleDaemon, seconds } from './scale-daemon.js';
import { Server } from './server.js';

const PER_DIRECTORY = 100;
const SMALL_BYTES = 120;
/**
 * The number of files of the first sync whose rate is measured, and of the small files that the
 * bare loop takes.
 */
const RATE_FILES = 20_000;
const RATE_BYTES = 2_048;
const IDLE_MS = 60_000;
const SETTLED_MS = 30_000;
const BLOCK_MS = { p999: 20, longest: 40 };
/** The interval of Prometheus. */
const SCRAPE_MS = 15_000;
const PAGE = '127.0.0.1:18385';
const QUESTIONS = {
  '/api/status': 'the status',
  '/api/live': 'the first event of a follower',
  '/api/items?status=confirmed&limit=100': '100 confirmed files',
  '/api/items?status=quarantined&limit=100': 'files of a status that none has',
  '/metrics': 'a scrape of the metrics',
};
const WORDS = 'the peer shows this version of a document when its index has been committed '.repeat(
  40,
);

const run = promisify(execFile);

/** The peer that only answers. */
type Peer = Server<Answered>;

/**
 * The built daemon with very many small files and a peer that only answers: what a first sync
 * takes, a start, a scan where nothing changed, a list, rest, and the status page. Each step is
 * bounded; one that does not reach its end is a row of the table.
 */
export async function scaleBench(files: number): Promise<BenchRow[]> {
  const bench = new ScaleBench(files);
  try {
    return await bench.rows();
  } finally {
    await bench.close();
  }
}

class ScaleBench {
  readonly #root = mkdtempSync(join(tmpdir(), 'peersync-bench-'));
  readonly #files: number;
  /** The tree in millions of files: what the figures grow with. */
  readonly #millions: number;
  readonly #rows: BenchRow[] = [];
  readonly #daemons: ScaleDaemon[] = [];
  readonly #peers: Peer[] = [];

  constructor(files: number) {
    this.#files = files;
    this.#millions = files / 1e6;
  }

  async close(): Promise<void> {
    for (const daemon of this.#daemons) await daemon.stop();
    for (const peer of this.#peers) peer.end();
    rmSync(this.#root, { recursive: true, force: true });
  }

  async rows(): Promise<BenchRow[]> {
    await this.#step('a first sync beside a bare loop', () => this.#syncRate());
    const tree = join(this.#root, 'tree');
    await this.#step('making the tree', async () => plant(tree, this.#files, SMALL_BYTES));
    const peer = await this.#peer(SMALL_BYTES);
    const daemon = this.#daemon('scale', tree, peer);
    let emptyMs = Number.NaN;
    let empty: Probed | undefined;
    await this.#step('starting with nothing', async () => {
      emptyMs = await daemon.start(60_000);
    });
    await this.#step('first sync', async () => {
      empty = await daemon.probe();
      await this.#firstSync(daemon, peer, tree);
    });
    await this.#step('rest after the first sync', async () => {
      await daemon.calm(120_000);
      // V8 gives memory back when nothing was asked of it for some seconds.
      await pause(SETTLED_MS);
      this.#memory(
        'memory at rest after the first sync (RSS)',
        daemon.memoryMb('VmRSS'),
        this.#restMb,
      );
      await this.#disk('after the first sync', daemon.stateMb(), daemon);
    });
    await this.#step('stopping', () => daemon.stop());
    await this.#step('starting with everything', async () => {
      const ms = await daemon.start(120_000);
      const limitMs = 1_000 + 4_000 * this.#millions;
      const start = row(
        `start until ready, ${this.#files} in the state`,
        ms / 1_000,
        emptyMs / 1_000,
        's',
      );
      this.#rows.push(promised(start, `at most ${seconds(limitMs)}`, ms <= limitMs));
      this.#blocks('start', await daemon.probe(), empty);
      const loadingMs = daemon.loading?.longestMs ?? Number.NaN;
      const what = 'block of the event loop, longest: loading the code, before a start';
      this.#rows.push(row(what, loadingMs, BLOCK_MS.longest, 'ms'));
      const scanMs = await daemon.scanned(60_000 + 120_000 * this.#millions);
      const scan = `first scan after a start, ${this.#files} files`;
      this.#rows.push(limited(scan, scanMs / 1_000, 0.5 + 5.5 * this.#millions, 's'));
      this.#blocks('first scan after a start', await daemon.probe());
    });
    await this.#step('scanning again', () => this.#rescan(daemon, tree));
    await this.#step('list', async () => {
      await this.#list(daemon, ['list', '--json']);
      await this.#list(daemon, ['list']);
    });
    await this.#step('status', async () => {
      await daemon.probe();
      for (let i = 0; i < 3; i += 1) await daemon.command(['status', '--json'], 60_000);
      this.#blocks('status', await daemon.probe());
    });
    await this.#step('rest', () => this.#rest(daemon));
    await this.#step('status page', () => this.#page(daemon));
    return this.#rows;
  }

  /**
   * 20,000 files of 2 KB, twice in turn by the bare loop and by the daemon; of each the better
   * time.
   */
  async #syncRate(): Promise<void> {
    const tree = join(this.#root, 'rate');
    plant(tree, RATE_FILES, RATE_BYTES);
    const peer = await this.#peer(RATE_BYTES);
    const ours: number[] = [];
    const bare: number[] = [];
    for (const turn of [1, 2]) {
      bare.push((await bareSync(peer, tree)).ms);
      const daemon = this.#daemon(`rate-${turn}`, tree, peer);
      await peer.counted('reset');
      await daemon.start(60_000);
      const startedAt = now();
      await lookedUp(peer, RATE_FILES, 120_000);
      await daemon.confirmed(RATE_FILES, 60_000);
      ours.push((await peer.counted()).lastAt - startedAt);
      await daemon.stop();
    }
    const rate = (times: readonly number[]) => RATE_FILES / (Math.min(...times) / 1_000);
    this.#rate(`first sync of ${RATE_FILES} files of 2 KB`, rate(ours), rate(bare));
  }

  async #firstSync(daemon: ScaleDaemon, peer: Peer, tree: string): Promise<void> {
    const limitMs = 120_000 + 2_500_000 * this.#millions;
    const startedAt = now();
    let mostMb = 0;
    try {
      await lookedUp(peer, this.#files, limitMs, () => {
        mostMb = Math.max(mostMb, daemon.stateMb());
      });
      await daemon.confirmed(this.#files, 120_000);
    } finally {
      const probed = await daemon.probe();
      const { lookUps, lastAt } = await peer.counted();
      const bare = await bareSync(peer, tree);
      const items = Math.min(RATE_FILES, this.#files);
      const [cpuMs, bareMs] = [probed.cpuMs / Math.min(lookUps, this.#files), bare.cpuMs / items];
      const processor = `processor time an item, first sync of ${this.#files}, beside the bare loop`;
      const cpu = row(processor, cpuMs, bareMs, 'ms');
      this.#rows.push(promised(cpu, 'at most 2.5 of it', cpu.ratio <= 2.5));
      const rate = lookUps / ((lastAt - startedAt) / 1_000);
      const what = `first sync of ${this.#files} files of ${SMALL_BYTES} bytes`;
      this.#rate(what, rate, items / (bare.ms / 1_000));
      const memoryMb = daemon.memoryMb('VmHWM');
      this.#memory('most memory during the first sync (RSS)', memoryMb, this.#restMb + 150);
      await this.#disk('most during the first sync', mostMb, daemon);
      this.#blocks('first sync, snapshots included', probed);
    }
  }

  #rate(what: string, ours: number, bare: number): void {
    const result = row(`${what}, beside a bare loop`, ours, bare, 'files/s');
    this.#rows.push(promised(result, 'at least 0.75 of it', result.ratio >= 0.75));
  }

  async #rescan(daemon: ScaleDaemon, tree: string): Promise<void> {
    const ours: number[] = [];
    const theirs: number[] = [];
    await daemon.probe();
    for (let turn = 0; turn < 2; turn += 1) {
      theirs.push(await findMs(tree));
      const { text } = await daemon.command(
        ['rescan', '--json'],
        60_000 + 120_000 * this.#millions,
      );
      ours.push((JSON.parse(text) as { durationMs: number }).durationMs);
    }
    const [best, find] = [Math.min(...ours) / 1_000, Math.min(...theirs) / 1_000];
    const result = row(`scan of ${this.#files} files unchanged, beside find`, best, find, 's');
    this.#rows.push(promised(result, 'at most twice', result.ratio <= 2));
    this.#blocks('scan', await daemon.probe());
  }

  async #list(daemon: ScaleDaemon, args: readonly string[]): Promise<void> {
    await daemon.probe();
    const { ms, lines } = await daemon.command(args, 30_000 + 60_000 * this.#millions);
    const limitMs = 500 + 3_500 * this.#millions;
    this.#rows.push(
      limited(`${args.join(' ')} to a pipe, ${lines} lines`, ms / 1_000, limitMs / 1_000, 's'),
    );
    this.#blocks(args.join(' '), await daemon.probe());
  }

  async #rest(daemon: ScaleDaemon): Promise<void> {
    await daemon.calm(120_000);
    await daemon.probe('rest');
    // Rest begins when V8 has given memory back. It does so 108 s and 215 s after the last full
    // collection, which the daemon starts 10 to 20 s after its last work. With 1,000,000 files,
    // each of the two takes a fifth of a second. `--no-memory-reducer` leaves them out, but then
    // the memory stays: 79 MB instead of 47 MB in a program that uses 44 MB.
    for (let minute = 0; minute < 4; minute += 1) await scrapedRest();
    const before = await daemon.probe('rest');
    const wakeUpsBefore = daemon.wakeUps();
    const startedAt = now();
    await scrapedRest();
    const { cpuMs } = await daemon.probe('rest');
    const ms = now() - startedAt;
    const percent = ((cpuMs - before.cpuMs) / ms) * 100;
    const wakeUps = ((daemon.wakeUps() - wakeUpsBefore) / ms) * 1_000;
    const directories = Math.ceil(this.#files / PER_DIRECTORY);
    this.#rows.push(
      limited(`processor at rest, ${directories} directories, scraped`, percent, 0.1, '%'),
      limited('wake-ups of all threads at rest, scraped', wakeUps, 10, 'a second'),
    );
    this.#memory('memory at rest after a start (RSS)', daemon.memoryMb('VmRSS'), this.#restMb);
  }

  async #page(daemon: ScaleDaemon): Promise<void> {
    for (const [path, what] of Object.entries(QUESTIONS)) {
      await daemon.probe();
      for (let i = 0; i < 15; i += 1) {
        const answer = await fetch(`http://${PAGE}${path}`);
        if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
        // A stream goes on: its first event is enough.
        if (path !== '/api/live') {
          await answer.arrayBuffer();
          continue;
        }
        const reader = answer.body?.getReader();
        await reader?.read();
        await reader?.cancel();
      }
      this.#blocks(`status page, ${what}`, await daemon.probe());
    }
  }

  /** All files of the state beside the lines of one snapshot. */
  async #disk(when: string, allMb: number, daemon: ScaleDaemon): Promise<void> {
    const disk = row(`state on disk, ${when}`, allMb, await daemon.snapshotMb(), 'MB');
    this.#rows.push(promised(disk, 'at most 2.2 of a snapshot', disk.ratio <= 2.2));
  }

  /** 120 MB with 100,000 files, 460 MB with 1,000,000. */
  get #restMb(): number {
    return 82 + 378 * this.#millions;
  }

  #memory(name: string, measured: number, limit: number): void {
    this.#rows.push(limited(name, measured, Math.round(limit), 'MB'));
  }

  /**
   * The blocks of the event loop in a step, beside what is promised, or what they were with nothing
   * in the state.
   */
  #blocks(step: string, probed: Probed, beside?: Probed): void {
    const { p999Ms, longestMs, looks } = probed;
    const { p999, longest } = BLOCK_MS;
    // With fewer measurements the percentile is the longest of them.
    const figure = row(`block of the event loop, p99.9: ${step}`, p999Ms, p999, 'ms');
    if (looks >= 1_000) this.#rows.push(promised(figure, `at most ${p999} ms`, p999Ms <= p999));
    const limit = beside?.longestMs ?? longest;
    const most = row(`block of the event loop, longest: ${step}`, longestMs, limit, 'ms');
    this.#rows.push(promised(most, `at most ${longest} ms`, longestMs <= longest));
  }

  async #peer(bytes: number): Promise<Peer> {
    const peer = await Server.start<Answered>('answering-server', bytes);
    this.#peers.push(peer);
    return peer;
  }

  #daemon(name: string, tree: string, peer: Peer): ScaleDaemon {
    const daemon = new ScaleDaemon(join(this.#root, name), tree, peer.url, {
      status: { listen: PAGE },
    });
    this.#daemons.push(daemon);
    return daemon;
  }

  /** Runs a part of the bench; where it fails the next one goes on. */
  async #step(name: string, work: () => void | Promise<void>): Promise<void> {
    const startedAt = now();
    try {
      await work();
      // Other programs on the machine make the times and blocks longer.
      const load = `load ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} processors`;
      process.stderr.write(`  ${name}: ${seconds(now() - startedAt)} (${load})\n`);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      process.stderr.write(`  ${name}: ${message}\n`);
      const reason = error instanceof NotReached ? message : 'failed';
      this.#rows.push(promised(row(name, Number.NaN, Number.NaN, ''), reason, false));
    }
  }
}

/** @param onLook called several times a second */
async function lookedUp(
  peer: Peer,
  count: number,
  limitMs: number,
  onLook = () => {},
): Promise<void> {
  for (const end = now() + limitMs; now() < end; await pause(200)) {
    onLook();
    if ((await peer.counted()).lookUps >= count) return;
  }
  const { pushed, lookUps } = await peer.counted();
  throw new NotReached(
    `${pushed} files pushed and ${lookUps} looked up within ${seconds(limitMs)}`,
  );
}

/** Directories of 100 files each. */
function plant(tree: string, files: number, bytes: number): void {
  for (let i = 0; i < files; i += 1) {
    const directory = join(tree, `directory-${Math.floor(i / PER_DIRECTORY)}`);
    if (i % PER_DIRECTORY === 0) mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, `file-${i}.txt`), `file ${i}: ${WORDS}`.slice(0, bytes));
  }
}

/** A minute in which only Prometheus asks for something. */
async function scrapedRest(): Promise<void> {
  for (let ms = 0; ms < IDLE_MS; ms += SCRAPE_MS) {
    await pause(SCRAPE_MS);
    await scrape();
  }
}

async function scrape(): Promise<void> {
  const answer = await fetch(`http://${PAGE}/metrics`);
  if (!answer.ok) throw new Error(`/metrics answered ${answer.status}`);
  await answer.arrayBuffer();
}

/** Time of the bare loop for the first files of a tree. */
type Bare = { readonly ms: number; readonly cpuMs: number };
async function bareSync(peer: Peer, tree: string): Promise<Bare> {
  const program = join(import.meta.dirname, 'scale-bare.js');
  const args = [program, new URL(peer.url).host, tree, String(RATE_FILES)];
  const { stdout } = await run(process.execPath, args);
  return JSON.parse(stdout);
}

async function findMs(tree: string): Promise<number> {
  const startedAt = now();
  // The shell keeps what find prints from being read here.
  await run('sh', ['-c', `find '${tree}' -printf '%s %T@ %C@ %i\\n' > /dev/null`]);
  return now() - startedAt;
}

function row(name: string, measured: number, baseline: number, unit: string): BenchRow {
  return plainRow(`scale: ${name}`, measured, baseline, unit);
}

function limited(name: string, measured: number, limit: number, unit: string): BenchRow {
  return below(`scale: ${name}`, measured, limit, unit);
}

/** In ms, by a clock that all processes share. */
function now(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}
