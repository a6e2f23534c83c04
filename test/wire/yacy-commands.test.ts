import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { temporaryDirectory } from '../support/temp.js';
import { PNG, YacyWorld } from './yacy/yacy-world.js';

vi.setConfig({ testTimeout: 240_000 });

describe('commands', () => {
  it('say that a document is not there, whatever the peer answers', async () => {
    const world = await YacyWorld.start();
    for (const command of ['doc', 'citation']) {
      const { code, stderr } = await world.run(command, 'http://notes.example.org/none.txt');
      expect({ command, code, stderr }).toEqual({
        command,
        code: 1,
        stderr: expect.stringMatching(/no|not/),
      });
    }
  });

  it('set rows of tables, and none whose key the peer would cut', async () => {
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
    // Files are dated by whole seconds: this one is as old as the answer with the last one.
    const asked = world.asked('/share/').at(-1)?.at;
    world.peer.share.put('dump/yacy_dump_a_ts.xml.gz', PNG.subarray(0, 5_000), asked);
    await world.run('table', 'set', 'woods', '--pk', 'oak', 'price=2');
    expect(await world.run('mirror')).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(join(directory, 'shares/dump/yacy_dump_a_ts.xml.gz'))).toEqual(
      PNG.subarray(0, 5_000),
    );
    expect(readFileSync(join(directory, 'woods.csv'), 'utf8')).toBe('pk,price\noak,2\n');
  });
});
