import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/load.js';
import { queueLimits } from '../../src/daemon/open-queue.js';
import { pathOf } from '../../src/daemon/parts.js';
import { Shutdown } from '../../src/daemon/shutdown.js';
import { silentLogger } from '../../src/lib/logger.js';
import { FakeClock } from '../support/fake-clock.js';

describe('the path of an item', () => {
  const url = 'https://x.example/docs/';
  const folders = [
    { name: 'one', path: '/srv/one', url },
    { name: 'two', path: '/srv/two', url: 'https://x.example/two/' },
  ];

  it.each([
    ['is known', { folder: 'one', url: `${url}a/b%20c.txt` }, '/srv/one/a/b c.txt'],
    [
      'is unknown if its folder is not configured any more',
      { folder: 'three', url: `${url}a/b%20c.txt` },
    ],
    [
      'is unknown if another folder has that URL',
      { folder: 'one', url: 'https://x.example/two/a/b%20c.txt' },
    ],
    [
      'is unknown if the URL base was a longer one',
      { folder: 'one', url: `${url}old/a/b%20c.txt` },
    ],
  ])('%s', (_, item, path?: string) => {
    expect(pathOf({ ...item, path: 'a/b c.txt' }, folders)).toBe(path);
  });
});

describe('the rates of requests', () => {
  const limitedByDefault = {
    interactive: 200,
    confirm: 200,
    push: 20,
    removal: 20,
    mirror: 20,
    audit: 10,
  };
  const infinite = Number.POSITIVE_INFINITY;
  const unlimited = {
    interactive: infinite,
    confirm: infinite,
    push: infinite,
    removal: infinite,
    mirror: infinite,
    audit: 10,
  };
  const configured = {
    push: { requestsPerSecond: 3 },
    confirm: { requestsPerSecond: 5 },
    mirror: { requestsPerSecond: 0.5 },
  };
  const limited = { interactive: 5, confirm: 5, push: 3, removal: 3, mirror: 0.5, audit: 5 };

  it.each([
    ['have limits for a peer of somebody else', 'http://peer.example:8090', {}, limitedByDefault],
    ['have no limits for the embedded peer, except for the audit', 'embedded', {}, unlimited],
    ['are limited as configured', 'http://peer.example:8090', configured, limited],
    ['are limited as configured for the embedded peer', 'embedded', configured, limited],
  ])('%s', async (_, url, more, rates) => {
    const folders = [{ path: '/srv/inbox', collection: 'inbox' }];
    const config = await checkConfig({ folders, peer: { url }, ...more }, '/etc/config.json');
    const lanes = Object.entries(queueLimits(config).lanes);
    expect(
      Object.fromEntries(lanes.map(([lane, { requestsPerSecond }]) => [lane, requestsPerSecond])),
    ).toEqual(rates);
  });
});

describe('a stop', () => {
  const fails = () => Promise.reject(new Error('no'));

  /** Returns a shutdown with these steps, of which the last runs first. */
  function setUp(steps: Readonly<Record<string, (clock: FakeClock) => Promise<void> | void>>) {
    const clock = new FakeClock();
    const ended: string[] = [];
    const shutdown = new Shutdown(clock, silentLogger);
    for (const [name, work] of Object.entries(steps))
      shutdown.add(name, async () => {
        await work(clock);
        ended.push(name);
      });
    return { clock, ended, shutdown };
  }
  const done = () => {};

  it('stops the part that was started last first, even if steps fail', async () => {
    const { clock, ended, shutdown } = setUp({ lock: done, state: fails, page: done });
    await expect(shutdown.all()).rejects.toThrow('no');
    expect(ended).toEqual(['page', 'lock']);
    expect(clock.waiting).toBe(0);
  });

  it.each([
    [false, 20_000],
    [true, 3_000],
  ])(
    'gives up after its limit, sooner if a disk is known to hang (%s), and skips the remaining steps',
    async (isDiskSilent, graceMs) => {
      let goOn = () => {};
      const hangs = () =>
        new Promise<void>((resolve) => {
          goOn = resolve;
        });
      const { clock, ended, shutdown } = setUp({
        lock: done,
        watcher: hangs,
        page: done,
        first: fails,
      });
      let failure: unknown;
      const all = shutdown.all(isDiskSilent).catch((error: unknown) => {
        failure = error;
      });
      await clock.advance(graceMs - 1);
      expect(failure).toBeUndefined();
      await clock.advance(1);
      await all;
      const message = 'Stopped without waiting any longer for the watcher.';
      expect(failure).toMatchObject({ code: 'STOP_GAVE_UP', message });
      goOn();
      await clock.advance(1_000);
      expect(ended).toEqual(['page', 'watcher']);
    },
  );
});
