import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { afterwards } from './afterwards.js';
import type { Ended, RunOptions } from './cli.js';
import { until } from './wait.js';

const PROGRAM = resolve(import.meta.dirname, 'warm-program.mjs');

/**
 * A process that runs one command line after the other: the built `cli.js` from its top each time,
 * with arguments, an environment and a directory of its own, until nothing is left that would keep
 * a process alive.
 */
class WarmProcess {
  #stdout = '';
  #stderr = '';
  #over: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | undefined;
  readonly #child: ChildProcess;

  constructor() {
    this.#child = fork(PROGRAM, [], { execArgv: [], stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    this.#child.on('close', (code, signal) => {
      this.#over = { code, signal };
    });
    afterwards('file', () => void this.#child.kill('SIGKILL'));
  }

  get isOver(): boolean {
    return this.#over !== undefined;
  }

  async run(args: readonly string[], { cwd = process.cwd(), env }: RunOptions): Promise<Ended> {
    [this.#stdout, this.#stderr] = ['', ''];
    const mark = `<end ${randomUUID()}>`;
    this.#child.send({ args, cwd, env: { ...process.env, ...env }, mark });
    const end = new RegExp(`${mark}(\\d+)\n$`);
    const hasEnded = () => this.isOver || (this.#stdout.endsWith(mark) && end.test(this.#stderr));
    await until(hasEnded, `peersync ${args.join(' ')} ends`, 600_000);
    // If the process itself ended, by a signal or an uncaught error, its own exit counts.
    const [stdout, stderr] = [this.#stdout.replace(mark, ''), this.#stderr.replace(end, '')];
    const code = end.exec(this.#stderr)?.[1];
    if (code !== undefined) return { code: Number(code), signal: null, stdout, stderr };
    return { code: null, signal: null, ...this.#over, stdout, stderr };
  }
}

/** Those that have nothing to do. */
const idle: WarmProcess[] = [];

/**
 * Runs a command to its end, as `peersync` of `cli.js` does, in a process that may have run others
 * before: for a start costs more than most commands do. Not for what a process does before its
 * program begins, or what is done to it.
 */
export async function peersync(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const warm = idle.pop() ?? new WarmProcess();
  const ended = await warm.run(args, options);
  if (!warm.isOver) idle.push(warm);
  return ended;
}
