import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { State } from '../../src/state/state.js';
import { folderDuties } from '../../src/watch/duties.js';
import { Gathering } from '../../src/watch/gathering.js';
import { ChokidarHints, type HintListener } from '../../src/watch/hints.js';
import { Settling } from '../../src/watch/settling.js';
import { Steps } from '../../src/watch/steps.js';
import { WATCH_POLICY } from '../../src/watch/watch-policy.js';
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

/** Hints whose watches stand only when they are let. */
class SlowHints extends ChokidarHints {
  readonly #gate: Promise<void>;
  asked = 0;

  constructor(listener: HintListener, gate: Promise<void>) {
    super(listener);
    this.#gate = gate;
  }

  override async watch(directory: string, identity: string): Promise<'watched' | { readonly code: string }> {
    this.asked += 1;
    await this.#gate;
    return await super.watch(directory, identity);
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
    for (const name of ['hints inbox', 'folder inbox', 'hash queue', 'findings'])
      await until(() => Number(movesOf(inbox.watcher, name)) > 0, `${name} moved`);
    const names = inbox.watcher.duties.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it('are neglected when a scan stands still, until it goes on', async () => {
    const world = new WatchWorld();
    world.write('a.txt');
    const { open, opened } = gate();
    let hints: SlowHints | undefined;
    const inbox = await world.start({
      openHints: (listener) => {
        hints = new SlowHints(listener, opened);
        return hints;
      },
    });
    await until(() => hints?.asked === 1, 'the scan waits for a watch');
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

describe('the duties of a folder', () => {
  it('are neglected while hints wait to be looked at, and not while they are', async () => {
    const clock = new FakeClock();
    const { open, opened } = gate();
    const gathering = new Gathering({
      scanner: { path: () => opened, directory: () => opened },
      ...{ policy: WATCH_POLICY, clock },
      ...{ onTooMuch: () => expect.fail(), onError: () => expect.fail(), onQuiet: () => {} },
    });
    expect(gathering.waits).toBe(false);
    gathering.add('', 'a.txt');
    expect(gathering.waits).toBe(true);
    await clock.advance(100);
    expect([gathering.waits, gathering.busy, gathering.rounds]).toEqual([false, true, 1]);
    gathering.again('b.txt', undefined);
    expect(gathering.waits).toBe(false);
    open();
    await clock.advance(100);
    expect([gathering.waits, gathering.busy, gathering.rounds]).toEqual([false, false, 2]);
    await gathering.stop();
    gathering.again('c.txt', undefined);
    expect(gathering.waits).toBe(false);
  });

  it('are neglected when files that settled are not looked at in time', async () => {
    const clock = new FakeClock();
    const settling = new Settling({ settleMs: 2_000, clock, lookAgain() {}, lookAtDirectory() {} });
    for (let i = 0; i < 10_001; i += 1) {
      const stat = { size: 1, ino: i, mtimeMs: clock.now(), ctimeMs: clock.now() };
      settling.atRest(i < 10_000 ? `f${i}` : `d/f${i}`, stat);
      if (i < 10_000) continue;
      // The last is followed by its directory.
      expect(settling.isDue).toBe(false);
      clock.skip(1_900);
      expect(settling.isDue).toBe(false);
      clock.skip(200);
      expect(settling.isDue).toBe(true);
    }
    await clock.advance(100);
    expect([settling.isDue, settling.handedOn]).toEqual([false, 10_001]);
  });

  it('wait with a scan while too many files wait to be read', () => {
    const hashQueue = { isCrowded: true };
    const duties = folderDuties({
      ...{ name: 'inbox', steps: new Steps(), looking: () => 'the scan does not go on', hashQueue },
      ...{ gathering: { waits: false, rounds: 0 }, settling: { isDue: false, handedOn: 0 } },
      guard: { isOverdue: false, checks: 0 },
    });
    expect(duties.flatMap((duty) => duty.neglects() ?? [])).toEqual([]);
    hashQueue.isCrowded = false;
    expect(duties.flatMap((duty) => duty.neglects() ?? [])).toEqual(['the scan does not go on']);
  });
});
