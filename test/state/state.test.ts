import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import type { Entry } from '../../src/state/entry.js';
import { gone } from '../../src/state/entry.js';
import type { AdapterOptions, OpenFile } from '../../src/state/journal.js';
import { State } from '../../src/state/state.js';
import { DiskWithFaults } from '../fault/state-disk.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { lifeOf, pendingRecord } from './records.js';

const options: AdapterOptions = { clock: new FakeClock(), log: silentLogger };

describe('state', () => {
  it('has after a restart what was committed before', async () => {
    const dir = temporaryDirectory();
    const first = await State.open(dir, options);
    for (const name of ['a.txt', 'sub/b.txt', 'sub/ümläut 😀\n.txt']) {
      for (const entry of lifeOf(pendingRecord(name))) first.put(entry);
    }
    first.put(pendingRecord('c.txt', 'other'));
    first.put(pendingRecord('d.txt'));
    await first.commit();
    first.remove('inbox', 'd.txt');
    first.setMeta('peer', { url: 'http://localhost', seen: [1, 2.5] });
    first.setMeta('old', 1);
    await first.commit();
    first.setMeta('old', undefined);
    await first.commit();
    const before = [...first.entries.all()];
    await first.close();

    const second = await State.open(dir, options);
    expect([...second.entries.all()]).toEqual(before);
    expect(second.get('inbox', 'sub/ümläut 😀\n.txt')?.status).toBe('confirmed');
    expect(second.get('inbox', 'd.txt')).toBeUndefined();
    expect(second.counts()).toMatchObject({ pending: 1, accepted: 0, confirmed: 3 });
    expect(second.counts('other')).toMatchObject({ pending: 1, confirmed: 0 });
    expect(second.meta('peer')).toEqual({ url: 'http://localhost', seen: [1, 2.5] });
    expect(second.meta('old')).toBeUndefined();
    expect(second.repairs).toEqual([]);
    await second.close();
  });

  it('is read as a version before wrote it', async () => {
    const written = join(import.meta.dirname, 'schema-2');
    const expected: readonly Entry[] = JSON.parse(readFileSync(join(written, 'expected.json'), 'utf8'));
    const dir = join(temporaryDirectory(), 'state');
    cpSync(written, dir, { recursive: true });
    const state = await State.open(dir, options);
    const found = [...state.entries.all()];
    expect(found).toHaveLength(expected.length);
    for (const entry of expected) expect(state.get(entry.folder, entry.path)).toEqual(entry);
    expect(state.meta('peer')).toEqual({ url: 'http://localhost', seen: [1, 2.5] });
    expect(state.meta('old')).toBeUndefined();
    expect(state.repairs).toEqual([]);
    await state.close();
  });

  it('commits what is left when it is closed, and nothing afterwards', async () => {
    const dir = temporaryDirectory();
    const state = await State.open(dir, options);
    state.put(pendingRecord('a'));
    await state.close();
    state.put(pendingRecord('b'));
    await expect(state.commit()).rejects.toThrow('after it was closed');
    expect([...(await State.read(dir)).entries.all()]).toEqual([pendingRecord('a')]);
  });

  it('tells how often and how long it waited for the disk, and how often it was compacted', async () => {
    const clock = new FakeClock();
    const disk = new DiskWithFaults();
    const state = await State.open(temporaryDirectory(), { ...options, clock, open: disk.open });
    const syncs: number[] = [];
    state.onSync = (seconds) => void syncs.push(seconds);
    state.put(pendingRecord('a'));
    await state.commit();
    const release = disk.holdSyncs();
    state.put(pendingRecord('b'));
    const committed = state.commit();
    await until(() => disk.heldSyncs === 1, 'the commit syncs');
    await clock.advance(300);
    release();
    await committed;
    await state.commit();
    await state.compact();
    expect(syncs).toEqual([0, 0.3]);
    expect(state.figures().compactions).toBe(1);
    await state.close();
  });

  it('tells listeners of each change as it is made, until they stop listening', async () => {
    const state = await State.open(temporaryDirectory(), options);
    const heard: unknown[] = [];
    const stop = state.onChange((after, before, place) =>
      heard.push([after?.status, before?.status, place.path]),
    );
    const [pending, accepted] = lifeOf(pendingRecord('a'));
    state.put(pending);
    state.put(accepted);
    state.put(accepted);
    state.remove('inbox', 'a');
    state.remove('inbox', 'a');
    stop();
    state.put(pending);
    expect(heard).toEqual([
      ['pending', undefined, 'a'],
      ['accepted', 'pending', 'a'],
      [undefined, 'accepted', 'a'],
    ]);
    await state.close();
  });

  it('is on disk with one sync for all who wait for it', async () => {
    const disk = new DiskWithFaults();
    const state = await State.open(temporaryDirectory(), { ...options, open: disk.open });
    disk.syncs = 0;
    const commits = Array.from({ length: 100 }, (_, i) => {
      state.put(pendingRecord(`${i}`));
      return state.commit();
    });
    await Promise.all(commits);
    expect(disk.syncs).toBe(1);
    expect(state.figures().unsaved).toBe(0);
    await state.commit();
    expect(disk.syncs).toBe(1);
    await state.close();
  });

  it('says that something is on disk only after the sync', async () => {
    const disk = new DiskWithFaults();
    const state = await State.open(temporaryDirectory(), { ...options, open: disk.open });
    let done = false;
    const release = disk.holdSyncs();
    state.put(pendingRecord('a'));
    const commit = state.commit().then(() => {
      done = true;
    });
    await until(() => disk.heldSyncs === 1, 'the commit waits for its sync');
    expect(done).toBe(false);
    release();
    await commit;
    await state.close();
  });

  it('writes what changed, not what is stored', async () => {
    const state = await State.open(temporaryDirectory(), options);
    for (let i = 0; i < 2_000; i += 1) state.put(pendingRecord(`${i}`));
    await state.commit();
    const before = state.figures().journalBytes;
    for (const entry of lifeOf(pendingRecord('7'))) state.put(entry);
    await state.commit();
    expect(state.figures().journalBytes - before).toBeLessThan(600);
    await state.close();
  });

  it('keeps its files to its user', async () => {
    const dir = join(temporaryDirectory(), 'new', 'state');
    const state = await State.open(dir, options);
    state.put(pendingRecord('a'));
    await state.compact();
    await state.close();
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(dir)) expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
  });

  it('forgets files that have been gone for long', async () => {
    const clock = new FakeClock();
    const dir = temporaryDirectory();
    const state = await State.open(dir, { ...options, clock });
    state.put(gone(pendingRecord('old'), clock.now() - 1_001));
    state.put(gone(pendingRecord('fresh'), clock.now() - 1_000));
    state.put(pendingRecord('here'));
    expect(await state.forgetGone(1_000)).toBe(1);
    expect([...(await State.read(dir)).entries.all()].map((e) => e.path)).toEqual(['fresh', 'here']);
    await state.close();
  });

  it('does not forget a file that is back while it goes through the others', async () => {
    const clock = new FakeClock();
    const state = await State.open(temporaryDirectory(), { ...options, clock });
    const count = 6_000;
    for (let i = 0; i < count; i += 1) state.put(gone(pendingRecord(`${i}`), clock.now() - 1_001));
    const forgetting = state.forgetGone(1_000);
    const left = [...state.entries.all()].map(({ path }) => path);
    expect(left.length).toBeGreaterThan(0);
    for (const path of left) state.put(pendingRecord(path));
    await clock.advance(10);
    expect(await forgetting).toBe(count - left.length);
    expect(state.counts()).toMatchObject({ pending: left.length, gone: 0 });
    await state.close();
  });

  it('is read as empty where there is none, without making one', async () => {
    const dir = join(temporaryDirectory(), 'none');
    const view = await State.read(dir);
    expect(view.entries.size).toBe(0);
    expect(view.counts().pending).toBe(0);
    expect(view.meta('x')).toBeUndefined();
    expect(existsSync(dir)).toBe(false);
  });

  it('is read without a write, beside whoever writes it', async () => {
    const dir = temporaryDirectory();
    const state = await State.open(dir, options);
    state.put(pendingRecord('a'));
    state.setMeta('peer', 'http://localhost');
    await state.commit();
    writeFileSync(join(dir, 'snapshot-9.tmp'), 'unfinished');
    const before = readdirSync(dir).map((name) => [name, statSync(join(dir, name)).mtimeMs]);
    const view = await State.read(dir);
    expect(view.get('inbox', 'a')).toEqual(pendingRecord('a'));
    expect(view.meta('peer')).toBe('http://localhost');
    expect(readdirSync(dir).map((name) => [name, statSync(join(dir, name)).mtimeMs])).toEqual(before);
    await state.close();
  });

  it('is read even when a compaction removes what was about to be read', async () => {
    const dir = temporaryDirectory();
    const state = await State.open(dir, options);
    state.put(pendingRecord('a'));
    await state.compact();
    let opened = 0;
    const open: OpenFile = async (...args) => {
      opened += 1;
      if (opened === 2) for (let i = 0; i < 2; i += 1) await state.compact();
      return await openFile(...args);
    };
    const view = await State.read(dir, { open });
    expect(view.get('inbox', 'a')).toEqual(pendingRecord('a'));
    expect(view.repairs).toEqual([]);
    await state.close();
    expect(opened).toBeGreaterThan(3);
  });

  it('says so when its directory is a file', async () => {
    const path = join(temporaryDirectory(), 'file');
    writeFileSync(path, '');
    await expect(State.open(path, options)).rejects.toMatchObject({
      code: 'STATE_NOT_A_DIRECTORY',
      exitCode: 2,
    });
    await expect(State.read(path)).rejects.toMatchObject({ code: 'STATE_NOT_A_DIRECTORY' });
    await expect(State.read(join(path, 'below'))).rejects.toMatchObject({ code: 'STATE_NOT_A_DIRECTORY' });
  });

  it('says so when one of its files cannot be read', async () => {
    const dir = temporaryDirectory();
    mkdirSync(join(dir, 'journal-1'));
    await expect(State.read(dir)).rejects.toMatchObject({ code: 'STATE_UNREADABLE', exitCode: 1 });
  });
});

it('can be read wherever a crash cuts off a commit, also when items change while that is written', async () => {
  const dir = temporaryDirectory();
  const copies: string[] = [];
  let state: State | undefined;
  const open: OpenFile = async (...args) => {
    const file = await openFile(...args);
    const write = file.write.bind(file) as (...a: unknown[]) => ReturnType<typeof file.write>;
    return Object.assign(file, {
      write: async (...a: unknown[]) => {
        const written = await write(...a);
        for (const path of ['b', 'c'])
          state?.put({ ...pendingRecord(path), collection: `${path} ${copies.length}` });
        const copy = temporaryDirectory();
        cpSync(dir, copy, { recursive: true });
        copies.push(copy);
        return written;
      },
    });
  };
  state = await State.open(dir, { ...options, open, policy: { writeBytes: 1 } });
  for (const path of ['a', 'b', 'c']) state.put(pendingRecord(path));
  await state.commit();
  expect(copies.length).toBeGreaterThan(3);
  for (const copy of copies) {
    const after = await State.open(copy, options);
    expect([...after.entries.all()].length).toBeGreaterThanOrEqual(0);
    await after.close();
  }
  await state.close();
});

describe('compaction', () => {
  const small = { ...options, policy: { compactMinBytes: 20_000, writeBytes: 2_000 } };

  it('happens by itself, keeps every record and leaves the generation before as the fallback', async () => {
    const dir = temporaryDirectory();
    const state = await State.open(dir, small);
    for (let round = 0; round < 40; round += 1) {
      for (let i = 0; i < 20; i += 1) {
        const [pending, accepted, confirmed] = lifeOf(pendingRecord(`${i}`));
        state.put(round % 3 === 0 ? pending : round % 3 === 1 ? accepted : confirmed);
      }
      if (round % 2 === 0) state.remove('inbox', `${round % 20}`);
      await state.commit();
    }
    await until(() => !state.figures().compacting, 'the last compaction ended');
    const { generation, snapshotBytes, journalBytes } = state.figures();
    expect(generation).toBeGreaterThan(3);
    expect(snapshotBytes).toBeGreaterThan(1_000);
    expect(journalBytes).toBeLessThan(60_000);
    const before = [...state.entries.all()].sort(byPath);
    await state.close();
    const files = [`journal-${generation}`, `journal-${generation - 1}`];
    const snapshots = [`snapshot-${generation}`, `snapshot-${generation - 1}`];
    expect(readdirSync(dir).sort()).toEqual([...files, ...snapshots].sort());
    const again = await State.open(dir, small);
    expect([...again.entries.all()].sort(byPath)).toEqual(before);
    expect(again.repairs).toEqual([]);
    await again.close();
  });

  it('lets work go on: what changes meanwhile is neither lost nor undone', async () => {
    const dir = temporaryDirectory();
    const state = await State.open(dir, { ...options, policy: { writeBytes: 500 } });
    for (let i = 0; i < 3_000; i += 1) state.put(pendingRecord(`${i % 30}/${i}`));
    await state.commit();
    let commits = 0;
    const compaction = state.compact();
    while (state.figures().compacting) {
      const i = (commits * 37) % 3_000;
      const [, accepted] = lifeOf(pendingRecord(`${i % 30}/${i}`));
      state.put(accepted);
      const removed = (commits * 41) % 3_000;
      if (removed !== i) state.remove('inbox', `${removed % 30}/${removed}`);
      state.put(pendingRecord(`new/${commits}`));
      await state.commit();
      commits += 1;
    }
    await compaction;
    expect(commits).toBeGreaterThan(2);
    const view = await State.read(dir);
    expect([...view.entries.all()].sort(byPath)).toEqual([...state.entries.all()].sort(byPath));
    expect(state.figures().snapshotBytes).toBeGreaterThan(0);
    await state.close();
  });

  it('is given up when the state is closed, and leaves nothing unfinished', async () => {
    const dir = temporaryDirectory();
    const state = await State.open(dir, { ...options, policy: { writeBytes: 500 } });
    for (let i = 0; i < 4_000; i += 1) state.put(pendingRecord(`${i}`));
    await state.commit();
    const compaction = state.compact();
    await until(() => readdirSync(dir).includes('snapshot-2.tmp'), 'the snapshot is being written');
    await Promise.all([expect(compaction).rejects.toThrow(), state.close()]);
    expect(readdirSync(dir).sort()).toEqual(['journal-1', 'journal-2']);
    expect((await State.read(dir)).entries.size).toBe(4_000);
  });
});

function byPath(a: { path: string }, b: { path: string }): number {
  return a.path < b.path ? -1 : 1;
}
