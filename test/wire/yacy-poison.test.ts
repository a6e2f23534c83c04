import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { pdfOf, poisonPdfOf } from './yacy/pdf-files.js';
import { timing } from './yacy/timing.js';
import { SPEED, YacyWorld } from './yacy/yacy-world.js';

/**
 * A document that the index of the peer refuses takes all of its update along, and must take
 * nobody's along for good.
 */

vi.setConfig({ testTimeout: 240_000 });

const HOLD_MS = 20_000 / SPEED;
const WORDS = 'minutes of the meeting about the harbour lights and the new pier in spring';

/** Pushes that a file had, by its name. */
function pushesOf(world: YacyWorld, name: string): number {
  const url = world.url(`notes/${name}`);
  return world.asked('/api/push_p').filter(({ urls }) => urls.includes(url)).length;
}

describe('200 files with one document that the index refuses', () => {
  it('are confirmed except that one, after 7 holds at most, and text is made safe if possible', async () => {
    // Half as fast as the others: on a busy machine the programs themselves take a part of each
    // hold.
    const world = await YacyWorld.start({
      peer: { timing: timing(SPEED / 2) },
      push: { requestsPerSecond: 50 },
      confirm: { hold: `${2 * HOLD_MS}ms` },
    });
    for (let n = 0; n < 198; n += 1) world.write(`notes/${n}.txt`, `note ${n}: ${WORDS}`);
    world.write('notes/broken.txt', `note \uffff ${WORDS}`);
    world.write('notes/poison.pdf', poisonPdfOf(WORDS));
    const run = await world.run('once');
    expect(run).toMatchObject({ code: 3 });
    const statuses = Object.entries(await world.statuses());
    expect(statuses.filter(([, status]) => status !== 'confirmed')).toEqual([
      ['notes/poison.pdf', 'quarantined'],
    ]);
    expect(statuses).toHaveLength(200);
    for (const name of ['0.txt', '197.txt', 'broken.txt'])
      expect(world.peer.kept(world.url(`notes/${name}`))?.text).toContain('harbour lights');

    const why = await world.run('why', join(world.directory, 'notes/poison.pdf'));
    expect(why.stdout).toContain('REFUSED_BY_INDEX');
    expect(why.stdout).toContain('nothing that came with it was indexed');
    expect(why.stdout).not.toContain('network.unit.domain');
    const pushed = world.asked('/api/push_p').flatMap(({ urls }) => urls);
    // All once, all once more apart, and then a quarter of what is left each time.
    expect(pushed.length).toBeLessThanOrEqual(200 + 200 + 50 + 13 + 4 + 2);
    // Each push of it is held once.
    expect(pushesOf(world, 'poison.pdf')).toBeLessThanOrEqual(7);
    expect(world.asked('/api/yacydoc').length).toBeLessThanOrEqual(3 * pushed.length);
  });
});

describe('several such documents', () => {
  it('are all named, and no others, even while more files arrive', async () => {
    const world = await YacyWorld.start({ push: { requestsPerSecond: 50, maxItems: 10 } });
    for (let n = 0; n < 30; n += 1) world.write(`notes/early${n}.txt`, `note ${n}: ${WORDS}`);
    for (let n = 0; n < 3; n += 1) world.write(`notes/poison${n}.pdf`, poisonPdfOf(WORDS));
    const daemon = world.start();
    for (let n = 0; n < 20; n += 1) {
      world.write(`notes/late${n}.txt`, `note ${n}: ${WORDS}`);
      await sleep(HOLD_MS / 10);
    }
    await world.reached('quarantined', 3);
    await world.reached('confirmed', 50);
    const listed = await world.ask();
    expect(
      listed
        .filter(({ status }) => status === 'quarantined')
        .map(({ path }) => path)
        .toSorted(),
    ).toEqual(['poison0.pdf', 'poison1.pdf', 'poison2.pdf']);
    expect(await daemon.kill('SIGTERM')).toMatchObject({ code: 0 });
  });
});

describe('a blamed document', () => {
  it('stays blamed in the next run, and is confirmed when it is fixed', async () => {
    const world = await YacyWorld.start({ push: { maxItems: 20 }, confirm: { timeout: '90s' } });
    for (let n = 0; n < 10; n += 1) world.write(`notes/${n}.txt`, `note ${n}: ${WORDS}`);
    world.write('notes/poison.pdf', poisonPdfOf(WORDS));
    const daemon = world.start('--log-level', 'debug');
    await daemon.says('"event":"lost"');
    expect(await daemon.kill('SIGKILL')).toBeDefined();
    // If only the blamed document is left, nothing shows that the peer works.
    world.write('notes/later.txt', `later: ${WORDS}`);
    world.start();
    await world.reached('quarantined', 1);
    world.write('notes/poison.pdf', pdfOf(WORDS), Date.UTC(2024, 1, 29, 13));
    await world.reached('confirmed', 12);
    expect(world.peer.search('harbour')).toHaveLength(12);
  });
});

describe('a document beside a blamed one', () => {
  it('is confirmed even if the peer commits late', async () => {
    const world = await YacyWorld.start({
      peer: { timing: timing(SPEED, { commit: 28_000 / SPEED }) },
      push: { maxItems: 10, requestsPerSecond: 20 },
    });
    for (let n = 0; n < 60; n += 1) world.write(`notes/${n}.txt`, `note ${n}: ${WORDS}`);
    expect(await world.run('once')).toMatchObject({ code: 0 });
    expect(Object.values(await world.statuses())).toEqual(
      Array.from({ length: 60 }, () => 'confirmed'),
    );
  });
});

describe('a peer that shows nothing at all', () => {
  it('does not make files travel alone again and again, and the reason names their addresses', async () => {
    const world = await YacyWorld.start({
      folders: { notes: 'http://vault.local/' },
      push: { attempts: 2 },
      confirm: { timeout: '3s' },
    });
    for (let n = 0; n < 40; n += 1) world.write(`notes/${n}.txt`, `note ${n}: ${WORDS}`);
    expect(await world.run('once')).toMatchObject({ code: 3 });
    const why = await world.run('why', join(world.directory, 'notes/0.txt'));
    expect(why.stdout).toContain('ADDRESSES_UNSEEN');
    expect(why.stdout).toContain('network.unit.domain');
    expect(pushesOf(world, '0.txt')).toBeLessThanOrEqual(3);
  });
});
