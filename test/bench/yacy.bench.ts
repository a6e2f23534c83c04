import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { yacy } from '../../src/peer/dialects/yacy.js';
import { type BenchRow, promised, row } from './rows.js';
import { ScaleDaemon } from './scale-daemon.js';
import { Server } from './server.js';
import type { Pushes } from './yacy-server.js';

const FILES = 3_000;
const FILE_BYTES = 2_048;
const PER_REQUEST = 50;
/**
 * Measurements of a warm YaCy on two cores: 180 documents a second with two workers, and fewer with
 * one, because it reads and answers one request while it indexes another; half a millisecond for a
 * look-up.
 */
const MS_A_DOCUMENT = 5.5;
const MS_A_LOOKUP = 0.5;
const MS_A_PUSH = 80;
const MS_A_REQUEST = PER_REQUEST * MS_A_DOCUMENT + MS_A_PUSH;

/**
 * Documents pushed by the built daemon to a peer that takes a fixed time for each, beside a bare
 * script with two workers.
 */
export async function yacyBench(): Promise<BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), 'peersync-bench-'));
  const server = await Server.start<Pushes>('yacy-server', MS_A_DOCUMENT, MS_A_LOOKUP, MS_A_PUSH);
  const { url } = server;
  const folder = join(root, 'folder');
  const peer = { url, dialect: 'yacy' };
  const more = { peer, push: {}, confirm: { hold: '2s' } };
  const daemon = new ScaleDaemon(join(root, 'daemon'), folder, url, more);
  try {
    makeFiles(folder);
    const bare: Pushes[] = [];
    for (let turn = 0; turn < 2; turn += 1) {
      await bareWorkers(url, folder);
      bare.push(await server.counted());
    }
    await daemon.start(60_000);
    await daemon.accepted(FILES, 120_000);
    const ours = await server.counted();
    const rate = ({ ms, count }: Pushes) => Math.round((FILES * (1 - 1 / count)) / (ms / 1000));
    const result = row(
      'yacy: pushes, beside two bare workers',
      rate(ours),
      Math.max(...bare.map(rate)),
      'files/s',
    );
    const gap = 'yacy: longest time between two pushes, beside the time of one';
    return [
      promised(result, 'at 0.95 of it', result.ratio >= 0.95),
      row(gap, ours.longestGapMs, MS_A_REQUEST, 'ms'),
    ];
  } finally {
    await daemon.stop();
    server.end();
    rmSync(root, { recursive: true, force: true });
  }
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

/** Reads and pushes all files, two requests at a time. */
async function bareWorkers(url: string, folder: string): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < FILES) {
      const from = next;
      next += PER_REQUEST;
      const items = Array.from({ length: PER_REQUEST }, (_, i) => ({
        url: `https://bare.example.org/f${from + i}.txt`,
        collection: 'bare',
        data: readFileSync(join(folder, `f${from + i}.txt`)),
      }));
      const { body, method, path } = await yacy.pushRequest(items, {}, () => url);
      if (body === undefined) throw new Error('the push has no body');
      const { type, bytes = null } = body;
      const headers = { 'content-type': type };
      const answer = await fetch(new URL(path, url), {
        method,
        headers,
        body: bytes,
      });
      await answer.text();
      if (!answer.ok) throw new Error(`the peer answered ${answer.status}`);
    }
  };
  await Promise.all([work(), work()]);
}
