import { rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { StatusReport } from '../../src/inspect/status.js';
import type { ItemsPage } from '../../src/page/api.js';
import { readExposition } from '../page/exposition-reader.js';
import { peersync, Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { PeerProcess } from '../support/peer-process.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

let world: string;
let peer: PeerProcess;
let config: string;

beforeEach(async () => {
  world = temporaryDirectory();
  peer = await PeerProcess.start(join(world, 'peer'));
  config = writeConfig(world, { peer: peer.section(), status: { listen: '127.0.0.1:0' } });
});

async function run(): Promise<{ daemon: Running; url: string }> {
  const daemon = new Running(['run', '-c', config]);
  await daemon.says(/status page at http:/);
  return { daemon, url: /status page at (http:\S+\/)/.exec(daemon.stdout)?.[1] ?? '' };
}

function at(url: string): <T>(path: string) => Promise<T> {
  return async (path) => (await (await fetch(new URL(path, url))).json()) as never;
}

describe('the page of a running daemon', () => {
  it('follows a file from the folder to search, and knows what the commands know', async () => {
    const { url } = await run();
    const get = at(url);
    writeFileSync(join(world, 'inbox/a.md'), 'Gulls sleep on one leg.');
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
    const families = readExposition(await (await fetch(new URL('/metrics', url))).text(), 'prometheus');
    expect(families.get('peersync_items_confirmed_total')?.samples[0]?.value).toBe(1);
    expect(families.get('peersync_push_bytes_total')?.samples[0]?.value).toBeGreaterThan(23);
    expect(families.get('peersync_state_sync_seconds')?.samples.at(-1)?.value).toBeGreaterThan(0);
    const count = families
      .get('peersync_time_to_search_seconds')
      ?.samples.find(({ name }) => name === 'peersync_time_to_search_seconds_count');
    expect(count).toMatchObject({ value: 1, labels: new Map([['collection', 'inbox']]) });
  });

  it('is ready while the peer is there, and the folder', async () => {
    const { url } = await run();
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
    peer = await PeerProcess.start(join(world, 'peer'), { port: Number(new URL(peer.url).port) });
    await until(async () => (await ready()) === '200 ', 'it is ready again');
    rmSync(join(world, 'inbox'), { recursive: true });
    await until(async () => (await ready()) === '503 FOLDER_HELD', 'the folder is missed');
  });

  it('follows a reload: who has no token is shut out from then on', async () => {
    const { daemon, url } = await run();
    const port = Number(new URL(url).port);
    const status = async (headers: Record<string, string> = {}) =>
      (await fetch(new URL('/api/status', url), { headers }).catch(() => undefined))?.status;
    expect(await status()).toBe(200);
    writeFileSync(join(world, 'token'), 'open sesame\n', { mode: 0o600 });
    const token = { file: join(world, 'token') };
    writeConfig(world, { peer: peer.section(), status: { listen: `127.0.0.1:${port}`, token } });
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
    const second = writeConfig(other, { peer: peer.section(), status: { listen: new URL(url).host } });
    const daemon = new Running(['run', '-c', second]);
    await daemon.says(/The status page cannot be opened: 127\.0\.0\.1:\d+ is in use\./);
    writeFileSync(join(other, 'inbox/b.md'), 'b');
    await daemon.says('confirmed inbox/b.md');
    expect(await daemon.kill('SIGTERM')).toMatchObject({ code: 0 });
  });
});
