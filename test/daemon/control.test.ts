import { chmodSync, chownSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { Server } from 'node:net';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { askDaemon, cannotOpen, openControl } from '../../src/daemon/control.js';
import { systemClock } from '../../src/lib/clock.js';
import { EXIT, PeersyncError } from '../../src/lib/errors.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { Answerer } from '../../src/report/answers.js';
import { temporaryDirectory } from '../support/temp.js';

const QUESTION = { ask: 'x', parameters: { n: 1 } };
const servers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of servers.splice(0)) await close();
});

/** Asks a daemon that answers so. */
async function ask(answer: Answerer, patienceMs?: number, directory = temporaryDirectory()) {
  servers.push(await openControl(directory, answer, silentLogger));
  return await read(directory, patienceMs === undefined ? {} : { patienceMs });
}

async function read(directory: string, options = {}): Promise<unknown[] | undefined> {
  const answer = await askDaemon(directory, QUESTION, options);
  if (answer === undefined) return undefined;
  const lines: unknown[] = [];
  for await (const line of answer) lines.push(line);
  return lines;
}

describe('the control socket', () => {
  it('carries a question to the daemon, and its answer back line by line', async () => {
    expect(await ask((question) => [question, 'ä\n€'])).toEqual([QUESTION, 'ä\n€']);
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
      expect(await ask(() => ['here'], undefined, state)).toEqual(['here']);
    } finally {
      process.umask(umask);
      spy.mockRestore();
    }
    expect([...before, ...reached()]).toEqual([]);
  });

  it('works in a directory whose path is too long for a socket', async () => {
    const long = join(temporaryDirectory(), 'x'.repeat(200));
    mkdirSync(long);
    expect(await ask(() => ['here'], undefined, long)).toEqual(['here']);
  });

  it('tells that no daemon runs: without a directory, without a socket, and when it has stopped', async () => {
    expect(await read(join(temporaryDirectory(), 'none'))).toBeUndefined();
    const directory = temporaryDirectory();
    expect(await read(directory)).toBeUndefined();
    await ask(() => [], undefined, directory);
    await servers.pop()?.();
    expect(await read(directory)).toBeUndefined();
  });

  it('carries an error of the daemon with its code, hint and exit code', async () => {
    const parts = { code: 'C', message: 'm', hint: 'h', exitCode: EXIT.usage };
    const asking = ask(() => {
      throw new PeersyncError(parts);
    });
    await expect(asking).rejects.toMatchObject(parts);
  });

  it('waits for a daemon that has begun to answer as long as it takes', async () => {
    const answer = async function* () {
      yield 1;
      await systemClock.sleep(2_500);
      yield 2;
    };
    // Long enough for a busy machine to begin.
    expect(await ask(answer, 2_000)).toEqual([1, 2]);
  });

  it('says so when the daemon does not answer at all, or ends in the middle of an answer', async () => {
    const never = async function* () {
      await systemClock.sleep(400);
      yield 1;
    };
    await expect(ask(never, 100)).rejects.toMatchObject({ code: 'CONTROL_FAILED' });
    const ends = async function* () {
      yield 1;
      void servers.pop()?.();
      await systemClock.sleep(400);
      yield 2;
    };
    await expect(ask(ends)).rejects.toMatchObject({ code: 'CONTROL_FAILED' });
  });

  it.runIf(process.geteuid?.() === 0)('is not asked where another user offers it', async () => {
    const nobody = 65_534;
    const directory = temporaryDirectory();
    for (const each of [directory, dirname(directory)]) chmodSync(each, 0o755);
    await ask(() => ['a lie'], undefined, directory);
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
    expect(await read(directory)).toEqual(['a lie']);
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
