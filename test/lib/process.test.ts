import { expect, it, vi } from 'vitest';
import { collectGarbageAtRest } from '../../src/lib/process.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';

it('garbage is collected after much work, without a warning, and living objects stay', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on('warning', onWarning);
  const collections = vi.fn();
  const registry = new FinalizationRegistry(collections);
  const alive = { name: 'alive' };
  registry.register(alive, 0);
  for (let i = 0; i < 100; i += 1) registry.register({ i }, 0);
  let workedMs = 0;
  const usage = vi
    .spyOn(process, 'cpuUsage')
    .mockImplementation(() => ({ user: workedMs * 1_000, system: 0 }));
  const clock = new FakeClock();
  const timer = collectGarbageAtRest(clock);
  workedMs = 9_000;
  await clock.advance(10_000);
  expect(collections).not.toHaveBeenCalled();
  workedMs = 20;
  await clock.advance(10_000);
  await until(() => collections.mock.calls.length >= 90, 'it is collected');
  expect(collections.mock.calls.length).toBeLessThanOrEqual(100);
  expect(alive.name).toBe('alive');
  timer.cancel();
  expect(clock.waiting).toBe(0);
  usage.mockRestore();
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
});
