import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { filesBelow } from './engine.js';

const MIB = 2 ** 20;
const program = await compiledProgram('test/mirror/resuming-program.ts');

/** A server with one file, which is sent slowly; it knows ranges, and dates its answers alone. */
async function slowly(content: Buffer) {
  const served: { from: number }[] = [];
  const server = createServer(async ({ headers }, response) => {
    response.setMaxListeners(0);
    const from = Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0);
    served.push({ from });
    const range = { 'content-range': `bytes ${from}-${content.length - 1}/${content.length}` };
    const type = { 'content-type': 'application/gzip', 'content-length': content.length - from };
    response.writeHead(from > 0 ? 206 : 200, { ...type, ...(from > 0 ? range : {}) });
    for (let at = from; at < content.length && !response.destroyed; at += MIB / 4) {
      if (!response.write(content.subarray(at, at + MIB / 4)))
        await Promise.race([once(response, 'drain'), once(response, 'close')]);
      await sleep(2);
    }
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterwards('test', () => {
    server.close();
    server.closeAllConnections();
  });
  return { served, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

it('a download that is killed again and again goes on each time, and nobody sees a part of it', async () => {
  const content = randomBytes(40 * MIB);
  const { served, url } = await slowly(content);
  const root = join(temporaryDirectory(), 'root');
  const stateDir = temporaryDirectory();
  const file = join(root, 'x');
  const start = () => {
    const child = spawn(process.execPath, [program, url, root, stateDir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    afterwards('test', () => void child.kill('SIGKILL'));
    return { child, ended: once(child, 'exit') };
  };
  for (let kills = 1; kills <= 4; kills += 1) {
    const { child, ended } = start();
    // What is written goes on only after it was kept that 4 MiB are safe.
    await until(
      () => served.length === kills && isWritten(root, (served.at(-1)?.from ?? 0) + 5 * MIB),
      'a step',
    );
    child.kill('SIGKILL');
    await ended;
    expect(existsSync(file)).toBe(false);
    expect(filesBelow(root)).toHaveLength(1);
  }
  const { child, ended } = start();
  let said = '';
  child.stdout.on('data', (chunk) => {
    said += chunk;
  });
  await ended;
  expect(said).toBe('true\n');
  expect(readFileSync(file).equals(content)).toBe(true);
  expect(filesBelow(root)).toEqual(['x']);
  const from = served.map((each) => each.from);
  expect(from).toEqual([...new Set(from)].sort((a, b) => a - b));
  expect(from.length).toBe(5);
}, 120_000);

/** Whether so many bytes stand in the one file there is. */
function isWritten(root: string, bytes: number): boolean {
  const [name] = filesBelow(root);
  return name !== undefined && statSync(join(root, name)).size >= bytes;
}
