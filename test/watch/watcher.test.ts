import { createHash } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import { State } from '../../src/state/state.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { folderOf, WatchWorld } from './world.js';

function shaOf(content: string): string {
  return createHash('sha256').update(content).digest('hex');
}

describe('the watcher', () => {
  it('takes what was there before it started', async () => {
    const world = new WatchWorld();
    world.write('a.txt', 'one');
    world.write('deep/er/b.txt', 'two');
    const inbox = await world.start();
    await inbox.watcher.idle();
    expect(inbox.get('a.txt')).toMatchObject({
      status: 'pending',
      collection: 'inbox',
      url: 'https://files.example.org/inbox/a.txt',
      version: { size: 3, sha256: shaOf('one'), encoding: 'utf-8' },
    });
    expect(inbox.sha('deep/er/b.txt')).toBe(shaOf('two'));
    expect(inbox.state.figures().unsaved).toBe(0);
  });

  it('takes a new file once it is at rest', async () => {
    const world = new WatchWorld();
    const inbox = await world.start();
    await inbox.watcher.idle();
    world.write('new.txt', 'x');
    await until(() => inbox.status('new.txt') === 'pending', 'new.txt is pending');
  });

  it('takes a file that is appended to slowly once, when the last byte is in', async () => {
    const world = new WatchWorld();
    const settle = 3_000;
    const inbox = await world.start({ folders: [folderOf(world.root, { settle })] });
    await inbox.watcher.idle();
    const versions: (string | undefined)[] = [];
    inbox.state.onChange((after) =>
      versions.push(after && 'sha256' in after.version ? after.version.sha256 : undefined),
    );
    for (let i = 0; i < 10; i += 1) {
      world.append('slow.log', `line ${i}\n`);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    const whole = Array.from({ length: 10 }, (_, i) => `line ${i}\n`).join('');
    await until(() => inbox.status('slow.log') === 'pending', 'slow.log is pending');
    await inbox.watcher.idle();
    expect(versions).toEqual([shaOf(whole)]);
  });

  it('sees rewrites in place, of the same size, and replacements', async () => {
    const world = new WatchWorld();
    world.write('a', '1111');
    world.write('b', '1111');
    const inbox = await world.start();
    await inbox.watcher.idle();
    writeFileSync(join(world.root, 'a'), '2222');
    writeFileSync(join(world.root, '.b.new'), '3333');
    renameSync(join(world.root, '.b.new'), join(world.root, 'b'));
    await until(
      () => inbox.sha('a') === shaOf('2222') && inbox.sha('b') === shaOf('3333'),
      'both are read again',
    );
    await inbox.watcher.idle();
    expect(inbox.get('.b.new')).toBeUndefined();
  });

  it('sees removed files and directories', async () => {
    const world = new WatchWorld();
    world.write('a.txt');
    world.write('d/e/b.txt');
    world.write('stays.txt');
    const inbox = await world.start();
    await inbox.watcher.idle();
    rmSync(join(world.root, 'a.txt'));
    rmSync(join(world.root, 'd'), { recursive: true });
    await until(
      () => inbox.status('a.txt') === 'gone' && inbox.status('d/e/b.txt') === 'gone',
      'both are gone',
    );
    await inbox.watcher.idle();
    expect(inbox.status('stays.txt')).toBe('pending');
  });

  it('follows directories that are renamed, and watches them at their new place', async () => {
    const world = new WatchWorld();
    world.write('old/sub/a.txt');
    const inbox = await world.start();
    await inbox.watcher.idle();
    renameSync(join(world.root, 'old'), join(world.root, 'new'));
    await until(() => inbox.status('old/sub/a.txt') === 'gone', 'the old place is gone');
    await until(() => inbox.status('new/sub/a.txt') === 'pending', 'the new place is pending');
    await inbox.watcher.idle();
    world.write('new/sub/b.txt');
    await until(() => inbox.status('new/sub/b.txt') === 'pending', 'a file below the new place is seen');
    expect(inbox.get('old/sub/b.txt')).toBeUndefined();
    expect(inbox.watcher.status()[0]?.directoriesWatched).toBe(3);
  });

  it('follows files that move between folders', async () => {
    const world = new WatchWorld();
    const other = `${world.root}-other`;
    mkdirSync(other);
    world.write('a.txt', 'moved');
    const inbox = await world.start({
      folders: [
        folderOf(world.root),
        folderOf(other, { name: 'other', collection: 'other', url: 'https://o.example/' }),
      ],
    });
    await inbox.watcher.idle();
    renameSync(join(world.root, 'a.txt'), join(other, 'a.txt'));
    await until(() => inbox.status('a.txt') === 'gone', 'gone here');
    await until(() => inbox.status('a.txt', 'other') === 'pending', 'new there');
    expect(inbox.get('a.txt', 'other')).toMatchObject({
      url: 'https://o.example/a.txt',
      collection: 'other',
    });
  });

  it('loses none of 5,000 files that appear in 500 new nested directories', async () => {
    const world = new WatchWorld();
    const inbox = await world.start();
    await inbox.watcher.idle();
    let directory = '';
    for (let d = 0; d < 500; d += 1) {
      directory = d % 10 === 0 ? `d${d}` : `${directory}/d${d}`;
      for (let f = 0; f < 10; f += 1) world.write(`${directory}/f${f}.txt`, `${d} ${f}`);
      if (d % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await until(() => inbox.state.counts().pending === 5_000, 'all are pending');
    await inbox.watcher.idle();
    expect(inbox.watcher.status()[0]?.directoriesWatched).toBe(501);
  });

  it('waits a whole settle for a file from the future', async () => {
    const world = new WatchWorld();
    const path = world.write('future.txt', 'x');
    utimesSync(path, new Date(Date.now() + 86_400_000), new Date(Date.now() + 86_400_000));
    const inbox = await world.start();
    await inbox.watcher.idle();
    expect(inbox.status('future.txt')).toBe('pending');
  });

  it('reads nothing again that looks the same after a restart', async () => {
    const world = new WatchWorld();
    for (let i = 0; i < 20; i += 1) world.write(`f${i}`);
    const first = await world.start();
    await first.watcher.idle();
    await first.watcher.stop();
    const changes: unknown[] = [];
    first.state.onChange((after) => changes.push(after));
    const second = await world.start({ state: first.state });
    await second.watcher.idle();
    expect(changes).toEqual([]);
    expect(second.watcher.status()[0]?.lastScan).toMatchObject({ files: 20, directories: 1 });
  });

  it('commits what it found at once together, and again when that failed, said once', async () => {
    const world = new WatchWorld();
    for (let i = 0; i < 100; i += 1) world.write(`f${i}`);
    const state = await State.open(temporaryDirectory(), { clock: systemClock, log: world.log });
    let commits = 0;
    let failure: Error | undefined = new Error('disk full');
    const commit = state.commit.bind(state);
    state.commit = async () => {
      commits += 1;
      if (failure !== undefined) throw failure;
      await commit();
    };
    // What is tried again in seconds is tried at once.
    const sleep: Clock['sleep'] = (ms, signal) => systemClock.sleep(Math.min(ms, 100), signal);
    const inbox = await world.start({ state, clock: { ...systemClock, sleep } });
    await expect(inbox.watcher.idle()).rejects.toThrow('disk full');
    await until(() => commits > 2, 'it is tried again');
    expect(world.said('What changed on disk cannot be recorded: disk full', 'error')).toBe(1);
    failure = undefined;
    await until(() => world.said('The state can be written again.', 'info') === 1, 'it is written');
    await inbox.watcher.idle();
    expect(state.figures().unsaved).toBe(0);
    expect(commits).toBeLessThan(50);
  });

  it('commits at its end what is left', async () => {
    const world = new WatchWorld();
    const inbox = await world.start({ hints: false });
    await inbox.watcher.idle();
    world.write('a.txt');
    void inbox.watcher.rescan();
    await until(() => inbox.status('a.txt') === 'pending', 'it is found');
    await inbox.watcher.stop();
    expect(inbox.state.figures().unsaved).toBe(0);
  });
});
