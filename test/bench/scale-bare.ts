// The bare loop that a first sync is laid beside: reads files, hashes them, pushes 50 a request
// with 4 workers and looks each up once with 8, over a Pool of undici (`fetch` takes four times as
// long). Its own process, so that its processor time is its own. Arguments: host and port, folder,
// files.
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Pool } from 'undici';

const PER_REQUEST = 50;
const PUSHERS = 4;
const LOOKERS = 8;

const [address, folder = '', files = '0'] = process.argv.slice(2);
const pool = new Pool(`http://${address}`, { connections: PUSHERS + LOOKERS });
const started = performance.now();
const cpuBefore = process.cpuUsage();
const paths = firstFiles(Number(files));
const hashes = new Map<string, string>();
const accepted: string[] = [];
let pushing = PUSHERS;
let next = 0;
const changes = new EventEmitter().setMaxListeners(LOOKERS);

await Promise.all([
  ...Array.from({ length: PUSHERS }, push),
  ...Array.from({ length: LOOKERS }, lookUp),
]);

const { user, system } = process.cpuUsage(cpuBefore);
const ms = performance.now() - started;
process.stdout.write(`${JSON.stringify({ ms, cpuMs: (user + system) / 1_000 })}\n`);
await pool.close();

function firstFiles(count: number): string[] {
  const found: string[] = [];
  for (const directory of readdirSync(folder)) {
    for (const name of readdirSync(join(folder, directory))) {
      if (found.length === count) return found;
      found.push(`${directory}/${name}`);
    }
  }
  return found;
}

async function push(): Promise<void> {
  while (next < paths.length) {
    const batch = paths.slice(next, next + PER_REQUEST);
    next += batch.length;
    const fields = new URLSearchParams({ count: String(batch.length) });
    for (const [n, path] of batch.entries()) {
      const content = await readFile(join(folder, path));
      hashes.set(path, createHash('sha256').update(content).digest('hex'));
      fields.set(`data-${n}`, content.toString());
      fields.set(`url-${n}`, urlOf(path));
      fields.set(`collection-${n}`, 'bench');
    }
    const answer = await ask('/api/push_p.html', fields);
    if (answer.successall !== 'true') throw new Error('the peer did not accept a push');
    accepted.push(...batch);
    changes.emit('change');
  }
  pushing -= 1;
  changes.emit('change');
}

async function lookUp(): Promise<void> {
  for (;;) {
    const path = accepted.pop();
    if (path !== undefined) {
      const shown = await ask('/api/peerdoc.html', new URLSearchParams({ url: urlOf(path) }));
      if (shown.url !== urlOf(path)) throw new Error(`the peer does not show ${path}`);
    } else if (pushing > 0) await once(changes, 'change');
    else return;
  }
}

function urlOf(path: string): string {
  return `https://bench.example/${path}`;
}

async function ask(path: string, fields: URLSearchParams): Promise<Record<string, unknown>> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const body = fields.toString();
  const answer = await pool.request({ method: 'POST', path, headers, body });
  return (await answer.body.json()) as Record<string, unknown>;
}
