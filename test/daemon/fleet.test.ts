import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/load.js';
import { NO_PROGRAMS } from '../../src/content/helpers/programs.js';
import { openFleet } from '../../src/daemon/fleet.js';
import type { OpenDeps } from '../../src/daemon/options.js';
import type { Parts } from '../../src/daemon/parts.js';
import { Reloading } from '../../src/daemon/reloading.js';
import { Shutdown } from '../../src/daemon/shutdown.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { DocumentOrder, Extracted } from '../../src/uplink/documents.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';

const configOf = async (concurrency: number, fleet: object = {}) =>
  await checkConfig(
    {
      folders: [{ path: '/srv/inbox', collection: 'inbox' }],
      peer: { url: 'http://127.0.0.1:1' },
      documents: { concurrency },
      fleet: { redis: 'unix:///nowhere/redis.sock', share: ['extract', 'push'], ...fleet },
    },
    '/etc/peersync/config.json',
  );

/** The fleet of a daemon that reads one document at a time, and whose Redis is away. */
async function setUp() {
  const clock = new FakeClock();
  const shutdown = new Shutdown(clock, silentLogger);
  const current = { config: await configOf(1), restart: [], report: { takenUpAt: 0 } };
  const readHere: string[] = [];
  const deps = { clock, current, log: silentLogger, shutdown } as unknown as OpenDeps;
  const fleet = await openFleet(deps, {
    programs: { current: NO_PROGRAMS },
    here: async ({ file }) => {
      readHere.push(file);
      return await new Promise<Extracted>(() => {});
    },
    onChange: () => {},
    onLate: () => {},
  });
  if (fleet?.readers === undefined) throw new Error('there is no fleet');
  afterwards('test', () => fleet.owner.close());
  afterwards('test', () => fleet.sender?.close());
  return { clock, current, fleet, readers: fleet.readers, readHere };
}

describe('the fleet of a daemon', () => {
  it('does nothing until the daemon starts it, when its callbacks are there', async () => {
    const { clock, fleet } = await setUp();
    expect(clock.waiting).toBe(0);
    expect(fleet.owner.onBeat).toBeDefined();
    expect(fleet.owner.afterBeat).toBeDefined();
    fleet.owner.start();
    // The first look at Redis, and the time limit for it.
    expect(clock.waiting).toBe(2);
  });

  it('reads more documents here after a reload that allows it, and leaves `fleet` to a restart', async () => {
    const { clock, current, fleet, readers, readHere } = await setUp();
    const read = (file: string) =>
      void readers.extractDocument({ file, rules: {} } as unknown as DocumentOrder);
    await fleet.owner.refresh();
    for (const file of ['a', 'b', 'c']) read(file);
    await clock.advance(0);
    expect(readHere).toEqual(['a']);
    const does = async () => {};
    const parts = {
      fleet,
      client: { allowBasic: does, authenticate: () => false, trust: () => false },
      queue: { limit: does },
      uplink: { configured: does },
      watcher: { configure: does },
      housekeeping: { configure: does },
      mirrors: { configure: does },
      programs: { refresh: does },
      state: { commit: does },
    } as unknown as Parts;
    const reloading = new Reloading({
      clock,
      current,
      parts,
      log: silentLogger,
      load: async () => await configOf(2, { concurrency: 8 }),
      onReload: () => {},
      onFailure: (error) => {
        throw error;
      },
    });
    const { restart } = await reloading.reload();
    await clock.advance(0);
    expect(readHere).toEqual(['a', 'b']);
    expect(restart).toEqual(['fleet.concurrency']);
  });
});
