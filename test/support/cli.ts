import { type ChildProcess, spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { afterEach } from 'vitest';
import { until } from './wait.js';

const CLI = resolve(import.meta.dirname, '../../dist/cli.js');
const running = new Set<ChildProcess>();

afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
});

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A peersync process, as a user would start one. */
export class Running {
  stdout = '';
  stderr = '';
  readonly ended: Promise<Ended>;
  readonly child: ChildProcess;

  constructor(
    args: readonly string[],
    options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
  ) {
    const child = spawn(process.execPath, [CLI, ...args], {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child = child;
    running.add(child);
    child.stdout?.on('data', (data: Buffer) => {
      this.stdout += data.toString();
    });
    child.stderr?.on('data', (data: Buffer) => {
      this.stderr += data.toString();
    });
    this.ended = new Promise((done) => {
      child.on('close', (code, signal) => {
        running.delete(child);
        done({ code, signal, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  /** Waits until its output holds a text. */
  async says(text: string | RegExp, limitMs = 30_000): Promise<void> {
    let over = false;
    void this.ended.then(() => {
      over = true;
    });
    const said = () => {
      const all = this.stdout + this.stderr;
      return typeof text === 'string' ? all.includes(text) : text.test(all);
    };
    try {
      await until(() => said() || over, `the process says ${text}`, limitMs);
    } catch (error) {
      throw new Error(`${error}\nstdout: ${this.stdout.slice(-2000)}\nstderr: ${this.stderr.slice(-2000)}`);
    }
    if (!said()) throw new Error(`ended without saying ${text}:\n${this.stdout}\n${this.stderr}`);
  }

  kill(signal: NodeJS.Signals): Promise<Ended> {
    this.child.kill(signal);
    return this.ended;
  }
}

/** Runs a command to its end. */
export function peersync(
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Ended> {
  return new Running(args, options).ended;
}
