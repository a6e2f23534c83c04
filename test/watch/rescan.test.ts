import { mkdirSync, renameSync, rmSync, statSync, symlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Encoding } from '../../src/lib/file.js';
import { entriesOf, type List, listHere } from '../../src/watch/lister.js';
import { until } from '../support/wait.js';
import { folderOf, SETTLE_MS, type Started, WatchWorld } from './world.js';

/** Counts what comes to the event loop. */
function countingList() {
  const counts = { entries: 0 };
  const list: List = async (order) => {
    const listing = await listHere(order);
    if (!('code' in listing)) counts.entries += [...entriesOf(listing)].length;
    return listing;
  };
  return { counts, list };
}

async function setUp(prepare: (world: WatchWorld) => void, options: Parameters<WatchWorld['start']>[0] = {}) {
  const world = new WatchWorld();
  prepare(world);
  const { counts, list } = countingList();
  const inbox = await world.start({ hints: false, list, ...options });
  await inbox.watcher.idle();
  // What was not at rest at first is compared once more.
  await inbox.watcher.rescan();
  await inbox.watcher.idle();
  const rescan = async () => {
    counts.entries = 0;
    const [report] = await inbox.watcher.rescan();
    await inbox.watcher.idle();
    return { report, entries: counts.entries };
  };
  return { world, inbox, rescan };
}

const tree = (world: WatchWorld) => {
  for (let d = 0; d < 5; d += 1) for (let f = 0; f < 4; f += 1) world.write(`a/d${d}/f${f}`);
};

describe('a rescan', () => {
  it('takes nothing from a file that came in the place of a directory while that was listed', async () => {
    const world = new WatchWorld();
    world.write('d/in.txt');
    let lists = 0;
    let held: Promise<void> | undefined;
    const list: List = async (order) => {
      const listing = await listHere(order);
      lists += 1;
      await held;
      return listing;
    };
    const inbox = await world.start({ hints: false, list });
    await inbox.watcher.idle();
    expect(inbox.status('d/in.txt')).toBe('pending');
    let release = () => {};
    held = new Promise((resolve) => {
      release = resolve;
    });
    const before = lists;
    const scan = inbox.watcher.rescan();
    await until(() => lists > before, 'the folder is listed');
    rmSync(join(world.root, 'd'), { recursive: true });
    world.write('d');
    inbox.watcher.lookSoon({ folder: 'inbox', path: 'd' });
    await until(() => inbox.status('d') === 'pending', 'the file is known');
    held = undefined;
    release();
    await scan;
    await inbox.watcher.idle();
    expect([inbox.status('d'), inbox.status('d/in.txt')]).toEqual(['pending', 'gone']);
  });

  it('of an unchanged tree compares nothing but digests, and counts all the same', async () => {
    const { rescan } = await setUp(tree);
    expect(await rescan()).toMatchObject({ report: { files: 20, directories: 7 }, entries: 0 });
  });

  it('compares just the directory that something changed in', async () => {
    const { world, inbox, rescan } = await setUp(tree);
    world.append('a/d3/f1', 'more');
    rmSync(join(world.root, 'a/d4'), { recursive: true });
    world.write('a/d3/new');
    // d3 has five files by now, and a four directories.
    expect((await rescan()).entries).toBe(5 + 4);
    expect([inbox.status('a/d3/new'), inbox.status('a/d4/f0')]).toEqual(['pending', 'gone']);
    // What was not at rest is compared once more.
    expect((await rescan()).entries).toBe(5);
    expect((await rescan()).entries).toBe(0);
  });

  it('after a start on a known state compares with it, and only once', async () => {
    const { world, inbox } = await setUp(tree);
    await inbox.watcher.stop();
    const { counts, list } = countingList();
    const again = await world.start({ state: inbox.state, hints: false, list });
    await again.watcher.idle();
    expect(counts.entries).toBe(26);
    await again.watcher.rescan();
    expect(counts.entries).toBe(26);
  });

  it('finds a file that is back as it was, though its removal was seen and its return was not', async () => {
    const { world, inbox, rescan } = await setUp(tree);
    const file = join(world.root, 'a/d0/f0');
    const away = `${world.root}-away`;
    renameSync(file, away);
    inbox.watcher.lookSoon({ folder: 'inbox', path: 'a/d0/f0' });
    await inbox.watcher.idle();
    expect(inbox.status('a/d0/f0')).toBe('gone');
    renameSync(away, file);
    await rescan();
    expect(inbox.status('a/d0/f0')).toBe('pending');
  });

  it('finds what is back with its directory as it was, and decides about it by the rules that came back, too', async () => {
    const { world, inbox, rescan } = await setUp((w) => {
      tree(w);
      w.write('a/d0/.peersyncignore', 'secret');
      w.write('a/d0/deep/open');
      w.write('a/d0/deep/secret');
    });
    const directory = join(world.root, 'a');
    const away = `${world.root}-away`;
    renameSync(directory, away);
    inbox.watcher.lookSoon({ folder: 'inbox', path: 'a' });
    await inbox.watcher.idle();
    expect(inbox.status('a/d0/deep/open')).toBe('gone');
    renameSync(away, directory);
    await rescan();
    expect(['f0', 'deep/open', 'deep/secret'].map((name) => inbox.status(`a/d0/${name}`))).toEqual([
      'pending',
      'pending',
      undefined,
    ]);
  });

  it('does not take a file for empty, or for too large, that was it when its directory was listed', async () => {
    const world = new WatchWorld();
    world.write('empty', '');
    world.write('large', 'x'.repeat(101));
    let held: Promise<void> | undefined;
    let isListed = false;
    const list: List = async (order) => {
      const listing = await listHere(order);
      isListed = true;
      await held;
      return listing;
    };
    const inbox = await world.start({ list, folders: [folderOf(world.root, { maxFileSize: 100 })] });
    await inbox.watcher.idle();
    const statuses = () => ['empty', 'large'].map((name) => inbox.status(name));
    expect(statuses()).toEqual(['passed', 'passed']);
    let release = () => {};
    held = new Promise((resolve) => {
      release = resolve;
    });
    isListed = false;
    const scan = inbox.watcher.rescan();
    await until(() => isListed, 'the folder is listed');
    world.write('empty', 'words');
    world.write('large', 'words');
    await until(() => statuses().every((status) => status === 'pending'), 'both are read');
    release();
    await scan;
    await inbox.watcher.idle();
    expect(statuses()).toEqual(['pending', 'pending']);
  });

  it('finds that a file is gone which went while its directory was listed', async () => {
    let vanishes = false;
    const list: List = async (order) => {
      const listing = await listHere(order);
      if (!vanishes || 'code' in listing || !order.directory.endsWith('/a/d0')) return listing;
      vanishes = false;
      rmSync(join(order.directory, 'f0'));
      // What a listing is like that meets no f0 any more, though the directory named it.
      const after = await listHere({ ...order, known: undefined });
      if ('code' in after) return after;
      return { ...after, failed: [{ name: 'f0', code: 'ENOENT' }] };
    };
    const { world, inbox, rescan } = await setUp(tree, { list });
    const changed = world.write('a/d0/f1', 'more');
    await until(() => Date.now() - statSync(changed).ctimeMs > 2 * SETTLE_MS, 'what changed is at rest');
    vanishes = true;
    await rescan();
    await rescan();
    expect(inbox.status('a/d0/f0')).toBe('gone');
  });

  it('finds out what the peer takes by now, though no file changed', async () => {
    let refused: Encoding | undefined;
    const accepts = (encoding: Encoding) =>
      encoding === refused ? { code: 'NOT_TEXT', message: 'Not taken.', hint: 'None.' } : undefined;
    const { inbox, rescan } = await setUp(tree, { accepts });
    refused = 'utf-8';
    await rescan();
    expect(inbox.state.counts()).toMatchObject({ pending: 0, passed: 20 });
    expect((await rescan()).entries).toBe(0);
    refused = undefined;
    await rescan();
    expect(inbox.state.counts()).toMatchObject({ pending: 20, passed: 0 });
  });

  it('follows other rules into directories that did not change, and out of them', async () => {
    const { world, inbox, rescan } = await setUp(tree);
    const rules = world.write('.peersyncignore', 'f1\nd2/\n');
    utimesSync(rules, 1, 1);
    await rescan();
    const paths = () => [...inbox.state.entries.all()].filter(({ status }) => status !== 'gone');
    expect(paths()).toHaveLength(12);
    rmSync(rules);
    // The rules count until their file has stayed away for `settle`.
    await rescan();
    expect(paths()).toHaveLength(20);
  });

  it('sees a change behind a link that is followed, which leaves no trace where the link stands', async () => {
    const { world, inbox } = await setUp((w) => {
      w.write('hidden/a.txt', 'one');
      mkdirSync(join(w.root, 'links'));
      symlinkSync('../hidden/a.txt', join(w.root, 'links/b.txt'));
    }, {});
    await inbox.watcher.stop();
    const followed = await world.start({
      state: inbox.state,
      hints: false,
      folders: [folderOf(world.root, { followSymlinks: true })],
    });
    await followed.watcher.idle();
    const before = followed.sha('links/b.txt');
    expect(before).toBeDefined();
    world.append('hidden/a.txt', 'two');
    await followed.watcher.rescan();
    await followed.watcher.idle();
    expect(followed.sha('links/b.txt')).not.toBe(before);
  });
});

/** The most changes of state in one turn of the event loop while `work` runs, and how many turns it took. */
async function changesATurn(inbox: Started, work: () => Promise<unknown>) {
  let [now, most, turns, done] = [0, 0, 0, false];
  const stop = inbox.state.onChange(() => {
    now += 1;
  });
  const turn = () => {
    most = Math.max(most, now);
    now = 0;
    turns += 1;
    if (!done) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  done = true;
  stop();
  return { most: Math.max(most, now), turns };
}

describe('what concerns very many files', () => {
  const many = (world: WatchWorld) => {
    for (let i = 0; i < 3_000; i += 1) world.write(`d/${i}`, 'x');
  };

  it('is found to be removed a few at a time', async () => {
    const { world, inbox } = await setUp(many);
    rmSync(join(world.root, 'd'), { recursive: true });
    const { most } = await changesATurn(inbox, () => inbox.watcher.rescan());
    expect(inbox.state.counts().gone).toBe(3_000);
    expect(most).toBeLessThanOrEqual(200);
  });
});
