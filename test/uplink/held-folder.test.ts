import { mkdirSync, renameSync, rmdirSync } from 'node:fs';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { FolderState } from '../../src/uplink/deps.js';
import { FakeClock } from '../support/fake-clock.js';
import type { UplinkWorld } from '../support/uplink-world.js';
import { world } from '../support/world.js';

describe('while the folder of pending items is missing', () => {
  let w: UplinkWorld;
  let inbox: FolderState | undefined;
  /** The number of batches that were read. */
  let packs: number;

  beforeEach(() => {
    [inbox, packs] = ['there', 0];
  });

  const start = async (onPack = () => {}) => {
    w = await world({
      clock: new FakeClock(),
      folderState: (folder) => (folder === 'inbox' ? inbox : 'there'),
      beforePack: () => {
        packs += 1;
        if (packs === 1) onPack();
      },
    });
  };
  const becomes = (folderState: typeof inbox) => {
    inbox = folderState;
    w.uplink.foldersChanged();
  };
  /**
   * Lets an hour pass.
   * @returns how often an item of the folder was read from the state meanwhile
   */
  const visitsInAnHour = async () => {
    await w.until(() => w.uplink.isIdle, 'nothing is to do');
    const get = vi.spyOn(w.state, 'get');
    const end = w.clock.now() + 3_600_000;
    w.tickMs = 60_000;
    await w.until(() => w.clock.now() > end, 'an hour passes');
    w.tickMs = 100;
    return get.mock.calls.filter(([folder]) => folder === 'inbox').length;
  };

  it('none of them is looked at, other folders are synced, and all are pushed when it is back', async () => {
    await start();
    becomes('missing');
    const paths = Array.from({ length: 300 }, (_, i) => `${i}.txt`);
    const items = paths.map((path) => w.write(path, path));
    const elsewhere = w.write('other/a.txt', 'a.txt');
    w.state.put({ ...elsewhere, folder: 'other', path: 'a.txt' });
    w.state.remove('inbox', 'other/a.txt');
    expect(w.uplink.isIdle).toBe(false);
    await w.until(
      () => w.state.get('other', 'a.txt')?.status === 'confirmed',
      'the other is confirmed',
    );
    expect([await visitsInAnHour(), packs]).toEqual([0, 1]);
    expect(paths.map((path) => w.state.get('inbox', path))).toEqual(items);
    becomes('there');
    expect(w.uplink.isIdle).toBe(false);
    await w.confirmed(...paths);
    const urls = [w.url('other/a.txt'), ...paths.map((path) => w.url(path))];
    expect(w.peer.pushes.flat().toSorted()).toEqual(urls.toSorted());
    expect(w.rechecked).toEqual([]);
  });

  it.each(['gone', 'unreadable'])(
    'since a batch began to be read, its files that are %s stay pending',
    async (how) => {
      await start(() => {
        renameSync(path, `${path}.away`);
        if (how === 'unreadable') mkdirSync(path);
        becomes('missing');
      });
      const path = w.fileOf({ folder: 'inbox', path: 'a.txt' });
      const [item] = ['a.txt', 'b.txt'].map((each) => w.write(each, each));
      await w.until(() => packs === 1 && w.uplink.isIdle, 'nothing else is to do');
      expect(w.state.get('inbox', 'a.txt')).toStrictEqual(item);
      if (how === 'unreadable') rmdirSync(path);
      renameSync(`${path}.away`, path);
      w.record('a.txt', 'a.txt');
      becomes('there');
      await w.confirmed('a.txt', 'b.txt');
      expect(w.rechecked).toEqual([]);
    },
  );

  it('because it left the configuration, they are left alone until it is back', async () => {
    await start();
    becomes('missing');
    w.write('a.txt', 'a');
    becomes(undefined);
    expect(await visitsInAnHour()).toBe(0);
    becomes('there');
    await w.confirmed('a.txt');
    expect(w.peer.pushes).toEqual([[w.url('a.txt')]]);
  });
});
