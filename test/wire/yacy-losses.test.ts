import { readFileSync, rmSync } from 'node:fs';
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
    'end in quarantine with a reason if it is %s, and the others are confirmed',
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

describe('documents that the peer drops because its network does not take their addresses', () => {
  it.each([
    ['global', 'local', 'http://vault.local/', 'http://notes.example.org/'],
    ['local', 'public', 'http://notes.example.org/', 'http://vault.local/'],
  ] as const)(
    'are reported by all commands after twice the usual time if it is %s, until the peer shows some',
    async (network, reach, bad, good) => {
      const world = await YacyWorld.start({
        peer: { network },
        folders: { bad, good },
        // However long the commands take, no try is given up meanwhile.
        confirm: { timeout: '10m' },
      });
      for (const name of ['a', 'b']) world.write(`bad/${name}.txt`, `note ${name}`);
      const conditions = async () => {
        const { stdout } = await world.run('status', '--json');
        return JSON.parse(stdout).conditions.map(({ code }: { code: string }) => code);
      };
      const first = world.start();
      // Each is pushed once more before it is late.
      const isLate = async (name: string) => {
        const why = await world.run('why', join(world.directory, `bad/${name}.txt`));
        return why.stdout.includes('ADDRESSES_UNSEEN');
      };
      await until(async () => (await isLate('a')) && (await isLate('b')), 'both are late');
      expect(await first.kill('SIGTERM')).toMatchObject({ code: 0 });
      const words = new RegExp(`with ${reach} addresses, such as \\S+, and has not shown any`);
      const hint = /`peersync check --canary -c \S+` shows within seconds/;

      const once = await world.run('once', '--timeout', '1s');
      expect(once).toMatchObject({ code: 1, stdout: expect.stringMatching(words) });
      expect(once.stdout).toMatch(hint);
      const status = await world.run('status');
      expect(status.stdout).toMatch(words);
      expect(status.stdout).toMatch(hint);
      const why = await world.run('why', join(world.directory, 'bad/a.txt'));
      expect(why.stdout).toMatch(/^reason .*ADDRESSES_UNSEEN/m);
      expect(why.stdout).toMatch(hint);
      const check = await world.run('check');
      expect(check).toMatchObject({ code: 1, stdout: expect.stringMatching(words) });
      expect(check.stdout).toMatch(hint);

      const daemon = world.start();
      expect(await conditions()).toContain('ADDRESSES_UNSEEN');
      world.write('good/c.txt', 'note c');
      for (const name of ['a', 'b']) rmSync(join(world.directory, `bad/${name}.txt`));
      await world.reached('gone', 2);
      await world.reached('confirmed', 1);
      expect(await conditions()).not.toContain('ADDRESSES_UNSEEN');
      expect(await daemon.kill('SIGTERM')).toMatchObject({ code: 0 });
    },
  );
});

describe('a document that an administrator deleted', () => {
  it('is reported by verify, and pushed again by its repair', async () => {
    const world = await YacyWorld.start();
    for (const name of ['a', 'b']) world.write(`notes/${name}.txt`, name);
    expect(await world.run('once')).toMatchObject({ code: 0 });
    const url = world.url('notes/a.txt');
    world.peer.remove(url);
    const result = await world.run('verify', '--all');
    expect(result.code).not.toBe(0);
    expect(result.stdout + result.stderr).toContain('a.txt');
    expect(world.peer.kept(url)).toBeUndefined();
    await world.run('verify', '--all', '--repair');
    expect(await world.run('once')).toMatchObject({ code: 0 });
    expect(world.peer.kept(url)?.text).toBe(
      readFileSync(join(world.directory, 'notes/a.txt'), 'utf8'),
    );
    expect(await world.run('verify', '--all')).toMatchObject({ code: 0 });
  });

  it('is detected by the audit of the daemon, and pushed again', async () => {
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

describe('a removed document that is back, for example from a backup', () => {
  it('is reported by verify, and removed again by its repair', async () => {
    const world = await YacyWorld.start({ each: { notes: { onDelete: 'remove' } } });
    for (const name of ['a', 'b', 'c', 'd']) world.write(`notes/${name}.txt`, `note ${name}`);
    expect(await world.run('once')).toMatchObject({ code: 0 });
    const restore = world.peer.backup();
    for (const name of ['a', 'b']) rmSync(join(world.directory, `notes/${name}.txt`));
    expect(await world.run('once')).toMatchObject({ code: 0 });
    const removed = { 'notes/a.txt': 'removed', 'notes/b.txt': 'removed' };
    expect(await world.statuses()).toMatchObject(removed);
    expect((await world.run('verify', '--all')).stdout).toBe(
      '2 confirmed items looked up: all are there. 2 removed items looked up: none has come back.\n',
    );
    restore();
    const [a, b] = [world.url('notes/a.txt'), world.url('notes/b.txt')];

    const result = await world.run('verify', '--all', '--json');
    expect(result.code).toBe(3);
    const lines = result.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const last = lines.pop();
    expect(lines.toSorted((one, other) => one.file.localeCompare(other.file))).toMatchObject([
      { kind: 'back', file: 'notes/a.txt', url: a, repaired: false },
      { kind: 'back', file: 'notes/b.txt', url: b, repaired: false },
    ]);
    expect(last).toEqual({ kind: 'verified', checked: 4, removed: 2, lost: 0, back: 2, failed: 0 });
    expect(await world.statuses()).toMatchObject(removed);

    const sampled = await world.run('verify', '--sample', '4');
    expect(sampled.code).toBe(3);
    expect(sampled.stdout).toMatch(/^back +notes\/a\.txt /m);
    expect(sampled.stdout).toMatch(
      /2 removed items looked up, 2 back\. `peersync verify --all --repair -c \S+` removes again/,
    );

    expect(await world.run('verify', '--all', '--repair')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /What is back is removed again by the daemon, or by `peersync once -c/,
      ),
    });
    expect(await world.run('once')).toMatchObject({ code: 0 });
    expect([a, b].map((url) => world.peer.kept(url))).toEqual([undefined, undefined]);
    expect(await world.statuses()).toMatchObject(removed);
    expect(await world.run('verify', '--all')).toMatchObject({ code: 0 });
  });
});
