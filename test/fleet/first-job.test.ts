import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { NO_PROGRAMS } from '../../src/content/helpers/programs.js';
import { FleetOwner } from '../../src/fleet/owner.js';
import { FleetWorker } from '../../src/fleet/worker.js';
import { silentLogger } from '../../src/lib/logger.js';
import { pack, STALE } from '../../src/uplink/documents.js';
import { afterwards } from '../support/afterwards.js';
import { hasRedis } from '../support/redis-server.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { BeatClock, configWith, fleetAt, startRedis } from './fleet.js';

describe.skipIf(!hasRedis)('a worker that starts, or stops', () => {
  it.each([
    ['documents and batches', ['extract', 'push']],
    ['documents', ['extract']],
    ['batches', ['push']],
  ] as const)('is known to an owner that shares %s before its next beat', async (_, share) => {
    const server = await startRedis();
    const folder = join(temporaryDirectory(), 'inbox');
    mkdirSync(folder);
    writeFileSync(join(folder, 'a.txt'), 'a');
    const fleet = { ...fleetAt(server.url), share: [...share] };
    const config = await configWith(fleet, folder);
    // Neither clock goes on: the first beat is the only one.
    const owner = await FleetOwner.open(fleet, '/state', {
      clock: new BeatClock(),
      log: silentLogger,
      folders: () => config.folders,
      programs: { current: NO_PROGRAMS },
      peerUrl: config.peer.url,
      onChange: () => {},
    });
    afterwards('test', () => owner.close());
    owner.start();
    await owner.refresh();
    const worker = await FleetWorker.open({
      config,
      clock: new BeatClock(),
      log: silentLogger,
      programs: { current: NO_PROGRAMS, refresh: async () => {}, isCurrent: async () => true },
      readers: {
        extractDocument: async () => STALE,
        restart: async () => {},
        close: async () => {},
      },
      pack: async (order) => pack(order),
      peerOf: () => Promise.reject(new Error('no peer is needed')),
      slots: 3,
    });
    afterwards('test', () => worker.stop());
    worker.start();
    const shares = (name: string) => share.some((each) => each === name);
    await until(
      () => owner.slots > 0 === shares('extract') && owner.pushSlots > 0 === shares('push'),
      'the owner counts on the worker',
    );
    expect(owner.slots).toBe(shares('extract') ? 3 : 0);
    void worker.stop();
    await until(() => owner.slots + owner.pushSlots === 0, 'the owner counts on it no more');
  });
});
