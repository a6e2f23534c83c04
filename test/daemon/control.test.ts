import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { Server } from 'node:net';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { askDaemon, cannotOpen, openControl } from '../../src/daemon/control.js';
import { systemClock } from '../../src/lib/clock.js';
import { EXIT, PeersyncError } from '../../src/lib/errors.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { Answerer } from '../../src/report/answers.js';
import { temporaryDirectory } from '../support/temp.js';

const servers: (() => Promise<void>)[] = [];
async function daemon(answer: Answerer, directory = temporaryDirectory()): Promise<string> {
  servers.push(await openControl(directory, answer, silentLogger));
  return directory;
}
afterEach(async () => {
  for (const close of servers.splice(0)) await close();
});

async function ask(
  directory: string,
  ...rest: [options?: { readonly patienceMs: number }]
): Promise<unknown> {
  const answer = await askDaemon(directory, { ask: 'x', parameters: { n: 1 } }, ...rest);
  if (answer === undefined) return undefined;
  const lines: unknown[] = [];
  for await (const line of answer) lines.push(line);
  return lines;
}

describe('the control socket', () => {
  it('carries a question to the daemon, and its answer back line by line', async () => {
    const directory = await daemon((question) => [question, 'ä\n€']);
    expect(await ask(directory)).toEqual([{ ask: 'x', parameters: { n: 1 } }, 'ä\n€']);
  });

  it('is never in reach of others, whatever the umask and the state directory allow', async () => {
    const state = temporaryDirectory();
    chmodSync(state, 0o755);
    const listen = Server.prototype.listen;
    const reached: string[] = [];
    /** What others could open of what is there, at this moment. */
    const look = (): void => {
      for (const path of readdirSync(state, { recursive: true, encoding: 'utf8' })) {
        const isOpen = (mode: number) => (statSync(join(state, dirname(path))).mode & mode) === mode;
        if (isOpen(0o001) && (statSync(join(state, path)).mode & 0o002) !== 0) reached.push(path);
      }
    };
    const spy = vi.spyOn(Server.prototype, 'listen').mockImplementation(function (this: Server, ...args) {
      const server = Reflect.apply(listen, this, args) as Server;
      look();
      return server;
    });
    const umask = process.umask(0);
    try {
      await daemon(() => ['here'], state);
    } finally {
      process.umask(umask);
      spy.mockRestore();
    }
    look();
    expect(reached).toEqual([]);
    expect(await ask(state)).toEqual(['here']);
  });

  it('works in a directory whose path is too long for a socket', async () => {
    const long = join(temporaryDirectory(), 'x'.repeat(200));
    mkdirSync(long);
    const directory = await daemon(() => ['here'], long);
    expect(await ask(directory)).toEqual(['here']);
  });

  it('tells that no daemon runs: without a directory, without a socket, and when it has stopped', async () => {
    expect(await ask(join(temporaryDirectory(), 'none'))).toBeUndefined();
    expect(await ask(temporaryDirectory())).toBeUndefined();
    const directory = await daemon(() => []);
    await servers.pop()?.();
    expect(await ask(directory)).toBeUndefined();
  });

  it('carries an error of the daemon with its code, hint and exit code', async () => {
    const directory = await daemon(() => {
      throw new PeersyncError({ code: 'C', message: 'm', hint: 'h', exitCode: EXIT.usage });
    });
    await expect(ask(directory)).rejects.toMatchObject({ code: 'C', message: 'm', hint: 'h', exitCode: 2 });
  });

  it('waits for a daemon that has begun to answer as long as it takes', async () => {
    const directory = await daemon(async function* () {
      yield 1;
      await systemClock.sleep(3_000);
      yield 2;
    });
    expect(await ask(directory, { patienceMs: 2_000 })).toEqual([1, 2]);
  });

  it('says so when the daemon does not answer at all', async () => {
    const directory = await daemon(async function* () {
      await systemClock.sleep(400);
      yield 1;
    });
    await expect(ask(directory, { patienceMs: 100 })).rejects.toMatchObject({ code: 'CONTROL_FAILED' });
  });

  it('tells a person who may not look into the state whom to be', () => {
    const refused = Object.assign(new Error('permission denied'), { code: 'EACCES' });
    const error = cannotOpen(refused, '/var/lib/peersync/state');
    expect(error).toMatchObject({ code: 'CONTROL_FAILED', cause: refused });
    expect(error.message).toContain('may not look into the state in /var/lib/peersync/state');
    expect(error.hint).toContain('`sudo -u peersync peersync …`');
    const other = cannotOpen(Object.assign(new Error('EIO: i/o error'), { code: 'EIO' }), '/state');
    expect(other.message).toContain('EIO: i/o error');
  });

  it('says so when the daemon ends in the middle of an answer', async () => {
    let hear: () => void = () => {};
    const heard = new Promise<void>((resolve) => {
      hear = resolve;
    });
    const directory = await daemon(async function* () {
      yield 1;
      await heard;
      await servers.pop()?.();
      yield 2;
    });
    const answer = await askDaemon(directory, { ask: 'x', parameters: {} });
    if (answer === undefined) throw new Error('no answer');
    const read = async () => {
      for await (const line of answer) if (line === 1) hear();
    };
    await expect(read()).rejects.toMatchObject({ code: 'CONTROL_FAILED' });
  });
});
