import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ItemsPage } from '../../src/page/api.js';
import type { StatusReport } from '../../src/report/status.js';
import { readExposition } from '../page/exposition-reader.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';
import { remotePeer } from './at-peer.js';

/** A daemon with a page at the peer of all tests here, with documents that no other test has. */
async function run() {
  const world = temporaryDirectory();
  const folder = { name: 'inbox', url: `https://${basename(world).toLowerCase()}.example.org/` };
  const section = (await remotePeer()).section();
  const configure = (status: Readonly<Record<string, unknown>>) =>
    writeConfig(world, { peer: section, folders: [folder], status });
  const config = configure({ listen: '127.0.0.1:0' });
  const daemon = new Running(['run', '-c', config]);
  await daemon.says(/status page at http:/);
  const url = /status page at (http:\S+\/)/.exec(daemon.stdout)?.[1] ?? '';
  return { world, config, configure, daemon, url };
}

function at(url: string): <T>(path: string) => Promise<T> {
  return async (path) => (await (await fetch(new URL(path, url))).json()) as never;
}

describe('the page of a running daemon', () => {
  it('follows a file from the folder to search, and knows what the commands know', async () => {
    const { config, url, world } = await run();
    const get = at(url);
    writeFileSync(join(world, 'inbox/a.md'), 'Gulls sleep on one leg.');
    const icon = await fetch(new URL('favicon.ico', url));
    expect(icon.headers.get('content-type')).toContain('image/svg+xml');
    await until(
      async () => (await get<StatusReport>('/api/status')).items.confirmed === 1,
      'it is confirmed',
    );
    const { items } = await get<ItemsPage>('/api/items?status=confirmed');
    expect(items).toMatchObject([{ file: join(world, 'inbox/a.md'), status: 'confirmed' }]);
    expect(await get('/api/why?path=inbox/a.md')).toMatchObject({ verdict: 'confirmed' });
    expect(await get('/api/why?path=inbox/a.md')).toEqual(
      JSON.parse((await peersync(['why', join(world, 'inbox/a.md'), '-c', config, '--json'])).stdout),
    );
    const metrics = readExposition(await (await fetch(new URL('/metrics', url))).text(), 'prometheus');
    const series = (name: string) => metrics.find((one) => one.name === `peersync_${name}`);
    expect(series('items_confirmed_total')?.value).toBe(1);
    expect(series('push_bytes_total')?.value).toBeGreaterThan(23);
    expect(series('state_sync_seconds_count')?.value).toBeGreaterThan(0);
    const count = series('time_to_search_seconds_count');
    expect(count).toMatchObject({ value: 1, labels: new Map([['collection', 'inbox']]) });
  });

  it('follows a reload: who has no token is shut out from then on', async () => {
    const { configure, daemon, url, world } = await run();
    const port = Number(new URL(url).port);
    const status = async (headers: Record<string, string> = {}) =>
      (await fetch(new URL('/api/status', url), { headers }).catch(() => undefined))?.status;
    expect(await status()).toBe(200);
    writeFileSync(join(world, 'token'), 'open sesame\n', { mode: 0o600 });
    const token = { file: join(world, 'token') };
    configure({ listen: `127.0.0.1:${port}`, token });
    daemon.child.kill('SIGHUP');
    await until(async () => (await status()) === 401, 'the token is asked for');
    expect(await status({ authorization: 'Bearer open sesame' })).toBe(200);
  });

  it('is missed by nobody where its port is in use', async () => {
    const { url } = await run();
    const other = temporaryDirectory();
    const peer = (await remotePeer()).section();
    const second = writeConfig(other, { peer, status: { listen: new URL(url).host } });
    const daemon = new Running(['run', '-c', second]);
    await daemon.says(/The status page cannot be opened: 127\.0\.0\.1:\d+ is in use\./);
    writeFileSync(join(other, 'inbox/b.md'), 'b');
    await daemon.says('confirmed inbox/b.md');
    expect(await daemon.kill('SIGTERM')).toMatchObject({ code: 0 });
  });
});
