import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { Engine, FakePeer } from './engine.js';

/** A file system in memory that Linux has at hand; elsewhere there is no second one to be had without rights. */
const OTHER = '/dev/shm';
const hasTwo = (() => {
  try {
    return statSync(OTHER).dev !== statSync(temporaryDirectory()).dev;
  } catch {
    return false;
  }
})();

/** The root is a link, as good as a mount point: what it leads to can be taken away. */
function mounted(engine: Engine): { mount(): void; unmount(): void } {
  const disk = mkdtempSync(join(OTHER, 'peersync-'));
  const mountPoint = temporaryDirectory();
  afterwards('test', async () => rmSync(disk, { recursive: true, force: true }));
  const lead = (to: string): void => {
    rmSync(engine.root, { force: true });
    symlinkSync(to, engine.root);
  };
  return { mount: () => lead(disk), unmount: () => lead(mountPoint) };
}

it.skipIf(!hasTwo)(
  'nothing is written while the disk of the root is not mounted, and what is edited there later is no edit',
  async () => {
    const peer = new FakePeer();
    peer.table('prices', { apple: { price: '1' } });
    const engine = new Engine(peer);
    const root = mounted(engine);
    root.mount();
    await engine.open({ tables: [{ table: 'prices', edit: true }] });
    expect((await engine.once('prices')).changed).toBe(true);
    root.unmount();
    peer.table('prices', { apple: { price: '2' } });
    expect(await engine.once('prices')).toMatchObject({ failure: { code: 'MIRROR_ROOT_AWAY' } });
    expect(engine.has('tables')).toBe(false);
    root.mount();
    expect((await engine.once('prices')).failure).toBeUndefined();
    expect(engine.read('tables/prices.csv')).toBe('pk,price\r\napple,2\r\n');
    expect(peer.tableRows.get('prices')?.get('apple')).toEqual({ price: '2' });
  },
);

it.skipIf(!hasTwo)(
  'a root that is moved to another disk with its files, or begun anew, is the root',
  async () => {
    const peer = new FakePeer();
    peer.table('prices', { apple: { price: '1' } });
    const engine = new Engine(peer);
    const root = mounted(engine);
    root.mount();
    await engine.open({ tables: [{ table: 'prices' }] });
    await engine.once('prices');
    root.unmount();
    writeFileSync(join(engine.root, 'a file'), '');
    expect((await engine.once('prices')).failure).toBeUndefined();
    expect(engine.has('tables/prices.csv')).toBe(true);
    rmSync(join(engine.root, 'tables'), { recursive: true });
    rmSync(join(engine.root, 'a file'));
    expect((await engine.once('prices')).changed).toBe(true);
  },
);

it('a root that somebody emptied on the same disk is filled again', async () => {
  const peer = new FakePeer();
  peer.table('prices', { apple: { price: '1' } });
  const engine = new Engine(peer);
  await engine.open({ tables: [{ table: 'prices' }] });
  await engine.once('prices');
  rmSync(engine.root, { recursive: true });
  expect((await engine.once('prices')).changed).toBe(true);
  mkdirSync(engine.root, { recursive: true });
  expect(engine.has('tables/prices.csv')).toBe(true);
});

it.skipIf(!hasTwo)(
  'nothing is made there by looking for edits while the disk of the root is not mounted',
  async () => {
    const peer = new FakePeer();
    peer.table('prices', { apple: { price: '1' } });
    const clock = new FakeClock(Date.now() + 3_600_000);
    const engine = new Engine(peer, clock);
    const root = mounted(engine);
    root.mount();
    await engine.open({ tables: [{ table: 'prices', edit: true, every: '1h' }] });
    await engine.once('prices');
    /** Ten seconds. */
    const pass = async (): Promise<void> => {
      for (let i = 0; i < 10; i += 1) {
        await clock.advance(1_000);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    engine.mirrors.start(() => {});
    await pass();
    root.unmount();
    await pass();
    expect(engine.mirrors.status()).toMatchObject([{ failure: { code: 'MIRROR_ROOT_AWAY' } }]);
    expect(engine.has('tables')).toBe(false);
  },
);
