import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { State } from '../../src/state/state.js';
import { DirectoryEvents, type EventListener, type Identified } from '../../src/watch/fs-events.js';
import type { Watcher } from '../../src/watch/watcher.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
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

  override async watch(directory: string, stat: Identified): Promise<'watched' | { readonly code: string }> {
    this.asked += 1;
    await this.#gate;
    return await super.watch(directory, stat);
  }
}

function neglects(watcher: Watcher): string[] {
  return watcher.duties.flatMap((duty) => duty.neglects() ?? []);
}

function movesOf(watcher: Watcher, name: string): unknown {
  return watcher.duties.find((duty) => duty.name === name)?.moves();
}

/** A watcher's clock by hand, whose timers stand still while it is skipped. */
async function underAFakeClock(world: WatchWorld) {
  const clock = new FakeClock(Date.now());
  const inbox = await world.start({ clock: clock as Clock, hints: false, policy: { rootCheckMs: 3_000 } });
  await until(async () => {
    await clock.advance(100);
    return inbox.watcher.status()[0]?.lastScan !== undefined && neglects(inbox.watcher).length === 0;
  }, 'the first scan is over');
  return { clock, inbox };
}

describe('the duties of the watcher', () => {
  it('are seen to when everything is in state, and each has a name of its own', async () => {
    const world = new WatchWorld();
    for (let i = 0; i < 200; i += 1) world.write(`d${i % 7}/f${i}`);
    const inbox = await world.start();
    await inbox.watcher.idle();
    world.write('later');
    await until(() => inbox.status('later') === 'pending', 'taken');
    await until(() => neglects(inbox.watcher).length === 0, 'nothing neglected');
    for (const name of ['changes inbox', 'folder inbox', 'hash queue', 'findings'])
      await until(() => Number(movesOf(inbox.watcher, name)) > 0, `${name} moved`);
    const names = inbox.watcher.duties.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it('are neglected when a scan stands still, until it goes on', async () => {
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
    expect(neglects(inbox.watcher)).toContain('the scan of inbox does not go on');
    const moves = movesOf(inbox.watcher, 'folder inbox');
    // Other work of the same watcher is no move of the scan.
    await until(() => Number(movesOf(inbox.watcher, 'root inbox')) > 3, 'the root is checked');
    const later = movesOf(inbox.watcher, 'folder inbox');
    open();
    expect(later).toBe(moves);
    await until(() => inbox.status('a.txt') === 'pending', 'taken');
    expect(movesOf(inbox.watcher, 'folder inbox')).not.toBe(moves);
    await until(() => neglects(inbox.watcher).length === 0, 'nothing neglected');
  });

  it('are neglected when what was found does not reach the disk, until it does', async () => {
    const world = new WatchWorld();
    world.write('a.txt');
    const { open, opened } = gate();
    const state = await State.open(temporaryDirectory(), { clock: new FakeClock(), log: silentLogger });
    const commit = state.commit.bind(state);
    state.commit = async () => {
      await opened;
      await commit();
    };
    const inbox = await world.start({ state });
    await until(
      () => neglects(inbox.watcher).includes('what was found in the folders is not brought to the disk'),
      'neglected',
    );
    const moves = movesOf(inbox.watcher, 'findings');
    open();
    await until(() => neglects(inbox.watcher).length === 0, 'nothing neglected');
    expect(movesOf(inbox.watcher, 'findings')).not.toBe(moves);
  });

  it('are neglected when the root is not checked and the time of the next scan is over, until they are', async () => {
    const { clock, inbox } = await underAFakeClock(new WatchWorld());
    const before = ['root inbox', 'rescan'].map((name) => movesOf(inbox.watcher, name));
    clock.skip(2 * 3_600_000);
    expect(neglects(inbox.watcher)).toEqual([
      'the folder inbox is not checked',
      'the folders are not scanned again in time',
    ]);
    await until(async () => {
      await clock.advance(100);
      return neglects(inbox.watcher).length === 0;
    }, 'both are done');
    expect(['root inbox', 'rescan'].map((name) => movesOf(inbox.watcher, name))).not.toContainEqual(
      before[0],
    );
    expect(movesOf(inbox.watcher, 'rescan')).not.toBe(before[1]);
    await inbox.watcher.stop();
    clock.skip(2 * 3_600_000);
    expect(neglects(inbox.watcher)).toEqual([]);
  });

  it('wait for a folder that is held, and end with the watcher', async () => {
    const world = new WatchWorld();
    world.write('a.txt');
    const inbox = await world.start();
    await inbox.watcher.idle();
    rmSync(world.root, { recursive: true });
    await until(() => inbox.watcher.status()[0]?.state === 'held', 'held');
    await until(() => neglects(inbox.watcher).length === 0, 'nothing neglected');
    const checks = Number(movesOf(inbox.watcher, 'root inbox'));
    await until(() => Number(movesOf(inbox.watcher, 'root inbox')) > checks + 2, 'it is checked');
    await inbox.watcher.stop();
    expect(neglects(inbox.watcher)).toEqual([]);
  });
});
