import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '../support/wait.js';
import { folderOf, type Started, WatchWorld } from './world.js';

function paths(inbox: Started): string[] {
  return [...inbox.state.entries.all()].map(({ path }) => path).sort();
}

describe('a .peersyncignore file', () => {
  it('keeps files out from the first scan on, and is not pushed itself', async () => {
    const world = new WatchWorld();
    world.write('.peersyncignore', '*.log\n');
    world.write('docs/.peersyncignore', '/drafts/\n!keep.log\n');
    for (const path of ['a.log', 'a.txt', 'docs/b.log', 'docs/keep.log', 'docs/drafts/c.txt'])
      world.write(path);
    const inbox = await world.start();
    await inbox.watcher.idle();
    expect(paths(inbox)).toEqual(['a.txt', 'docs/keep.log']);
  });

  it('counts when it comes, when it changes and when it goes', async () => {
    const world = new WatchWorld();
    for (const path of ['d/a.log', 'd/e/b.log', 'd/c.txt', 'x.log']) world.write(path);
    const inbox = await world.start();
    await inbox.watcher.idle();
    world.write('d/.peersyncignore', '*.log\n');
    await until(() => paths(inbox).join() === 'd/c.txt,x.log', 'logs below d leave the index');
    await inbox.watcher.idle();
    world.write('d/.peersyncignore', 'a.log\n*.txt\n');
    await until(() => paths(inbox).join() === 'd/e/b.log,x.log', 'other files leave it');
    await inbox.watcher.idle();
    rmSync(join(world.root, 'd/.peersyncignore'));
    await until(() => paths(inbox).join() === 'd/a.log,d/c.txt,d/e/b.log,x.log', 'all are back');
  });

  it('that is half-written lets nothing through', async () => {
    const world = new WatchWorld();
    world.write('.peersyncignore', 'secret*\n');
    world.write('secret.txt');
    // Half-written is what is written again before it was at rest, on a machine however busy.
    const settle = 4_000;
    const inbox = await world.start({ folders: [folderOf(world.root, { settle })] });
    await inbox.watcher.idle();
    const seen: string[] = [];
    inbox.state.onChange((_after, _before, { path }) => seen.push(path));
    for (let i = 0; i < 5; i += 1) {
      writeFileSync(join(world.root, '.peersyncignore'), '');
      await inbox.watcher.rescan();
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    writeFileSync(join(world.root, '.peersyncignore'), 'secret*\nother*\n');
    await inbox.watcher.idle();
    expect(seen).toEqual([]);
  });

  it('that cannot be read keeps its directory as it was', async () => {
    const world = new WatchWorld();
    world.write('d/a.txt');
    const first = await world.start();
    await first.watcher.idle();
    await first.watcher.stop();
    world.write('d/.peersyncignore/is-a-directory');
    world.write('d/b.txt');
    world.write('c.txt');
    const second = await world.start({ state: first.state });
    await second.watcher.idle();
    expect(paths(second)).toEqual(['c.txt', 'd/a.txt']);
    expect(second.watcher.problems()).toMatchObject([{ trouble: { code: 'RULES_UNREADABLE' } }]);
    rmSync(join(world.root, 'd/.peersyncignore'), { recursive: true });
    await until(() => second.status('d/b.txt') === 'pending', 'the directory is looked at again');
  });
});

it('a directory that rules keep out, of which removed files are remembered, is left alone', async () => {
  const world = new WatchWorld();
  const file = world.write('d/x.txt');
  world.write('d/y.txt');
  const inbox = await world.start();
  await inbox.watcher.idle();
  rmSync(file);
  await until(() => inbox.status('d/x.txt') === 'gone', 'it is gone');
  world.write('.peersyncignore', 'd/\n');
  await until(() => inbox.status('d/y.txt') === undefined, 'the other one is kept out');
  let isIdle = false;
  void inbox.watcher.idle().then(() => {
    isIdle = true;
  });
  await until(() => isIdle, 'nothing is left to do', 10_000);
});
