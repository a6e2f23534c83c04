import { expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { Looks } from '../../src/watch/looks.js';
import { until } from '../support/wait.js';

it('looks that are asked for by the thousand happen a few at a time, and all of them', async () => {
  let now = 0;
  let most = 0;
  const seen = new Set<string>();
  const looks = new Looks(async ({ path }) => {
    now += 1;
    most = Math.max(most, now);
    await systemClock.sleep(0);
    seen.add(path);
    now -= 1;
  }, silentLogger);
  for (let i = 0; i < 2_000; i += 1) looks.add({ folder: 'inbox', path: `${i}` });
  await until(() => seen.size >= 1_000, 'half of them');
  looks.add({ folder: 'inbox', path: 'late' });
  await until(() => seen.size === 2_001, 'all of them');
  expect(most).toBeLessThanOrEqual(16);
});

it('a look that fails is said, and keeps none from being looked at', async () => {
  const said: string[] = [];
  const seen: string[] = [];
  const looks = new Looks(
    async ({ path }) => {
      if (path === 'bad') throw new Error('no');
      seen.push(path);
    },
    { ...silentLogger, error: (_, message) => void said.push(message) },
  );
  for (const path of ['bad', 'good']) looks.add({ folder: 'inbox', path });
  await until(() => seen.length === 1, 'the good one');
  expect(said).toEqual(['inbox/bad could not be looked at: no']);
});

it('a stop forgets what waits', async () => {
  let seen = 0;
  const looks = new Looks(async () => {
    seen += 1;
    await systemClock.sleep(0);
  }, silentLogger);
  for (let i = 0; i < 1_000; i += 1) looks.add({ folder: 'inbox', path: `${i}` });
  await looks.stop();
  expect(seen).toBeLessThan(20);
});

it('what was asked for counts until it was looked at, also where that fails', async () => {
  let fail: (error: Error) => void = () => {};
  const failed = new Promise<void>((_, reject) => {
    fail = reject;
  });
  const looks = new Looks(() => failed, silentLogger);
  for (let i = 0; i < 20; i += 1) looks.add({ folder: 'inbox', path: `${i}` });
  expect([looks.size, looks.ended]).toEqual([20, 0]);
  fail(new Error('no'));
  await until(() => looks.size === 0, 'all were looked at');
  expect(looks.ended).toBe(20);
});
