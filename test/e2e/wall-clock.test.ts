import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Site } from '../support/site.js';
import { until } from '../support/wait.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const HOOK = `--import=file://${resolve(import.meta.dirname, '../support/wall-clock.mjs')}`;

/** A daemon whose wall clock the returned function sets, in ms ahead of the true time. */
async function siteWithClock(aheadMs = 0) {
  const site = await Site.begin({
    folders: [{ name: 'inbox', onDelete: 'remove' }],
    // At this rate each request waits for the one before.
    push: { requestsPerSecond: 20 },
    confirm: { requestsPerSecond: 20 },
  });
  const file = join(site.directory, 'wall-clock');
  const set = (ms: number) => writeFileSync(file, String(ms));
  set(aheadMs);
  site.daemonEnv = { NODE_OPTIONS: HOOK, WALL_CLOCK: file };
  return { site, set };
}

it('files are found, pushed, confirmed and removed at any change of the wall clock', async () => {
  const { site, set } = await siteWithClock();
  site.drop('inbox/first.txt');
  await site.start();
  await site.confirmed('inbox/first.txt');
  const aheadMs = async () => (await site.status()).wallAheadMs ?? 0;
  for (const [i, ms] of [-DAY, DAY, -HOUR, HOUR, 0].entries()) {
    set(ms);
    await until(
      async () => Math.abs((await aheadMs()) - ms) < 5_000,
      `the clock is set by ${ms} ms`,
    );
    const files = Array.from({ length: 5 }, (_, n) => `inbox/${i}-${n}.txt`);
    for (const file of files) site.drop(file);
    await site.confirmed(...files);
    rmSync(site.path(`inbox/${i}-0.txt`));
    await site.becomes(`inbox/${i}-0.txt`, 'removed');
  }
  await site.stop();
});

it('scans, mirrors, outages and pauses keep their times at any change of the wall clock, even in small steps', async () => {
  const { site, set } = await siteWithClock();
  site.configure({
    folders: [{ name: 'inbox', onDelete: 'remove' }],
    // Nothing but the timer of scans finds a file.
    watch: { hints: false, rescan: '1s' },
    mirror: { tables: [{ table: 'clock', every: '1s' }] },
  });
  const write = async (value: string) => {
    expect(await site.run('table', 'set', 'clock', '--pk', 'k', `value=${value}`)).toMatchObject({
      code: 0,
    });
  };
  const isMirrored = (value: string) =>
    readFileSync(site.path('mirror/tables/clock.csv'), 'utf8').includes(value);
  await write('before');
  await site.start();
  await until(() => existsSync(site.path('mirror/tables/clock.csv')), 'the table is mirrored');

  let ahead = 0;
  const steps = Array.from({ length: 20 }, () => 500);
  for (const [i, jumps] of [[-DAY], [DAY], steps.map((ms) => -ms), steps].entries()) {
    await site.proxy.goDown();
    site.drop(`inbox/${i}.txt`);
    await until(async () => (await site.status()).items.pending > 0, 'a scan found the file');
    for (const jump of jumps) {
      ahead += jump;
      set(ahead);
      await sleep(30);
    }
    await site.proxy.comeUp();
    await site.confirmed(`inbox/${i}.txt`);
    await write(`value${i}`);
    await until(() => isMirrored(`value${i}`), 'the table is mirrored anew');

    expect(await site.run('pause', '--for', '2s')).toMatchObject({ code: 0 });
    set(ahead - HOUR);
    await until(
      async () => (await site.status()).paused === undefined,
      'the pause is over',
      30_000,
    );
    ahead -= HOUR;
  }
  expect(site.daemon.stdout).not.toContain('does not go on');
  await site.stop();
});

it('a restart with a wall clock that was set back a day continues the work, and ends a pause in its time', async () => {
  const { site, set } = await siteWithClock(DAY);
  site.drop('inbox/stays.txt');
  site.drop('inbox/goes.txt');
  await site.start();
  await site.confirmed('inbox/stays.txt', 'inbox/goes.txt');
  expect(await site.run('pause', '--for', '1h')).toMatchObject({ code: 0 });
  site.drop('inbox/waits.txt');
  rmSync(site.path('inbox/goes.txt'));
  await site.becomes('inbox/waits.txt', 'pending');
  await site.becomes('inbox/goes.txt', 'removing');
  await site.daemon.kill('SIGKILL');
  set(0);
  await site.start();
  const { paused } = await site.status();
  expect((paused?.until ?? 0) - Date.now()).toBeLessThanOrEqual(HOUR);
  expect(await site.run('resume')).toMatchObject({ code: 0 });
  await site.confirmed('inbox/waits.txt');
  await site.becomes('inbox/goes.txt', 'removed');
});
