import { chmodSync, chownSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { createServer, request as httpRequest } from 'node:http';
import { Server } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type AskOptions, askDaemon, cannotOpen } from '../../src/api/client.js';
import type { Lot } from '../../src/api/request.js';
import type { Answerer } from '../../src/api/requests.js';
import { rescan } from '../../src/api/rescan.js';
import { openControl } from '../../src/daemon/control.js';
import { systemClock } from '../../src/lib/clock.js';
import { EXIT, PeersyncError } from '../../src/lib/errors.js';
import { silentLogger } from '../../src/lib/logger.js';
import { listenInPrivate } from '../../src/lib/socket.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const servers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of servers.splice(0)) await close();
});

/** A line of an answer. */
const scan = (files: number, folder = 'inbox') => ({
  folder,
  files,
  directories: 1,
  durationMs: 5,
});

/** Answers with these lines. */
function lines(...all: readonly unknown[]): Answerer {
  return async function* () {
    yield all;
  };
}

async function open(answer: Answerer, directory = temporaryDirectory()): Promise<string> {
  servers.push(await openControl(directory, answer, silentLogger));
  return directory;
}

/** Asks a daemon that answers so. */
async function ask(answer: Answerer, patienceMs?: number, directory = temporaryDirectory()) {
  await open(answer, directory);
  return await read(directory, patienceMs === undefined ? {} : { patienceMs });
}

async function read(directory: string, options: AskOptions = {}): Promise<unknown[] | undefined> {
  const answer = await askDaemon(directory, rescan, { folder: 'inbox' }, options);
  if (answer === undefined) return undefined;
  const all: unknown[] = [];
  for await (const line of answer) all.push(line);
  return all;
}

/** Sends a request as another program would. */
async function send(directory: string, method: string, path: string, body?: string) {
  return await new Promise<{ status: number | undefined; type: string | undefined; body: string }>(
    (resolve, reject) => {
      const socketPath = join(directory, 'control', 'socket');
      const headers = body === undefined ? {} : { 'content-type': 'application/json' };
      const call = httpRequest({ socketPath, method, path, headers, agent: false }, (response) => {
        const type = response.headers['content-type'];
        const { statusCode: status } = response;
        text(response).then((body) => resolve({ status, type, body }), reject);
      });
      call.on('error', reject).end(body);
    },
  );
}

describe('the control socket', () => {
  it('carries a question to the daemon, and its answer back line by line', async () => {
    const asked: unknown[] = [];
    const answer: Answerer = async function* ({ name }, question) {
      asked.push(name, question);
      yield [scan(1), scan(2, 'ä\n€')];
      yield [scan(3)];
    };
    expect(await ask(answer)).toEqual([scan(1), scan(2, 'ä\n€'), scan(3)]);
    expect(asked).toEqual(['rescan', { folder: 'inbox' }]);
  });

  it('answers other programs with one JSON document, as the page does', async () => {
    const directory = await open(lines(scan(1), scan(2)));
    const { body, status: code } = await send(directory, 'POST', '/api/rescan', '{}');
    expect([code, JSON.parse(body)]).toEqual([200, { scans: [scan(1), scan(2)] }]);
    expect((await send(directory, 'GET', '/api/rescan')).status).toBe(501);
    expect((await send(directory, 'GET', '/api/status')).status).toBe(200);
  });

  it('needs no token, and no origin of the page', async () => {
    const directory = await open(lines(scan(1)));
    expect((await send(directory, 'POST', '/api/rescan', '{}')).status).toBe(200);
  });

  it('says that a daemon of another version does not know a request', async () => {
    const directory = await open(lines());
    const { body, status: code } = await send(directory, 'POST', '/api/no-such', '{}');
    expect([code, JSON.parse(body).error]).toMatchObject([501, { code: 'UNKNOWN_QUESTION' }]);
  });

  it.each([
    ['a line of another shape', 200, JSON.stringify({ folder: 'inbox' })],
    ['no JSON', 200, 'a proxy says hello'],
    ['an error of another shape', 400, JSON.stringify({ error: 'so' })],
    ['an error that is no JSON', 502, '<h1>Bad gateway</h1>'],
  ])('refuses an answer with %s', async (_, code, body) => {
    const directory = temporaryDirectory();
    const server = createServer((_request, response) => response.writeHead(code).end(`${body}\n`));
    const socket = await listenInPrivate(server, join(directory, 'control'), 'socket');
    servers.push(async () => {
      await new Promise((resolve) => server.close(resolve));
      await socket.close();
    });
    await expect(read(directory)).rejects.toMatchObject({ code: 'CONTROL_FAILED' });
  });

  it('keeps fields that only a later daemon has', async () => {
    const line = { ...scan(1), later: true };
    expect(await ask(lines(line))).toEqual([line]);
  });

  it('makes no more lines than are read', async () => {
    let made = 0;
    const answer: Answerer = async function* () {
      for (; made < 1_000; made += 1)
        yield [scan(made, 'x'.repeat(100_000))] satisfies Lot<unknown>;
    };
    const directory = await open(answer);
    const all = await askDaemon(directory, rescan, {});
    const reader = all?.[Symbol.asyncIterator]();
    await reader?.next();
    let before = -1;
    await until(async () => {
      const isStill = made === before;
      before = made;
      await systemClock.sleep(200);
      return isStill;
    }, 'the daemon waits for the reader');
    // The buffers of the system and of both ends take some.
    expect(made).toBeLessThan(200);
    let count = 1;
    for (let next = await reader?.next(); next?.done === false; next = await reader?.next())
      count += 1;
    expect(count).toBe(1_000);
  });

  it('is never in reach of others, whatever the umask and the state directory allow', async () => {
    const state = temporaryDirectory();
    chmodSync(state, 0o755);
    const isOpen = (path: string, mode: number) => (statSync(path).mode & mode) === mode;
    /** Returns the files in the state directory that other users could open now. */
    const reached = () =>
      readdirSync(state, { recursive: true, encoding: 'utf8' })
        .map((path) => join(state, path))
        .filter((path) => isOpen(dirname(path), 0o001) && isOpen(path, 0o002));
    const before: string[] = [];
    const listen = Server.prototype.listen;
    const spy = vi.spyOn(Server.prototype, 'listen').mockImplementation(function (
      this: Server,
      ...args
    ) {
      const server = Reflect.apply(listen, this, args) as Server;
      before.push(...reached());
      return server;
    });
    const umask = process.umask(0);
    try {
      expect(await ask(lines(scan(1)), undefined, state)).toEqual([scan(1)]);
    } finally {
      process.umask(umask);
      spy.mockRestore();
    }
    expect([...before, ...reached()]).toEqual([]);
  });

  it('works in a directory whose path is too long for a socket', async () => {
    const long = join(temporaryDirectory(), 'x'.repeat(200));
    mkdirSync(long);
    expect(await ask(lines(scan(1)), undefined, long)).toEqual([scan(1)]);
  });

  it('tells that no daemon runs: without a directory, without a socket, and when it has stopped', async () => {
    expect(await read(join(temporaryDirectory(), 'none'))).toBeUndefined();
    const directory = temporaryDirectory();
    expect(await read(directory)).toBeUndefined();
    await ask(lines(), undefined, directory);
    await servers.pop()?.();
    expect(await read(directory)).toBeUndefined();
  });

  it('carries an error of the daemon with its code, hint and exit code', async () => {
    const parts = { code: 'C', message: 'm', hint: 'h', exitCode: EXIT.usage };
    const fails: Answerer = async function* () {
      yield* [];
      throw new PeersyncError(parts);
    };
    const directory = await open(fails);
    await expect(read(directory)).rejects.toMatchObject(parts);
    const { status: code, body } = await send(directory, 'POST', '/api/rescan', '{}');
    expect([code, JSON.parse(body)]).toEqual([400, { error: parts }]);
  });

  it('breaks off an answer that fails behind its first line, so that it is not taken for a whole one', async () => {
    const fails: Answerer = async function* () {
      yield [scan(1)];
      throw new PeersyncError({ code: 'C', message: 'm', hint: 'h' });
    };
    await expect(ask(fails)).rejects.toMatchObject({ code: 'CONTROL_FAILED' });
  });

  it('refuses what is no question', async () => {
    const directory = await open(lines(scan(1)));
    for (const body of ['{', '']) {
      const { body: answer, status: code } = await send(directory, 'POST', '/api/rescan', body);
      expect([code, JSON.parse(answer).error.code]).toEqual([400, 'BAD_REQUEST']);
    }
  });

  it('waits for a daemon that has begun to answer as long as it takes', async () => {
    const answer = async function* () {
      yield [scan(1)];
      await systemClock.sleep(2_500);
      yield [scan(2)];
    };
    // Long enough for a busy machine to begin.
    expect(await ask(answer, 2_000)).toEqual([scan(1), scan(2)]);
  });

  it('says so when the daemon does not answer at all, or ends in the middle of an answer', async () => {
    const never = async function* () {
      await systemClock.sleep(400);
      yield [scan(1)];
    };
    await expect(ask(never, 100)).rejects.toMatchObject({ code: 'CONTROL_FAILED' });
    const ends = async function* () {
      yield [scan(1)];
      void servers.pop()?.();
      await systemClock.sleep(400);
      yield [scan(2)];
    };
    await expect(ask(ends)).rejects.toMatchObject({ code: 'CONTROL_FAILED' });
  });

  it.runIf(process.geteuid?.() === 0)('is not asked where another user offers it', async () => {
    const nobody = 65_534;
    const directory = temporaryDirectory();
    for (const each of [directory, dirname(directory)]) chmodSync(each, 0o755);
    await ask(lines(scan(1)), undefined, directory);
    const control = join(directory, 'control');
    chmodSync(join(control, 'socket'), 0o777);
    const refused = (uid: number) => ({
      code: 'CONTROL_FAILED',
      message: expect.stringContaining(`${control} belongs to another user (uid ${uid})`),
      hint: expect.stringContaining(`\`sudo -u '#${uid}' peersync …\``),
    });
    chmodSync(control, 0o777);
    process.seteuid?.(nobody);
    try {
      await expect(read(directory)).rejects.toMatchObject(refused(0));
    } finally {
      process.seteuid?.(0);
    }
    expect(await read(directory)).toEqual([scan(1)]);
    chmodSync(control, 0o700);
    chownSync(control, nobody, nobody);
    await expect(read(directory)).rejects.toMatchObject(refused(nobody));
  });

  it('tells a person who may not look into the state whom to be', () => {
    const refused = Object.assign(new Error('permission denied'), { code: 'EACCES' });
    const error = cannotOpen(refused, '/var/lib/peersync/state');
    expect(error).toMatchObject({ code: 'CONTROL_FAILED', cause: refused });
    expect(error.message).toContain('may not look into the state in /var/lib/peersync/state');
    expect(error.hint).toContain('`sudo -u peersync peersync …`');
    expect(cannotOpen(new Error('EIO: i/o error'), '/state').message).toContain('EIO: i/o error');
  });
});
