import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BenchRow } from './rows.js';

const FILES = 1_000_000;
const MIRRORS = 2_000;
/** Beside it. */
const FEW = 1_000;
const ROUNDS = 15;
const LONGEST_PAUSE_MS = 20;

const QUESTIONS = {
  '/api/status': 'the status',
  '/api/live': 'the first event of a follower',
  '/api/items?status=quarantined&limit=100': '100 quarantined files',
  '/api/items?status=pending&limit=100': 'files of a status that none has',
  '/metrics': 'a scrape of the metrics',
};

/** The status page of a daemon with 1,000,000 files and 2,000 mirrors, beside one with 1,000 files and none. */
export async function pageBench(): Promise<BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), 'peersync-bench-'));
  const pages: Page[] = [];
  try {
    const few = await Page.start(FEW, 0, join(root, 'few'));
    pages.push(few);
    const many = await Page.start(FILES, MIRRORS, join(root, 'many'));
    pages.push(many);
    const rows: BenchRow[] = [];
    for (const [path, what] of Object.entries(QUESTIONS)) {
      const [measured, baseline] = [await many.measured(path), await few.measured(path)];
      rows.push({
        name: `page: ${what}, with ${FILES} files`,
        ...{ measured: measured.ms, baseline: baseline.ms, ratio: measured.ms / baseline.ms, unit: 'ms' },
      });
      rows.push({
        name: '  longest pause of the daemon meanwhile',
        ...{ measured: measured.pauseMs, baseline: baseline.pauseMs, unit: 'ms' },
        ratio: measured.pauseMs / baseline.pauseMs,
        promise: { text: `under ${LONGEST_PAUSE_MS} ms`, kept: measured.pauseMs < LONGEST_PAUSE_MS },
      });
    }
    return rows;
  } finally {
    for (const page of pages) page.end();
    rmSync(root, { recursive: true, force: true });
  }
}

class Page {
  readonly #child: ChildProcess;
  readonly #url: string;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.#url = url;
  }

  static async start(files: number, mirrors: number, directory: string): Promise<Page> {
    const child = fork(
      new URL('./page-child.js', import.meta.url),
      [String(files), String(mirrors), directory],
      {
        execArgv: [],
      },
    );
    const { url } = (await heard(child)) as { url: string };
    return new Page(child, url);
  }

  /** The middle time until an answer was whole (of a stream: until its first event), and the shortest longest pause. */
  async measured(path: string): Promise<{ ms: number; pauseMs: number }> {
    const times: number[] = [];
    const pauses: number[] = [];
    for (let i = 0; i < ROUNDS; i += 1) {
      await this.#pause();
      const started = performance.now();
      await this.#ask(path);
      times.push(performance.now() - started);
      pauses.push(await this.#pause());
    }
    const middle = times.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0;
    // What the machine does beside makes a pause longer and never shorter.
    return { ms: middle, pauseMs: Math.min(...pauses) };
  }

  end(): void {
    this.#child.kill('SIGKILL');
  }

  async #pause(): Promise<number> {
    const answer = heard(this.#child);
    this.#child.send('pause');
    return ((await answer) as { pauseMs: number }).pauseMs;
  }

  #ask(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const call = request(new URL(path, this.#url), { agent: false }, (response) => {
        if (response.statusCode !== 200) reject(new Error(`${path} answered ${response.statusCode}`));
        response.on('end', resolve);
        if (path !== '/api/live') {
          response.resume();
          return;
        }
        let text = '';
        response.on('data', (chunk) => {
          text += chunk;
          if (!text.includes('\n\n')) return;
          call.destroy();
          resolve();
        });
      });
      call.on('error', reject);
      call.end();
    });
  }
}

function heard(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`the page of the bench ended with ${code}`));
    child.once('exit', onExit);
    child.once('message', (message) => {
      child.off('exit', onExit);
      resolve(message);
    });
  });
}
