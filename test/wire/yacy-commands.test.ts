import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { temporaryDirectory } from '../support/temp.js';
import { PNG, YacyWorld } from './yacy/yacy-world.js';

vi.setConfig({ testTimeout: 240_000 });

describe('table', () => {
  it('sets rows of tables, and none whose key the peer would cut', async () => {
    const world = await YacyWorld.start();
    expect(await world.run('table', 'set', 'woods', '--pk', 'oak', 'price=1')).toMatchObject({ code: 0 });
    const long = await world.run('table', 'set', 'woods', '--pk', 'abcdefghijklm', 'price=2');
    expect(long).toMatchObject({ stderr: expect.stringContaining('at most 12') });
    expect(long.code).not.toBe(0);
    expect(world.peer.tables.row('woods', 'abcdefghijkl')).toBeUndefined();
    const { stdout } = await world.run('table', 'get', 'woods', '--json');
    expect(JSON.parse(stdout)).toEqual({ pk: 'oak', price: '1' });
    expect((await world.run('table', 'get', 'none')).code).toBe(1);
  });
});

describe('share get', () => {
  it('takes no name that is no path of a file, and says what a name is', async () => {
    const world = await YacyWorld.start();
    const { code, stdout, stderr } = await world.run('share', 'get', '--data', '../..');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^peersync: .*\/share\/ .*"\.\.\/\.\."\.?\n {2}A name is .*such as lists\/a\.txt/);
    expect(world.asked('/share/')).toEqual([]);
  });
});

describe('mirrors', () => {
  it('follow a shared file and a table', async () => {
    const directory = temporaryDirectory();
    const world = await YacyWorld.start({
      more: {
        mirror: {
          root: directory,
          shares: [{ data: 'dump/yacy_dump_a_ts.xml.gz' }],
          tables: [{ table: 'woods', path: 'woods.csv' }],
        },
      },
    });
    world.peer.share.put('dump/yacy_dump_a_ts.xml.gz', PNG, Date.UTC(2024, 0, 1));
    await world.run('table', 'set', 'woods', '--pk', 'oak', 'price=1');
    expect(await world.run('mirror')).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(join(directory, 'shares/dump/yacy_dump_a_ts.xml.gz'))).toEqual(PNG);
    expect(readFileSync(join(directory, 'woods.csv'), 'utf8')).toBe('pk,price\noak,1\n');
    const statuses = () => world.asked('/share/').map(({ status }) => status);
    expect(await world.run('mirror')).toMatchObject({ code: 0, stderr: '' });
    expect(statuses()).toEqual([200, 304]);
  });
});
