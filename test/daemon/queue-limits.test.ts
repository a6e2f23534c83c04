import { expect, it } from 'vitest';
import { checkConfig } from '../../src/config/load.js';
import { queueLimits } from '../../src/daemon/parts.js';
import type { Lane } from '../../src/queue/options.js';

async function ratesOf(config: object): Promise<Record<Lane, number>> {
  const folders = [{ path: '/srv/inbox', collection: 'inbox' }];
  const { lanes } = queueLimits(await checkConfig({ folders, ...config }, '/etc/config.json'));
  const rates = Object.entries(lanes).map(([lane, { requestsPerSecond }]) => [lane, requestsPerSecond]);
  return Object.fromEntries(rates);
}

it('a peer of somebody else is spared', async () => {
  const rates = await ratesOf({ peer: { url: 'http://peer.example:8090' } });
  expect(rates).toEqual({ interactive: 200, confirm: 200, push: 20, mirror: 20, audit: 10 });
});

it('the embedded peer takes as much as it can, and is audited in peace', async () => {
  const { audit, ...rates } = await ratesOf({ peer: { url: 'embedded' } });
  expect(new Set(Object.values(rates))).toEqual(new Set([Number.POSITIVE_INFINITY]));
  expect(audit).toBe(10);
});

it.each(['embedded', 'http://peer.example:8090'])('what is configured holds: %s', async (url) => {
  const config = {
    ...{ peer: { url }, push: { requestsPerSecond: 3 } },
    ...{ confirm: { requestsPerSecond: 5 }, mirror: { requestsPerSecond: 0.5 } },
  };
  expect(await ratesOf(config)).toEqual({ interactive: 5, confirm: 5, push: 3, mirror: 0.5, audit: 5 });
});
