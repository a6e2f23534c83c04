import { rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ItemsPage } from '../../src/page/api.js';
import type { StatusReport } from '../../src/report/status.js';
import { readExposition } from '../page/exposition-reader.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { PeerProcess } from '../support/peer-process.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';
import { remotePeer } from './at-peer.js';

/** A daemon with a page at the peer of all tests here, or one of its own, and with documents that no other test has. */
async function run({ peer }: { peer?: PeerProcess } = {}) {
  const world = temporaryDirectory();
  const folder = { name: 'inbox', url: `https://${basename(world).toLowerCase()}.example.org/` };
  const section = (peer ?? (await remotePeer())).section();
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

  it('is ready while the peer is there, and the folder', async () => {
    const data = temporaryDirectory();
    const peer = await PeerProcess.start(data);
    const { url, world } = await run({ peer });
    const ready = async () => {
      const answer = await fetch(new URL('/readyz', url));
      const { reasons } = (await answer.json()) as { reasons: { code: string }[] };
      return `${answer.status} ${reasons.map(({ code }) => code).join()}`;
    };
    await until(async () => (await ready()) === '200 ', 'it is ready');
    await peer.running.kill('SIGKILL');
    writeFileSync(join(world, 'inbox/a.md'), 'a');
    await until(async () => (await ready()) === '503 PEER', 'the peer is missed');
    expect((await fetch(new URL('/healthz', url))).status).toBe(200);
    await PeerProcess.start(data, { port: Number(new URL(peer.url).port) });
    await until(async () => (await ready()) === '200 ', 'it is ready again');
    rmSync(join(world, 'inbox'), { recursive: true });
    await until(async () => (await ready()) === '503 FOLDER_HELD', 'the folder is missed');
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

  it('holds no stop up, also while browsers follow', async () => {
    const { daemon, url } = await run();
    const sockets = [1, 2, 3].map(() => connect(Number(new URL(url).port), '127.0.0.1'));
    let heard = 0;
    for (const socket of sockets) {
      socket.write(`GET /api/live HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`);
      socket.on('error', () => {});
      socket.once('data', () => {
        heard += 1;
      });
    }
    await until(() => heard === 3, 'all of them follow');
    const started = performance.now();
    expect(await daemon.kill('SIGTERM')).toMatchObject({ code: 0 });
    expect(performance.now() - started).toBeLessThan(20_000);
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
