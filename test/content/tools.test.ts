import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { NO_PROGRAMS } from '../../src/content/helpers/programs.js';
import { type Call, ShortageError, Tools } from '../../src/content/helpers/tools.js';
import { temporaryDirectory } from '../support/temp.js';

const PRLIMIT = '/usr/bin/prlimit';

function tools(prlimit?: string) {
  const directory = temporaryDirectory();
  const made = new Tools({ ...NO_PROGRAMS, ...(prlimit && { prlimit }) }, directory);
  onTestFinished(() => made.close());
  /** Runs a script of the shell. */
  const run = (script: string, call: Partial<Call> = {}) => {
    const program = made.file('script', Buffer.from(script));
    return made.run({
      program: '/bin/sh',
      args: [program],
      maxOutputBytes: 1_000_000,
      timeoutMs: 20_000,
      ...call,
    });
  };
  return { directory, made, run };
}

function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it('a program gets its input, and its output is returned', async () => {
  const { run } = tools();
  expect(`${await run('cat; echo end', { input: Buffer.from('begin ') })}`).toBe('begin end\n');
});

it('a program that does not read its input does no harm', async () => {
  const { run } = tools();
  expect(`${await run('echo end', { input: Buffer.alloc(5_000_000) })}`).toBe('end\n');
});

it('the environment has only the path, the language, and a private temporary directory', async () => {
  process.env.PEERSYNC_TEST_SECRET = 'secret';
  onTestFinished(() => void delete process.env.PEERSYNC_TEST_SECRET);
  const { run } = tools();
  const lines = `${await run('env', { env: { MORE: '1' } })}`.trim().split('\n');
  const names = lines.map((line) => line.replace(/=.*/, ''));
  expect(names.filter((name) => !['PWD', 'SHLVL', '_', 'OLDPWD'].includes(name)).sort()).toEqual([
    'LANG',
    'MORE',
    'PATH',
    'TMPDIR',
  ]);
});

it('arguments are no words of a shell', async () => {
  const { directory, made } = tools();
  const args = ['$(touch made)', '; touch made', '-rf'];
  const output = await made.run({
    program: '/usr/bin/printf',
    args: ['%s|', ...args],
    maxOutputBytes: 1_000,
    timeoutMs: 20_000,
  });
  expect(`${output}`).toBe('$(touch made)|; touch made|-rf|');
  expect(
    readdirSync(directory, { recursive: true }).map((name) => basename(`${name}`)),
  ).not.toContain('made');
});

it('its files are in a private directory, which is removed afterwards', async () => {
  const { directory, made, run } = tools();
  const file = made.file('document.doc', Buffer.from('words'));
  expect(readFileSync(file, 'utf8')).toBe('words');
  const where = `${await run('pwd; echo left > left')}`.trim();
  expect(existsSync(join(where, 'left'))).toBe(true);
  made.close();
  expect(readdirSync(directory)).toEqual([]);
});

it('a program that fails is told with its last words', async () => {
  const { made, run } = tools();
  await expect(run('echo "first" >&2; echo "no such table." >&2; exit 3')).rejects.toMatchObject({
    kind: 'failed',
    message: 'sh ended with code 3 (no such table)',
  });
  await expect(run('kill -SEGV $$')).rejects.toMatchObject({
    kind: 'failed',
    message: expect.stringMatching(/^sh was ended by SIGSEGV/),
  });
  expect(made.needsRestart).toBe(false);
});

it('a full disk is no fault of the document', async () => {
  const { made, run } = tools();
  const where = `${await run('pwd')}`.trim();
  symlinkSync('/dev/full', join(where, 'document.doc'));
  expect(() => made.file('document.doc', Buffer.from('words'))).toThrow(ShortageError);
});

it('a program that was ended from outside is no fault of the document', async () => {
  const { made, run } = tools();
  await expect(run('exit 1')).rejects.toThrow('code 1');
  expect(made.wasEnded).toBe(false);
  await expect(run('kill -KILL $$')).rejects.toMatchObject({ kind: 'failed' });
  expect(made.wasEnded).toBe(true);
});

it('a program that is not there is told', async () => {
  const { made } = tools();
  const call = { program: '/nowhere/catdoc', args: [], maxOutputBytes: 1, timeoutMs: 20_000 };
  await expect(made.run(call)).rejects.toMatchObject({
    kind: 'not started',
    message: expect.stringContaining('catdoc cannot be started'),
  });
});

it('a program that hangs is killed at its limit, and its process has to end', async () => {
  const { made, run } = tools();
  const began = performance.now();
  await expect(run('exec sleep 600', { timeoutMs: 200 })).rejects.toMatchObject({
    kind: 'timeout',
  });
  expect(performance.now() - began).toBeLessThan(60_000);
  expect(made.needsRestart).toBe(true);
});

it('the output of a program can go to a private file, up to its limit', async () => {
  const { directory, made } = tools(existsSync(PRLIMIT) ? PRLIMIT : undefined);
  const write = (bytes: number, name: string) => {
    const args = ['-c', `${bytes}`, '/dev/zero'];
    const call = { program: '/usr/bin/head', args, maxOutputBytes: 1_000, timeoutMs: 20_000 };
    return made.runToFile(call, name);
  };
  const path = await write(1_000, 'fits');
  expect(path.startsWith(directory)).toBe(true);
  expect(readFileSync(path)).toHaveLength(1_000);
  await expect(write(1_001, 'too large')).rejects.toMatchObject({
    kind: 'output',
    message: 'head writes more than 1000 bytes',
  });
  // It takes no more room meanwhile, if something can keep it from that.
  if (existsSync(PRLIMIT)) expect(readFileSync(made.pathOf('too large'))).toHaveLength(1_000);
});

it('without `prlimit`, a program that writes too much is killed, and its output fills no disk', async () => {
  const { made } = tools();
  const call = { args: ['words'], maxOutputBytes: 5, timeoutMs: 20_000 };
  await expect(made.runToFile({ ...call, program: '/usr/bin/yes' }, 'a')).rejects.toMatchObject({
    kind: 'output',
    message: 'yes writes more than 5 bytes',
  });
  expect(existsSync(made.pathOf('a'))).toBe(false);
  const path = await made.runToFile({ ...call, program: '/bin/echo', args: ['word'] }, 'b');
  expect(readFileSync(path, 'utf8')).toBe('word\n');
});

it('it is told when this process waits for a program', async () => {
  const told: boolean[] = [];
  const onWaiting = (isWaiting: boolean) => void told.push(isWaiting);
  const made = new Tools(NO_PROGRAMS, temporaryDirectory(), undefined, onWaiting);
  onTestFinished(() => made.close());
  const limits = { maxOutputBytes: 1_000, timeoutMs: 20_000 };
  await made.run({ program: '/bin/echo', args: [], ...limits });
  await expect(made.run({ program: '/bin/false', args: [], ...limits })).rejects.toThrow();
  await expect(made.run({ program: '/bin/none', args: [], ...limits })).rejects.toThrow();
  expect(told).toEqual([true, false, true, false, true, false]);
});

it('a program that writes without end is killed', async () => {
  const { made, run } = tools();
  await expect(run('exec cat /dev/zero', { maxOutputBytes: 100_000 })).rejects.toMatchObject({
    kind: 'output',
    message: 'sh writes more than 100000 bytes',
  });
  expect(made.needsRestart).toBe(true);
});

it('the output counts although a program left another one that holds it open', async () => {
  const { made, run } = tools();
  const pidFile = join(temporaryDirectory(), 'pid');
  const output = await run(`echo words; sleep 600 & echo $! > ${pidFile}`);
  expect(`${output}`).toBe('words\n');
  expect(made.needsRestart).toBe(true);
  const pid = Number(readFileSync(pidFile, 'utf8'));
  onTestFinished(() => {
    if (runs(pid)) process.kill(pid, 'SIGKILL');
  });
  expect(runs(pid)).toBe(true);
});

it.skipIf(!existsSync(PRLIMIT))(
  'memory, processor time and files of a program are limited',
  async () => {
    const { run } = tools(PRLIMIT);
    // The shell doubles a text until it has no memory.
    const fills = 'a=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; while true; do a="$a$a"; done';
    await expect(run(fills, { timeoutMs: 60_000 })).rejects.toMatchObject({ kind: 'failed' });
    await expect(run('while true; do :; done', { timeoutMs: 1_000 })).rejects.toMatchObject({
      kind: expect.stringMatching(/^(failed|timeout)$/),
    });
    const limits = `${await run('ulimit -f; ulimit -d; ulimit -c')}`;
    // In blocks of 512 bytes, and in KiB.
    expect(limits).toBe(`${2 ** 30 / 512}\n${2 ** 30 / 1024}\n0\n`);
  },
);
