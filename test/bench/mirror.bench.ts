import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BenchRow } from './rows.js';

const ROWS = 200_000;
const MOST_RSS = 150e6;

interface Figures {
  readonly ms: number;
  readonly cpuMs: number;
  readonly pauseMs: number;
  readonly rssBytes: number;
}

/** A table of 200,000 rows with 8 columns to CSV, beside reading the same bytes and throwing them away. */
export async function mirrorBench(): Promise<BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), 'peersync-bench-'));
  const program = (name: string): string => join(import.meta.dirname, name);
  const server = spawn(process.execPath, [program('table-server.js'), String(ROWS)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [port] = await once(server.stdout.setEncoding('utf8'), 'data');
    const run = (way: string): Figures => {
      const directory = join(root, way);
      mkdirSync(join(directory, 'folder'), { recursive: true });
      const args = [program('mirror-child.js'), String(port).trim(), directory, way];
      return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
    };
    run('read');
    const [read, mirrored] = [run('read'), run('mirror')];
    const what = `mirror: a table of ${ROWS} rows x 8 columns to CSV`;
    return [
      row(`${what}, beside reading the bytes`, mirrored.ms / 1_000, read.ms / 1_000, 's'),
      row(`${what}, processor time`, mirrored.cpuMs / 1_000, read.cpuMs / 1_000, 's'),
      row('mirror: longest pause of the event loop', mirrored.pauseMs, read.pauseMs, 'ms'),
      {
        ...row('mirror: most memory (RSS)', mirrored.rssBytes / 1e6, MOST_RSS / 1e6, 'MB'),
        promise: { text: 'under 150 MB', kept: mirrored.rssBytes < MOST_RSS },
      },
    ];
  } finally {
    server.kill();
    rmSync(root, { recursive: true, force: true });
  }
}

function row(name: string, measured: number, baseline: number, unit: string): BenchRow {
  return { name, measured, baseline, ratio: measured / baseline, unit };
}
