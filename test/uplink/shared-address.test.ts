import { createHash } from 'node:crypto';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Destination } from '../../src/state/entry.js';
import { gone, read } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { QUICK, unreachable, World } from '../support/world.js';

/** What is not shown is not pushed again for that. */
const PATIENT = { ...QUICK, confirm: { timeout: 3_600_000, maxInterval: 50, hold: 0 } };
const URL = 'https://x.example/docs/a.txt';

const worlds: World[] = [];
async function world({ timeToVisibleMs = 50 } = {}): Promise<World> {
  const w = new World();
  w.timeToVisibleMs = timeToVisibleMs;
  worlds.push(w);
  await w.start(PATIENT);
  return w;
}
afterEach(async () => {
  for (const w of worlds.splice(0)) await w.stop();
});

/** Tells the state of a file, as the watcher of a folder with such a URL and collection would. */
function take(w: World, to: Destination, content = 'the text'): void {
  const file = w.fileOf(to);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  const { size, mtimeMs, ctimeMs, ino } = statSync(file);
  const sha256 = createHash('sha256').update(content).digest('hex');
  const version = { size, mtimeMs, ctimeMs, ino, sha256, encoding: 'utf-8' as const };
  w.state.put(read(w.state.get(to.folder, to.path), to, version, w.clock.now()));
}

/** Tells the state that the folder has the file no more. */
function drop(w: World, { folder, path }: Destination): void {
  const entry = w.state.get(folder, path);
  if (entry === undefined || entry.status === 'gone' || entry.status === 'passed')
    throw new Error('not there');
  w.state.put(gone(entry, w.clock.now()));
}

const statusOf = (w: World, { folder, path }: Destination) => w.state.get(folder, path)?.status;

async function confirm(w: World, to: Destination, content?: string): Promise<void> {
  take(w, to, content);
  await isConfirmed(w, to);
}

async function isConfirmed(w: World, to: Destination): Promise<void> {
  await until(() => statusOf(w, to) === 'confirmed', `${to.folder}/${to.path} is confirmed`);
}

/** A file that is back as it was, and that the peer has no more. */
async function confirmAnew(w: World, to: Destination): Promise<void> {
  take(w, to);
  expect(statusOf(w, to)).toBe('pending');
  await isConfirmed(w, to);
}

/** Holds pushes back until `release`, and then lets the peer take them. */
function hold(w: World): { release: () => void } {
  const held: (() => void)[] = [];
  w.peer.onPush = () => new Promise((resolve) => held.push(() => resolve(undefined)));
  return {
    release: () => {
      w.peer.onPush = () => undefined;
      for (const go of held) go();
    },
  };
}

const ONE: Destination = { folder: 'one', path: 'a.txt', url: URL, collection: 'red' };
const TWO: Destination = { folder: 'two', path: 'a.txt', url: URL, collection: 'blue' };

/** By what another file comes to the same address. */
const OTHERS: readonly (readonly [string, Destination, Destination])[] = [
  ['a folder of another name', ONE, TWO],
  ['a folder whose URL is that of one of its directories', { ...ONE, path: 'docs/a.txt' }, TWO],
  ['its own folder, whose URL was a longer one', ONE, { ...ONE, path: 'docs/a.txt', collection: 'blue' }],
  [
    'a name in another Unicode form',
    { ...ONE, path: 'u\u0308 x.txt', url: 'https://x.example/docs/%C3%BC%20x.txt' },
    { ...ONE, path: '\u00fc x.txt', url: 'https://x.example/docs/%C3%BC%20x.txt', collection: 'blue' },
  ],
];

describe('what the peer was sent before', () => {
  it.each(OTHERS)('is pushed when %s was pushed to its address since', async (_, one, two) => {
    const w = await world();
    await confirm(w, one);
    drop(w, one);
    await confirm(w, two);
    drop(w, two);
    await confirmAnew(w, one);
    expect(w.peer.documents.get(one.url)?.collection).toBe('red');
    expect(w.peer.pushes.length).toBe(3);
  });

  it('is pushed when another file is on its way to its address, and after that', async () => {
    const w = await world();
    await confirm(w, ONE);
    drop(w, ONE);
    const { release } = hold(w);
    take(w, TWO);
    await until(() => w.peer.pushes.length === 2, 'the other is on its way');
    drop(w, TWO);
    take(w, ONE);
    expect(statusOf(w, ONE)).toBe('pending');
    release();
    await isConfirmed(w, ONE);
    expect(w.peer.documents.get(ONE.url)?.collection).toBe('red');
    expect(w.peer.pushes.length).toBe(3);
  });

  it('is pushed when the other was pushed by the next run', async () => {
    const w = await world();
    await confirm(w, ONE);
    drop(w, ONE);
    await w.stop();
    await w.start(PATIENT);
    await confirm(w, TWO);
    drop(w, TWO);
    await confirmAnew(w, ONE);
    expect(w.peer.documents.get(ONE.url)?.collection).toBe('red');
  });

  it('is forgotten on disk before the other push leaves', async () => {
    const w = await world();
    await confirm(w, ONE);
    drop(w, ONE);
    hold(w);
    take(w, TWO);
    await until(() => w.peer.pushes.length === 2, 'the other is on its way');
    const onDisk = await State.read(w.stateDir);
    expect(onDisk.get('one', 'a.txt')).toMatchObject({ status: 'gone', url: URL });
    expect(onDisk.get('one', 'a.txt')).not.toHaveProperty('sent');
    expect(onDisk.get('two', 'a.txt')).toHaveProperty('doubt');
  });

  it('is looked up and not pushed when others were pushed, but to other addresses', async () => {
    const w = await world();
    await confirm(w, ONE);
    drop(w, ONE);
    await confirm(w, { ...TWO, url: 'https://x.example/other/a.txt' });
    await confirm(w, { ...TWO, path: 'docs/a.txt', url: 'https://x.example/other/docs/a.txt' });
    await confirm(w, { ...ONE, path: 'b.txt', url: 'https://x.example/docs/b.txt' });
    const pushes = w.peer.pushes.length;
    await confirm(w, ONE);
    expect(w.peer.pushes.length).toBe(pushes);
  });
});

it('what the peer was sent at an address of its own counts when another takes the one that it had before', async () => {
  const w = await world();
  await confirm(w, ONE);
  await confirm(w, { ...ONE, url: 'https://x.example/elsewhere/a.txt' });
  const [before, pushes] = [w.state.get('one', 'a.txt'), w.peer.pushes.length];
  await confirm(w, TWO);
  expect(w.state.get('one', 'a.txt')).toStrictEqual(before);
  expect(w.peer.pushes.length).toBe(pushes + 1);
});

describe('a file of which another takes the address and leaves it again', () => {
  it('is pushed again though it was confirmed and did not change', async () => {
    const w = await world();
    await confirm(w, ONE);
    take(w, TWO);
    await until(() => w.peer.documents.get(ONE.url)?.collection === 'blue', 'the other came to the peer');
    drop(w, TWO);
    await until(() => w.peer.documents.get(ONE.url)?.collection === 'red', 'it came to the peer again');
    await isConfirmed(w, ONE);
  });

  it('is pushed again though it was accepted', async () => {
    const w = await world();
    w.peer.visibleAfter = Number.POSITIVE_INFINITY;
    take(w, ONE);
    await until(() => statusOf(w, ONE) === 'accepted', 'accepted');
    take(w, TWO);
    await until(() => w.peer.pushes.length === 2, 'the other came to the peer');
    drop(w, TWO);
    await until(() => w.peer.pushes.length === 3, 'it came to the peer again');
    w.peer.visibleAfter = 0;
    await isConfirmed(w, ONE);
    expect(w.peer.documents.get(ONE.url)?.collection).toBe('red');
  });

  it('is pushed again, and not looked up, when nobody knew whether it had come', async () => {
    // So slow that nothing is looked up in this test.
    const w = await world({ timeToVisibleMs: 3_600_000 });
    w.peer.onPush = () => {
      throw unreachable('maybe');
    };
    take(w, ONE);
    await until(() => w.peer.pushes.length === 1 && w.uplink.status().inFlight === 0, 'in doubt');
    expect(w.state.get('one', 'a.txt')).toMatchObject({ status: 'pending', doubt: { url: URL } });
    const { release } = hold(w);
    take(w, TWO);
    await until(() => w.peer.pushes.length === 2, 'the other is on its way');
    expect(w.state.get('one', 'a.txt')).toMatchObject({ status: 'pending' });
    expect(w.state.get('one', 'a.txt')).not.toHaveProperty('doubt');
    drop(w, TWO);
    release();
    await until(() => w.peer.documents.get(URL)?.collection === 'red', 'it came to the peer');
  });
});

describe('a file that still has the address which the configuration gives another one now', () => {
  const ELSEWHERE: Destination = { ...ONE, url: 'https://x.example/elsewhere/a.txt' };

  it('is pushed when it has its own, and not again and again in turn with the other', async () => {
    const w = await world();
    await confirm(w, ONE);
    let turns = 0;
    w.isAt = ({ folder, url }) => {
      if (folder === 'one' && url === URL) turns += 1;
      return folder !== 'one' || url !== URL;
    };
    await confirm(w, TWO);
    await until(() => turns > 0, 'it comes to its turn');
    await until(() => w.uplink.status().inFlight === 0, 'its turn is over');
    expect(statusOf(w, ONE)).toBe('pending');
    expect(statusOf(w, TWO)).toBe('confirmed');
    await confirm(w, ELSEWHERE);
    expect(w.peer.pushes).toEqual([[URL], [URL], [ELSEWHERE.url]]);
    expect(w.peer.documents.get(URL)?.collection).toBe('blue');
  });

  it('comes to its turn after a while only', async () => {
    const w = new World();
    const clock = new FakeClock();
    w.clock = clock;
    const asked: number[] = [];
    w.isAt = () => {
      asked.push(clock.elapsed());
      return false;
    };
    await w.start(PATIENT);
    take(w, ONE);
    const twice = async () => {
      await clock.advance(100);
      return asked.length >= 6;
    };
    await until(twice, 'it comes to its turn twice');
    expect((asked.at(-1) ?? 0) - (asked[0] ?? 0)).toBeGreaterThanOrEqual(10_000);
    expect(w.peer.pushes).toEqual([]);
    const stopped = w.stop();
    await clock.advance(2_000);
    await stopped;
  });
});
