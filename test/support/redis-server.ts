import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const START_MS = 30_000;
const LOOK_MS = 20;

/** Whether the machine has the program. */
export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;

export interface RedisOptions {
  /** Whether it keeps its keys when it is killed (AOF). @default false */
  readonly isDurable?: boolean;
  /** More settings, as of its command line. */
  readonly settings?: readonly string[];
  /** Where it listens beside its socket. */
  readonly tcp?: { readonly host: string; readonly port: number };
}

/** A Redis of its own, on a socket in a directory. */
export class RedisServer {
  readonly socket: string;
  readonly url: string;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();

  constructor(
    private readonly directory: string,
    private readonly options: RedisOptions = {},
  ) {
    this.socket = join(directory, 'redis.sock');
    this.url = `unix://${this.socket}`;
  }

  /** Starts it, and waits until it accepts connections. */
  async start(): Promise<void> {
    const { isDurable = false, settings: more = [], tcp } = this.options;
    const { host, port } = tcp ?? { host: '127.0.0.1', port: 0 };
    const network = ['--bind', host, '--port', `${port}`, '--protected-mode', 'no'];
    const settings = ['--unixsocket', this.socket, '--dir', this.directory, ...more];
    const kept = ['--save', '', '--appendonly', isDurable ? 'yes' : 'no'];
    // A Redis that was killed leaves its socket.
    rmSync(this.socket, { force: true });
    const child = spawn('redis-server', [...network, ...settings, ...kept], { stdio: 'ignore' });
    this.#child = child;
    this.#ended = new Promise((resolve) => child.once('exit', () => resolve()));
    for (const end = performance.now() + START_MS; !(await this.#listens()); await pause(LOOK_MS))
      if (performance.now() > end) throw new Error('the Redis does not start');
  }

  async #listens(): Promise<boolean> {
    return await new Promise((resolve) => {
      const socket = connect(this.socket, () => {
        socket.destroy();
        resolve(true);
      });
      socket.on('error', () => resolve(false));
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.#child?.kill(signal);
    await this.#ended;
  }
}
