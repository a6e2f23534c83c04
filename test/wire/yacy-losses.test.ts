import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { until } from '../support/wait.js';
import { YacyWorld } from './yacy/yacy-world.js';

vi.setConfig({ testTimeout: 240_000 });

describe('documents that the network of the peer does not take', () => {
  it.each([
    ['global', 'http://vault.local/', 'http://notes.example.org/'],
    ['local', 'http://notes.example.org/', 'http://vault.local/'],
  ] as const)(
    'end in quarantine where it is %s, with words, and the others are confirmed',
    async (network, bad, good) => {
      const world = await YacyWorld.start({
        peer: { network },
        folders: { bad, good },
        push: { attempts: 4 },
        confirm: { timeout: '2s' },
      });
      for (let n = 0; n < 3; n += 1) {
        world.write(`bad/${n}.txt`, `note ${n}`);
        world.write(`good/${n}.txt`, `note ${n}`);
      }
      expect(await world.run('once')).toMatchObject({ code: 3 });
      const statuses = await world.statuses();
      for (let n = 0; n < 3; n += 1) {
        expect(statuses[`bad/${n}.txt`]).toBe('quarantined');
        expect(statuses[`good/${n}.txt`]).toBe('confirmed');
      }
      const why = await world.run('why', join(world.directory, 'bad/0.txt'));
      expect(why.stdout).toContain('DOMAIN_GATE');
      expect(why.stdout).toContain('network.unit.domain');
      const pushes = world.asked('/api/push_p').flatMap(({ urls }) => urls);
      expect(pushes.filter((url) => url === `${bad}0.txt`).length).toBeLessThanOrEqual(3);
    },
  );
});

describe('a document that an administrator deleted', () => {
  it('is missed by verify, and pushed again by its repair', async () => {
    const world = await YacyWorld.start();
    for (const name of ['a', 'b']) world.write(`notes/${name}.txt`, name);
    expect(await world.run('once')).toMatchObject({ code: 0 });
    const url = world.url('notes/a.txt');
    world.peer.remove(url);
    const told = await world.run('verify', '--all');
    expect(told.code).not.toBe(0);
    expect(told.stdout + told.stderr).toContain('a.txt');
    expect(world.peer.kept(url)).toBeUndefined();
    await world.run('verify', '--all', '--repair');
    expect(await world.run('once')).toMatchObject({ code: 0 });
    expect(world.peer.kept(url)?.text).toBe(readFileSync(join(world.directory, 'notes/a.txt'), 'utf8'));
    expect(await world.run('verify', '--all')).toMatchObject({ code: 0 });
  });

  it('is missed by the daemon itself in time, and pushed again', async () => {
    const world = await YacyWorld.start({ more: { audit: { every: '2s' } } });
    for (const name of ['a', 'b', 'c']) world.write(`notes/${name}.txt`, name);
    const daemon = world.start();
    await world.reached('confirmed', 3);
    const url = world.url('notes/b.txt');
    world.peer.remove(url);
    await until(() => world.peer.kept(url) !== undefined, 'the document is pushed again');
    await world.reached('confirmed', 3);
    expect(world.peer.kept(url)?.text).toBe('b');
    expect(world.asked('/api/push_p').flatMap(({ urls }) => urls)).toHaveLength(4);
    expect(await daemon.kill('SIGTERM')).toMatchObject({ code: 0 });
  });
});
