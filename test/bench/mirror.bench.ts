import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BenchRow, below, row } from './rows.js';
import { ScaleDaemon } from './scale-daemon.js';
import { Server } from './server.js';

const ROWS = 200_000;
const MOST_MB = 150;
const LONGEST_BLOCK_MS = 50;

/**
 * A table of 200,000 rows with 8 columns to CSV by the built daemon, beside reading the same bytes
 * and throwing them away.
 */
export async function mirrorBench(): Promise<BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), 'peersync-bench-'));
  const server = await Server.start('table-server', ROWS);
  const { url } = server;
  const folder = join(root, 'folder');
  mkdirSync(folder);
  const mirror = { root: join(root, 'mirror'), tables: [{ table: 'bench', path: 'bench.csv' }] };
  const daemon = new ScaleDaemon(join(root, 'daemon'), folder, url, { mirror });
  try {
    const readMs = Math.min(await readAll(url), await readAll(url));
    await daemon.start(60_000);
    // It is mirrored once at the start.
    await daemon.calm(120_000);
    const before = await daemon.probe();
    const { ms } = await daemon.command(['mirror', 'bench'], 120_000);
    const { cpuMs, longestMs } = await daemon.probe();
    const what = `mirror: a table of ${ROWS} rows x 8 columns to CSV`;
    return [
      row(`${what}, beside reading the bytes`, ms / 1_000, readMs / 1_000, 's'),
      row(`${what}, processor time`, (cpuMs - before.cpuMs) / 1_000, readMs / 1_000, 's'),
      row('mirror: block of the event loop, longest', longestMs, LONGEST_BLOCK_MS, 'ms'),
      below('mirror: most memory (RSS)', daemon.memoryMb('VmHWM'), MOST_MB, 'MB'),
    ];
  } finally {
    await daemon.stop();
    server.end();
    rmSync(root, { recursive: true, force: true });
  }
}

/** @returns how long it took, in ms */
async function readAll(url: string): Promise<number> {
  const startedAt = performance.now();
  const body = new URLSearchParams({ table: 'bench' });
  const headers = { accept: 'application/json' };
  const answer = await fetch(`${url}/api/table_p.html`, { method: 'POST', headers, body });
  await answer.body?.pipeTo(new WritableStream());
  return performance.now() - startedAt;
}
