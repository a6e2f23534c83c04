import { expect, it } from 'vitest';
import { collectGarbage } from '../../src/lib/process.js';
import { until } from '../support/wait.js';

it('garbage is collected without a warning, and nothing that is alive', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on('warning', onWarning);
  let collected = 0;
  const registry = new FinalizationRegistry(() => {
    collected += 1;
  });
  const alive = { name: 'alive' };
  registry.register(alive, 0);
  for (let i = 0; i < 100; i += 1) registry.register({ i }, 0);
  collectGarbage();
  await until(() => collected >= 90, 'it is collected');
  expect(collected).toBeLessThanOrEqual(100);
  expect(alive.name).toBe('alive');
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
});
