import { renameSync } from 'node:fs';
import { expect, it } from 'vitest';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { World } from '../support/world.js';

it('what waits to be pushed while its folder is away costs the disk nothing, and is pushed when that is back', async () => {
  const w = new World();
  const clock = new FakeClock();
  w.clock = clock;
  const [started, path] = [clock.monotonic(), w.fileOf({ folder: 'inbox', path: 'a.txt' })];
  let packs = 0;
  w.packs = async () => {
    packs += 1;
  };
  await w.start();
  w.isHeld = true;
  const item = w.write('a.txt', 'a');
  renameSync(path, `${path}.away`);
  const passing = (condition: () => boolean) => async () => {
    await clock.advance(100);
    return condition();
  };
  await until(
    passing(() => packs >= 2),
    'it comes to its turn twice',
  );
  expect(clock.monotonic() - started).toBeGreaterThanOrEqual(10_000);
  expect(w.state.get('inbox', 'a.txt')).toBe(item);
  expect(w.looked).toEqual([]);
  renameSync(`${path}.away`, path);
  w.known('a.txt', 'a');
  w.isHeld = false;
  await until(
    passing(() => w.statusOf('a.txt') === 'confirmed'),
    'it is confirmed',
  );
  expect(w.peer.pushes).toEqual([[item.url]]);
  const stopped = w.stop();
  await clock.advance(2_000);
  await stopped;
});
