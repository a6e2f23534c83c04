import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import type { Item } from '../../src/state/entry.js';
import { until } from '../support/wait.js';
import { World } from '../support/world.js';

const worlds: World[] = [];
afterEach(async () => {
  for (const w of worlds.splice(0)) await w.stop();
});

/** The peer took the first version of a file, and that is not on disk before `onDisk`; all else comes there at once. */
async function slowDisk() {
  const w = new World();
  worlds.push(w);
  await w.start();
  const usual = w.state.commit.bind(w.state);
  let onDisk = () => {};
  const disk = new Promise<void>((resolve) => {
    onDisk = resolve;
  });
  w.peer.onPush = () => {
    w.peer.onPush = () => undefined;
    w.state.commit = () => {
      w.state.commit = usual;
      return disk.then(usual);
    };
    return undefined;
  };
  w.peer.visibleAfter = 1e9;
  w.write('a', 'one');
  await until(() => w.statusOf('a') === 'accepted', 'the first version is accepted');
  return { w, onDisk };
}

/** Writes another version, which may leave at once. */
function write(w: World, content: string): Item {
  const item = w.write('a', content);
  if (item.status !== 'pending') throw new Error('it is not pending');
  w.state.put({ ...item, notBefore: w.clock.now() });
  return item;
}

it('a version is confirmed that comes before it is on disk that the peer took the one before it', async () => {
  const { w, onDisk } = await slowDisk();
  const { version } = write(w, 'second');
  await delay(200);
  onDisk();
  await until(() => w.peer.pushes.length === 2 && w.statusOf('a') === 'accepted', 'it is accepted');
  await delay(100);
  w.peer.visibleAfter = 0;
  await until(() => w.statusOf('a') === 'confirmed', 'it is confirmed', 10_000);
  expect(w.state.get('inbox', 'a')?.version).toEqual(version);
});

it('nor is a version forgotten that comes while such a one is on its way', async () => {
  const { w, onDisk } = await slowDisk();
  let answer = () => {};
  const answered = new Promise<undefined>((resolve) => {
    answer = () => resolve(undefined);
  });
  w.peer.onPush = () => answered;
  write(w, 'second');
  await delay(200);
  onDisk();
  await until(() => w.peer.pushes.length === 2, 'the second version leaves');
  await delay(100);
  const { version } = w.write('a', 'the third');
  answer();
  await until(() => !w.uplink.isInFlight({ folder: 'inbox', path: 'a' }), 'the second version is there');
  await delay(100);
  expect(w.state.get('inbox', 'a')?.version).toEqual(version);
});

it('a file leaves only when it is on disk that it does', async () => {
  const w = new World();
  worlds.push(w);
  await w.start();
  const usual = w.state.commit.bind(w.state);
  let onDisk = () => {};
  const disk = new Promise<void>((resolve) => {
    onDisk = resolve;
  });
  w.state.commit = () => disk.then(usual);
  w.write('a', 'one');
  await until(() => w.statusOf('a') === 'pending', 'it waits');
  await delay(500);
  const early = w.peer.pushes.length;
  onDisk();
  expect(early).toBe(0);
  await until(() => w.peer.pushes.length === 1, 'it leaves');
});
