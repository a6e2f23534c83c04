import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { FolderConfig } from '../../src/config/config.js';
import type { FsEvents } from '../../src/watch/fs-events.js';
import type { WatchSettings } from '../../src/watch/watcher.js';
import { afterwards } from '../support/afterwards.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { folderOf, SETTLE_MS, type Started, WatchWorld } from './world.js';

/** A second folder beside that of the world. */
function another(name = 'notes'): { folder: FolderConfig; write: (path: string, content?: string) => void } {
  const path = join(temporaryDirectory(), name);
  mkdirSync(path);
  const url = `https://files.example.org/${name}/`;
  return {
    folder: folderOf(path, { name, collection: name, url }),
    write: (file, content = `content of ${file}`) => writeFileSync(join(path, file), content),
  };
}

const settings = (folders: readonly FolderConfig[], changes: Partial<WatchSettings> = {}): WatchSettings => ({
  folders,
  hints: true,
  rescanMs: 3_600_000,
  ...changes,
});

const scannedAt = ({ watcher }: Started, name: string) =>
  watcher.status().find((folder) => folder.name === name)?.lastScan?.at;

/** Words of nothing. */
const silentEvents: FsEvents = {
  watch: async () => 'watched',
  unwatch: () => {},
  watches: () => false,
  watched: 0,
  close: async () => {},
};

describe('a watcher that is told to watch otherwise', () => {
  it('does so though the disk of a folder that it lets go does not answer', async () => {
    const world = new WatchWorld();
    const { folder, write } = another();
    write('n.txt');
    let answers: () => void = () => {};
    const hung = new Promise<void>((resolve) => {
      answers = resolve;
    });
    afterwards('test', () => answers());
    const started = await world.start({ openEvents: () => ({ ...silentEvents, close: () => hung }) });
    await started.watcher.idle();
    started.watcher.watch(settings([folder]));
    await started.watcher.idle();
    expect(started.status('n.txt', 'notes')).toBe('pending');
    expect(started.watcher.status().map(({ name }) => name)).toEqual(['notes']);
  });

  it('scans a folder that was added, follows it from then on, and scans no other', async () => {
    const world = new WatchWorld();
    world.write('a.txt');
    const { folder, write } = another();
    write('n.txt');
    const started = await world.start();
    const { watcher } = started;
    await watcher.idle();
    const before = scannedAt(started, 'inbox');
    expect(before).toBeDefined();
    watcher.watch(settings([folderOf(world.root), folder]));
    await watcher.idle();
    expect(started.status('n.txt', 'notes')).toBe('pending');
    write('later.txt');
    world.write('later.txt');
    await until(() => started.status('later.txt', 'notes') === 'pending', 'the new one is followed');
    await until(() => started.status('later.txt') === 'pending', 'the old one is followed');
    expect(scannedAt(started, 'inbox')).toBe(before);
  });

  it('keeps what settles in a folder that is as before', async () => {
    const world = new WatchWorld();
    const folder = folderOf(world.root, { settle: 20 * SETTLE_MS });
    const started = await world.start({ folders: [folder] });
    const { watcher } = started;
    await watcher.idle();
    world.write('fresh.txt');
    const settling = () => watcher.status().find(({ name }) => name === 'inbox')?.settling;
    await until(() => settling() === 1, 'it settles');
    watcher.watch(settings([{ ...folder }, another().folder]));
    expect(settling()).toBe(1);
    await until(() => started.status('fresh.txt') === 'pending', 'it was read');
  });

  it('looks at a removed folder no more, whatever was under way there', async () => {
    const world = new WatchWorld();
    const { folder, write } = another();
    for (let i = 0; i < 300; i += 1) write(`${i}.txt`, 'x'.repeat(20_000));
    const started = await world.start({
      folders: [folderOf(world.root), folder],
      policy: { readers: 1, crowd: 5 },
    });
    const { watcher, state } = started;
    await until(() => state.counts('notes').pending > 10, 'the scan is under way');
    for (let i = 0; i < 50; i += 1) watcher.lookSoon({ folder: 'notes', path: `${i}.txt` });
    watcher.watch(settings([folderOf(world.root)]));
    const known = state.counts('notes').pending;
    expect(known).toBeLessThan(300);
    write('later.txt');
    watcher.lookSoon({ folder: 'notes', path: 'later.txt' });
    await watcher.idle();
    world.write('a.txt');
    await until(() => started.status('a.txt') === 'pending', 'the other goes on');
    expect(state.counts('notes').pending).toBe(known);
    expect(watcher.status().map(({ name }) => name)).toEqual(['inbox']);
  });

  it('takes a changed folder up anew, in the midst of its first scan', async () => {
    const world = new WatchWorld();
    for (let i = 0; i < 300; i += 1) world.write(`${i}.txt`, 'x'.repeat(20_000));
    const started = await world.start({ policy: { readers: 2, crowd: 10 } });
    const { watcher, state } = started;
    await until(() => state.counts().pending > 10, 'the scan is under way');
    watcher.watch(settings([folderOf(world.root, { collection: 'other', ignore: ['1*.txt'] })]));
    await watcher.idle();
    const entries = [...state.entries.all('inbox')];
    expect(entries.filter(({ path }) => path.startsWith('1'))).toEqual([]);
    expect(entries).toHaveLength(300 - 111);
    expect(new Set(entries.map((entry) => ('collection' in entry ? entry.collection : '')))).toEqual(
      new Set(['other']),
    );
  });

  it('turns hints off and on', async () => {
    const world = new WatchWorld();
    const started = await world.start();
    const { watcher } = started;
    await watcher.idle();
    expect(watcher.status()[0]).toMatchObject({ state: 'watching', directoriesWatched: 1 });
    watcher.watch(settings([folderOf(world.root)], { hints: false }));
    await watcher.idle();
    expect(watcher.status()[0]).toMatchObject({ state: 'unwatched', directoriesWatched: 0 });
    watcher.watch(settings([folderOf(world.root)]));
    await watcher.idle();
    expect(watcher.status()[0]).toMatchObject({ state: 'watching', directoriesWatched: 1 });
  });

  it('scans at another interval', async () => {
    const world = new WatchWorld();
    const started = await world.start({ hints: false });
    await started.watcher.idle();
    started.watcher.watch(settings([folderOf(world.root)], { hints: false, rescanMs: 100 }));
    world.write('a.txt');
    await until(() => started.status('a.txt') === 'pending', 'a rescan found it');
  });

  it('shows folders in the order of the configuration, and knows each by its name', async () => {
    const world = new WatchWorld();
    const [b, c] = [another('b'), another('c')];
    const started = await world.start({ folders: [folderOf(world.root), b.folder] });
    const { watcher } = started;
    watcher.watch(settings([c.folder, b.folder, folderOf(world.root)]));
    expect(watcher.status().map(({ name }) => name)).toEqual(['c', 'b', 'inbox']);
    watcher.watch(settings([c.folder]));
    watcher.watch(settings([b.folder, c.folder]));
    b.write('again.txt');
    await until(() => started.status('again.txt', 'b') === 'pending', 'b is followed again');
  });
});
