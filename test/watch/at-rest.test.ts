import { mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fingerprintNow } from '../../src/content/reader.js';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import { until } from '../support/wait.js';
import { SETTLE_MS, type Started, WatchWorld } from './world.js';

const HOUR = 3_600_000;

/** Since when the file is at rest, as the history has it, and when it was found. */
async function known(inbox: Started, path: string): Promise<{ at: number; since: number }> {
  await until(() => inbox.status(path) === 'pending', 'it is pending');
  const { history = [], since = 0 } = inbox.get(path) ?? {};
  return { at: history.at(-1)?.at ?? 0, since };
}

/** When it had not changed for long enough. */
function settled(file: string): number {
  return Math.round(statSync(file).ctimeMs) + SETTLE_MS;
}

async function long(file: string): Promise<void> {
  await until(() => Date.now() > settled(file) + SETTLE_MS, 'the file is at rest');
}

describe('a file is at rest', () => {
  it('once it had not changed for settle, however late it was found', async () => {
    const world = new WatchWorld();
    const inbox = await world.start({ hints: false });
    await inbox.watcher.idle();
    const file = world.write('a.txt');
    await long(file);
    await inbox.watcher.rescan();
    const { at, since } = await known(inbox, 'a.txt');
    expect(Math.abs(at - settled(file))).toBeLessThanOrEqual(1);
    expect(since).toBeGreaterThan(at);
  });

  it('not before it was watched: an old file counts from when the watch began', async () => {
    const world = new WatchWorld();
    const file = world.write('a.txt');
    await long(file);
    const started = systemClock.now();
    const inbox = await world.start();
    const { at, since } = await known(inbox, 'a.txt');
    expect(at).toBeGreaterThanOrEqual(started);
    expect(at).toBeLessThanOrEqual(since);
  });

  it('when it was found, if it came to its place later than its times say', async () => {
    const world = new WatchWorld();
    const inbox = await world.start();
    await inbox.watcher.idle();
    const elsewhere = join(world.root, '..', 'made');
    mkdirSync(elsewhere);
    writeFileSync(join(elsewhere, 'a.txt'), 'x');
    await long(join(elsewhere, 'a.txt'));
    renameSync(elsewhere, join(world.root, 'made'));
    const { at, since } = await known(inbox, 'made/a.txt');
    expect(at).toBe(since);
  });

  it.each([HOUR, -HOUR])('as late, where somebody set the clock by %d ms meanwhile', async (byMs) => {
    const world = new WatchWorld();
    let aheadMs = 0;
    const clock: Clock = { ...systemClock, now: () => systemClock.now() - aheadMs };
    const inbox = await world.start({ clock });
    await inbox.watcher.idle();
    aheadMs = byMs;
    const file = world.write('a.txt');
    const { at } = await known(inbox, 'a.txt');
    // Some milliseconds may pass between two looks at the two clocks.
    expect(Math.abs(at + byMs - settled(file))).toBeLessThan(SETTLE_MS);
  });
});

it('a file that is written again while what it was is on its way from the reader is read once more', async () => {
  const world = new WatchWorld();
  world.write('a.txt', 'one');
  let answer = () => {};
  const answers = new Promise<void>((resolve) => {
    answer = resolve;
  });
  let reads = 0;
  const inbox = await world.start({
    readGroup: async (orders) => {
      const found = orders.map(fingerprintNow);
      reads += 1;
      if (reads === 1) await answers;
      return found;
    },
  });
  await until(() => reads === 1, 'it is read');
  await long(world.write('a.txt', 'another'));
  await long(world.write('b.txt'));
  answer();
  await until(() => inbox.get('a.txt')?.version.size === 7, 'what it is now is known', 10_000);
});
