import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const START_MS = 60_000;
const LOOK_MS = 50;

/** Workers of a fleet, as processes of the built program. For tests and for benches. */
export class Workers {
  readonly #running: { readonly child: ChildProcess; readonly log: string }[] = [];

  /**
   * @param cli the path of the built `cli.js`
   * @param directory of their logs; it exists
   */
  constructor(
    private readonly cli: string,
    private readonly directory: string,
  ) {}

  /** Starts so many, and waits until they take jobs. */
  async start(count: number, config: string): Promise<void> {
    const started = Array.from({ length: count }, (_, i) => {
      const log = join(this.directory, `worker-${this.#running.length + i}.log`);
      const output = openSync(log, 'w');
      const child = spawn(process.execPath, [this.cli, 'worker', '-c', config], {
        stdio: ['ignore', output, output],
      });
      closeSync(output);
      return { child, log };
    });
    this.#running.push(...started);
    for (const { child, log } of started)
      for (const end = performance.now() + START_MS; !takesJobs(log); await pause(LOOK_MS))
        if (child.exitCode !== null || performance.now() > end)
          throw new Error(`a worker does not take jobs; its log is\n${readFileSync(log, 'utf8')}`);
  }

  /** Ends all of them. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await Promise.all(
      this.#running.splice(0).map(async ({ child }) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = new Promise((resolve) => child.once('exit', resolve));
        child.kill(signal);
        await ended;
      }),
    );
  }
}

function takesJobs(log: string): boolean {
  return readFileSync(log, 'utf8').includes('takes jobs');
}
