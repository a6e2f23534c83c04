import { describe, expect, it } from 'vitest';
import type { Config } from '../../src/config/config.js';
import { checkConfig } from '../../src/config/load.js';
import type { Parts } from '../../src/daemon/parts.js';
import { Reloading } from '../../src/daemon/reloading.js';
import { PeersyncError } from '../../src/lib/errors.js';
import { silentLogger } from '../../src/lib/logger.js';
import { FakeClock } from '../support/fake-clock.js';

const configOf = (...names: readonly string[]) =>
  checkConfig(
    { folders: names.map((name) => ({ name, path: `/srv/${name}`, collection: name })) },
    '/etc/peersync/config.json',
  );

/** Lets all pending callbacks run. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 20));

/**
 * Returns a Reloading that reads `load` once `loaded` resolves, and changes the parts once `kept`
 * resolves.
 */
async function setUp() {
  const clock = new FakeClock(1_000);
  const did: string[] = [];
  const current = { config: await configOf('inbox'), restart: [], report: { takenUpAt: 500 } };
  const holds = {
    load: (await configOf('inbox', 'notes')) as Config | Error,
    loaded: Promise.resolve(),
    kept: Promise.resolve(),
  };
  /** The programs that came or went. */
  const programs: { change?: string } = {};
  const does =
    (what: string, waits = async () => {}) =>
    async () => {
      await waits();
      did.push(what);
    };
  const parts = {
    client: { authenticate: () => false, trust: () => false },
    queue: { limit: () => {}, tryNow: () => {} },
    uplink: { configured: () => {} },
    watcher: { configure: () => did.push('watch') },
    housekeeping: { configure: does('housekeeping', () => holds.kept), stop: does('stop') },
    mirrors: { configure: does('mirrors') },
    programs: {
      refresh: async () => {
        did.push('programs');
        return programs.change;
      },
    },
    audit: { start: () => {}, stop: does('audit') },
    state: { commit: does('commit') },
  } as unknown as Parts;
  const reloading = new Reloading({
    current,
    parts,
    clock,
    log: silentLogger,
    onReload: () => {},
    load: async () => {
      did.push('load');
      await holds.loaded;
      if (holds.load instanceof Error) throw holds.load;
      return holds.load;
    },
    onFailure: (error) => void did.push(`failed: ${error}`),
  });
  const refused = { code: 'STOPPING' };
  return { clock, current, did, holds, programs, reloading, refused };
}

/** Begins a reload that waits for `hold`, stops the reloading, and then resolves `hold`. */
async function stopDuring(
  { holds, reloading }: Awaited<ReturnType<typeof setUp>>,
  hold: 'loaded' | 'kept',
) {
  let release = () => {};
  holds[hold] = new Promise((resolve) => {
    release = resolve;
  });
  const reload = reloading.reload().catch((error: unknown) => error);
  await settle();
  let isOver = false;
  const over = reloading.stop().then(() => {
    isOver = true;
  });
  await settle();
  expect(isOver).toBe(false);
  release();
  await over;
  return await reload;
}

describe('a reload', () => {
  it('reports whether the file was applied, or why it was refused', async () => {
    const { clock, current, holds, reloading } = await setUp();
    await reloading.reload();
    expect(current.report).toEqual({ takenUpAt: 1_000 });
    clock.skip(1_000);
    const parts = { code: 'CONFIG_INVALID', hint: 'Mend it.' };
    holds.load = new PeersyncError({
      ...parts,
      message: 'c.json has 2 errors:\n  push: one\n  watch: two',
    });
    await expect(reloading.reload()).rejects.toBe(holds.load);
    const refused = {
      ...parts,
      message: 'c.json has 2 errors: push: one; watch: two',
      at: 2_000,
    };
    expect(current.report).toEqual({ takenUpAt: 1_000, refused });
  });

  it('that changes something is completed before the daemon stops', async () => {
    const world = await setUp();
    const report = await stopDuring(world, 'kept');
    expect(world.did).toEqual([
      'load',
      'watch',
      'stop',
      'housekeeping',
      'mirrors',
      'commit',
      'programs',
    ]);
    expect(report).toMatchObject({ changes: ['folder "notes" (/srv/notes): added'] });
    expect(world.current.config).toEqual(world.holds.load);
  });

  it('looks for programs, even if the configuration is the same', async () => {
    const world = await setUp();
    world.holds.load = world.current.config;
    world.programs.change = 'programs that read documents: found catdoc';
    expect(await world.reloading.reload()).toMatchObject({ changes: [world.programs.change] });
    expect(world.did).toEqual(['load', 'programs']);
  });

  it('that still reads when the daemon stops changes nothing', async () => {
    const world = await setUp();
    const before = world.current.config;
    expect(await stopDuring(world, 'loaded')).toMatchObject(world.refused);
    expect(world.did).toEqual(['load', 'stop']);
    expect(world.current.config).toBe(before);
  });
});
