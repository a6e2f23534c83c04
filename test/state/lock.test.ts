import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock as clock } from '../../src/lib/clock.js';
import { lockState, stateHolder } from '../../src/state/lock.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';

const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;

describe('the lock of a state directory', () => {
  it('makes the directory, keeps a second daemon out, and says who has it and what to do', async () => {
    const dir = join(temporaryDirectory(), 'not', 'there', 'yet');
    expect(await stateHolder(dir)).toBeUndefined();
    expect(existsSync(dir)).toBe(false);
    const lock = await lockState(dir, { clock: new FakeClock(Date.UTC(2026, 0, 1)) });
    expect(await stateHolder(dir)).toEqual(lock.holder);
    await expect(lockState(dir, { clock })).rejects.toMatchObject({
      code: 'STATE_LOCKED',
      exitCode: 1,
      message: `Another peersync (pid ${process.pid}, since 2026-01-01T00:00:00.000Z) uses the state directory ${dir}.`,
      hint: expect.stringContaining('Stop it, or give this one another state.dir'),
    });
    await lock.release();
    await lockState(dir, { clock });
  });

  it('says of a holder on another machine where it is, and which file to remove when that is no more', async () => {
    const dir = temporaryDirectory();
    const { holder } = await lockState(dir, { clock });
    writeFileSync(join(dir, 'lock'), JSON.stringify({ ...holder, host: `not-${hostname()}`, pid: 7 }));
    await expect(lockState(dir, { clock })).rejects.toMatchObject({
      code: 'STATE_LOCKED_ELSEWHERE',
      message: expect.stringContaining(`(pid 7 on not-${hostname()}, since `),
      hint: expect.stringContaining('remove the file "lock"'),
    });
  });

  it('says so when the directory cannot be written, and leaves it as it is', async () => {
    const dir = temporaryDirectory();
    const { holder } = await lockState(dir, { clock });
    const dead = JSON.stringify({ ...holder, boot: 'another' });
    writeFileSync(join(dir, 'lock'), dead);
    chmodSync(dir, 0o500);
    try {
      if (isRoot) process.seteuid?.(NOBODY);
      await expect(lockState(dir, { clock })).rejects.toMatchObject({
        code: 'STATE_UNWRITABLE',
        message: `The state in ${dir} cannot be written (EACCES).`,
        hint: expect.stringContaining('Make the directory writable'),
      });
    } finally {
      if (isRoot) process.seteuid?.(0);
      chmodSync(dir, 0o700);
    }
    expect(readdirSync(dir)).toEqual(['lock']);
    expect(readFileSync(join(dir, 'lock'), 'utf8')).toBe(dead);
  });

  it('says so when the directory is a file', async () => {
    const path = join(temporaryDirectory(), 'file');
    writeFileSync(path, '');
    for (const dir of [path, join(path, 'below')])
      await expect(lockState(dir, { clock })).rejects.toMatchObject({
        code: 'STATE_NOT_A_DIRECTORY',
        exitCode: 2,
      });
  });
});
