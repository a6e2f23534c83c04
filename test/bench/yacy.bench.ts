import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { Pool } from 'undici';
import { yacy } from '../../src/peer/dialects.js';
import { child } from './push.bench.js';
import type { BenchRow } from './rows.js';

const FILES = 3_000;
const FILE_BYTES = 2_048;
const PER_REQUEST = 50;
/**
 * As measured with a warm YaCy on two cores: 180 documents a second with two workers and fewer with one, for reading and
 * answering a request goes beside the indexing of another; half a millisecond a look-up.
 */
const MS_A_DOCUMENT = 5.5;
const MS_A_LOOKUP = 0.5;
const MS_A_PUSH = 80;
const MS_A_REQUEST = PER_REQUEST * MS_A_DOCUMENT + MS_A_PUSH;

/** Documents pushed to a peer that takes a fixed time for each, beside a bare script with two workers. */
export async function yacyBench(): Promise<BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), 'peersync-bench-'));
  const server = spawn(
    process.execPath,
    [join(import.meta.dirname, 'yacy-server.js'), ...[MS_A_DOCUMENT, MS_A_LOOKUP, MS_A_PUSH].map(String)],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const lines = createInterface({ input: server.stdout });
  try {
    const url = new URL(await nextLine(lines));
    const folder = join(root, 'folder');
    makeFiles(folder);
    const bare = Math.min(await bareWorkers(url, folder), await bareWorkers(url, folder));
    await countsOf(server, lines);
    const ms = await pushed(url, folder, root);
    const counts = await countsOf(server, lines);
    const rate = (took: number) => Math.round(FILES / (took / 1000));
    const ratio = rate(ms) / rate(bare);
    return [
      {
        name: 'yacy: pending to accepted, beside two bare workers',
        measured: rate(ms),
        baseline: rate(bare),
        ratio,
        unit: 'files/s',
        promise: { text: 'at 0.95 of it', kept: ratio >= 0.95 },
      },
      {
        name: 'yacy: longest time between two pushes, beside the time of one',
        measured: counts.longestGapMs,
        baseline: MS_A_REQUEST,
        ratio: counts.longestGapMs / MS_A_REQUEST,
        unit: 'ms',
      },
    ];
  } finally {
    server.kill();
    rmSync(root, { recursive: true, force: true });
  }
}

interface Counts {
  readonly pushes: number;
  readonly lookUps: number;
  readonly longestGapMs: number;
}

async function countsOf(server: ChildProcess, lines: Interface): Promise<Counts> {
  const line = nextLine(lines);
  server.stdin?.write('\n');
  return JSON.parse(await line);
}

function nextLine(lines: Interface): Promise<string> {
  return new Promise((resolve) => lines.once('line', resolve));
}

function makeFiles(folder: string): void {
  mkdirSync(folder);
  for (let n = 0; n < FILES; n += 1) {
    let text = `file ${n}\n`;
    for (let word = n; text.length < FILE_BYTES; word += 1)
      text += `${createHash('md5').update(`${word}`).digest('hex')} `;
    writeFileSync(join(folder, `f${n}.txt`), text.slice(0, FILE_BYTES));
  }
}

/** Reads and pushes all files, two requests at a time. @returns how long that took, in ms */
async function bareWorkers(url: URL, folder: string): Promise<number> {
  const pool = new Pool(url.origin, { connections: 2 });
  const began = performance.now();
  let next = 0;
  const work = async () => {
    while (next < FILES) {
      const from = next;
      next += PER_REQUEST;
      const items = Array.from({ length: Math.min(PER_REQUEST, FILES - from) }, (_, i) => ({
        url: `https://bare.example.org/f${from + i}.txt`,
        collection: 'bare',
        data: readFileSync(join(folder, `f${from + i}.txt`)),
      }));
      const body = await yacy.pushBody(items, {}, url.href);
      const { statusCode, body: answer } = await pool.request({
        method: 'POST',
        path: '/api/push_p.json',
        headers: { 'content-type': body.type },
        body: body.bytes ?? null,
      });
      await answer.dump();
      if (statusCode !== 200) throw new Error(`the peer answered ${statusCode}`);
    }
  };
  await Promise.all([work(), work()]);
  await pool.close();
  return performance.now() - began;
}

/** @returns how long it took from the start until everything was accepted, in ms */
async function pushed(url: URL, folder: string, root: string): Promise<number> {
  const stateDir = join(root, 'state');
  mkdirSync(stateDir);
  await child([url.host, folder, stateDir, 'prepare']);
  return JSON.parse(await child([url.host, folder, stateDir, 'yacy'])).ms;
}
