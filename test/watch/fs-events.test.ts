import {
  appendFileSync,
  lstatSync,
  mkdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FSWatcher } from 'chokidar';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import { DirectoryEvents } from '../../src/watch/fs-events.js';
import { afterwards } from '../support/afterwards.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

/** A clock on which seconds pass at once. */
const fastClock: Clock = {
  ...systemClock,
  after: (ms, fn, options) => systemClock.after(ms / 20, fn, options),
};

/** Opens events below a new directory with these subdirectories. Paths are relative to it. */
function setUp(maxByChokidar?: number, ...directories: readonly string[]) {
  const root = temporaryDirectory();
  const at = (path: string) => join(root, path);
  for (const path of directories) mkdirSync(at(path));
  const seen: (string | undefined)[][] = [];
  const events = new DirectoryEvents(
    (directory, name) => seen.push([directory, name]),
    fastClock,
    maxByChokidar,
  );
  afterwards('test', () => events.close());
  const watch = (path: string) => events.watch(at(path));
  const names = (path: string) => seen.filter(([d]) => d === at(path)).map(([, name]) => name);
  const named = (path: string, name: string) =>
    until(() => names(path).includes(name), `${name} in ${path} is named`);
  const write = (path: string) => writeFileSync(at(path), 'x');
  return { at, events, watch, names, named, write };
}

afterEach(() => void vi.restoreAllMocks());

describe.each([
  ['of chokidar', 1_000],
  ['of the system itself', 0],
])('fs events %s', (_, maxByChokidar) => {
  it('name each change in a directory from the moment that its watch is open', async () => {
    const { at, events, watch, names, named, write } = setUp(maxByChokidar, 'same');
    expect(await watch('same')).toBe('watched');
    // An event of the directory itself would carry this name too.
    write('same/same');
    await named('same', 'same');
    appendFileSync(at('same/same'), 'y');
    mkdirSync(at('same/d'));
    await named('same', 'd');
    expect(events.watched).toBe(1);
    expect(names('same')).not.toContain(undefined);
  });

  it('close the watches on a directory that was moved, and on all below it', async () => {
    const { at, events, watch, names } = setUp(maxByChokidar, 'd', 'd/e');
    for (const path of ['', 'd', 'd/e']) await watch(path);
    expect(events.watched).toBe(3);
    renameSync(at('d'), at('moved'));
    await until(() => events.watched === 1, 'only the root is watched');
    expect(names('')).toEqual(expect.arrayContaining(['d', 'moved']));
  });

  it('open a watch on a directory that took the place of another', async () => {
    const { at, events, watch, named, write } = setUp(maxByChokidar);
    for (let i = 0; i < 20; i += 1) {
      mkdirSync(at('d'));
      expect(await watch('d')).toBe('watched');
      write(`d/${i}`);
      await named('d', String(i));
      renameSync(at(`d/${i}`), at(String(i)));
      rmdirSync(at('d'));
    }
    await until(() => events.watched === 0, 'nothing is watched');
  });

  it('share one watch for all requests, and open a new one after it was closed', async () => {
    const { at, events, watch } = setUp(maxByChokidar);
    const answers = await Promise.all(Array.from({ length: 20 }, () => watch('')));
    expect(new Set(answers)).toEqual(new Set(['watched']));
    expect(events.watched).toBe(1);
    events.unwatch(at(''));
    expect(events.watches(at(''))).toBe(false);
    expect(await watch('')).toBe('watched');
  });

  it('open no watch once they are closed, because it would keep the process alive', async () => {
    const { events, watch } = setUp(maxByChokidar, 'd');
    await watch('');
    const [, late] = await Promise.all([events.close(), watch('d')]);
    expect([late, await watch('')]).toEqual(['CLOSED', 'CLOSED']);
    expect(events.watched).toBe(0);
  });
});

it('a directory that becomes a file while its watch opens blocks nothing, and is watched when it is one again', async () => {
  const directories = Array.from({ length: 40 }, (_, i) => `d${i}`);
  const { at, events, watch, named, write } = setUp(undefined, ...directories);
  const answers = directories.map(async (path, i) => {
    const answer = watch(path);
    for (let turn = 0; turn < i; turn += 1) await nextTurn();
    rmdirSync(at(path));
    write(path);
    return await answer;
  });
  const codes = ['watched', 'WATCH_LATE', 'ENOENT', 'ENOTDIR'];
  for (const code of await Promise.all(answers)) expect(codes).toContain(code);
  for (const path of directories) {
    rmSync(at(path));
    mkdirSync(at(path));
    expect(await watch(path)).toBe('watched');
    write(`${path}/in`);
    await named(path, 'in');
  }
  expect(events.watched).toBe(40);
});

describe('a large directory', () => {
  const grow = (directory: string) => {
    for (let i = 0; i < 2_000; i += 1)
      writeFileSync(join(directory, `a file of a large directory, ${i}`), '');
  };

  it('is not listed again at each event', async () => {
    const { at, watch, named, write } = setUp();
    grow(at(''));
    const listed = vi.spyOn(FSWatcher.prototype, 'add');
    expect(await watch('')).toBe('watched');
    write('a');
    await named('', 'a');
    expect(listed).not.toHaveBeenCalled();
  });

  it('that grew gets another watch without a gap, and those below it stay', async () => {
    const { at, events, watch, named, write } = setUp(undefined, 'd', 'd/e');
    const isFine = () => events.watches(at('d'), lstatSync(at('d')));
    for (const path of ['', 'd', 'd/e']) await watch(path);
    expect(isFine()).toBe(true);
    grow(at('d'));
    expect(isFine()).toBe(false);
    const watching = watch('d');
    write('d/a');
    expect(await watching).toBe('watched');
    expect(isFine()).toBe(true);
    expect(events.watched).toBe(3);
    await named('d', 'a');
    write('d/e/b');
    await named('d/e', 'b');
    renameSync(at('d'), at('moved'));
    await until(() => events.watched === 1, 'the watches below it are closed');
  });
});

it('a directory that the system cannot watch is reported with the code of the system', async () => {
  const { events, watch } = setUp(0);
  expect(await watch('none')).toBe('ENOENT');
  expect(events.watched).toBe(0);
});
