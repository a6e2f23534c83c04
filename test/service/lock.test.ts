import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { acquireLock, readLock } from '../../src/service/lock.js';
import { FakeClock } from '../support/fake-clock.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';

const clock = systemClock;
let contenderProgram: string;
const running = new Set<ChildProcessByStdio<Writable, Readable, null>>();

/** A process that tries for the lock when it is told to. */
class Contender {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;

  constructor(dir: string) {
    this.#child = spawn(process.execPath, [contenderProgram, dir], { stdio: ['pipe', 'pipe', 'inherit'] });
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

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
    running.delete(this.#child);
  }
}

async function contenders(dir: string, count: number): Promise<Contender[]> {
  const all = Array.from({ length: count }, () => new Contender(dir));
  for (const each of all) expect(await each.said()).toBe('ready');
  return all;
}

beforeAll(async () => {
  contenderProgram = await compiledProgram(resolve(import.meta.dirname, 'lock-contender.ts'));
});

afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
  running.clear();
});

describe('the lock of a state directory', () => {
  it('keeps a second one out, says who has it, and lets the next in after a release', async () => {
    const dir = join(temporaryDirectory(), 'not', 'there', 'yet');
    const [other] = await contenders(dir, 1);
    const lock = await acquireLock(dir, { clock: new FakeClock(Date.UTC(2026, 0, 1)) });
    expect(await readLock(dir)).toEqual(lock.holder);
    expect(await other?.tries()).toBe(
      `STATE_LOCKED Another peersync (pid ${process.pid}, since 2026-01-01T00:00:00.000Z) uses the state directory ${dir}.`,
    );
    await expect(acquireLock(dir, { clock })).rejects.toMatchObject({ code: 'STATE_LOCKED', exitCode: 1 });
    await lock.release();
    expect(await readLock(dir)).toBeUndefined();
    expect(await other?.tries()).toBe('won');
    expect(await readLock(dir)).toMatchObject({ pid: other?.pid });
  });

  it('leaves nothing but the lock behind, and nothing after its release', async () => {
    const dir = temporaryDirectory();
    const lock = await acquireLock(dir, { clock });
    await expect(acquireLock(dir, { clock })).rejects.toThrow();
    expect(readdirSync(dir)).toEqual(['lock']);
    expect(statSync(join(dir, 'lock')).mode & 0o777).toBe(0o600);
    await lock.release();
    expect(readdirSync(dir)).toEqual([]);
  });

  it('goes to exactly one of 20 at once, again and again as its holders are killed', async () => {
    const dir = temporaryDirectory();
    let living = await contenders(dir, 20);
    for (let round = 0; round < 12; round += 1) {
      const outcomes = await Promise.all(living.map((each) => each.tries()));
      const winners = living.filter((_, i) => outcomes[i] === 'won');
      expect(winners).toHaveLength(1);
      const [winner] = winners;
      for (const outcome of outcomes.filter((each) => each !== 'won')) {
        expect(outcome).toContain(`STATE_LOCKED Another peersync (pid ${winner?.pid},`);
      }
      await winner?.kill();
      expect(await readLock(dir)).toBeUndefined();
      living = living.filter((each) => each !== winner);
    }
    expect(readdirSync(dir)).toEqual(['lock']);
  });

  it('is free when the process with the pid of its holder is another one', async () => {
    const dir = temporaryDirectory();
    const [other] = await contenders(dir, 1);
    expect(await other?.tries()).toBe('won');
    const holder = JSON.parse(readFileSync(join(dir, 'lock'), 'utf8'));
    writeFileSync(join(dir, 'lock'), JSON.stringify({ ...holder, started: `${Number(holder.started) - 1}` }));
    expect(await readLock(dir)).toBeUndefined();
    const lock = await acquireLock(dir, { clock });
    expect(lock.holder.pid).toBe(process.pid);
  });

  it('is free when its holder is dead but nobody has waited for it', async () => {
    const dir = temporaryDirectory();
    const parent = spawn('sh', ['-c', 'sleep 0.05 & echo $!; exec sleep 60'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    running.add(parent);
    const [line] = await once(createInterface({ input: parent.stdout }), 'line');
    const { holder, release } = await acquireLock(dir, { clock });
    await release();
    const { started: _, ...rest } = holder;
    writeFileSync(join(dir, 'lock'), JSON.stringify({ ...rest, pid: Number(line) }));
    await expect.poll(() => readLock(dir), { timeout: 10_000 }).toBeUndefined();
    expect(existsSync(`/proc/${line}`)).toBe(true);
    await acquireLock(dir, { clock });
  });

  it('is free after a boot', async () => {
    const dir = temporaryDirectory();
    const { holder } = await acquireLock(dir, { clock });
    writeFileSync(join(dir, 'lock'), JSON.stringify({ ...holder, boot: 'another' }));
    expect(await readLock(dir)).toBeUndefined();
    await acquireLock(dir, { clock });
  });

  it.each(['', '\0\0\0\0', '{"pid":1', '{"pid":-1,"host":"x","since":1}', 'null'])(
    'is free when a power cut left %j of it',
    async (left) => {
      const dir = temporaryDirectory();
      writeFileSync(join(dir, 'lock'), left);
      expect(await readLock(dir)).toBeUndefined();
      const lock = await acquireLock(dir, { clock });
      expect(await readLock(dir)).toEqual(lock.holder);
    },
  );

  it('is kept for a holder on another machine, of which nothing is known here', async () => {
    const dir = temporaryDirectory();
    const { holder } = await acquireLock(dir, { clock });
    writeFileSync(
      join(dir, 'lock'),
      JSON.stringify({ ...holder, host: `not-${hostname()}`, boot: 'x', pid: 7 }),
    );
    await expect(acquireLock(dir, { clock })).rejects.toMatchObject({
      code: 'STATE_LOCKED_ELSEWHERE',
      message: expect.stringContaining(`pid 7 on not-${hostname()}`),
      hint: expect.stringContaining('remove the file "lock"'),
    });
  });

  it('can be taken when one who was taking it died in the act', async () => {
    const dir = temporaryDirectory();
    const [first, second] = await contenders(dir, 2);
    expect(await first?.tries()).toBe('won');
    await first?.kill();
    const dead = readFileSync(join(dir, 'lock'), 'utf8');
    const guard = join(dir, `lock.${createHash('sha256').update(dead).digest('hex').slice(0, 16)}`);
    writeFileSync(guard, dead.replace('nonce":"', 'nonce":"x'));
    expect(await second?.tries()).toBe('won');
    expect(readdirSync(dir)).toEqual(['lock']);
  });

  it('is not taken from its new holder by the release of an old one', async () => {
    const dir = temporaryDirectory();
    const lock = await acquireLock(dir, { clock });
    const other = JSON.stringify({ ...lock.holder, nonce: 'other' });
    writeFileSync(join(dir, 'lock'), other);
    await lock.release();
    expect(readFileSync(join(dir, 'lock'), 'utf8')).toBe(other);
  });

  it('says so when the directory is a file', async () => {
    const path = join(temporaryDirectory(), 'file');
    writeFileSync(path, '');
    await expect(acquireLock(path, { clock })).rejects.toMatchObject({
      code: 'STATE_NOT_A_DIRECTORY',
      exitCode: 2,
    });
    mkdirSync(`${path}.d`);
    await expect(acquireLock(join(path, 'below'), { clock })).rejects.toMatchObject({
      code: 'STATE_NOT_A_DIRECTORY',
    });
  });
});
