import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import { gone } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { wasSeen } from '../../src/watch/root.js';
import { pendingRecord } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { folderOf, WatchWorld } from './world.js';

const mounted: string[] = [];

/** Mounts a file system of its own on a directory. */
function mount(path: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'peersync-test', path]);
  mounted.push(path);
}

/** Takes it away at once, also while the watcher, which looks at its own times, has a directory of it open. */
function unmount(path: string): void {
  execFileSync('umount', ['--lazy', path]);
  mounted.splice(mounted.indexOf(path), 1);
}

const canMount = (() => {
  try {
    execFileSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'x', '/mnt'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

afterEach(() => {
  for (const path of [...mounted]) unmount(path);
});

it('a folder was seen when its root was there, or when files of it are known that are not gone', async () => {
  const clock = new FakeClock();
  const state = await State.open(temporaryDirectory(), { clock, log: silentLogger });
  const inbox = { name: 'inbox', path: '/mnt/inbox' };
  expect(wasSeen(inbox, state)).toBe(false);
  state.setMeta('watch.root.inbox', { path: '/mnt/inbox', dev: 1, ino: 2 });
  expect(wasSeen(inbox, state)).toBe(true);
  expect(wasSeen({ ...inbox, name: 'notes' }, state)).toBe(false);
  const elsewhere = { ...inbox, path: '/mnt/other' };
  expect(wasSeen(elsewhere, state)).toBe(false);
  const item = pendingRecord('a');
  state.put(item);
  expect(item.folder).toBe('inbox');
  expect(wasSeen(elsewhere, state)).toBe(true);
  state.put(gone(item, clock.now()));
  expect(wasSeen(elsewhere, state)).toBe(false);
  await state.close();
});

describe('a folder whose root', () => {
  it('is missing at the start is held, said once, and scanned when it comes', async () => {
    const world = new WatchWorld();
    rmSync(world.root, { recursive: true });
    const inbox = await world.start();
    await until(() => inbox.watcher.status()[0]?.state === 'held', 'it is held');
    await inbox.watcher.idle();
    expect(inbox.watcher.status()[0]?.trouble).toMatchObject({
      code: 'FOLDER_MISSING',
      hint: expect.stringMatching(/^Mount or create it; /),
    });
    mkdirSync(world.root);
    world.write('a.txt');
    await until(() => inbox.status('a.txt') === 'pending', 'a.txt is pending');
    await until(() => inbox.watcher.status()[0]?.state === 'watching', 'it is watched');
    world.write('b.txt');
    await until(() => inbox.status('b.txt') === 'pending', 'b.txt is seen by a hint');
    expect(world.said('is not there or cannot be read (ENOENT)', 'warn')).toBe(1);
    expect(world.said('is back', 'info')).toBe(1);
  });

  it('goes away keeps its items, and is watched again when it is back', async () => {
    const world = new WatchWorld();
    world.write('sub/a.txt');
    const inbox = await world.start();
    await inbox.watcher.idle();
    renameSync(world.root, `${world.root}.away`);
    await until(() => inbox.watcher.status()[0]?.state === 'held', 'it is held');
    expect(inbox.watcher.status()[0]?.directoriesWatched).toBe(0);
    expect(inbox.watcher.standing('inbox')).toBe('missing');
    expect(inbox.watcher.standing('other')).toBeUndefined();
    expect(inbox.watcher.status()[0]?.trouble?.hint).toMatch(/^Mount it or bring it back; /);
    await inbox.watcher.rescan();
    await inbox.watcher.idle();
    expect(inbox.status('sub/a.txt')).toBe('pending');
    renameSync(`${world.root}.away`, world.root);
    await until(() => inbox.watcher.status()[0]?.state === 'watching', 'it is watched');
    expect(inbox.watcher.standing('inbox')).toBe('there');
    await inbox.watcher.idle();
    world.write('sub/b.txt');
    await until(() => inbox.status('sub/b.txt') === 'pending', 'b.txt is seen');
    expect(inbox.status('sub/a.txt')).toBe('pending');
  });

  it('is there or missing, which is told whenever it changes, and is missing until it was looked at', async () => {
    const world = new WatchWorld();
    world.write('a.txt');
    const heard: unknown[] = [];
    let standing = (): unknown => 'not known';
    const { watcher } = await world.start({ onStanding: () => void heard.push(standing()) });
    standing = () => watcher.standing('inbox');
    expect(standing()).toBe('missing');
    await until(() => heard.at(-1) === 'there', 'it is there');
    await watcher.idle();
    expect(heard).toEqual(['there']);
    renameSync(world.root, `${world.root}.away`);
    await until(() => heard.at(-1) === 'missing', 'it is missing');
    mkdirSync(world.root);
    await until(() => watcher.status()[0]?.trouble?.code === 'FOLDER_REPLACED', 'an empty one is not it');
    rmdirSync(world.root);
    renameSync(`${world.root}.away`, world.root);
    await until(() => heard.at(-1) === 'there', 'it is there again');
    const settings = { hints: true, rescanMs: 3_600_000 };
    watcher.watch({ ...settings, folders: [folderOf(`${world.root}.elsewhere`)] });
    expect(heard.at(-1)).toBe('missing');
    watcher.watch({ ...settings, folders: [folderOf(world.root)] });
    await until(() => heard.at(-1) === 'there', 'it is there by its old path');
    watcher.watch({ ...settings, folders: [] });
    expect(heard.at(-1)).toBeUndefined();
  });

  it('is replaced by another directory with files is that directory from then on', async () => {
    const world = new WatchWorld();
    world.write('old.txt');
    const inbox = await world.start();
    await inbox.watcher.idle();
    mkdirSync(`${world.root}.new`);
    writeFileSync(`${world.root}.new/new.txt`, 'x');
    renameSync(world.root, `${world.root}.old`);
    renameSync(`${world.root}.new`, world.root);
    await until(
      () => inbox.status('new.txt') === 'pending' && inbox.status('old.txt') === 'gone',
      'it is taken over',
    );
    await inbox.watcher.idle();
    world.write('later.txt');
    await until(() => inbox.status('later.txt') === 'pending', 'later.txt is seen');
  });

  it('is replaced by an empty directory keeps its items until something is in it', async () => {
    const world = new WatchWorld();
    world.write('old.txt');
    const inbox = await world.start();
    await inbox.watcher.idle();
    // Made before the other goes, so that it is another inode for certain.
    mkdirSync(`${world.root}.new`);
    renameSync(world.root, `${world.root}.old`);
    renameSync(`${world.root}.new`, world.root);
    await until(() => inbox.watcher.status()[0]?.trouble?.code === 'FOLDER_REPLACED', 'it is held');
    await inbox.watcher.rescan('inbox');
    await inbox.watcher.idle();
    expect(inbox.status('old.txt')).toBe('pending');
    world.write('new.txt');
    await until(() => inbox.status('old.txt') === 'gone', 'the new root is accepted');
    await until(() => inbox.status('new.txt') === 'pending', 'new.txt is pending');
  });

  it('was replaced while nothing ran keeps its items too', async () => {
    const world = new WatchWorld();
    world.write('old.txt');
    const first = await world.start();
    await first.watcher.idle();
    await first.watcher.stop();
    mkdirSync(`${world.root}.new`);
    renameSync(world.root, `${world.root}.old`);
    renameSync(`${world.root}.new`, world.root);
    const second = await world.start({ state: first.state });
    await second.watcher.idle();
    expect(second.status('old.txt')).toBe('pending');
    expect(second.watcher.status()[0]?.state).toBe('held');
  });

  it('is removed and made again between two checks is watched again', async () => {
    const world = new WatchWorld();
    const inbox = await world.start({ policy: { rootCheckMs: 3_600_000 } });
    await inbox.watcher.idle();
    for (let i = 0; i < 5; i += 1) {
      rmSync(world.root, { recursive: true });
      mkdirSync(world.root);
      world.write(`d/${i}.txt`);
      await until(() => inbox.status(`d/${i}.txt`) === 'pending', `${i}.txt is seen`);
      await inbox.watcher.idle();
    }
  });

  it('is a symbolic link is watched where it leads', async () => {
    const world = new WatchWorld();
    renameSync(world.root, `${world.root}.real`);
    symlinkSync(`${world.root}.real`, world.root);
    const inbox = await world.start();
    await inbox.watcher.idle();
    world.write('d/a.txt');
    await until(() => inbox.status('d/a.txt') === 'pending', 'd/a.txt is seen');
  });

  it('is a symbolic link that is pointed elsewhere is watched there, and nowhere else', async () => {
    const world = new WatchWorld();
    world.write('d/a.txt');
    renameSync(world.root, `${world.root}.one`);
    mkdirSync(`${world.root}.two`);
    writeFileSync(`${world.root}.two/b.txt`, 'x');
    symlinkSync(`${world.root}.one`, world.root);
    const inbox = await world.start();
    await inbox.watcher.idle();
    expect(inbox.watcher.status()[0]?.directoriesWatched).toBe(2);
    rmSync(world.root);
    symlinkSync(`${world.root}.two`, world.root);
    await until(() => inbox.status('b.txt') === 'pending', 'b.txt is seen');
    await inbox.watcher.idle();
    expect(inbox.status('d/a.txt')).toBe('gone');
    expect(inbox.watcher.status()[0]?.directoriesWatched).toBe(1);
  });

  describe.skipIf(!canMount)('is copied to another disk', () => {
    const copied = async (...options: string[]) => {
      const world = new WatchWorld();
      world.write('sub/a.txt', 'one');
      world.write('sub/b.txt', 'two');
      const inbox = await world.start();
      await inbox.watcher.idle();
      await inbox.watcher.stop();
      renameSync(world.root, `${world.root}.old`);
      mkdirSync(world.root);
      mount(world.root);
      execFileSync('cp', ['-r', ...options, `${world.root}.old/.`, world.root]);
      rmSync(join(world.root, 'sub/b.txt'));
      const again = await world.start({ state: inbox.state });
      await again.watcher.idle();
      return again;
    };

    it('is the folder again where its files kept their times', async () => {
      const inbox = await copied('--preserve=timestamps');
      expect(inbox.watcher.status()[0]?.state).toBe('watching');
      expect([inbox.status('sub/a.txt'), inbox.status('sub/b.txt')]).toEqual(['pending', 'gone']);
    });

    it('is held where they did not, until a scan of just that folder is asked for', async () => {
      const inbox = await copied();
      expect(inbox.watcher.status()[0]).toMatchObject({
        state: 'held',
        trouble: { code: 'FOLDER_REPLACED', hint: expect.stringContaining('`peersync rescan inbox`') },
      });
      await inbox.watcher.rescan();
      await inbox.watcher.idle();
      expect([inbox.status('sub/a.txt'), inbox.status('sub/b.txt')]).toEqual(['pending', 'pending']);
      await inbox.watcher.rescan('inbox');
      await inbox.watcher.idle();
      expect(inbox.watcher.status()[0]?.state).toBe('watching');
      expect([inbox.status('sub/a.txt'), inbox.status('sub/b.txt')]).toEqual(['pending', 'gone']);
    });
  });

  it.skipIf(!canMount)(
    'is not mounted keeps its items, also when a stray file lies in the mount point',
    async () => {
      const world = new WatchWorld();
      mount(world.root);
      world.write('a.txt', 'x');
      const inbox = await world.start();
      await inbox.watcher.idle();
      await inbox.watcher.stop();
      unmount(world.root);
      world.write('stray.txt', 'x');
      const again = await world.start({ state: inbox.state });
      await again.watcher.idle();
      expect(again.watcher.status()[0]).toMatchObject({
        state: 'held',
        trouble: { code: 'FOLDER_REPLACED' },
      });
      expect(again.status('a.txt')).toBe('pending');
      expect(again.status('stray.txt')).toBeUndefined();
    },
  );

  it.skipIf(!canMount)(
    'is unmounted while it is watched keeps its items, and goes on when it is mounted',
    async () => {
      const world = new WatchWorld();
      const disk = `${world.root}.disk`;
      mkdirSync(disk);
      mount(disk);
      writeFileSync(join(disk, 'a.txt'), 'x');
      execFileSync('mount', ['--bind', disk, world.root]);
      mounted.push(world.root);
      const inbox = await world.start();
      await inbox.watcher.idle();
      execFileSync('umount', ['--lazy', world.root]);
      mounted.splice(mounted.indexOf(world.root), 1);
      await until(() => inbox.watcher.status()[0]?.trouble?.code === 'FOLDER_REPLACED', 'it is held');
      await inbox.watcher.rescan();
      expect(inbox.status('a.txt')).toBe('pending');
      execFileSync('mount', ['--bind', disk, world.root]);
      mounted.push(world.root);
      await until(() => inbox.watcher.status()[0]?.state === 'watching', 'it is watched again');
      writeFileSync(join(disk, 'b.txt'), 'y');
      await until(() => inbox.status('b.txt') === 'pending', 'b.txt is seen');
      expect(inbox.status('a.txt')).toBe('pending');
    },
  );
});

it('loses no file when a directory above it is moved and the link to it is pointed there', async () => {
  const world = new WatchWorld();
  const [above, moved, link] = ['above', 'moved', 'link'].map((name) => join(world.root, '..', name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(join(above, 'inbox/a'), { recursive: true });
  writeFileSync(join(above, 'inbox/a/old.txt'), 'old');
  symlinkSync(join(above, 'inbox'), link);
  const inbox = await world.start({ folders: [folderOf(link)], policy: { rootCheckMs: 60_000 } });
  await inbox.watcher.idle();
  const statuses: unknown[] = [];
  inbox.state.onChange((after, _, { path }) => void statuses.push([path, after?.status]));
  renameSync(above, moved);
  rmSync(link);
  symlinkSync(join(moved, 'inbox'), link);
  writeFileSync(join(link, 'a/old.txt'), 'written at its new place');
  await until(() => inbox.get('a/old.txt')?.version.size === 24, 'it is read', 10_000);
  await inbox.watcher.idle();
  expect(statuses).toEqual([['a/old.txt', 'pending']]);
});
