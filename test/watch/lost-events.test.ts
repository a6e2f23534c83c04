import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DirectoryEvents, type EventListener, type FsEvents } from '../../src/watch/fs-events.js';
import { until } from '../support/wait.js';
import { WatchWorld } from './world.js';

/** fs events that watch no more than so many directories, as the system does at its limit. */
class LimitedEvents extends DirectoryEvents {
  limit: number;
  readonly #granted = new Set<string>();

  constructor(limit: number, listener: EventListener) {
    super(listener);
    this.limit = limit;
  }

  override async watch(directory: string): Promise<string> {
    if (this.#granted.size >= this.limit && !this.#granted.has(directory)) return 'ENOSPC';
    this.#granted.add(directory);
    return await super.watch(directory);
  }
}

/** Keeps the event loop from turning, as a long computation does. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

describe('lost fs events', () => {
  it('for the watch limit degrade the folder to rescans, said once, until all can be watched', async () => {
    const world = new WatchWorld();
    for (let i = 0; i < 5; i += 1) world.write(`d${i}/a.txt`);
    let events: LimitedEvents | undefined;
    const inbox = await world.start({
      policy: { degradedRescanMs: 200 },
      openEvents: (listener) => {
        events = new LimitedEvents(3, listener);
        return events;
      },
    });
    await inbox.watcher.idle();
    expect(inbox.watcher.status()[0]).toMatchObject({
      state: 'degraded',
      directoriesWatched: 3,
      trouble: { code: 'WATCH_LIMIT', hint: expect.stringContaining('fs.inotify.max_user_watches') },
    });
    for (let i = 0; i < 5; i += 1) world.write(`d${i}/b.txt`);
    rmSync(join(world.root, 'd4/a.txt'));
    await until(
      () => inbox.state.counts().pending === 9 && inbox.status('d4/a.txt') === 'gone',
      'all are found',
    );
    expect(world.said("The system's limit of watched directories is reached", 'warn')).toBe(1);
    expect(inbox.watcher.problems()).toEqual([]);
    if (events) events.limit = 100;
    await until(() => inbox.watcher.status()[0]?.state === 'watching', 'all are watched');
    expect(inbox.watcher.status()[0]?.directoriesWatched).toBe(6);
  });

  it('for an overflow of the queue of the system are made up for by a rescan', async () => {
    const world = new WatchWorld();
    const inbox = await world.start();
    await inbox.watcher.idle();
    // Create, open, write and close are four events a file: more than the 16,384 that the queue holds.
    for (let i = 0; i < 5_000; i += 1) world.write(`f${i}`, 'x');
    block(300);
    await until(() => inbox.state.counts().pending === 5_000, 'none is lost');
    expect(world.said('Very many changes came at once', 'info')).toBeGreaterThan(0);
  });

  it('are none while the event loop is held up: nothing is scanned again', async () => {
    const world = new WatchWorld();
    world.write('a.txt');
    const inbox = await world.start();
    await inbox.watcher.idle();
    const scanned = inbox.watcher.status()[0]?.lastScan?.at;
    world.write('b.txt');
    block(1_500);
    world.write('c.txt');
    await until(() => inbox.state.counts().pending === 3, 'both are taken');
    await inbox.watcher.idle();
    expect(inbox.watcher.status()[0]?.lastScan?.at).toBe(scanned);
  });

  it('are none of what appears while a directory comes to be watched', async () => {
    const world = new WatchWorld();
    mkdirSync(join(world.root, 'd'));
    const watched: string[] = [];
    const silent: FsEvents = {
      watch: async (directory) => {
        await new Promise((resolve) => setTimeout(resolve, 30));
        writeFileSync(join(directory, 'late.txt'), 'x');
        watched.push(directory);
        return 'watched';
      },
      unwatch() {},
      watches: (directory) => watched.includes(directory),
      watched: 0,
      close: async () => {},
    };
    const inbox = await world.start({ openEvents: () => silent });
    await inbox.watcher.idle();
    expect(inbox.status('late.txt')).toBe('pending');
    expect(inbox.status('d/late.txt')).toBe('pending');
  });

  it('are none where hints are turned off: a rescan finds everything', async () => {
    const world = new WatchWorld();
    const inbox = await world.start({ hints: false });
    await inbox.watcher.idle();
    expect(inbox.watcher.status()[0]).toMatchObject({ state: 'unwatched', directoriesWatched: 0 });
    world.write('d/a.txt');
    expect(await inbox.watcher.rescan('inbox')).toMatchObject([{ files: 1, directories: 2 }]);
    await inbox.watcher.idle();
    expect(inbox.status('d/a.txt')).toBe('pending');
  });
});
