import { type ChildProcess, spawn } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Probed, ProbeQuestion } from './loop-probe.js';

const CLI = resolve(import.meta.dirname, '../../../dist/cli.js');
const PROBE = pathToFileURL(join(import.meta.dirname, 'loop-probe.js')).href;
const STOP_MS = 60_000;
const CALM_SHARE = 0.03;
const CALM_LOOK_MS = 2_000;
/** Number of characters of the output that are kept. All lines are counted. */
const KEPT_CHARACTERS = 1_000_000;

/** Returns the environment of the systemd unit, in which the daemon usually runs. */
function unitEnvironment(): Record<string, string> {
  const unit = readFileSync(
    resolve(import.meta.dirname, '../../../systemd/peersync.service'),
    'utf8',
  );
  return Object.fromEntries(
    [...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
  );
}

/** A step took longer than it may. */
export class NotReached extends Error {}

/** A report of `peersync status --json`, as far as the bench reads it. */
interface Status {
  readonly items: { readonly accepted: number; readonly confirmed: number };
  readonly folders: readonly {
    readonly watch?: {
      readonly state: string;
      readonly lastScan?: { readonly durationMs: number };
    };
  }[];
}

/**
 * The built daemon as its own process with a configuration, a state and a log in `dir`.
 * `$BENCH_NODE_ARGS` are more options for its Node, such as `--cpu-prof
 * --cpu-prof-dir=/tmp/profiles`.
 */
export class ScaleDaemon {
  readonly stateDir: string;
  readonly #dir: string;
  readonly #config: string;
  readonly #settings: object;
  /** Measurements of the event loop while the code was loaded at the last start. */
  loading: Probed | undefined;
  #child: ChildProcess | undefined;
  #ended: string | undefined;

  /** @param more what is otherwise in its configuration */
  constructor(dir: string, folder: string, peer: string, more: object = {}) {
    mkdirSync(join(dir, 'bin'), { recursive: true });
    this.#dir = dir;
    this.#config = join(dir, 'config.json');
    this.stateDir = join(dir, 'state');
    // The default concurrency, which the bare script uses as well.
    this.#settings = {
      peer: { url: peer, dialect: 'standard' },
      folders: [
        {
          name: 'bench',
          path: folder,
          collection: 'bench',
          url: 'https://bench.example/',
          settle: '0s',
        },
      ],
      state: { dir: this.stateDir },
      mirror: { root: join(dir, 'mirror') },
      push: { requestsPerSecond: 10_000 },
      confirm: { requestsPerSecond: 10_000 },
      status: { listen: 'off' },
      ...more,
    };
    this.configure({});
    // Takes the place of the program that notifies systemd: the daemon itself says when it is
    // ready.
    const notify = join(dir, 'bin/systemd-notify');
    writeFileSync(
      notify,
      `#!/bin/sh\ncase "$1" in READY=1) : > '${this.#ready}' ;; STATUS=starting*) : > '${this.#reading}' ;; esac\n`,
    );
    chmodSync(notify, 0o755);
  }

  /** Takes effect with the next start. */
  configure(more: object): void {
    writeFileSync(this.#config, JSON.stringify({ ...this.#settings, ...more }));
  }

  get #ready(): string {
    return join(this.#dir, 'ready');
  }

  /** Is there once the code is loaded, and what is known is read. */
  get #reading(): string {
    return join(this.#dir, 'reading');
  }

  /** Starts it. @returns how long it took until it was ready, in ms */
  async start(limitMs: number): Promise<number> {
    for (const file of [this.#ready, this.#reading]) rmSync(file, { force: true });
    this.loading = undefined;
    this.#ended = undefined;
    const log = openSync(join(this.#dir, 'log'), 'a');
    const startedAt = performance.now();
    const more = process.env.BENCH_NODE_ARGS?.split(' ') ?? [];
    const child = spawn(
      process.execPath,
      ['--import', PROBE, ...more, CLI, 'run', '--config', this.#config],
      {
        stdio: ['ignore', log, log, 'ipc'],
        env: {
          ...process.env,
          ...unitEnvironment(),
          PATH: `${join(this.#dir, 'bin')}:${process.env.PATH}`,
          NOTIFY_SOCKET: '/none',
        },
      },
    );
    closeSync(log);
    child.once('exit', (code, signal) => {
      this.#ended = `the daemon ended with ${code ?? signal}`;
    });
    this.#child = child;
    await this.#until('ready', limitMs, 2, async () => {
      if (this.loading === undefined && existsSync(this.#reading))
        this.loading = await this.probe();
      return existsSync(this.#ready);
    });
    return performance.now() - startedAt;
  }

  /** Returns the measurements of the event loop since the last call. */
  probe(question: ProbeQuestion = 'read'): Promise<Probed> {
    const child = this.#running();
    return new Promise((resolve, reject) => {
      const onExit = () => reject(new Error(this.#failure()));
      child.once('exit', onExit);
      child.once('message', (probed) => {
        child.off('exit', onExit);
        resolve(probed as Probed);
      });
      child.send(question);
    });
  }

  /** Resolves when all files are confirmed, and the scan that found them is over. */
  async confirmed(files: number, limitMs: number): Promise<void> {
    await this.#until(`${files} files confirmed`, limitMs, 1_000, async () => {
      const { items, folders } = await this.#status();
      return items.confirmed === files && isScanned(folders);
    });
  }

  /** Resolves when the peer took all files. */
  async accepted(files: number, limitMs: number): Promise<void> {
    await this.#until(`${files} files accepted`, limitMs, 1_000, async () => {
      const { accepted, confirmed } = (await this.#status()).items;
      return accepted + confirmed === files;
    });
  }

  /** Resolves when the first scan is over. @returns how long it took, in ms */
  async scanned(limitMs: number): Promise<number> {
    let ms = 0;
    await this.#until('the first scan over', limitMs, 1_000, async () => {
      const { folders } = await this.#status();
      ms = Math.max(...folders.map(({ watch }) => watch?.lastScan?.durationMs ?? 0));
      return isScanned(folders);
    });
    return ms;
  }

  /** Resolves when it takes hardly any processor time any more. */
  async calm(limitMs: number): Promise<void> {
    let before = Number.NEGATIVE_INFINITY;
    await this.#until('the daemon at rest', limitMs, CALM_LOOK_MS, async () => {
      const { cpuMs } = await this.probe();
      const share = (cpuMs - before) / CALM_LOOK_MS;
      before = cpuMs;
      return share < CALM_SHARE;
    });
  }

  /** A figure of the process as the kernel has it: `VmRSS` or `VmHWM`, in MB. */
  memoryMb(field: 'VmRSS' | 'VmHWM'): number {
    const status = readFileSync(`/proc/${this.#running().pid}/status`, 'utf8');
    const kib = new RegExp(`^${field}:\\s*(\\d+) kB`, 'm').exec(status)?.[1];
    return (Number(kib) * 1_024) / 1e6;
  }

  /** The size of the state on disk, in MB: of the newest snapshot, and of all files. */
  stateMb(): { readonly snapshot: number; readonly all: number } {
    const sizeMb = (file: string) =>
      (statSync(join(this.stateDir, file), { throwIfNoEntry: false })?.size ?? 0) / 1e6;
    const files = readdirSync(this.stateDir);
    const generation = (file: string) => Number(file.slice(file.indexOf('-') + 1));
    const [newest = ''] = files
      .filter((file) => /^snapshot-\d+$/.test(file))
      .sort((a, b) => generation(b) - generation(a));
    return { snapshot: sizeMb(newest), all: files.reduce((sum, file) => sum + sizeMb(file), 0) };
  }

  /** The number of times that the kernel woke a thread of the process. */
  wakeUps(): number {
    const tasks = `/proc/${this.#running().pid}/task`;
    return readdirSync(tasks).reduce((sum, task) => {
      const status = readFileSync(join(tasks, task, 'status'), 'utf8');
      return sum + Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)?.[1]);
    }, 0);
  }

  /** Runs a command beside the daemon with its output in a pipe. */
  async command(
    args: readonly string[],
    limitMs: number,
  ): Promise<{ ms: number; lines: number; text: string }> {
    const startedAt = performance.now();
    const child = spawn(process.execPath, [CLI, ...args, '--config', this.#config], {
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: limitMs,
    });
    let lines = 0;
    let text = '';
    child.stdout.on('data', (data: Buffer) => {
      for (let at = data.indexOf(10); at >= 0; at = data.indexOf(10, at + 1)) lines += 1;
      if (text.length < KEPT_CHARACTERS) text += data.toString();
    });
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
      child.once('close', (...how) => resolve(how));
    });
    const what = `peersync ${args.join(' ')}`;
    if (signal !== null) throw new NotReached(`${what}: no end within ${seconds(limitMs)}`);
    if (code !== 0) throw new Error(`${what} ended with ${code}`);
    return { ms: performance.now() - startedAt, lines, text };
  }

  /** Ends it gently; after a minute by force. */
  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || this.#ended !== undefined) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    const force = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(force);
  }

  async #status(): Promise<Status> {
    return JSON.parse((await this.command(['status', '--json'], 60_000)).text);
  }

  async #until(
    what: string,
    limitMs: number,
    everyMs: number,
    reached: () => Promise<boolean>,
  ): Promise<void> {
    for (const end = performance.now() + limitMs; performance.now() < end; await pause(everyMs)) {
      if (this.#ended !== undefined) throw new Error(this.#failure());
      if (await reached()) return;
    }
    throw new NotReached(`${what}: not within ${seconds(limitMs)}`);
  }

  #running(): ChildProcess {
    if (this.#child === undefined || this.#ended !== undefined) throw new Error(this.#failure());
    return this.#child;
  }

  #failure(): string {
    const log = existsSync(join(this.#dir, 'log'))
      ? readFileSync(join(this.#dir, 'log'), 'utf8')
      : '';
    return `${this.#ended ?? 'the daemon does not run'}; its log ends with\n${log.slice(-2_000)}`;
  }
}

function isScanned(folders: Status['folders']): boolean {
  return folders.every(({ watch }) => watch?.state !== 'scanning' && watch?.lastScan !== undefined);
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toPrecision(3)} s`;
}
