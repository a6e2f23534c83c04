import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DirectoryEvents, type EventListener } from '../../src/watch/fs-events.js';
import { busyIn, goesOn } from '../support/health.js';
import { until } from '../support/wait.js';
import { WatchWorld } from './world.js';

/** Something that stands still until it is let go. */
function gate() {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open: () => open(), opened };
}

/** fs events whose watches stand only when they are let. */
class SlowEvents extends DirectoryEvents {
  readonly #gate: Promise<void>;
  asked = 0;

  constructor(listener: EventListener, gate: Promise<void>) {
    super(listener);
    this.#gate = gate;
  }

  override async watch(directory: string): Promise<string> {
    this.asked += 1;
    await this.#gate;
    return await super.watch(directory);
  }
}

describe('the health checks of the watcher', () => {
  it('are not busy when everything is in state, and each has a name of its own', async () => {
    const world = new WatchWorld();
    for (let i = 0; i < 200; i += 1) world.write(`d${i % 7}/f${i}`);
    const inbox = await world.start();
    await inbox.watcher.idle();
    world.write('later');
    await until(() => inbox.status('later') === 'pending', 'taken');
    await until(() => busyIn(inbox.watcher).length === 0, 'nothing busy');
    const names = inbox.watcher.health.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it('are busy without progress when a scan stands still, until it goes on', async () => {
    const world = new WatchWorld();
    world.write('a.txt');
    const { open, opened } = gate();
    let events: SlowEvents | undefined;
    const inbox = await world.start({
      openEvents: (listener) => {
        events = new SlowEvents(listener, opened);
        return events;
      },
    });
    await until(() => events?.asked === 1, 'the scan waits for a watch');
    expect(busyIn(inbox.watcher)).toContain('the scan of inbox does not go on');
    goesOn(inbox.watcher.health, 'folder inbox');
    expect(goesOn(inbox.watcher.health, 'folder inbox')).toBe(false);
    open();
    await until(() => inbox.status('a.txt') === 'pending', 'taken');
    expect(goesOn(inbox.watcher.health, 'folder inbox')).toBe(true);
    await until(() => busyIn(inbox.watcher).length === 0, 'nothing busy');
  });

  it('are not busy while a folder is held, and after the watcher stopped', async () => {
    const world = new WatchWorld();
    world.write('a.txt');
    const inbox = await world.start();
    await inbox.watcher.idle();
    rmSync(world.root, { recursive: true });
    await until(() => inbox.watcher.status()[0]?.state === 'held', 'held');
    await until(() => busyIn(inbox.watcher).length === 0, 'nothing busy');
    await inbox.watcher.stop();
    expect(busyIn(inbox.watcher)).toEqual([]);
  });
});
