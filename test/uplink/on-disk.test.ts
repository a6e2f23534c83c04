import { expect, it } from 'vitest';
import type { Item } from '../../src/state/entry.js';
import { takes } from '../support/fake-peer.js';
import type { UplinkWorld } from '../support/uplink-world.js';
import { deferred } from '../support/wait.js';
import { world } from '../support/world.js';

/** Delays the next commit (`once`), or all later ones, until `onDisk` is called. */
function slowDisk(
  w: UplinkWorld,
  { once }: { readonly once: boolean },
): { onDisk: () => void; asked: () => number } {
  const usual = w.state.commit.bind(w.state);
  const { promise, resolve } = deferred();
  let asked = 0;
  w.state.commit = () => {
    if (once) w.state.commit = usual;
    asked += 1;
    return promise.then(() => usual());
  };
  return { onDisk: resolve, asked: () => asked };
}

/**
 * Starts a world whose peer accepted the first version of a file. The commit of that waits for
 * `onDisk`; all other commits are immediate.
 */
async function acceptedOnSlowDisk() {
  const w = await world();
  let disk: ReturnType<typeof slowDisk> | undefined;
  w.peer.onPush = () => {
    w.peer.onPush = takes;
    disk = slowDisk(w, { once: true });
    return undefined;
  };
  w.peer.visibleAfterMs = 1e9;
  w.write('a', 'one');
  await w.until(
    () => w.statusOf('a') === 'accepted' && disk?.asked() === 1,
    'the first version is accepted',
  );
  return { w, onDisk: () => disk?.onDisk() };
}

/** Writes another version, which is due at once. */
function writeDue(w: UplinkWorld, content: string): Item {
  const item = w.write('a', content);
  w.state.put({ ...w.pending('a'), notBefore: w.clock.now() });
  return item;
}

/** Writes another file and waits until it is accepted. */
async function meanwhile(w: UplinkWorld, path: string): Promise<void> {
  w.write(path, path);
  await w.until(() => w.statusOf(path) === 'accepted', `${path} is accepted`);
}

it('a file is pushed only after the disk has its record as in flight', async () => {
  const w = await world();
  const { onDisk, asked } = slowDisk(w, { once: false });
  w.write('a', 'one');
  await w.until(
    () => asked() > 0 && w.uplink.isInFlight({ folder: 'inbox', path: 'a' }),
    'it is to leave',
  );
  await w.clock.sleep(100);
  expect(w.peer.pushes.length).toBe(0);
  onDisk();
  await w.until(() => w.peer.pushes.length === 1, 'it leaves');
});

it('a version is confirmed even if it came before the disk had the acceptance of the previous one', async () => {
  const { w, onDisk } = await acceptedOnSlowDisk();
  const { version } = writeDue(w, 'second');
  await meanwhile(w, 'b');
  onDisk();
  await w.until(
    () => w.peer.pushes.length === 3 && w.statusOf('a') === 'accepted',
    'it is accepted',
  );
  w.peer.visibleAfterMs = 0;
  await w.confirmed('a');
  expect(w.state.get('inbox', 'a')?.version).toEqual(version);
});
