import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { describeHolder, type Holder, type Lock, readLock, takeLock } from '../../src/lib/lock.js';
import { FakeClock } from '../support/fake-clock.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';

/** No process has it: it is above what the kernel gives. */
const NO_PID = 2 ** 22 + 1;

let contenderProgram: string;
const running = new Set<ChildProcessByStdio<Writable, Readable, null>>();

class HeldError extends Error {
  constructor(readonly holder: Holder) {
    super(describeHolder(holder));
  }
}

function take(path: string, clock = systemClock): Promise<Lock> {
  return takeLock(path, clock, (holder) => new HeldError(holder));
}

/** A process that tries for the lock when it is told to. */
class Contender {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;

  constructor(path: string) {
    this.#child = spawn(process.execPath, [contenderProgram, path], { stdio: ['pipe', 'pipe', 'inherit'] });
    running.add(this.#child);
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async said(): Promise<string> {
    return String((await this.#lines.next()).value);
  }

  async tries(): Promise<string> {
    this.#child.stdin.write('try\n');
    return await this.said();
  }

  async releases(): Promise<void> {
    this.#child.stdin.write('release\n');
    expect(await this.said()).toBe('released');
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
    running.delete(this.#child);
  }
}

async function contenders(path: string, count: number): Promise<Contender[]> {
  const all = Array.from({ length: count }, () => new Contender(path));
  for (const each of all) expect(await each.said()).toBe('ready');
  return all;
}

/** Lets all try at the same moment, and gives the one who won and those who were told of it. */
async function contest(all: readonly Contender[]): Promise<{ winner: Contender; others: Contender[] }> {
  const outcomes = await Promise.all(all.map((each) => each.tries()));
  const [winner, second] = all.filter((_, i) => outcomes[i] === 'won');
  expect(second, 'nobody else won').toBeUndefined();
  if (winner === undefined) throw new Error(`nobody won: ${outcomes.join(', ')}`);
  const others = all.filter((each) => each !== winner);
  for (const outcome of outcomes.filter((each) => each !== 'won')) {
    expect(outcome).toBe(`held by ${winner.pid}`);
  }
  return { winner, others };
}

beforeAll(async () => {
  contenderProgram = await compiledProgram(resolve(import.meta.dirname, 'lock-contender.ts'));
});

afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
});

describe('a lock', () => {
  it('keeps a second one out, says who has it, and lets the next in after a release', async () => {
    const path = join(temporaryDirectory(), 'lock');
    const [other] = await contenders(path, 1);
    const lock = await take(path, new FakeClock(Date.UTC(2026, 0, 1)));
    expect(await readLock(path)).toEqual(lock.holder);
    expect(await other?.tries()).toBe(`held by ${process.pid}`);
    await expect(take(path)).rejects.toThrow(`pid ${process.pid}, since 2026-01-01T00:00:00.000Z`);
    await lock.release();
    expect(await readLock(path)).toBeUndefined();
    expect(await other?.tries()).toBe('won');
    expect(await readLock(path)).toMatchObject({ pid: other?.pid });
  });

  it('leaves nothing but itself behind, and nothing after its release', async () => {
    const dir = temporaryDirectory();
    const lock = await take(join(dir, 'lock'));
    await expect(take(join(dir, 'lock'))).rejects.toThrow(HeldError);
    expect(readdirSync(dir)).toEqual(['lock']);
    expect(statSync(join(dir, 'lock')).mode & 0o777).toBe(0o600);
    await lock.release();
    expect(readdirSync(dir)).toEqual([]);
  });

  it('goes to exactly one of 20 at once, again and again as its holders are killed', async () => {
    const dir = temporaryDirectory();
    const path = join(dir, 'lock');
    let living = await contenders(path, 20);
    for (let round = 0; round < 12; round += 1) {
      const { winner, others } = await contest(living);
      await winner.kill();
      expect(await readLock(path)).toBeUndefined();
      living = others;
    }
    expect(readdirSync(dir)).toEqual(['lock']);
  });

  it('goes to exactly one of two at once, whatever was there before', async () => {
    const dir = temporaryDirectory();
    const path = join(dir, 'lock');
    const { holder, release } = await take(path);
    await release();
    const dead = (round: number): string => JSON.stringify({ ...holder, pid: NO_PID, since: round });
    const both = await contenders(path, 2);
    for (let round = 0; round < 150; round += 1) {
      // Free, of a dead one, and with nothing in it.
      if (round % 3 > 0) writeFileSync(path, round % 3 === 1 ? dead(round) : '');
      const { winner } = await contest(both);
      expect(readdirSync(dir)).toEqual(['lock']);
      await winner.releases();
    }
    expect(readdirSync(dir)).toEqual([]);
  });

  it('is free when the process with the pid of its holder is another one', async () => {
    const path = join(temporaryDirectory(), 'lock');
    const [other] = await contenders(path, 1);
    expect(await other?.tries()).toBe('won');
    const holder = JSON.parse(readFileSync(path, 'utf8'));
    writeFileSync(path, JSON.stringify({ ...holder, started: `${Number(holder.started) - 1}` }));
    expect(await readLock(path)).toBeUndefined();
    const lock = await take(path);
    expect(lock.holder.pid).toBe(process.pid);
  });

  it('is free when its holder is dead but nobody has waited for it', async () => {
    const path = join(temporaryDirectory(), 'lock');
    const parent = spawn('sh', ['-c', 'sleep 0.05 & echo $!; exec sleep 60'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    running.add(parent);
    const [line] = await once(createInterface({ input: parent.stdout }), 'line');
    const { holder, release } = await take(path);
    await release();
    const { started: _, ...rest } = holder;
    writeFileSync(path, JSON.stringify({ ...rest, pid: Number(line) }));
    await expect.poll(() => readLock(path), { timeout: 10_000 }).toBeUndefined();
    expect(existsSync(`/proc/${line}`)).toBe(true);
    await take(path);
  });

  it.each([
    '',
    '\0\0\0\0',
    'garbage',
    '{"pid":1',
    '{"pid":-1,"host":"x","since":1}',
    '{"pid":1,"host":"x","since":9e15}',
    'null',
    '[]',
  ])('is free when a power cut or another program left %j of it', async (left) => {
    const dir = temporaryDirectory();
    const path = join(dir, 'lock');
    writeFileSync(path, left);
    expect(await readLock(path)).toBeUndefined();
    const lock = await take(path);
    expect(await readLock(path)).toEqual(lock.holder);
    expect(readdirSync(dir)).toEqual(['lock']);
  });

  it('is free when it is a link to nothing', async () => {
    const dir = temporaryDirectory();
    const path = join(dir, 'lock');
    symlinkSync('nowhere', path);
    expect(await readLock(path)).toBeUndefined();
    const lock = await take(path);
    expect(await readLock(path)).toEqual(lock.holder);
    expect(readdirSync(dir)).toEqual(['lock']);
  });

  it('is kept for a holder on another machine, of which nothing is known here', async () => {
    const path = join(temporaryDirectory(), 'lock');
    const { holder } = await take(path);
    const elsewhere = { ...holder, host: `not-${hostname()}`, pid: NO_PID };
    writeFileSync(path, JSON.stringify(elsewhere));
    expect(await readLock(path)).toEqual(elsewhere);
    await expect(take(path)).rejects.toThrow(`pid ${NO_PID} on not-${hostname()}, since `);
  });

  it('can be taken when one who was taking it died in the act', async () => {
    const dir = temporaryDirectory();
    const path = join(dir, 'lock');
    const [first, second] = await contenders(path, 2);
    expect(await first?.tries()).toBe('won');
    await first?.kill();
    const dead = readFileSync(path, 'utf8');
    writeFileSync(guardOf(path), dead.replace('nonce":"', 'nonce":"x'));
    expect(await second?.tries()).toBe('won');
    expect(readdirSync(dir)).toEqual(['lock']);
  });

  it('is waited for while another one takes it from a dead holder, but not for ever', async () => {
    const path = join(temporaryDirectory(), 'lock');
    const clock = new FakeClock();
    const { holder } = await take(path);
    writeFileSync(path, 'garbage');
    writeFileSync(guardOf(path), JSON.stringify(holder));
    let ended = false;
    const outcome = take(path, clock).then(
      () => 'won',
      (error: Error) => error.message,
    );
    void outcome.finally(() => {
      ended = true;
    });
    while (!ended) await clock.advance(1_000);
    expect(await outcome).toBe(describeHolder(holder));
    expect(clock.elapsed()).toBeGreaterThanOrEqual(30_000);
    rmSync(guardOf(path));
    await take(path);
  });

  it('is not taken from its new holder by the release of an old one', async () => {
    const path = join(temporaryDirectory(), 'lock');
    const lock = await take(path);
    const other = JSON.stringify({ ...lock.holder, nonce: 'other' });
    writeFileSync(path, other);
    await lock.release();
    expect(readFileSync(path, 'utf8')).toBe(other);
  });
});

/** The second lock that whoever replaces the dead holder of the first one has. */
function guardOf(path: string): string {
  const dead = readFileSync(path, 'utf8');
  return `${path}.${createHash('sha256').update(dead).digest('hex').slice(0, 16)}`;
}
