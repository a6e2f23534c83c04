import { afterEach, expect, it } from 'vitest';
import { gone } from '../../src/state/entry.js';
import { pendingRecord } from '../state/records.js';
import { until } from '../support/wait.js';
import { QUICK, World } from '../support/world.js';

const worlds: World[] = [];
afterEach(async () => {
  for (const w of worlds.splice(0)) await w.stop();
});

/** A world where a batch waits for more for a second, with these records in its state before anything is taken up. */
async function lingering(prepare: (w: World) => void): Promise<World> {
  const w = new World();
  worlds.push(w);
  let know = (_: true) => {};
  const known = new Promise<true>((resolve) => {
    know = resolve;
  });
  w.dialect = { ...w.dialect, known: () => known };
  await w.start({ ...QUICK, push: { ...QUICK.push, linger: 1_000, backoff: { min: 5, max: 60_000 } } });
  prepare(w);
  know(true);
  return w;
}

it('what is pending here and there in a large state travels together', async () => {
  const files = [1_000, 3_000, 5_000, 7_000].map((i) => `f${i}`);
  const w = await lingering((it) => {
    for (let i = 0; i < 8_000; i += 1) {
      if (files.includes(`f${i}`)) it.write(`f${i}`, `content ${i}`);
      else it.state.put(gone(pendingRecord(`f${i}`), it.clock.now()));
    }
  });
  await until(() => w.peer.pushes.length > 0, 'a push');
  expect(w.peer.pushes[0]).toEqual(files.map((path) => w.url(path)));
});

it('what was put off and is removed is waited for no longer, and costs no look when its time comes', async () => {
  const w = await lingering(() => {});
  await until(() => w.uplink.isIdle, 'it follows the state');
  const items = Array.from({ length: 100 }, (_, i) => pendingRecord(`late${i}`));
  for (const item of items) w.state.put({ ...item, notBefore: w.clock.now() + 60_000 });
  expect(w.uplink.isIdle).toBe(false);
  for (const item of items) w.state.put(gone(item, w.clock.now()));
  expect(w.uplink.isIdle).toBe(true);
});
