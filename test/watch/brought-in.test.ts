import { mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BEGINNINGS } from '../../src/state/entry.js';
import { until } from '../support/wait.js';
import { SETTLE_MS, type Started, WatchWorld } from './world.js';

function noteOf(inbox: Started, path: string): string | undefined {
  return inbox.get(path)?.history.at(-1)?.note;
}

/** How long after its last change the work on a file began. */
function lateness(inbox: Started, path: string): number {
  const item = inbox.get(path);
  return (item?.history.at(-1)?.at ?? Number.NaN) - (item?.version.ctimeMs ?? Number.NaN);
}

/** Makes a directory beside the folder, whose file has long been at rest. */
async function elsewhere(world: WatchWorld, name: string): Promise<string> {
  const directory = join(world.root, '..', name);
  mkdirSync(join(directory, 'deep'), { recursive: true });
  const file = join(directory, 'deep', 'a.txt');
  writeFileSync(file, 'x');
  await until(() => Date.now() - statSync(file).ctimeMs > 2 * SETTLE_MS, 'the file is at rest');
  return directory;
}

describe('a file that came to its place later than its own times say', () => {
  it('counts from its arrival where it was moved in with its directory', async () => {
    const world = new WatchWorld();
    const inbox = await world.start();
    await inbox.watcher.idle();
    renameSync(await elsewhere(world, 'made'), join(world.root, 'made'));
    await until(() => inbox.status('made/deep/a.txt') === 'pending', 'it is pending');
    expect(lateness(inbox, 'made/deep/a.txt')).toBeGreaterThan(2 * SETTLE_MS);
    world.write('made/deep/new.txt');
    await until(() => inbox.status('made/deep/new.txt') === 'pending', 'the new one is pending');
    expect(noteOf(inbox, 'made/deep/new.txt')).toBe(BEGINNINGS.newFile);
    expect(lateness(inbox, 'made/deep/new.txt')).toBeLessThanOrEqual(SETTLE_MS + 1);
  });

  it('is a new one where it was moved by itself, for that its own times tell', async () => {
    const world = new WatchWorld();
    const inbox = await world.start();
    await inbox.watcher.idle();
    renameSync(join(await elsewhere(world, 'one'), 'deep/a.txt'), join(world.root, 'a.txt'));
    await until(() => inbox.status('a.txt') === 'pending', 'it is pending');
    expect(noteOf(inbox, 'a.txt')).toBe(BEGINNINGS.newFile);
    expect(lateness(inbox, 'a.txt')).toBeLessThanOrEqual(SETTLE_MS + 1);
  });

  it('counts from its arrival where a rule kept it out until now', async () => {
    const world = new WatchWorld();
    world.write('.peersyncignore', '*.txt\n');
    const file = world.write('a.txt');
    const inbox = await world.start();
    await inbox.watcher.idle();
    await until(() => Date.now() - statSync(file).ctimeMs > 2 * SETTLE_MS, 'the file is at rest');
    await inbox.watcher.rescan();
    rmSync(join(world.root, '.peersyncignore'));
    await until(() => inbox.status('a.txt') === 'pending', 'it is pending');
    expect(lateness(inbox, 'a.txt')).toBeGreaterThan(2 * SETTLE_MS);
  });

  it('is a new one where it was there before the watch began, however it came', async () => {
    const world = new WatchWorld();
    renameSync(await elsewhere(world, 'old'), join(world.root, 'old'));
    utimesSync(join(world.root, 'old'), 0, 0);
    const inbox = await world.start();
    await inbox.watcher.idle();
    expect(noteOf(inbox, 'old/deep/a.txt')).toBe(BEGINNINGS.newFile);
  });
});

describe('a directory that is moved away and back, with nothing in it changed', () => {
  it('has its files again, at any depth', async () => {
    const world = new WatchWorld();
    world.write('a/b/c/file.txt');
    const inbox = await world.start();
    await inbox.watcher.idle();
    await inbox.watcher.rescan();
    renameSync(join(world.root, 'a'), join(world.root, '../away'));
    await until(() => inbox.status('a/b/c/file.txt') === 'gone', 'it is gone');
    renameSync(join(world.root, '../away'), join(world.root, 'a'));
    await until(() => inbox.status('a/b/c/file.txt') === 'pending', 'it is pending again', 10_000);
  });

  it('has its rules again, so that what comes later is kept out as before', async () => {
    const world = new WatchWorld();
    world.write('a/x.txt');
    world.write('a/b/.peersyncignore', '*.secret\n');
    const inbox = await world.start();
    await inbox.watcher.idle();
    await inbox.watcher.rescan();
    renameSync(join(world.root, 'a'), join(world.root, '../away'));
    await until(() => inbox.status('a/x.txt') === 'gone', 'its file is gone');
    await inbox.watcher.idle();
    renameSync(join(world.root, '../away'), join(world.root, 'a'));
    await until(() => inbox.status('a/x.txt') === 'pending', 'it is back');
    await inbox.watcher.idle();
    world.write('a/b/x.secret');
    world.write('a/b/y.txt');
    await until(() => inbox.status('a/b/y.txt') === 'pending', 'what came later is pending');
    await inbox.watcher.idle();
    expect(inbox.status('a/b/x.secret')).toBe(undefined);
  });
});
