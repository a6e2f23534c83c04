import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { describeHolder, type Holder, readLock, takeLock } from '../../src/lib/lock.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

let contenderProgram: string;

const heldByAnother = (holder: Holder) => new Error(describeHolder(holder));
const take = (path: string, clock = systemClock) => takeLock(path, clock, heldByAnother);
const freshPath = () => join(temporaryDirectory(), 'lock');
/** Returns the names of the files beside the lock, except the socket of its holder. */
function around(path: string): string[] {
  const names = readdirSync(dirname(path));
  const text = names.includes(basename(path)) ? readFileSync(path, 'utf8') : '{}';
  const { nonce } = JSON.parse(text) as Partial<Holder>;
  return names.filter((name) => name !== `lock.${nonce}.socket`);
}

/** Removes the socket, as if the holder ran on another kernel or its file system had no sockets. */
function withoutSocket(path: string, { nonce }: Holder): void {
  rmSync(join(dirname(path), `lock.${nonce}.socket`));
}

/** Returns the path of the second lock, which a process takes to replace a dead holder. */
function guardOf(path: string): string {
  return `${path}.${createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 16)}`;
}

function started(
  command: string,
  ...args: string[]
): ChildProcessByStdio<Writable, Readable, null> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  afterwards('test', () => void child.kill('SIGKILL'));
  return child;
}

/** Starts a process that tries for the lock when it is told to. */
async function contender(path: string) {
  const child = started(process.execPath, contenderProgram, path);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextLine = async () => String((await lines.next()).value);
  expect(await nextLine()).toBe('ready');
  return {
    pid: child.pid ?? 0,
    async send(word: 'try' | 'release'): Promise<string> {
      child.stdin.write(`${word}\n`);
      return await nextLine();
    },
    async kill(): Promise<void> {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
/** Writes a file so that its modification time changes. */
async function writeAnew(path: string, text: string): Promise<void> {
  const before = statSync(path).mtimeMs;
  while (statSync(path).mtimeMs === before) {
    writeFileSync(path, text);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

type Contender = Awaited<ReturnType<typeof contender>>;

const contenders = (path: string, count: number) =>
  Promise.all(Array.from({ length: count }, () => contender(path)));

/** Makes all processes try at the same moment. One wins, and the others name it. */
async function contest(
  all: readonly Contender[],
): Promise<{ winner: Contender; others: Contender[] }> {
  const outcomes = await Promise.all(all.map((each) => each.send('try')));
  const winner = all[outcomes.indexOf('won')];
  if (winner === undefined) throw new Error(`nobody won: ${outcomes.join(', ')}`);
  const others = all.filter((each) => each !== winner);
  expect(outcomes.filter((each) => each !== 'won')).toEqual(
    others.map(() => `held by ${winner.pid}`),
  );
  return { winner, others };
}

beforeAll(async () => {
  contenderProgram = await compiledProgram(resolve(import.meta.dirname, 'lock-contender.ts'));
});

describe('a lock', () => {
  it('refuses a second process, names the holder, is free after a release, and leaves no files', async () => {
    const path = freshPath();
    const other = await contender(path);
    const lock = await take(path, new FakeClock(Date.UTC(2026, 0, 1)));
    expect(await readLock(path)).toEqual(lock.holder);
    expect(await other.send('try')).toBe(`held by ${process.pid}`);
    await expect(take(path)).rejects.toThrow(`pid ${process.pid}, since 2026-01-01T00:00:00.000Z`);
    expect(around(path)).toEqual(['lock']);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await lock.release();
    expect(around(path)).toEqual([]);
    expect(await readLock(path)).toBeUndefined();
    expect(await other.send('try')).toBe('won');
    expect(await readLock(path)).toMatchObject({ pid: other.pid });
  });

  it('has a socket also below a long path, which shows whether its holder is alive', async () => {
    const directory = join(temporaryDirectory(), 'x'.repeat(200));
    mkdirSync(directory);
    const path = join(directory, 'lock');
    const other = await contender(path);
    expect(await other.send('try')).toBe('won');
    const names = () => readdirSync(directory).filter((name) => name.endsWith('.socket'));
    expect(names()).toHaveLength(1);
    // No process here has this pid, as if the holder ran in another container.
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.replace(/"pid":\d+/, '"pid":999999999'));
    await expect(take(path)).rejects.toThrow('pid 999999999');
    await other.kill();
    const lock = await take(path);
    expect(names()).toEqual([`lock.${lock.holder.nonce}.socket`]);
    await lock.release();
    await until(() => names().length === 0, 'the socket is gone');
  });

  it('goes to exactly one of 10 processes at once, each time its holder is killed', async () => {
    const path = freshPath();
    let living = await contenders(path, 10);
    for (let round = 0; round < 8; round += 1) {
      const { winner, others } = await contest(living);
      await winner.kill();
      expect(await readLock(path)).toBeUndefined();
      living = others;
    }
    expect(around(path)).toEqual(['lock']);
  });

  it('goes to exactly one of two processes at once, whatever was there before', async () => {
    const path = freshPath();
    const { holder, release } = await take(path);
    await release();
    const dead = (round: number) => JSON.stringify({ ...holder, started: '1', since: round });
    const both = await contenders(path, 2);
    for (let round = 0; round < 150; round += 1) {
      // The lock is free, belongs to a dead holder, or is empty.
      if (round % 3 > 0) writeFileSync(path, round % 3 === 1 ? dead(round) : '');
      const { winner } = await contest(both);
      expect(around(path)).toEqual(['lock']);
      expect(await winner.send('release')).toBe('released');
    }
    expect(around(path)).toEqual([]);
  });

  it('is free if the pid of its holder now belongs to another process', async () => {
    const path = freshPath();
    const other = await contender(path);
    expect(await other.send('try')).toBe('won');
    const holder = JSON.parse(readFileSync(path, 'utf8'));
    writeFileSync(path, JSON.stringify({ ...holder, started: `${Number(holder.started) - 1}` }));
    withoutSocket(path, holder);
    expect(await readLock(path)).toBeUndefined();
    expect((await take(path)).holder.pid).toBe(process.pid);
  });

  it('is free if its holder is a zombie', async () => {
    const path = freshPath();
    const parent = started('sh', '-c', 'sleep 0.05 & echo $!; exec sleep 60');
    const [pid] = await once(createInterface({ input: parent.stdout }), 'line');
    const { started: _, ...holder } = (await take(path)).holder;
    writeFileSync(path, JSON.stringify({ ...holder, pid: Number(pid) }));
    withoutSocket(path, { ...holder });
    await expect.poll(() => readLock(path), { timeout: 60_000 }).toBeUndefined();
    expect(existsSync(`/proc/${pid}`)).toBe(true);
    await take(path);
  });

  it.each([
    '',
    '\0\0\0\0',
    'garbage',
    '{"pid":1',
    'null',
    '[]',
    '{"pid":-1,"host":"x","since":1}',
    '{"pid":1,"host":"x","since":9e15}',
    'a link to nothing',
  ])('is free if a power cut or another program left %j in it', async (left) => {
    const path = freshPath();
    if (left === 'a link to nothing') symlinkSync('nowhere', path);
    else writeFileSync(path, left);
    expect(await readLock(path)).toBeUndefined();
    const lock = await take(path);
    expect(await readLock(path)).toEqual(lock.holder);
    expect(around(path)).toEqual([basename(path)]);
  });

  it('can be taken after a process died while taking it', async () => {
    const path = freshPath();
    const [first, second] = await contenders(path, 2);
    expect(await first?.send('try')).toBe('won');
    await first?.kill();
    const dead = readFileSync(path, 'utf8');
    writeFileSync(guardOf(path), dead.replace('nonce":"', 'nonce":"x'));
    expect(await second?.send('try')).toBe('won');
    expect(around(path)).toEqual(['lock']);
  });

  it('is waited for while another process replaces a dead holder, but not for ever', async () => {
    const path = freshPath();
    const clock = new FakeClock();
    const { holder } = await take(path);
    writeFileSync(path, 'garbage');
    writeFileSync(guardOf(path), JSON.stringify(holder));
    let outcome = '';
    void take(path, clock).catch((error: Error) => {
      outcome = error.message;
    });
    while (outcome === '') await clock.advance(1_000);
    expect(outcome).toBe(describeHolder(holder));
    expect(clock.elapsed()).toBeGreaterThanOrEqual(30_000);
    rmSync(guardOf(path));
    await take(path);
  });

  it('of another machine is taken after a minute without a heartbeat, and never before', async () => {
    const path = freshPath();
    const { holder, release } = await take(path);
    await release();
    const elsewhere = JSON.stringify({ ...holder, host: 'elsewhere', boot: 'another' });
    writeFileSync(path, elsewhere);
    const clock = new FakeClock();
    let outcome = '';
    const taking = () =>
      take(path, clock).then(
        () => {
          outcome = 'taken';
        },
        (error: Error) => {
          outcome = error.message;
        },
      );
    // Reading the file takes real time, which this clock does not show.
    const aSecond = async () => {
      await until(() => clock.waiting > 0 || outcome !== '', 'it waits or has ended');
      if (outcome === '') await clock.advance(1_000);
    };
    void taking();
    for (let waited = 0; waited < 30_000; waited += 1_000) await aSecond();
    expect(outcome).toBe('');
    await writeAnew(path, elsewhere);
    while (outcome === '') await aSecond();
    expect(outcome).toContain(`pid ${process.pid} on elsewhere`);
    outcome = '';
    const begun = clock.elapsed();
    void taking();
    while (outcome === '') await aSecond();
    expect(outcome).toBe('taken');
    expect(clock.elapsed() - begun).toBeGreaterThan(50_000);
    // A holder with an old heartbeat is not waited for.
    writeFileSync(path, elsewhere);
    const before = Date.now() / 1_000 - 61;
    utimesSync(path, before, before);
    await take(path, new FakeClock());
  });

  it('is free at once if its holder died on the same machine, whatever host name and pids are', async () => {
    const path = freshPath();
    const other = await contender(path);
    expect(await other.send('try')).toBe('won');
    const holder = JSON.parse(readFileSync(path, 'utf8')) as Holder;
    writeFileSync(
      path,
      JSON.stringify({ ...holder, host: 'elsewhere', pid: process.pid, pidNamespace: 'other' }),
    );
    await expect(take(path)).rejects.toThrow('on elsewhere');
    await other.kill();
    expect(await readLock(path)).toBeUndefined();
    await take(path);
    expect(around(path)).toEqual(['lock']);
  });

  it('reports to its holder that another process has taken it', async () => {
    const path = freshPath();
    const clock = new FakeClock();
    const lock = await take(path, clock);
    const beats: boolean[] = [];
    lock.onHeartbeat = (isOwn) => void beats.push(isOwn);
    while (beats.length < 1) await clock.advance(1_000);
    rmSync(path);
    while (beats.length < 2) await clock.advance(1_000);
    expect(beats).toEqual([true, false]);
    await lock.release();
  });

  it('stays with its new holder when an old holder releases', async () => {
    const path = freshPath();
    const lock = await take(path);
    const other = JSON.stringify({ ...lock.holder, nonce: 'other' });
    writeFileSync(path, other);
    await lock.release();
    expect(readFileSync(path, 'utf8')).toBe(other);
  });
});
