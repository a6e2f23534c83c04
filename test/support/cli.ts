import { type ChildProcess, spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { afterwards, type Life } from './afterwards.js';
import { until } from './wait.js';

/** The command line as it is built and shipped. */
export const CLI = resolve(import.meta.dirname, '../../dist/cli.js');

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** For `node`; the command line unless given. */
  readonly program?: string;
  /** When it is killed, if it still runs then; after the test unless given. */
  readonly life?: Life;
}

/** A process of peersync, as a user would start one, or of another program. */
export class Running {
  stdout = '';
  stderr = '';
  readonly ended: Promise<Ended>;
  readonly child: ChildProcess;

  constructor(args: readonly string[], options: RunOptions = {}) {
    const child = spawn(process.execPath, [options.program ?? CLI, ...args], {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child = child;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.ended = new Promise((done) => {
      child.on('close', (code, signal) => {
        done({ code, signal, stdout: this.stdout, stderr: this.stderr });
      });
    });
    afterwards(options.life ?? 'test', async () => {
      await this.kill('SIGKILL');
    });
  }

  /** Waits until its output holds a text. */
  async says(text: string | RegExp, limitMs = 60_000): Promise<void> {
    let over = false;
    void this.ended.then(() => {
      over = true;
    });
    const matches = () => {
      const all = this.stdout + this.stderr;
      return typeof text === 'string' ? all.includes(text) : text.test(all);
    };
    try {
      await until(() => matches() || over, `the process says ${text}`, limitMs);
    } catch (error) {
      throw new Error(
        `${error}\nstdout: ${this.stdout.slice(-2000)}\nstderr: ${this.stderr.slice(-2000)}`,
      );
    }
    if (!matches())
      throw new Error(`ended without saying ${text}:\n${this.stdout}\n${this.stderr}`);
  }

  kill(signal: NodeJS.Signals): Promise<Ended> {
    this.child.kill(signal);
    return this.ended;
  }
}

/** Runs a command to its end. */
export function peersync(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  return new Running(args, options).ended;
}
