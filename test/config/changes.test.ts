import { describe, expect, it } from 'vitest';
import { changeLines, reloaded } from '../../src/config/changes.js';
import { checkConfig } from '../../src/config/load.js';
import { inbox } from './setup.js';

const url = 'http://peer.example:8090';
const config = (parts: object = {}) =>
  checkConfig({ peer: { url }, folders: [inbox], ...parts }, '/etc/peersync/config.json');
const ab = [
  { path: 'a', collection: 'x' },
  { path: 'b', collection: 'y' },
];

describe('the changes between two configurations', () => {
  it('are listed one a line, with values as the file spells them', async () => {
    const before = await config({
      folders: ab,
      mirror: { tables: [{ table: 'prices' }], shares: [{ data: 'dump.gz', every: '1h' }] },
      confirm: { hold: '5s' },
    });
    const after = await config({
      folders: [
        { path: 'c', collection: 'y' },
        { ...ab[0], collection: 'z', settle: '9s' },
      ],
      mirror: { tables: [{ table: 'stock' }], shares: [{ data: 'dump.gz', every: '2h' }] },
      push: { concurrency: 8, backoff: { min: '2s' }, maxBytes: '1 MiB' },
      alerts: { timeToSearch: '1m' },
    });
    expect(changeLines(before, after)).toEqual([
      'folder "c" (/etc/peersync/c): added',
      'folder "b" (/etc/peersync/b): removed',
      'folder "a": collection, settle changed',
      'mirror "dump.gz": every changed',
      'mirror "stock": added',
      'mirror "prices": removed',
      'push.maxBytes: "8 MiB", now "1 MiB"',
      'push.concurrency: 4, now 8',
      'push.backoff.min: "1s", now "2s"',
      'confirm.hold: "5s", now not given',
      'alerts.timeToSearch: now "1m"',
    ]);
  });
});

describe('a running daemon whose file changed', () => {
  const auth = (username: string) => ({ auth: { username, password: { env: 'SECRET' } } });

  it('applies everything but the peer and the state directory, and names the keys that need a restart', async () => {
    const running = await config();
    const wanted = await config({
      peer: { url, timeouts: { total: '9m' }, maxAnswer: '1 MiB' },
      state: { dir: 'elsewhere', keepGone: '1d' },
      folders: [{ path: 'other', collection: 'inbox' }],
      push: { concurrency: 9 },
    });
    const { config: now, restart } = await reloaded(running, wanted);
    expect([...restart].sort()).toEqual(['peer.maxAnswer', 'peer.timeouts.total', 'state.dir']);
    expect(now).toEqual({
      ...wanted,
      peer: running.peer,
      state: { dir: running.state.dir, keepGone: 86_400_000 },
    });
  });

  it('keeps its fleet until a restart, and names what changes then', async () => {
    const alone = await config();
    const one = await config({ fleet: { redis: 'redis://one' } });
    const two = await config({ fleet: { redis: 'redis://two', share: ['extract', 'push'] } });
    expect(await reloaded(alone, one)).toEqual({ config: alone, restart: ['fleet'] });
    expect(await reloaded(one, alone)).toEqual({ config: one, restart: ['fleet'] });
    const { config: now, restart } = await reloaded(one, two);
    expect(now).toEqual(one);
    expect(restart).toEqual(['fleet.redis', 'fleet.share']);
    expect((await reloaded(alone, alone)).config).toBe(alone);
  });

  it.each([
    ['credentials', auth('old'), auth('new'), 'peer.auth.username'],
    [
      'certificates to trust',
      { tls: { ca: 'old.pem' } },
      { tls: { ca: 'new.pem' } },
      'peer.tls.ca',
    ],
  ])('applies new %s at once, unless they are for another peer', async (_, before, after, key) => {
    const [peer, other] = ['https://peer.example', 'https://other.example'];
    const running = await config({ peer: { url: peer, ...before } });
    const wanted = await config({ peer: { url: peer, ...after } });
    expect(await reloaded(running, wanted)).toEqual({ config: wanted, restart: [] });
    const later = await reloaded(running, await config({ peer: { url: other, ...after } }));
    expect(later.config.peer).toEqual(running.peer);
    expect([...later.restart].sort()).toEqual([key, 'peer.url']);
    const without = await config({ peer: { url: peer } });
    expect((await reloaded(running, without)).config.peer).toEqual(without.peer);
  });

  it('refuses a folder that contains the state directory still in use', async () => {
    const running = await config({ state: { dir: 'data/state' } });
    const wanted = await config({
      state: { dir: 'elsewhere' },
      folders: [{ path: 'data', name: 'data', collection: 'c' }],
      mirror: { root: 'mirrored' },
    });
    await expect(reloaded(running, wanted)).rejects.toMatchObject({
      code: 'CONFIG_NEEDS_RESTART',
      exitCode: 2,
      message: expect.stringMatching(
        /because state\.dir cannot change while peersync runs:\n {2}\S/,
      ),
    });
  });
});
