import { appendFileSync, lstatSync, mkdirSync, renameSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FSWatcher } from 'chokidar';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { DirectoryEvents } from '../../src/watch/fs-events.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const open: DirectoryEvents[] = [];

function setUp(mostByChokidar?: number) {
  const root = temporaryDirectory();
  const seen: (string | undefined)[][] = [];
  const events = new DirectoryEvents((directory, name) => seen.push([directory, name]), mostByChokidar);
  open.push(events);
  const watch = (path: string) => events.watch(path);
  const names = (directory: string) => seen.filter(([d]) => d === directory).map(([, name]) => name);
  return { root, seen, events, watch, names };
}

afterEach(async () => {
  vi.restoreAllMocks();
  for (const events of open.splice(0)) await events.close();
});

describe.each([
  ['of chokidar', 1_000],
  ['of the system itself', 0],
])('fs events %s', (_, mostByChokidar) => {
  it('name what changes in a watched directory from the moment that it is watched', async () => {
    const { root, watch, names } = setUp(mostByChokidar);
    expect(await watch(root)).toBe('watched');
    writeFileSync(join(root, 'a'), 'x');
    mkdirSync(join(root, 'd'));
    await until(() => names(root).includes('a') && names(root).includes('d'), 'both are named');
  });

  it('give up a directory that was moved, and all below it', async () => {
    const { root, events, watch, names } = setUp(mostByChokidar);
    mkdirSync(join(root, 'd/e'), { recursive: true });
    for (const path of [root, join(root, 'd'), join(root, 'd/e')]) await watch(path);
    expect(events.watched).toBe(3);
    renameSync(join(root, 'd'), join(root, 'moved'));
    await until(() => events.watched === 1, 'only the root is watched');
    expect(names(root)).toContain('d');
    expect(names(root)).toContain('moved');
  });

  it('stay with a directory that holds a file of its own name', async () => {
    const { root, events, watch, names } = setUp(mostByChokidar);
    const directory = join(root, 'same');
    mkdirSync(directory);
    await watch(directory);
    writeFileSync(join(directory, 'same'), 'x');
    await until(() => names(directory).includes('same'), 'it is named');
    appendFileSync(join(directory, 'same'), 'y');
    writeFileSync(join(directory, 'other'), 'x');
    await until(() => names(directory).includes('other'), 'other is named');
    expect(events.watched).toBe(1);
    expect(names(directory)).not.toContain(undefined);
  });

  it('watch a directory that took the place of another', async () => {
    const { root, events, watch, names } = setUp(mostByChokidar);
    const directory = join(root, 'd');
    for (let i = 0; i < 20; i += 1) {
      mkdirSync(directory);
      expect(await watch(directory)).toBe('watched');
      writeFileSync(join(root, `d/${i}`), 'x');
      await until(() => names(directory).includes(String(i)), `${i} is named`);
      renameSync(join(root, `d/${i}`), join(root, String(i)));
      rmdirSync(directory);
    }
    await until(() => events.watched === 0, 'nothing is watched');
  });

  it('are the same however often they are asked for', async () => {
    const { root, events, watch } = setUp(mostByChokidar);
    const answers = await Promise.all(Array.from({ length: 20 }, () => watch(root)));
    expect(answers.every((answer) => answer === 'watched')).toBe(true);
    expect(events.watched).toBe(1);
    events.unwatch(root);
    expect(events.watches(root)).toBe(false);
    expect(await watch(root)).toBe('watched');
  });

  it('watch nothing any more once they are closed, which would keep the process alive', async () => {
    const { root, events, watch } = setUp(mostByChokidar);
    mkdirSync(join(root, 'd'));
    await watch(root);
    const late = Promise.all([events.close(), watch(join(root, 'd'))]);
    expect((await late)[1]).toBe('CLOSED');
    expect(await watch(root)).toBe('CLOSED');
    expect(events.watched).toBe(0);
  });

  it('name what changes in a directory with a backslash', async () => {
    const { root, watch, names } = setUp(mostByChokidar);
    const directory = join(root, 'back\\slash');
    mkdirSync(directory);
    expect(await watch(directory)).toBe('watched');
    writeFileSync(join(directory, 'a'), 'x');
    await until(() => names(directory).includes('a'), 'a is named');
  });
});

describe('a large directory', () => {
  const grow = (directory: string) => {
    for (let i = 0; i < 2_000; i += 1)
      writeFileSync(join(directory, `a file of a large directory, ${i}`), '');
  };

  it('is not listed again at each event', async () => {
    const { root, watch, names } = setUp();
    grow(root);
    const listed = vi.spyOn(FSWatcher.prototype, 'add');
    expect(await watch(root)).toBe('watched');
    writeFileSync(join(root, 'a'), 'x');
    await until(() => names(root).includes('a'), 'a is named');
    expect(listed).not.toHaveBeenCalled();
  });

  it('is watched without a gap when it grew since it was first watched, and all below it stays watched', async () => {
    const { root, events, watch, names } = setUp();
    mkdirSync(join(root, 'd'));
    for (const path of [root, join(root, 'd')]) await watch(path);
    expect(events.watches(root, lstatSync(root))).toBe(true);
    grow(root);
    expect(events.watches(root, lstatSync(root))).toBe(false);
    const watching = watch(root);
    writeFileSync(join(root, 'a'), 'x');
    expect(await watching).toBe('watched');
    expect(events.watches(root, lstatSync(root))).toBe(true);
    expect(events.watched).toBe(2);
    await until(() => names(root).includes('a'), 'a is named');
    writeFileSync(join(root, 'd/b'), 'x');
    await until(() => names(join(root, 'd')).includes('b'), 'b is named');
    renameSync(join(root, 'd'), join(root, 'moved'));
    await until(() => events.watched === 1, 'what was below it is given up');
  });
});

it('a directory that the system cannot watch is said with the code of the system', async () => {
  const { root, events } = setUp(0);
  expect(await events.watch(join(root, 'none'))).toBe('ENOENT');
  expect(events.watched).toBe(0);
});
