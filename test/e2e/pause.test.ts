import { renameSync, rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import { answering, when } from '../support/scripted-peer.js';
import { Site } from '../support/site.js';
import { until } from '../support/wait.js';

it('a paused daemon sends nothing, continues to read files, stays paused after a kill, and continues after resume', async () => {
  const site = await Site.begin({ mirror: { citations: [{ folder: 'inbox' }] } });
  site.drop('inbox/before.txt');
  await site.start();
  await site.confirmed('inbox/before.txt');
  const paused = await site.run('pause');
  expect(paused).toMatchObject({ code: 0, stderr: '' });
  expect(paused.stdout).toMatch(
    /^Paused until `peersync resume[^`]*`: nothing is sent to the peer/,
  );
  // Requests of a person are answered. No mirror runs.
  expect(await site.run('verify')).toMatchObject({ code: 0 });
  const mirror = await site.run('mirror');
  expect(mirror).toMatchObject({ code: 1, stderr: expect.stringContaining('peersync is paused') });
  const asked = site.proxy.requests.length;
  site.drop('inbox/after.txt');
  await site.becomes('inbox/after.txt', 'pending');
  expect((await site.why('inbox/after.txt')).next).toContain('peersync is paused');
  expect((await site.run('status')).stdout).toMatch(
    /^paused +since .*`peersync resume[^`]*` ends it$/m,
  );
  // Not gently: the pause was on disk when it was answered.
  await site.daemon.kill('SIGKILL');
  await site.start();
  await until(
    async () => (await site.status()).folders[0]?.watch?.state === 'watching',
    'it watches',
  );
  expect((await site.status()).paused).toBeDefined();
  site.drop('inbox/later.txt');
  await site.becomes('inbox/later.txt', 'pending');
  expect(site.proxy.requests.slice(asked)).toEqual([]);
  const resumed = await site.run('resume');
  expect(resumed).toMatchObject({ code: 0, stdout: 'Resumed: the work with the peer goes on.\n' });
  await site.confirmed('inbox/after.txt', 'inbox/later.txt');
  expect((await site.status()).paused).toBeUndefined();
  expect((await site.run('resume')).stdout).toBe('It was not paused.\n');
});

it('a pause may begin before a daemon runs, and `once` reports it instead of waiting', async () => {
  const site = await Site.begin();
  site.drop('inbox/a.txt');
  const begun = await site.run('pause', '--for', '1h');
  expect(begun).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^Paused until .*\. No daemon runs now: the next `peersync run[^`]*` or `peersync once[^`]*` reads what changes/,
    ),
  });
  expect((await site.run('status')).stdout).toMatch(/^paused +since .*the next run begins so/m);
  const paused = await site.run('once');
  expect(paused.code).toBe(1);
  expect(paused.stderr).toMatch(/peersync is paused for another (1h|5\dm( \d+s)?); 1 item waits\./);
  expect(site.proxy.pushes).toEqual([]);
  const without =
    /No daemon runs now: `peersync run[^`]*` or `peersync once[^`]*` does what waits\.\n$/;
  const resumed = (await site.run('resume')).stdout;
  expect(resumed).toMatch(/^The pause is over\. /);
  expect(resumed).toMatch(without);
  expect((await site.run('resume')).stdout).toMatch(/^It was not paused\. /);
  expect(await site.run('once')).toMatchObject({ code: 0 });
});

const SHELF = { folders: [{ name: 'shelf' }, { name: 'inbox' }] };

it('pending files of a missing folder are pushed when the folder is back after a restart or at another path', async () => {
  const site = await Site.begin(SHELF);
  site.drop('inbox/first.txt');
  await site.start();
  const isHeld = async () =>
    (await site.status()).folders.some(({ watch }) => watch?.state === 'held');
  /** A file that waits in the folder when that goes away, while others go on. */
  const waits = async (file: string, other: string) => {
    await site.ask('pause');
    site.drop(`shelf/${file}`);
    await site.becomes(`shelf/${file}`, 'pending');
    renameSync(site.path('shelf'), site.path('away'));
    await until(isHeld, 'its folder is held');
    await site.ask('resume');
    site.drop(`inbox/${other}`);
    await site.confirmed(`inbox/${other}`);
    expect((await site.status()).items.pending).toBe(1);
  };

  await waits('restart.txt', 'third.txt');
  await site.stop();
  await site.start();
  site.drop('inbox/fourth.txt');
  await site.confirmed('inbox/fourth.txt');
  expect((await site.status()).items.pending).toBe(1);
  renameSync(site.path('away'), site.path('shelf'));
  await site.confirmed('shelf/restart.txt');

  await waits('path.txt', 'fifth.txt');
  site.configure({ folders: [{ name: 'shelf', path: site.path('away') }, { name: 'inbox' }] });
  await site.hangUp();
  await site.confirmed('away/path.txt');
  const times = (file: string) => site.collectionsOf(`shelf/${file}`).length;
  expect(['restart.txt', 'path.txt'].map(times)).toEqual([1, 1]);
  await site.stop();
});

it('once ends if all pending files are in a missing folder, and reports the folder, the number and a hint', async () => {
  const site = await Site.begin(SHELF);
  const [shelf, away] = [site.path('shelf'), site.path('away')];
  const once = async () => {
    const { code, lines, stderr } = await site.json<{ items: object }>('once', '--timeout', '2m');
    const error =
      code === 0 ? undefined : JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '').error;
    return { code, items: lines[0]?.items, error };
  };
  for (const name of ['shelf/a.md', 'shelf/b.md', 'shelf/c.md', 'inbox/plan.md']) site.drop(name);
  await site.run('pause');
  expect(await once()).toMatchObject({ error: { code: 'PAUSED' } });
  await site.run('resume');
  renameSync(shelf, away);
  const result = await once();
  const items = { confirmed: 1, pending: 3 };
  expect(result).toMatchObject({ code: 1, items, error: { code: 'FOLDER_HELD' } });
  expect(result.error.message).toContain(
    `The folder "shelf" was left out: The folder ${shelf} is not there`,
  );
  expect(result.error.message).toContain('3 files of it wait to be pushed.');
  expect(result.error.hint).toContain('then run again');
  renameSync(away, shelf);
  expect(await once()).toMatchObject({ code: 0, items: { confirmed: 4, pending: 0 } });
  renameSync(shelf, away);
  const without = await once();
  expect(without).toMatchObject({
    code: 1,
    items: { confirmed: 4 },
    error: { code: 'FOLDER_HELD' },
  });
  expect(without.error.message).not.toContain('to be pushed');
});

it('once ends if one folder is missing and the peer refuses to remove a document of another', async () => {
  const site = await Site.begin(SHELF);
  site.configure({ folders: [{ name: 'shelf' }, { name: 'inbox', onDelete: 'remove' }] });
  const once = () => site.run('once', '--timeout', '20s');
  for (const name of ['inbox/a.md', 'inbox/b.md']) site.drop(name);
  expect((await once()).code).toBe(0);
  site.drop('shelf/c.md');
  await site.run('pause');
  expect((await once()).code).toBe(1);
  await site.run('resume');
  renameSync(site.path('shelf'), site.path('away'));
  rmSync(site.path('inbox/a.md'));
  const refusal = answering(200, '{"items":[{"item":"0","success":"false","message":"not mine"}]}');
  site.proxy.behaviour = when(({ path }) => path === '/api/remove_p.html', refusal);
  const { code, stderr } = await once();
  expect(code).toBe(1);
  expect(stderr).toContain('The folder "shelf" was left out');
  expect(stderr).toContain('not mine');
});
