import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fastestDriver } from '../../src/embedded/driver.js';
import { type BenchRow, below, promised, row } from './rows.js';
import { ScaleDaemon } from './scale-daemon.js';

const MODULES = resolve(import.meta.dirname, '../../../node_modules');
const CLI = resolve(import.meta.dirname, '../../../dist/cli.js');
const DROPPED = 20_000;
const BYTES = 2_048;
const PER_REQUEST = 50;
const ASKED = 400;
const WORDS = [
  'npm',
  'react ',
  'install ',
  '"pull request"',
  'license -apache',
  'configuration options',
  'title:usage',
];
const PREFIXES = ['re', 'npm', 'inst', 'configu', 'expre', 'node ap', 'the fun', 'plugi'];
const MISTYPED = ['instalation', 'exmaple', 'dependancies'];

/** What is promised with each build of SQLite; `ratio` is that to bare inserts. */
const PROMISED = {
  'node:sqlite': { ratio: 0.5, wordsMs: 15, prefixesMs: 10 },
  'node-sqlite3-wasm': { ratio: 0.35, wordsMs: 30, prefixesMs: 30 },
} as const;
/** Up to so many documents, searches take no longer than PROMISED. */
const FEW_DOCUMENTS = 100_000;
/** The longest time of a search over more documents, in ms. */
const MANY_MS = 100;

/**
 * The embedded peer on text of real pages: from dropped to confirmed beside bare inserts into FTS5
 * through the same SQLite, the size of the index, and how long searches take while it indexes.
 *
 * @param indexed the number of documents that are searched
 */
export async function embeddedBench(indexed: number): Promise<BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), 'peersync-bench-'));
  try {
    return [...(await dropped(root)), ...(await searched(root, indexed))];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function dropped(root: string): Promise<BenchRow[]> {
  const folder = join(root, 'folder');
  plant(folder);
  const bare = await bareInserts(join(root, 'bare.sqlite'), folder);
  const peer = { url: 'embedded', embedded: { dir: join(root, 'peer'), port: 0 } };
  const daemon = new ScaleDaemon(join(root, 'daemon'), folder, '', { peer, push: {}, confirm: {} });
  try {
    await daemon.start(60_000);
    const began = performance.now();
    await daemon.confirmed(DROPPED, 600_000);
    const ours = DROPPED / ((performance.now() - began) / 1_000);
    const what = 'embedded: dropped to confirmed, beside bare inserts into FTS5';
    const result = row(what, ours, bare, 'documents/s');
    const { ratio } = PROMISED[(await fastestDriver()).name];
    return [promised(result, `at ${ratio} of it`, result.ratio >= ratio)];
  } finally {
    await daemon.stop();
  }
}

async function searched(root: string, indexed: number): Promise<BenchRow[]> {
  const dir = join(root, 'large');
  const program = spawn(process.execPath, [CLI, 'peer', '--data', dir, '--port', '0'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  try {
    const url = await new Promise<string>((found) => {
      const look = (data: Buffer) => {
        const url = /http:\/\/127\.0\.0\.1:\d+/.exec(data.toString())?.[0];
        if (url !== undefined) found(url);
      };
      program.stdout.on('data', look);
      program.stderr.on('data', look);
    });
    const password = readFileSync(join(dir, 'admin-password'), 'utf8').trim();
    const pages = pagesOf(BYTES);
    const push = async (from: number, commit: boolean): Promise<void> => {
      const form = new URLSearchParams({ count: String(PER_REQUEST), commit: String(commit) });
      for (let n = 0; n < PER_REQUEST; n += 1) {
        form.set(`url-${n}`, `https://bench.example/${from + n}.md`);
        form.set(`data-${n}`, pages.next().value);
        form.set(`collection-${n}`, (from / PER_REQUEST) % 2 === 0 ? 'even' : 'odd');
      }
      const authorization = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`;
      const answer = await fetch(`${url}/api/push_p.json`, {
        method: 'POST',
        body: form,
        headers: { authorization },
      });
      await answer.text();
      if (!answer.ok) throw new Error(`the peer answered ${answer.status}`);
    };
    for (let from = 0; from < indexed; from += PER_REQUEST) await push(from, true);
    const size = statSync(join(dir, 'peer.sqlite')).size;
    const times = async (queries: readonly string[], count: number): Promise<number> => {
      const took: number[] = [];
      for (let n = 0; n < count; n += 1) {
        const query = queries[n % queries.length] ?? '';
        // As the page asks while somebody types.
        const asked = new URLSearchParams({ query, typing: 'true' });
        const began = performance.now();
        await (await fetch(`${url}/search.json?${asked}`)).text();
        took.push(performance.now() - began);
      }
      return took.sort((a, b) => a - b)[Math.floor(count * 0.95)] ?? Number.NaN;
    };
    let isOver = false;
    const indexing = (async () => {
      for (let from = indexed; !isOver; from += PER_REQUEST) await push(from, false);
    })();
    const p95 = await times(WORDS, ASKED);
    const typed = await times(PREFIXES, ASKED);
    const mistyped = await times(MISTYPED, ASKED / 10);
    isOver = true;
    await indexing;
    const { wordsMs, prefixesMs } =
      indexed > FEW_DOCUMENTS
        ? { wordsMs: MANY_MS, prefixesMs: MANY_MS }
        : PROMISED[(await fastestDriver()).name];
    const within = `over ${indexed} documents while it indexes, p95`;
    return [
      below('embedded: index beside the text', size / (indexed * BYTES), 1.5, 'times'),
      below(`embedded: search ${within}`, p95, wordsMs, 'ms'),
      below(`embedded: prefixes of words ${within}`, typed, prefixesMs, 'ms'),
      below(`embedded: mistyped words ${within}`, mistyped, 200, 'ms'),
      row(
        'embedded: search with nothing else to do, p95',
        await times(WORDS, ASKED),
        Number.NaN,
        'ms',
      ),
      row(
        'embedded: prefixes with nothing else to do, p95',
        await times(PREFIXES, ASKED),
        Number.NaN,
        'ms',
      ),
    ];
  } finally {
    program.kill();
    await once(program, 'exit');
  }
}

/**
 * Reads the files and puts them into a plain FTS5 table, 100 a transaction that is on disk.
 * @returns documents a second
 */
async function bareInserts(path: string, folder: string): Promise<number> {
  const database = (await fastestDriver()).open(path);
  database.exec(`PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE VIRTUAL TABLE words USING fts5 (url UNINDEXED, title, body)`);
  const insert = database.prepare('INSERT INTO words VALUES (?, ?, ?)');
  const began = performance.now();
  let count = 0;
  for (const directory of readdirSync(folder)) {
    database.exec('BEGIN');
    for (const name of readdirSync(join(folder, directory))) {
      insert.run([
        `https://bench.example/${directory}/${name}`,
        name,
        readFileSync(join(folder, directory, name), 'utf8'),
      ]);
      count += 1;
    }
    database.exec('COMMIT');
  }
  const rate = count / ((performance.now() - began) / 1_000);
  insert.finalize();
  database.close();
  return rate;
}

function plant(folder: string): void {
  const pages = pagesOf(BYTES);
  for (let n = 0; n < DROPPED; n += 1) {
    const directory = join(folder, `d${Math.floor(n / 100)}`);
    if (n % 100 === 0) mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, `f${n}.md`), pages.next().value);
  }
}

/** Pieces of the Markdown files of node_modules, from other places each time. */
function* pagesOf(bytes: number): Generator<string, never> {
  const files = readdirSync(MODULES, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /\.md$/i.test(file),
  );
  const text = files
    .map((file) => readFileSync(join(MODULES, file), 'latin1'))
    .join('\n')
    .replace(/[^\0-\x7f]/g, ' ');
  for (let at = 0; ; at = (at + 1_000_003) % (text.length - bytes))
    yield text.slice(at, at + bytes);
}
