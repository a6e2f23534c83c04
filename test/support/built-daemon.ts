import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type ConfigParts, writeConfig } from './config.js';

const LOOK_MS = 100;
const START_MS = 60_000;

/** A report of `GET /api/status`, as far as it is read here. */
interface Status {
  readonly folders: readonly {
    readonly name: string;
    readonly items: Readonly<Record<string, number>>;
  }[];
}

export interface BuiltDaemonOptions {
  /** The path of the built `cli.js`. */
  readonly cli: string;
  /** Of its configuration, state, log and peer; it exists. */
  readonly directory: string;
  readonly parts: Omit<ConfigParts, 'peer'>;
  /** Environment variables besides those of this process. */
  readonly env?: NodeJS.ProcessEnv;
}

/**
 * The built daemon with a peer of its own, asked by its status page: a command for each question
 * would take more processor time than the daemon does. For tests and for benches.
 */
export class BuiltDaemon {
  /** The most memory that the daemon itself has taken when it was asked something, in MB. */
  mostMb = 0;
  readonly config: string;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();

  private constructor(
    private readonly options: BuiltDaemonOptions,
    private readonly page: string,
  ) {
    const { directory, parts } = options;
    this.config = writeConfig(directory, {
      ...parts,
      peer: { url: 'embedded', embedded: { dir: join(directory, 'peer'), port: 0 } },
      status: { listen: page },
    });
  }

  /** Writes the configuration. Nothing runs yet. */
  static async of(options: BuiltDaemonOptions): Promise<BuiltDaemon> {
    return new BuiltDaemon(options, `127.0.0.1:${await freePort()}`);
  }

  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error('the daemon does not run');
    return this.#child.pid;
  }

  /** Starts it, and waits until it answers. */
  async start(): Promise<void> {
    const { cli, env } = this.options;
    const log = openSync(this.#log, 'a');
    const child = spawn(process.execPath, [cli, 'run', '-c', this.config], {
      stdio: ['ignore', log, log],
      env: { ...process.env, ...env },
    });
    closeSync(log);
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      child.once('exit', () => {
        this.#child = undefined;
        resolve();
      });
    });
    await this.until(
      async () =>
        await this.#counts().then(
          () => true,
          () => false,
        ),
      'the daemon answers',
      START_MS,
    );
  }

  /** Returns the number of files of a folder with a status; of all folders without a name. */
  async count(status: string, folder?: string): Promise<number> {
    this.mostMb = Math.max(this.mostMb, this.memoryMb());
    const folders = await this.#counts();
    const chosen = folders.filter(({ name }) => folder === undefined || name === folder);
    return chosen.reduce((sum, { items }) => sum + (items[status] ?? 0), 0);
  }

  /** Waits until so many files of a folder are confirmed. @returns the time that it took, in ms */
  async confirmed(files: number, limitMs: number, folder?: string): Promise<number> {
    const began = performance.now();
    const what = `${files} files are confirmed${folder === undefined ? '' : ` in ${folder}`}`;
    await this.until(async () => (await this.count('confirmed', folder)) >= files, what, limitMs);
    return performance.now() - began;
  }

  /** @throws Error when the limit is over, or the daemon ended */
  async until(
    condition: () => boolean | Promise<boolean>,
    what: string,
    limitMs: number,
  ): Promise<void> {
    for (const end = performance.now() + limitMs; !(await condition()); await pause(LOOK_MS)) {
      const isOver = performance.now() > end;
      if (!isOver && this.#child !== undefined) continue;
      const why = isOver ? `not within ${Math.round(limitMs / 1_000)} s` : 'the daemon ended';
      throw new Error(`${what}: ${why}; its log ends with\n${this.#logEnd()}`);
    }
  }

  /** RSS of the daemon without the processes that it started, in MB. */
  memoryMb(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return (Number(/^VmRSS:\s*(\d+) kB/m.exec(status)?.[1]) * 1_024) / 1e6;
  }

  /** Ends it, and waits until it is gone. */
  async kill(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.#child?.kill(signal);
    await this.#ended;
  }

  async #counts(): Promise<Status['folders']> {
    const answer = await fetch(`http://${this.page}/api/status`);
    if (!answer.ok) throw new Error(`the status page answered ${answer.status}`);
    return ((await answer.json()) as Status).folders;
  }

  get #log(): string {
    return join(this.options.directory, 'log');
  }

  #logEnd(): string {
    return readFileSync(this.#log, 'utf8').slice(-2_000);
  }
}

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('there is no free port');
  return address.port;
}
