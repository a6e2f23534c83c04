import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/check.js';
import { disksOf, dutiesOf } from '../../src/daemon/watchdog.js';
import { UnderWay } from '../../src/lib/pulse.js';
import { openQueue, settle } from '../queue/queue-setup.js';

const folders = [{ path: '/srv/docs', collection: 'c' }];
const configOf = (more: object = {}) => checkConfig({ folders, ...more }, '/etc/peersync/config.json');

async function duties(more: object = {}) {
  const { queue } = openQueue();
  const commits = new UnderWay();
  const own = (name: string) => ({ name, moves: () => 0, neglects: () => undefined });
  const fileThread = { waiting: 0, answered: 0 };
  const parts = {
    ...{ queue, commits, fileThread },
    uplink: { duties: [own('push')] },
    watcher: { duties: [own('intake')] },
    mirrors: { duties: [own('mirrors')] },
  };
  return { queue, commits, fileThread, all: dutiesOf(parts, await configOf(more)) };
}

describe('the duties of a daemon', () => {
  it('are those of all its parts, each with a name of its own', async () => {
    const names = (await duties()).all.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining([
        'push',
        'intake',
        'file thread',
        'queue push',
        'request push',
        'mirrors',
        'state',
      ]),
    );
    expect(new Set(names).size).toBe(names.length);
  });

  it('are neglected while what is known is not brought to the disk, commit by commit', async () => {
    const { commits, all } = await duties();
    const state = all.find(({ name }) => name === 'state');
    expect(state?.neglects()).toBeUndefined();
    let end: () => void = () => {};
    const first = commits.during(
      () =>
        new Promise<void>((resolve) => {
          end = resolve;
        }),
    );
    expect(state?.neglects()).toBe('what is known is not brought to the disk');
    const moves = state?.moves();
    const second = commits.during(() => Promise.reject(new Error('full')));
    await expect(second).rejects.toThrow('full');
    expect(state?.moves()).toBe(moves);
    end();
    await first;
    expect(state?.neglects()).toBeUndefined();
    void commits.during(() => new Promise(() => {}));
    expect(state?.moves()).not.toBe(moves);
  });

  it('are neglected while the thread that reads files answers nothing', async () => {
    const { fileThread, all } = await duties();
    const thread = all.find(({ name }) => name === 'file thread');
    expect(thread?.neglects()).toBeUndefined();
    fileThread.waiting = 2;
    expect(thread?.neglects()).toBe('the thread that reads files gives no answer');
    const moves = thread?.moves();
    fileThread.answered += 1;
    expect(thread?.moves()).not.toBe(moves);
  });

  it.each([
    ['10m', 30, 360],
    // A table is written row by row, each a request of its own.
    ['1s', 15, 180],
  ])(
    'bear with a request for as long as a time-out of %s allows, and with one that streams for longer',
    async (total, push, mirror) => {
      const { queue, all } = await duties({ peer: { timeouts: { total } } });
      void queue.run('push', () => new Promise(() => {}));
      void queue.run('mirror', () => new Promise(() => {}));
      await settle();
      const limits = all
        .filter((duty) => duty.neglects() !== undefined)
        .map(({ name, limitMs }) => [name, limitMs]);
      expect(limits).toContainEqual(['request push', push * 60_000]);
      expect(limits).toContainEqual(['request mirror', mirror * 60_000]);
      expect(limits).toHaveLength(2);
    },
  );
});

describe('the disks of a daemon', () => {
  it('are those of its state, its folders, and its mirrors where there are any', async () => {
    const state = { path: '/etc/peersync/data/state', isOwn: true };
    const docs = { path: '/srv/docs', isOwn: false };
    expect(disksOf(await configOf())).toEqual([state, docs]);
    const mirror = { root: '/srv/mirror', shares: [{ data: 'x.csv' }] };
    expect(disksOf(await configOf({ mirror }))).toEqual([state, docs, { path: '/srv/mirror', isOwn: true }]);
  });
});
