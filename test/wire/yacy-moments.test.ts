import { describe, expect, it, vi } from 'vitest';
import { until } from '../support/wait.js';
import { timing } from './yacy/timing.js';
import { SPEED, YacyWorld } from './yacy/yacy-world.js';

vi.setConfig({ testTimeout: 240_000 });

describe('a document that a peer shows only for a moment', () => {
  /** The peer shows what it took for long enough to be seen early, and commits late. */
  const flickering = timing(SPEED, { buffered: 2_000, commit: 300 });

  it('is not confirmed: confirmed documents survive a crash of the peer at that moment', async () => {
    const world = await YacyWorld.start({
      peer: { timing: flickering },
      confirm: { hold: '2500ms' },
    });
    for (let n = 0; n < 5; n += 1) world.write(`notes/${n}.txt`, `note ${n}`);
    world.start();
    await world.reached('confirmed', 1);
    await world.peer.crash();
    const confirmed = (await world.ask()).filter(({ status }) => status === 'confirmed');
    expect(confirmed.map(({ url }) => world.peer.kept(url) !== undefined)).toEqual(
      confirmed.map(() => true),
    );
  });

  it('is pushed again if it was lost in a crash', async () => {
    const world = await YacyWorld.start({
      peer: { timing: flickering },
      confirm: { hold: '2500ms', timeout: '4s' },
    });
    for (let n = 0; n < 5; n += 1) world.write(`notes/${n}.txt`, `note ${n}`);
    world.start();
    const url = world.url('notes/0.txt');
    await until(() => world.peer.shown(url) !== undefined, 'the peer shows a document');
    await world.peer.crash();
    expect(world.peer.kept(url)).toBeUndefined();
    await world.peer.restart();
    await world.reached('confirmed', 5);
    for (let n = 0; n < 5; n += 1)
      expect(world.peer.shown(world.url(`notes/${n}.txt`))).toBeDefined();
  });

  it('is pushed again with others if a crash lost very many', async () => {
    const world = await YacyWorld.start({
      peer: { timing: flickering },
      push: { requestsPerSecond: 50 },
      confirm: { hold: '2500ms', requestsPerSecond: 500 },
    });
    const count = 1_000;
    for (let n = 0; n < count; n += 1) world.write(`notes/${n}.txt`, `note ${n}`);
    world.start();
    await until(
      () => world.asked('/api/push_p').flatMap(({ urls }) => urls).length >= count,
      'all are pushed',
    );
    await world.peer.crash();
    await world.peer.restart();
    await world.reached('confirmed', count);
    expect(world.asked('/api/push_p').length).toBeLessThan(count / 2);
  });

  it('is not taken for the new version while it is the old one', async () => {
    const world = await YacyWorld.start({
      peer: { timing: flickering },
      confirm: { hold: '2500ms' },
    });
    world.write('notes/plan.txt', 'version 1');
    const daemon = world.start();
    await world.reached('confirmed', 1);
    const url = world.url('notes/plan.txt');
    const [old] = await world.ask();
    world.write('notes/plan.txt', 'version 2', Date.UTC(2024, 1, 29, 13));
    await until(async () => {
      const [item] = await world.ask();
      return item?.status === 'confirmed' && item.sha256 !== old?.sha256;
    }, 'the new version is confirmed');
    await world.peer.crash();
    expect(world.peer.shown(url)?.text).toBe('version 2');
    expect(world.asked('/api/push_p').flatMap(({ urls }) => urls)).toEqual([url, url]);
    expect(await daemon.kill('SIGTERM')).toMatchObject({ code: 0 });
  });

  it('is looked up again after a restart of the peer', async () => {
    const world = await YacyWorld.start({ peer: { timing: timing(SPEED, { start: 1_000 }) } });
    world.write('notes/a.txt', 'a');
    await world.peer.stop();
    world.start();
    await world.peer.restart();
    await world.reached('confirmed', 1);
    expect((await world.ask())[0]?.status).toBe('confirmed');
  });

  it('is pushed again if somebody replaced it by an empty document', async () => {
    const world = await YacyWorld.start({
      peer: { timing: flickering },
      confirm: { hold: '2500ms', timeout: '3s' },
    });
    world.write('notes/a.txt', 'alpha');
    world.start();
    const url = world.url('notes/a.txt');
    await until(() => world.peer.shown(url) !== undefined, 'the peer shows the document');
    const { lastModified = 0 } = world.peer.shown(url) ?? {};
    await fetch(`${world.peer.url}/api/push_p.json`, {
      method: 'POST',
      body: new URLSearchParams({
        count: '1',
        'url-0': url,
        'collection-0': 'notes',
        'contentType-0': 'text/plain',
        'lastModified-0': new Date(lastModified).toUTCString(),
        'responseHeader-0': '',
        'data-0': 'alpha',
      }),
    });
    expect(world.peer.kept(url)).toMatchObject({ size: 0, words: 0, lastModified });
    await world.reached('confirmed', 1);
    expect(world.peer.kept(url)).toMatchObject({ text: 'alpha', lastModified });
  });
});
