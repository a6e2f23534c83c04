import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

/**
 * A program of another account: holds connections with half a request, and opens another for each
 * that is closed.
 */
class Crowd {
  /** When each was opened. */
  readonly #sockets = new Map<Socket, number>();
  #isOver = false;

  constructor(
    private readonly port: number,
    addresses: readonly string[],
    each: number,
  ) {
    afterwards('test', () => this.end());
    for (const address of addresses) for (let i = 0; i < each; i += 1) this.#open(address);
  }

  #open(localAddress: string): void {
    const socket = connect({ port: this.port, host: '127.0.0.1', localAddress });
    this.#sockets.set(socket, performance.now());
    socket.on('connect', () =>
      socket.write('POST /api/peerdoc.json HTTP/1.1\r\nHost: localhost\r\nConte'),
    );
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#sockets.delete(socket);
      if (!this.#isOver) setTimeout(() => this.#isOver || this.#open(localAddress), 20);
    });
  }

  /** Connections that the peer did not close at once. */
  get openConnections(): number {
    const before = performance.now() - 200;
    return [...this.#sockets.values()].filter((at) => at < before).length;
  }

  end(): void {
    this.#isOver = true;
    for (const socket of this.#sockets.keys()) socket.destroy();
  }
}

/** Whether the port takes connections of people. */
async function isServed(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' }, () =>
    socket.write('GET / HTTP/1.0\r\nHost: localhost\r\n\r\n'),
  );
  socket.on('error', () => {});
  let answer = '';
  socket.on('data', (chunk) => {
    answer += chunk;
  });
  await once(socket, 'close');
  return answer.startsWith('HTTP/1.1 200');
}

it('the daemon reaches the embedded peer even if other accounts hold all of its connections', async () => {
  const directory = temporaryDirectory();
  const path = writeConfig(directory, {
    peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
  });
  writeFileSync(join(directory, 'inbox', 'before.txt'), 'A file of before.\n');
  const run = new Running(['run', '-c', path]);
  await run.says('confirmed inbox/before.txt');
  const port = Number(/search it at http:\/\/127\.0\.0\.1:(\d+)\//.exec(run.stdout)?.[1]);
  expect(await isServed(port)).toBe(true);

  const crowd = new Crowd(port, ['127.0.0.1', '127.0.0.2'], 300);
  // The daemon's own connection of before is given up when it was idle for a second.
  await until(() => crowd.openConnections === 512, 'nobody gets in by the port');
  writeFileSync(join(directory, 'inbox', 'amid.txt'), 'A file in the crowd.\n');
  await until(() => run.stdout.includes('confirmed inbox/amid.txt'), 'it is confirmed', 15_000);
  expect(run.stdout).not.toContain('The peer does not answer');
  crowd.end();
  await until(() => isServed(port), 'the port takes connections again');
  expect((await run.kill('SIGTERM')).code).toBe(0);
});
