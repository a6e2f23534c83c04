import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { peersync } from '../support/warm-cli.js';

function basic(dir: string): string {
  const password = readFileSync(join(dir, 'admin-password'), 'utf8').trim();
  return `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`;
}

async function statuses(url: string, authorization?: string): Promise<number[]> {
  const headers = authorization === undefined ? {} : { authorization };
  const paths = ['/', '/search.json', '/api/peerdoc.json?url=http://h/'];
  return Promise.all(paths.map(async (path) => (await fetch(url + path, { headers })).status));
}

describe('an embedded peer that is for its administrator alone', () => {
  it('is one with `peer --require-auth`, and not without', async () => {
    for (const [options, expected] of [
      [['--require-auth'], [401, 401, 401]],
      [[], [200, 200, 404]],
    ] as const) {
      const dir = temporaryDirectory();
      const running = new Running(['peer', '--data', dir, '--port', '0', ...options]);
      const listens = /the peer listens on (http:\/\/[^/"]+)\//;
      await running.says(listens);
      const url = listens.exec(running.stdout)?.[1] ?? '';
      expect(await statuses(url)).toEqual(expected);
      expect(await statuses(url, basic(dir))).toEqual([200, 200, 404]);
    }
  });

  it('works with the daemon whose peer it is', async () => {
    const world = temporaryDirectory();
    const dir = join(world, 'peer');
    const config = writeConfig(world, { peer: { embedded: { dir, port: 0, requireAuth: true } } });
    writeFileSync(join(world, 'inbox', 'a.txt'), 'for one reader');
    expect((await peersync(['once', '-c', config])).code).toBe(0);
    const running = new Running(['run', '-c', config]);
    const search = /search it at (http:\/\/[^/"]+)\//;
    await running.says(search);
    expect(await statuses(search.exec(running.stdout + running.stderr)?.[1] ?? '')).toEqual([401, 401, 401]);
  });
});
