import { mkdirSync, renameSync, rmdirSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Standing } from '../../src/uplink/deps.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { World } from '../support/world.js';

const FILES = 300;
const HOUR_MS = 3_600_000;

describe('while the folder of what waits to be pushed is held', () => {
  let w: World;
  let clock: FakeClock;
  let inbox: Standing | undefined;
  /** How many batches were read. */
  let packs: number;

  beforeEach(async () => {
    w = new World();
    clock = new FakeClock();
    w.clock = clock;
    [inbox, packs] = ['there', 0];
    w.standing = (folder) => (folder === 'inbox' ? inbox : 'there');
    w.packs = async () => {
      packs += 1;
    };
    await w.start();
  });
  afterEach(async () => {
    const stopped = w.stop();
    await clock.advance(2_000);
    await stopped;
  });

  const becomes = (standing: typeof inbox) => {
    inbox = standing;
    w.uplink.foldersChanged();
  };
  const comes = (condition: () => boolean, what: string) =>
    until(async () => {
      await clock.advance(100);
      return condition();
    }, what);
  const confirmed = (...paths: string[]) =>
    comes(() => paths.every((path) => w.statusOf(path) === 'confirmed'), 'confirmed');
  const pushed = () => w.peer.pushes.flat();

  /** A file of another folder, which is there. */
  function writeElsewhere(path: string): void {
    const { folder: _, ...item } = w.write(`other/${path}`, path);
    w.state.put({ ...item, folder: 'other', path });
    w.state.remove('inbox', `other/${path}`);
  }

  /** How often the record of an item in the folder is asked for from now on. */
  function visits(): () => number {
    const spy = vi.spyOn(w.state, 'get');
    return () => spy.mock.calls.filter(([folder]) => folder === 'inbox').length;
  }

  it('and missing, none of it is looked at, however long that lasts; others go on, and so does all when it is back', async () => {
    becomes('missing');
    const paths = Array.from({ length: FILES }, (_, i) => `${i}.txt`);
    const items = paths.map((path) => w.write(path, path));
    writeElsewhere('a.txt');
    const visited = visits();
    expect(w.uplink.isIdle).toBe(false);
    await comes(() => w.state.get('other', 'a.txt')?.status === 'confirmed', 'the other is confirmed');
    await comes(() => w.uplink.isIdle, 'nothing else is to do');
    await clock.advance(HOUR_MS);
    expect(visited()).toBe(0);
    expect(packs).toBe(1);
    expect(paths.map((path) => w.state.get('inbox', path))).toEqual(items);
    becomes('there');
    expect(w.uplink.isIdle).toBe(false);
    await confirmed(...paths);
    expect(pushed().toSorted()).toEqual([w.url('other/a.txt'), ...paths.map((p) => w.url(p))].toSorted());
    expect(w.looked).toEqual([]);
  });

  it.each(['gone', 'unreadable'])(
    'and goes missing under the hands of a batch, what is %s is left',
    async (how) => {
      const paths = ['a.txt', 'b.txt'];
      let path = '';
      w.packs = async () => {
        packs += 1;
        renameSync(path, `${path}.away`);
        if (how === 'unreadable') mkdirSync(path);
        becomes('missing');
        w.packs = async () => {};
      };
      path = w.fileOf({ folder: 'inbox', path: 'a.txt' });
      const items = paths.map((each) => w.write(each, each));
      await comes(() => packs === 1 && w.uplink.isIdle, 'nothing else is to do');
      expect(w.state.get('inbox', 'a.txt')).toStrictEqual(items[0]);
      if (how === 'unreadable') rmdirSync(path);
      renameSync(`${path}.away`, path);
      w.known('a.txt', 'a.txt');
      becomes('there');
      await confirmed(...paths);
      expect(w.looked).toEqual([]);
    },
  );

  it('what waits in a folder that leaves the configuration is left alone until that is back', async () => {
    becomes('missing');
    const item = w.write('a.txt', 'a');
    const visited = visits();
    becomes(undefined);
    await comes(() => w.uplink.isIdle, 'nothing is to do');
    await clock.advance(HOUR_MS);
    expect(visited()).toBe(0);
    becomes('there');
    await confirmed('a.txt');
    expect(pushed()).toEqual([item.url]);
  });
});
