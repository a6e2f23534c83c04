import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { OpenFile } from '../../src/state/directory.js';
import { lockState } from '../../src/state/directory.js';
import type { Entry } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { gone, removed, removing } from '../../src/state/transitions.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { lifeOf, opened, pathsOf, pendingRecord, sorted } from './records.js';
import { DiskWithFaults } from './state-disk.js';

describe('state', () => {
  it('still has after a restart what was committed, and what closing it committed', async () => {
    const dir = temporaryDirectory();
    const first = await opened(dir);
    for (const name of ['a.txt', 'sub/b.txt', 'sub/ümläut 😀\n.txt'])
      for (const entry of lifeOf(pendingRecord(name))) first.put(entry);
    first.put(pendingRecord('c.txt', 'other'));
    first.put(pendingRecord('d.txt'));
    await first.commit();
    first.remove('inbox', 'd.txt');
    first.setMeta('peer', { url: 'http://localhost', seen: [1, 2.5] });
    first.setMeta('old', 1);
    await first.commit();
    first.setMeta('old', undefined);
    const before = [...first.entries.all()];
    await first.close();
    first.put(pendingRecord('late'));
    await expect(first.commit()).rejects.toThrow('after it was closed');

    const second = await opened(dir);
    expect([...second.entries.all()]).toEqual(before);
    expect(second.get('inbox', 'sub/ümläut 😀\n.txt')?.status).toBe('confirmed');
    expect(second.counts()).toMatchObject({ pending: 1, accepted: 0, confirmed: 3 });
    expect(second.counts('other')).toMatchObject({ pending: 1, confirmed: 0 });
    expect(second.meta('peer')).toEqual({ url: 'http://localhost', seen: [1, 2.5] });
    expect(second.meta('old')).toBeUndefined();
    expect(second.repairs).toEqual([]);
  });

  it('pauses between two writes if it is told to, so that more changes share a sync', async () => {
    const [disk, clock] = [new DiskWithFaults(), new FakeClock()];
    const state = await opened(temporaryDirectory(), {
      clock,
      open: disk.open,
      policy: { pauseMs: 8 },
    });
    state.put(pendingRecord('first'));
    await state.commit();
    disk.synced = [];
    const commits = ['second', 'third'].map((name) => {
      state.put(pendingRecord(name));
      return state.commit();
    });
    await clock.advance(7);
    expect(disk.synced).toEqual([]);
    await clock.advance(1);
    await Promise.all(commits);
    expect(disk.synced).toHaveLength(1);
    expect(state.committed.counts()).toMatchObject({ pending: 3 });
    await clock.advance(8);
  });

  it('reads the files that an earlier version wrote', async () => {
    const written = join(import.meta.dirname, 'schema-2');
    const expected: readonly Entry[] = JSON.parse(
      readFileSync(join(written, 'expected.json'), 'utf8'),
    );
    const dir = join(temporaryDirectory(), 'state');
    cpSync(written, dir, { recursive: true });
    const state = await opened(dir);
    expect(state.entries.size).toBe(expected.length);
    for (const entry of expected) expect(state.get(entry.folder, entry.path)).toEqual(entry);
    expect(state.meta('peer')).toEqual({ url: 'http://localhost', seen: [1, 2.5] });
    expect(state.meta('old')).toBeUndefined();
    expect(state.repairs).toEqual([]);
  });

  it('shares one sync among waiting commits, and reports how long the sync took', async () => {
    const clock = new FakeClock();
    const dir = temporaryDirectory();
    const disk = new DiskWithFaults();
    const state = await opened(dir, { clock, open: disk.open });
    const seconds: number[] = [];
    state.onSync = (took) => void seconds.push(took);
    disk.synced = [];
    let done = 0;
    const release = disk.holdSyncs();
    const commits = Array.from({ length: 100 }, (_, i) => {
      state.put(pendingRecord(`${i}`));
      return state.commit().then(() => {
        done += 1;
      });
    });
    await until(() => disk.heldSyncs === 1, 'the commits wait for their sync');
    await clock.advance(300);
    expect(done).toBe(0);
    release();
    await Promise.all(commits);
    await state.commit();
    expect(disk.synced).toEqual([join(dir, 'journal-1.tmp')]);
    expect(seconds).toEqual([0.3]);
    await state.compact();
    const made = ['journal-2', 'snapshot-2'].flatMap((name) => [join(dir, `${name}.tmp`), dir]);
    expect(disk.synced.slice(1)).toEqual(made);
    expect(state.figures()).toMatchObject({ unsaved: 0, compactions: 1 });
    // The journal and the file `acknowledged`.
    expect(disk.writing).toBe(2);
  });

  it('calls listeners for each change as it is made, until they unsubscribe', async () => {
    const state = await opened(temporaryDirectory());
    const heard: unknown[] = [];
    const stop = state.onChange((after, statusBefore, { path }) =>
      heard.push([after?.status, statusBefore, path]),
    );
    const [pending, accepted] = lifeOf(pendingRecord('a'));
    for (const entry of [pending, accepted, accepted]) state.put(entry);
    for (let i = 0; i < 2; i += 1) state.remove('inbox', 'a');
    stop();
    state.put(pending);
    expect(heard).toEqual([
      ['pending', undefined, 'a'],
      ['accepted', 'pending', 'a'],
      [undefined, 'accepted', 'a'],
    ]);
  });

  it('shows the records on disk and those in memory, and calls listeners when a change reaches the disk', async () => {
    const dir = temporaryDirectory();
    const disk = new DiskWithFaults();
    const state = await opened(dir, { open: disk.open });
    const { committed } = state;
    const changes: unknown[] = [];
    state.onCommit((after, before) =>
      changes.push([(after ?? before)?.collection, before?.status, after?.status]),
    );
    const [pending, accepted, confirmed] = lifeOf(pendingRecord('sub/a'));
    const other = pendingRecord('b', 'other');
    for (const entry of [pending, other, pendingRecord('sub/gone')]) state.put(entry);
    expect([...committed.entries.all()]).toEqual([]);
    expect(committed.counts()).toMatchObject({ pending: 0 });
    await state.commit();
    expect(sorted(committed)).toEqual(sorted(state));
    expect(committed.counts('inbox')).toMatchObject({ pending: 2 });
    changes.length = 0;

    const release = disk.holdSyncs();
    state.put(accepted);
    state.remove('inbox', 'sub/gone');
    const commit = state.commit();
    await until(() => disk.heldSyncs === 1, 'the commit syncs');
    state.put(confirmed);
    state.remove('other', 'b');
    const before = [pending, pendingRecord('sub/gone'), other];
    expect(sorted(committed)).toEqual(before.sort((a, b) => (a.path < b.path ? -1 : 1)));
    expect(committed.entries.size).toBe(3);
    expect([...committed.entries.underDirectory('inbox', 'sub')]).toHaveLength(2);
    release();
    await commit;
    expect(committed.get('inbox', 'sub/a')).toEqual(accepted);
    expect(committed.get('inbox', 'sub/gone')).toBeUndefined();
    expect(committed.get('other', 'b')).toEqual(other);
    expect(committed.counts()).toMatchObject({ pending: 1, accepted: 1, confirmed: 0 });
    disk.space = 0;
    await expect(state.commit()).rejects.toMatchObject({ code: 'STATE_FULL' });
    expect(sorted(committed)).toEqual(sorted(await State.read(dir)));
    disk.space = Number.POSITIVE_INFINITY;
    await state.commit();
    expect(sorted(committed)).toEqual([confirmed]);
    expect(changes).toEqual([
      ['inbox', 'pending', 'accepted'],
      ['inbox', 'pending', undefined],
      ['inbox', 'accepted', 'confirmed'],
      ['other', 'pending', undefined],
    ]);
  });

  it('writes only changes, into files that only its user can read', async () => {
    const dir = join(temporaryDirectory(), 'new', 'state');
    const how = { policy: { compactMinBytes: 1 } };
    const state = await opened(dir, how);
    for (let i = 0; i < 2_000; i += 1) state.put(pendingRecord(`${i}`));
    await state.commit();
    await until(() => !state.figures().compacting, 'what is larger than no snapshot was compacted');
    const before = state.figures().journalBytes;
    for (const entry of lifeOf(pendingRecord('7'))) state.put(entry);
    await state.commit();
    expect(state.figures().journalBytes - before).toBeLessThan(600);
    expect(state.figures()).toMatchObject({ compacting: false, compactions: 1 });
    await state.close();
    const again = await opened(dir, how);
    again.put(pendingRecord('7'));
    await again.commit();
    expect(again.figures()).toMatchObject({ compacting: false, compactions: 0 });
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(dir)) expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
  });

  it('drops files that have been gone for long, but not one that is back or still undecided', async () => {
    const clock = new FakeClock();
    const dir = temporaryDirectory();
    const state = await opened(dir, { clock });
    const back = Array.from({ length: 6_000 }, (_, i) => `back/${i}`);
    const long = clock.now() - 1_001;
    for (const path of ['old', 'undecided', ...back]) state.put(gone(pendingRecord(path), long));
    const leaves = removing(gone(pendingRecord('leaves'), long), long);
    for (const entry of [leaves, removed({ ...leaves, path: 'left' }, long)]) state.put(entry);
    state.put(gone(pendingRecord('fresh'), clock.now() - 1_000));
    state.put(pendingRecord('here'));
    const forgetting = state.forgetGone(1_000, ({ path }) => path === 'undecided');
    for (const path of back) state.put(pendingRecord(path));
    await clock.advance(10);
    expect(await forgetting).toBe(2);
    expect(state.counts()).toMatchObject({ pending: 6_001, gone: 2, removing: 1 });
    expect(await pathsOf(dir)).toEqual([...back, 'fresh', 'here', 'leaves', 'undecided'].sort());
  });
});

describe('a state that is only read', () => {
  it('is empty if there is none, and creates nothing', async () => {
    const dir = join(temporaryDirectory(), 'none');
    const view = await State.read(dir);
    expect([view.entries.size, view.counts().pending, view.meta('x')]).toEqual([0, 0, undefined]);
    expect(existsSync(dir)).toBe(false);
  });

  it('reads without writing while another process writes', async () => {
    const dir = temporaryDirectory();
    const state = await opened(dir);
    state.put(pendingRecord('a'));
    state.setMeta('peer', 'http://localhost');
    await state.commit();
    writeFileSync(join(dir, 'snapshot-9.tmp'), 'unfinished');
    const files = () => readdirSync(dir).map((name) => [name, statSync(join(dir, name)).mtimeMs]);
    const before = files();
    const view = await State.read(dir);
    expect(view.get('inbox', 'a')).toEqual(pendingRecord('a'));
    expect(view.meta('peer')).toBe('http://localhost');
    expect(files()).toEqual(before);
  });

  it('is read even if a compaction removes the files that it was about to read', async () => {
    const dir = temporaryDirectory();
    const state = await opened(dir);
    state.put(pendingRecord('a'));
    await state.compact();
    let count = 0;
    const open: OpenFile = async (...args) => {
      count += 1;
      if (count === 2) for (let i = 0; i < 2; i += 1) await state.compact();
      return await openFile(...args);
    };
    const view = await State.read(dir, { open });
    expect(view.get('inbox', 'a')).toEqual(pendingRecord('a'));
    expect(view.repairs).toEqual([]);
    expect(count).toBeGreaterThan(3);
  });

  it('reports that its directory is a file, or that one of its files cannot be read', async () => {
    const path = join(temporaryDirectory(), 'file');
    writeFileSync(path, '');
    const refused = { code: 'STATE_NOT_A_DIRECTORY', exitCode: 2 };
    for (const dir of [path, join(path, 'below')]) {
      await expect(lockState(dir, { clock: new FakeClock() })).rejects.toMatchObject(refused);
      await expect(opened(dir)).rejects.toMatchObject(refused);
      await expect(State.read(dir)).rejects.toMatchObject(refused);
    }
    const dir = temporaryDirectory();
    mkdirSync(join(dir, 'journal-1'));
    await expect(State.read(dir)).rejects.toMatchObject({ code: 'STATE_UNREADABLE', exitCode: 1 });
  });
});

/** Opens files that call `afterWrite` after each write. */
function openCalling(afterWrite: () => void): OpenFile {
  return async (...args) => {
    const file = await openFile(...args);
    const write = file.write.bind(file) as (...a: unknown[]) => ReturnType<typeof file.write>;
    return Object.assign(file, {
      write: async (...a: unknown[]) => {
        const written = await write(...a);
        afterWrite();
        return written;
      },
    });
  };
}

it('a state is readable wherever a crash cuts off a commit, even if items changed during the commit', async () => {
  const dir = temporaryDirectory();
  const copies: string[] = [];
  let state: State | undefined;
  const open = openCalling(() => {
    for (const path of ['b', 'c'])
      state?.put({ ...pendingRecord(path), collection: `${path} ${copies.length}` });
    const copy = temporaryDirectory();
    cpSync(dir, copy, { recursive: true });
    copies.push(copy);
  });
  state = await opened(dir, { open, policy: { writeBytes: 1 } });
  for (const path of ['a', 'b', 'c']) state.put(pendingRecord(path));
  await state.commit();
  expect(copies.length).toBeGreaterThan(3);
  await state.close();
  copies.push(dir);
  // Every record is parsed.
  for (const copy of copies) expect(sorted(await opened(copy)).length).toBeLessThanOrEqual(3);
});

describe('compaction', () => {
  it('starts by itself, keeps every record and keeps the previous generation as the fallback', async () => {
    const dir = temporaryDirectory();
    const state = await opened(dir, { policy: { compactMinBytes: 20_000, writeBytes: 2_000 } });
    state.setMeta('peer', 'yacy');
    for (let round = 0; round < 40; round += 1) {
      for (let i = 0; i < 20; i += 1)
        state.put(lifeOf(pendingRecord(`${i}`))[(round % 3) as 0 | 1 | 2]);
      if (round % 2 === 0) state.remove('inbox', `${round % 20}`);
      await state.commit();
    }
    await until(() => !state.figures().compacting, 'the last compaction ended');
    const { generation, snapshotBytes, journalBytes } = state.figures();
    expect(generation).toBeGreaterThan(3);
    expect(snapshotBytes).toBeGreaterThan(1_000);
    expect(journalBytes).toBeLessThan(60_000);
    const before = sorted(state);
    await state.close();
    const files = [generation - 1, generation].flatMap((n) => [`journal-${n}`, `snapshot-${n}`]);
    expect(readdirSync(dir).sort()).toEqual(['acknowledged', ...files.sort()]);
    const again = await opened(dir);
    expect(sorted(again)).toEqual(before);
    expect(again.meta('peer')).toBe('yacy');
    expect(again.repairs).toEqual([]);
  });

  it('keeps all files, also while it runs, below 2.2 times the lines of the records', async () => {
    const dir = temporaryDirectory();
    const sizes = () => readdirSync(dir).map((name) => statSync(join(dir, name)).size);
    let most = 0;
    const open = openCalling(() => {
      most = Math.max(
        most,
        sizes().reduce((sum, size) => sum + size),
      );
    });
    const state = await opened(dir, { open, policy: { compactMinBytes: 1 } });
    for (let i = 0; i < 8_000; i += 1) state.put(pendingRecord(`${i % 100}/${i}`));
    await state.commit();
    for (let i = 0; i < 8_000; i += 200) {
      for (const step of [1, 2] as const) {
        for (let k = i; k < i + 200; k += 1)
          state.put(lifeOf(pendingRecord(`${k % 100}/${k}`))[step]);
        await state.commit();
        await until(() => !state.figures().compacting, 'the snapshot was written');
      }
    }
    expect(most / state.entries.lineLength).toBeLessThan(2.2);
    expect(state.figures().compactions).toBeGreaterThan(2);
  });

  it('neither loses nor reverts changes that are made meanwhile', async () => {
    const dir = temporaryDirectory();
    const state = await opened(dir, { policy: { writeBytes: 500 } });
    for (let i = 0; i < 3_000; i += 1) state.put(pendingRecord(`${i % 30}/${i}`));
    await state.commit();
    let commits = 0;
    const compaction = state.compact();
    while (state.figures().compacting) {
      const [changed, removed] = [(commits * 37) % 3_000, (commits * 41) % 3_000];
      state.put(lifeOf(pendingRecord(`${changed % 30}/${changed}`))[1]);
      if (removed !== changed) state.remove('inbox', `${removed % 30}/${removed}`);
      state.put(pendingRecord(`new/${commits}`));
      await state.commit();
      commits += 1;
    }
    await compaction;
    expect(commits).toBeGreaterThan(2);
    expect(sorted(await State.read(dir))).toEqual(sorted(state));
    expect(state.figures().snapshotBytes).toBeGreaterThan(0);
  });

  it('is aborted when the state is closed, and leaves no unfinished file', async () => {
    const dir = temporaryDirectory();
    const state = await opened(dir, { policy: { writeBytes: 500 } });
    for (let i = 0; i < 4_000; i += 1) state.put(pendingRecord(`${i}`));
    await state.commit();
    const compaction = state.compact();
    await until(() => readdirSync(dir).includes('snapshot-2.tmp'), 'the snapshot is being written');
    const givenUp = expect(compaction).rejects.toThrow();
    await state.close();
    expect(readdirSync(dir).sort()).toEqual(['acknowledged', 'journal-1', 'journal-2']);
    await givenUp;
    expect((await State.read(dir)).entries.size).toBe(4_000);
  });
});
