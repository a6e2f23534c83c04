import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'undici';
import type { BenchRow } from './rows.js';

const FILES = 20_000;
const FILE_BYTES = 2_048;
const PER_REQUEST = 50;
const PER_DIRECTORY = 500;

const WORDS =
  'the peer shows this version of a document when its index has been committed and a search finds it'.split(
    ' ',
  );

/** 20,000 files of 2 KB pushed to a server that only answers, beside a bare undici loop that sends the same bodies. */
export async function pushBench(): Promise<BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), 'peersync-bench-'));
  const server = spawn(process.execPath, [join(import.meta.dirname, 'answering-server.js')]);
  try {
    const port = await new Promise<number>((resolve) => {
      server.stdout.once('data', (data: Buffer) => resolve(Number(data.toString())));
    });
    const folder = join(root, 'folder');
    const bodies = makeFiles(folder);
    await loop(port, bodies, 1);
    const bare = Math.min(await loop(port, bodies, 1), await loop(port, bodies, 1));
    const bareFour = Math.min(await loop(port, bodies, 4), await loop(port, bodies, 4));
    const single = singles(folder);
    const bareSingles = Math.min(await loop(port, single, 1), await loop(port, single, 1));
    const pushed = await best(port, folder, root, 'pending');
    const whole = await best(port, folder, root, 'whole');
    const rate = (ms: number) => Math.round(FILES / (ms / 1000));
    const rows: BenchRow[] = [
      row('push: pending to accepted, beside one bare loop', rate(pushed.ms), rate(bare), {
        text: 'at least half as fast',
        atLeast: 0.5,
      }),
      row('push: pending to accepted, beside 4 bare loops at once', rate(pushed.ms), rate(bareFour)),
      row(
        'push: pending to accepted, beside one bare loop with a request a file',
        rate(pushed.ms),
        rate(bareSingles),
      ),
      row('push: scan, read and push, beside one bare loop', rate(whole.ms), rate(bare)),
      row(
        'push: scan, read and push, beside one bare loop with a request a file',
        rate(whole.ms),
        rate(bareSingles),
      ),
    ];
    const rss = Math.round(Math.max(pushed.maxRssBytes, whole.maxRssBytes) / 1e6);
    return [
      ...rows,
      {
        name: 'push: most memory (RSS)',
        measured: rss,
        baseline: 200,
        ratio: rss / 200,
        unit: 'MB',
        promise: { text: 'under 200 MB', kept: rss < 200 },
      },
    ];
  } finally {
    server.kill();
    rmSync(root, { recursive: true, force: true });
  }
}

function row(
  name: string,
  measured: number,
  baseline: number,
  promise?: { readonly text: string; readonly atLeast: number },
): BenchRow {
  const ratio = measured / baseline;
  return {
    name,
    measured,
    baseline,
    ratio,
    unit: 'files/s',
    ...(promise ? { promise: { text: promise.text, kept: ratio >= promise.atLeast } } : {}),
  };
}

/** Writes the files; returns the request bodies that push them. */
function makeFiles(folder: string): Buffer[] {
  const bodies: Buffer[] = [];
  let fields: string[] = [];
  for (let i = 0; i < FILES; i += 1) {
    const directory = `d${Math.floor(i / PER_DIRECTORY)}`;
    if (i % PER_DIRECTORY === 0) mkdirSync(join(folder, directory), { recursive: true });
    let text = `file ${i}\n`;
    for (let w = i; text.length < FILE_BYTES; w += 7) text += `${WORDS[w % WORDS.length]} `;
    text = text.slice(0, FILE_BYTES);
    const path = `${directory}/f${i}.txt`;
    writeFileSync(join(folder, path), text);
    const n = i % PER_REQUEST;
    const url = `https://bench.example/${path}`;
    fields.push(
      new URLSearchParams({
        [`data-${n}`]: text,
        [`url-${n}`]: url,
        [`collection-${n}`]: 'bench',
      }).toString(),
    );
    if (fields.length === PER_REQUEST) {
      bodies.push(Buffer.from([`count=${PER_REQUEST}`, ...fields].join('&')));
      fields = [];
    }
  }
  return bodies;
}

/** The request bodies that push each file by itself. */
function singles(folder: string): Buffer[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const text = readFileSync(join(entry.parentPath, entry.name), 'utf8');
      const url = `https://bench.example/${entry.name}`;
      return Buffer.from(
        `count=1&${new URLSearchParams({ 'data-0': text, 'url-0': url, 'collection-0': 'bench' })}`,
      );
    });
}

/** Sends all bodies by undici and nothing else; returns how long that took, in ms. */
async function loop(port: number, bodies: readonly Buffer[], loops: number): Promise<number> {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: loops });
  const started = performance.now();
  let next = 0;
  const one = async () => {
    for (let body = bodies[next++]; body !== undefined; body = bodies[next++]) {
      const answer = await pool.request({
        method: 'POST',
        path: '/api/push_p.html',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body,
      });
      await answer.body.dump();
    }
  };
  await Promise.all(Array.from({ length: loops }, one));
  const ms = performance.now() - started;
  await pool.close();
  return ms;
}

interface Pushed {
  readonly ms: number;
  readonly push: number;
  readonly maxRssBytes: number;
}

async function best(port: number, folder: string, root: string, way: 'pending' | 'whole'): Promise<Pushed> {
  const runs: Pushed[] = [];
  for (let i = 0; i < 3; i += 1) {
    const stateDir = join(root, `state-${way}-${i}`);
    mkdirSync(stateDir);
    if (way === 'pending') await child([`127.0.0.1:${port}`, folder, stateDir, 'prepare']);
    runs.push(JSON.parse(await child([`127.0.0.1:${port}`, folder, stateDir, way, String(FILES)])));
  }
  return runs.reduce((a, b) => (a.ms < b.ms ? a : b));
}

export function child(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const pusher = spawn(process.execPath, [join(import.meta.dirname, 'push-child.js'), ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let out = '';
    pusher.stdout.on('data', (data: Buffer) => {
      out += data.toString();
    });
    pusher.on('close', (code) => {
      if (code === 0) resolve(out);
      else reject(new Error(`the pusher ended with ${code}`));
    });
  });
}
