import { writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { ItemsPage } from '../../src/page/api.js';
import type { StatusReport } from '../../src/report/status-report.js';
import { Site } from '../support/site.js';
import { until } from '../support/wait.js';

/** A daemon with a page. */
async function withPage() {
  const site = await Site.begin({ status: { listen: '127.0.0.1:0' } });
  const daemon = site.spawn();
  await daemon.says(/status page at http:/);
  const url = /status page at (http:\S+\/)/.exec(daemon.stdout)?.[1] ?? '';
  const get = async <T>(path: string) => (await (await fetch(new URL(path, url))).json()) as T;
  return { site, url, get };
}

it('the page shows a file on its way from the folder to search, as the commands do', async () => {
  const { site, url, get } = await withPage();
  site.drop('inbox/a.md', 'Gulls sleep on one leg.');
  const icon = await fetch(new URL('favicon.ico', url));
  expect(icon.headers.get('content-type')).toContain('image/svg+xml');
  const confirmed = async () => (await get<StatusReport>('/api/status')).items.confirmed;
  await until(async () => (await confirmed()) === 1, 'it is confirmed');
  const { items } = await get<ItemsPage>('/api/items?status=confirmed');
  expect(items).toMatchObject([{ file: site.path('inbox/a.md'), status: 'confirmed' }]);
  expect(await get('/api/why?path=inbox/a.md')).toMatchObject({ status: 'confirmed' });
  expect([await get('/api/why?path=inbox/a.md')]).toEqual(
    (await site.json('why', 'inbox/a.md')).lines,
  );
  const metrics = await (await fetch(new URL('/metrics', url))).text();
  const series = (name: string) =>
    Number(new RegExp(`^peersync_${name} (.*)$`, 'm').exec(metrics)?.[1]);
  expect(series('items_confirmed_total')).toBe(1);
  expect(series('push_bytes_total')).toBeGreaterThan(23);
  expect(series('state_sync_seconds_count')).toBeGreaterThan(0);
  expect(series('time_to_search_seconds_count\\{collection="inbox"\\}')).toBe(1);
});

it('the page needs a token from the reload on that sets one', async () => {
  const { site, url } = await withPage();
  const status = async (headers: Record<string, string> = {}) =>
    (await fetch(new URL('/api/status', url), { headers }).catch(() => undefined))?.status;
  expect(await status()).toBe(200);
  const file = site.path('token');
  writeFileSync(file, 'open sesame\n', { mode: 0o600 });
  site.configure({ status: { listen: new URL(url).host, token: { file } } });
  site.daemon.child.kill('SIGHUP');
  await until(async () => (await status()) === 401, 'the token is asked for');
  expect(await status({ authorization: 'Bearer open sesame' })).toBe(200);
});

it('a page whose port is in use does not stop the daemon', async () => {
  const { url } = await withPage();
  const site = await Site.begin({ status: { listen: new URL(url).host } });
  const daemon = site.spawn();
  await daemon.says(/The status page cannot be opened: 127\.0\.0\.1:\d+ is in use\./);
  site.drop('inbox/b.md');
  await daemon.says('confirmed inbox/b.md');
  await site.stop();
});
