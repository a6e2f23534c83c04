import { appendFileSync, lstatSync, mkdirSync, renameSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FSWatcher } from 'chokidar';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ChokidarHints, directoryIdentity } from '../../src/watch/hints.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const open: ChokidarHints[] = [];

function setUp() {
  const root = temporaryDirectory();
  const heard: (string | undefined)[][] = [];
  const hints = new ChokidarHints((directory, name) => heard.push([directory, name]));
  open.push(hints);
  const watch = (path: string) => hints.watch(path, directoryIdentity(lstatSync(path)));
  const names = (directory: string) => heard.filter(([d]) => d === directory).map(([, name]) => name);
  return { root, heard, hints, watch, names };
}

afterEach(async () => {
  vi.restoreAllMocks();
  for (const hints of open.splice(0)) await hints.close();
});

describe('hints', () => {
  it('name what changes in a watched directory from the moment that it is watched', async () => {
    const { root, watch, names } = setUp();
    expect(await watch(root)).toBe('watched');
    writeFileSync(join(root, 'a'), 'x');
    mkdirSync(join(root, 'd'));
    await until(() => names(root).includes('a') && names(root).includes('d'), 'both are named');
  });

  it('do not list the directory again at each event', async () => {
    const { root, watch, names } = setUp();
    const listed = vi.spyOn(FSWatcher.prototype, '_readdirp');
    await watch(root);
    writeFileSync(join(root, 'a'), 'x');
    await until(() => names(root).includes('a'), 'a is named');
    expect(listed).not.toHaveBeenCalled();
    // What they are compared with: should chokidar cease to ask, this test proves nothing.
    const plain = new FSWatcher();
    plain.add(root);
    await until(() => listed.mock.calls.length > 0, 'a plain watcher lists');
    await plain.close();
  });

  it('give up a directory that was moved, and all below it', async () => {
    const { root, hints, watch, names } = setUp();
    mkdirSync(join(root, 'd/e'), { recursive: true });
    for (const path of [root, join(root, 'd'), join(root, 'd/e')]) await watch(path);
    expect(hints.watched).toBe(3);
    renameSync(join(root, 'd'), join(root, 'moved'));
    await until(() => hints.watched === 1, 'only the root is watched');
    expect(names(root)).toContain('d');
    expect(names(root)).toContain('moved');
  });

  it('stay with a directory that holds a file of its own name', async () => {
    const { root, hints, watch, names } = setUp();
    const directory = join(root, 'same');
    mkdirSync(directory);
    await watch(directory);
    writeFileSync(join(directory, 'same'), 'x');
    await until(() => names(directory).includes('same'), 'it is named');
    appendFileSync(join(directory, 'same'), 'y');
    writeFileSync(join(directory, 'other'), 'x');
    await until(() => names(directory).includes('other'), 'other is named');
    expect(hints.watched).toBe(1);
    expect(names(directory)).not.toContain(undefined);
  });

  it('watch a directory that took the place of another', async () => {
    const { root, hints, watch, names } = setUp();
    const directory = join(root, 'd');
    for (let i = 0; i < 20; i += 1) {
      mkdirSync(directory);
      expect(await watch(directory)).toBe('watched');
      writeFileSync(join(root, `d/${i}`), 'x');
      await until(() => names(directory).includes(String(i)), `${i} is named`);
      renameSync(join(root, `d/${i}`), join(root, String(i)));
      rmdirSync(directory);
    }
    await until(() => hints.watched === 0, 'nothing is watched');
  });

  it('are the same however often they are asked for', async () => {
    const { root, hints, watch } = setUp();
    const answers = await Promise.all(Array.from({ length: 20 }, () => watch(root)));
    expect(answers.every((answer) => answer === 'watched')).toBe(true);
    expect(hints.watched).toBe(1);
    hints.unwatch(root);
    expect(hints.watches(root)).toBe(false);
    expect(await watch(root)).toBe('watched');
  });

  it('watch nothing any more once they are closed, which would keep the process alive', async () => {
    const { root, hints, watch } = setUp();
    mkdirSync(join(root, 'd'));
    await watch(root);
    const late = Promise.all([hints.close(), watch(join(root, 'd'))]);
    expect((await late)[1]).toEqual({ code: 'CLOSED' });
    expect(await watch(root)).toEqual({ code: 'CLOSED' });
    expect(hints.watched).toBe(0);
  });

  it('say which directories they cannot watch', async () => {
    const { root, hints, watch } = setUp();
    mkdirSync(join(root, 'back\\slash'));
    expect(await watch(join(root, 'back\\slash'))).toEqual({ code: 'NOT_WATCHABLE' });
    expect(hints.watched).toBe(0);
  });
});
