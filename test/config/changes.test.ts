import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { changeLines, reloaded } from '../../src/config/changes.js';
import type { Config } from '../../src/config/config.js';
import { checkConfig } from '../../src/config/load.js';
import { temporaryDirectory } from '../support/temp.js';

const directory = temporaryDirectory();

function config(parts: Record<string, unknown> = {}): Promise<Config> {
  return checkConfig(
    {
      peer: { url: 'http://peer.example:8090' },
      folders: [{ path: 'inbox', collection: 'inbox' }],
      ...parts,
    },
    join(directory, 'config.json'),
  );
}

describe('the changes between two configurations', () => {
  it('are none where nothing changed, also in another order of the folders', async () => {
    const folders = [
      { path: 'a', collection: 'x' },
      { path: 'b', collection: 'y' },
    ];
    const [before, after] = [await config({ folders }), await config({ folders: [...folders].reverse() })];
    expect(changeLines(before, after)).toEqual([]);
  });

  it('are told a line each, with values as they stand in the file', async () => {
    const before = await config({
      folders: [
        { path: 'a', collection: 'x' },
        { path: 'b', collection: 'y' },
      ],
      mirror: { tables: [{ table: 'prices' }], shares: [{ data: 'dump.gz', every: '1h' }] },
      confirm: { hold: '5s' },
    });
    const after = await config({
      folders: [
        { path: 'a', collection: 'z', settle: '9s' },
        { path: 'c', collection: 'y' },
      ],
      mirror: { tables: [{ table: 'stock' }], shares: [{ data: 'dump.gz', every: '2h' }] },
      push: { concurrency: 8, backoff: { min: '2s' }, maxBytes: '1 MiB' },
      alerts: { timeToSearch: '1m' },
    });
    expect(changeLines(before, after)).toEqual([
      `folder c (${join(directory, 'c')}): added`,
      `folder b (${join(directory, 'b')}): removed`,
      'folder a: collection, settle changed',
      'mirror dump.gz: every changed',
      'mirror stock: added',
      'mirror prices: removed',
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

  it('takes everything but the peer and the directory of the state, and names those keys', async () => {
    const running = await config();
    const wanted = await config({
      peer: { url: 'http://peer.example:8090', timeouts: { total: '9m' }, maxAnswer: '1 MiB' },
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

  it('keeps waiting for the restart until there was one, or the file is as it was', async () => {
    const running = await config();
    const wanted = await config({ state: { dir: 'elsewhere' } });
    const first = await reloaded(running, wanted);
    expect((await reloaded(first.config, wanted)).restart).toEqual(['state.dir']);
    expect(await reloaded(first.config, running)).toEqual({ config: running, restart: [] });
  });

  it('takes other credentials at once, and none that are for another peer', async () => {
    const running = await config({ peer: { url: 'http://peer.example:8090', ...auth('old') } });
    const wanted = await config({ peer: { url: 'http://peer.example:8090', ...auth('new') } });
    const { config: now, restart } = await reloaded(running, wanted);
    expect(now.peer.auth?.username).toBe('new');
    expect(restart).toEqual([]);
    const elsewhere = await config({ peer: { url: 'http://other.example', ...auth('new') } });
    const later = await reloaded(running, elsewhere);
    expect(later.config.peer).toEqual(running.peer);
    expect([...later.restart].sort()).toEqual(['peer.auth.username', 'peer.url']);
    const without = await config();
    expect((await reloaded(running, without)).config.peer.auth).toBeUndefined();
  });

  it('takes other certificates to trust at once, and none that are for another peer', async () => {
    const of = (url: string, ca: string) => config({ peer: { url, tls: { ca } } });
    const running = await of('https://peer.example', 'old.pem');
    const wanted = await of('https://peer.example', 'new.pem');
    expect(await reloaded(running, wanted)).toEqual({ config: wanted, restart: [] });
    const later = await reloaded(running, await of('https://other.example', 'new.pem'));
    expect(later.config.peer).toEqual(running.peer);
    expect([...later.restart].sort()).toEqual(['peer.tls.ca', 'peer.url']);
  });

  it('refuses what cannot be until the restart: a folder around the state that is still in use', async () => {
    const running = await config({ state: { dir: 'data/state' } });
    const wanted = await config({
      state: { dir: 'elsewhere' },
      folders: [{ path: 'data', name: 'data', collection: 'c' }],
      mirror: { root: 'mirrored' },
      peer: { url: 'http://peer.example:8090' },
    });
    await expect(reloaded(running, wanted)).rejects.toMatchObject({
      code: 'CONFIG_NEEDS_RESTART',
      exitCode: 2,
      message: expect.stringMatching(/for state\.dir cannot change while peersync runs:\n {2}\S/),
    });
  });
});
