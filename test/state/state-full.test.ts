import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import { stateError } from '../../src/state/directory.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { lifeOf, opened, pathsOf, pendingRecord } from './records.js';
import { DiskWithFaults } from './state-disk.js';

const FULL = { code: 'STATE_FULL' };

/** Makes a state with the record `before`, on a disk with faults. */
async function setUp() {
  const dir = temporaryDirectory();
  const disk = new DiskWithFaults();
  const state = await opened(dir, { open: disk.open });
  state.put(pendingRecord('before'));
  await state.commit();
  return { dir, disk, state };
}

describe('a full disk', () => {
  it.each([0, 1, 100, 300])('with room for %i bytes of a commit loses nothing', async (space) => {
    const { dir, disk, state } = await setUp();
    const journal = readFileSync(join(dir, 'journal-1'));

    disk.space = space;
    state.put(pendingRecord('during'));
    state.put(pendingRecord('during too'));
    await expect(state.commit()).rejects.toMatchObject({
      code: 'STATE_FULL',
      message: `The state in ${dir} cannot grow: no space is left on its disk (ENOSPC).`,
      exitCode: 1,
    });
    expect(readFileSync(join(dir, 'journal-1'))).toEqual(journal);
    expect(state.get('inbox', 'during')?.status).toBe('pending');
    expect(state.figures().unsaved).toBe(2);
    await expect(state.commit()).rejects.toMatchObject(FULL);
    expect(state.figures().failure).toMatchObject(FULL);

    disk.space = Number.POSITIVE_INFINITY;
    const [, accepted] = lifeOf(pendingRecord('during too'));
    state.put(accepted);
    await state.commit();
    expect(state.figures().failure).toBeUndefined();
    await state.close();
    const again = await opened(dir);
    expect([...again.entries.all()]).toEqual([
      pendingRecord('before'),
      pendingRecord('during'),
      accepted,
    ]);
    expect(again.repairs).toEqual([]);
  });

  it('causes no more writes to a journal whose partial commit cannot be truncated', async () => {
    const { dir, disk, state } = await setUp();
    const paths = ['a', 'b', 'c', 'd', 'e'];
    [disk.space, disk.truncateFails] = [500, true];
    for (const path of paths) state.put(pendingRecord(path));
    for (let i = 0; i < 2; i += 1) await expect(state.commit()).rejects.toMatchObject(FULL);
    [disk.space, disk.truncateFails] = [Number.POSITIVE_INFINITY, false];
    for (const path of paths) state.remove('inbox', path);
    await state.close();
    expect(disk.writing).toBe(0);
    expect((await opened(dir)).repairs).toEqual([]);
    expect(await pathsOf(dir)).toEqual(['before']);
  });

  it('is also a user quota that is used up', async () => {
    const error = Object.assign(new Error('write'), { code: 'EDQUOT' });
    expect(await stateError(error, '/state', 'write')).toMatchObject(FULL);
  });

  it('fails only the commits whose records are not on disk', async () => {
    const { dir, disk, state } = await setUp();
    const release = disk.holdSyncs();
    state.put(pendingRecord('first'));
    const first = state.commit();
    await until(() => disk.heldSyncs === 1, 'the first commit syncs');
    disk.space = 0;
    state.put(pendingRecord('second'));
    const second = state.commit();
    const third = state.commit();
    release();
    await first;
    await expect(second).rejects.toMatchObject(FULL);
    await expect(third).rejects.toMatchObject(FULL);
    expect(await pathsOf(dir)).toEqual(['before', 'first']);
    disk.space = Number.POSITIVE_INFINITY;
    await state.close();
    expect(await pathsOf(dir)).toEqual(['before', 'first', 'second']);
  });

  it('makes commits wait if asked to, and logs it once, until there is space or the wait is aborted', async () => {
    const clock = new FakeClock();
    const disk = new DiskWithFaults();
    const logged: string[] = [];
    const say = (_: object, message: string) => void logged.push(message);
    const log = { ...silentLogger, error: say, info: say };
    const stop = new AbortController();
    const how = { clock, log, open: disk.open, waitsUntil: stop.signal };
    const state = await opened(temporaryDirectory(), how);
    disk.space = 0;
    state.put(pendingRecord('a'));
    const commits = Promise.all([state.commit(), state.commit()]);
    await until(() => logged.length > 0, 'the commit waits');
    for (let i = 0; i < 3; i += 1) await clock.advance(5_000);
    state.put(pendingRecord('asked'));
    await expect(state.commit('person')).rejects.toMatchObject({
      ...FULL,
      hint: 'Free some space there. What you asked holds already, but a stop before there is space would forget it.',
    });
    expect(logged).toEqual([
      expect.stringMatching(/^The state in .* cannot grow: .* Free some space there/),
    ]);
    disk.space = Number.POSITIVE_INFINITY;
    await until(() => {
      void clock.advance(5_000);
      return logged.length > 1;
    }, 'it is tried again');
    await commits;
    await until(() => {
      void clock.advance(5_000);
      return state.figures().unsaved === 0;
    }, 'what was asked is written though nobody asks again');
    expect(logged.slice(1)).toEqual(['there is space for the state again; the work goes on']);
    disk.nextSyncFails = 'EIO';
    state.put(pendingRecord('b'));
    await expect(state.commit()).rejects.toMatchObject({ code: 'STATE_UNWRITABLE' });
    disk.space = 0;
    const ended = expect(state.commit()).rejects.toThrow();
    await until(() => logged.length > 2, 'the commit waits');
    stop.abort();
    await ended;
    await expect(state.close()).rejects.toMatchObject(FULL);
    disk.space = Number.POSITIVE_INFINITY;
    await expect(state.commit()).rejects.toThrow('after it was closed');
  });

  it('delays a compaction and logs that once, while the journal is still used', async () => {
    const dir = temporaryDirectory();
    const disk = new DiskWithFaults();
    const warnings: string[] = [];
    const log = {
      ...silentLogger,
      warn: (_: object, message: string) => void warnings.push(message),
    };
    const policy = { compactMinBytes: 2_000 };
    const state = await opened(dir, { log, policy, open: disk.open });
    for (let i = 0; i < 15; i += 1) state.put(pendingRecord(`${i}`));
    disk.refuses = (path) => path.endsWith('.tmp');
    await state.commit();
    await until(() => warnings.length > 0 && !state.figures().compacting, 'the compaction failed');
    expect(warnings).toEqual([expect.stringContaining('could not be compacted yet: The state in')]);
    expect(readdirSync(dir).filter((name) => name.startsWith('snapshot'))).toEqual([]);
    state.put(pendingRecord('after'));
    // The second commit waits for a compaction that the first one may have started.
    for (let i = 0; i < 2; i += 1) await state.commit();
    disk.refuses = () => false;
    for (let i = 0; i < 15; i += 1) state.put(pendingRecord(`${i}`, 'other'));
    await state.commit();
    await until(() => state.figures().snapshotBytes > 0, 'it was tried again');
    expect(warnings).toHaveLength(1);
    await state.close();
    expect(await pathsOf(dir)).toHaveLength(31);
  });
});

describe('a disk that fails to sync', () => {
  it.each([false, true])(
    'gets a new file after the failure (truncation fails: %s)',
    async (stuck) => {
      const { dir, disk, state } = await setUp();
      disk.nextSyncFails = 'EIO';
      disk.truncateFails = stuck;
      state.put(pendingRecord('during'));
      const release = disk.holdSyncs();
      const failed = expect(state.commit()).rejects.toMatchObject({
        code: 'STATE_UNWRITABLE',
        message: `The state in ${dir} cannot be written (EIO).`,
      });
      await until(() => disk.heldSyncs === 1, 'it syncs');
      state.put(pendingRecord('meanwhile'));
      release();
      await failed;
      disk.truncateFails = false;
      disk.writes.length = 0;
      await state.commit();
      expect(new Set(disk.writes.map((write) => write.path))).toEqual(
        new Set([join(dir, 'journal-2.tmp')]),
      );
      expect(readFileSync(join(dir, 'journal-2'), 'utf8')).toContain('"during"');
      await state.close();
      const found = [...(await opened(dir)).entries.all()];
      expect(found).toEqual(['before', 'during', 'meanwhile'].map((path) => pendingRecord(path)));
    },
  );

  it('makes opening the state fail', async () => {
    const { dir, disk, state } = await setUp();
    await state.close();
    disk.nextSyncFails = 'EIO';
    const opening = opened(dir, { open: disk.open });
    await expect(opening).rejects.toMatchObject({ code: 'STATE_UNWRITABLE' });
    expect(disk.writing).toBe(0);
    expect(await pathsOf(dir)).toEqual(['before']);
  });
});

const mounts = canMount();

describe(`a file system of one megabyte${mounts ? '' : ' (skipped: mounting needs root)'}`, () => {
  it.skipIf(!mounts)(
    'makes commits fail when it is full, and succeed when there is room',
    async () => {
      const dir = temporaryDirectory();
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=700', 'tmpfs', dir]);
      try {
        writeFileSync(join(dir, 'other'), Buffer.alloc(500_000));
        const state = await opened(join(dir, 'state'));
        let put = 0;
        const fill = async () => {
          for (;;) {
            for (let i = 0; i < 50; i += 1, put += 1) state.put(pendingRecord(`${put}`));
            await state.commit();
          }
        };
        await expect(fill()).rejects.toMatchObject(FULL);
        expect(state.figures().unsaved).toBe(50);
        expect(await pathsOf(join(dir, 'state'))).toHaveLength(put - 50);
        await expect(state.commit()).rejects.toMatchObject(FULL);
        expect(() => writeFileSync(join(dir, 'rest'), Buffer.alloc(1_000_000))).toThrow('ENOSPC');
        await expect(opened(join(dir, 'another'))).rejects.toMatchObject(FULL);
        rmSync(join(dir, 'other'));
        await state.commit();
        await state.close();
        expect(await pathsOf(join(dir, 'state'))).toHaveLength(put);
      } finally {
        execFileSync('umount', ['-l', dir]);
      }
    },
  );
});

function canMount(): boolean {
  const dir = temporaryDirectory();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=700', 'tmpfs', dir], {
      stdio: 'ignore',
    });
    execFileSync('umount', [dir]);
    return true;
  } catch {
    return false;
  }
}
