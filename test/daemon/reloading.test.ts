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

/** Lets everything happen that nothing holds. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 20));

/**
 * A reloading that reads `load`, once `loaded` resolves, and changes things, once `kept` resolves.
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
  const does =
    (what: string, held = async () => {}) =>
    async () => {
      await held();
      did.push(what);
    };
  const parts = {
    client: { authenticate: () => false, trust: () => false },
    queue: { limit: () => {}, tryNow: () => {} },
    watcher: { watch: () => did.push('watch') },
    housekeeping: { keep: does('keep', () => holds.kept), stop: does('no more keeping') },
    mirrors: { configure: does('configure') },
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
  return { clock, current, did, holds, reloading, refused };
}

/** Begins a reload that `hold` holds, stops meanwhile, and lets go. */
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
  it('says how the daemon stands to the file: taken up, or refused with the reason', async () => {
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

  it('is waited for by a stop where it changes something, to the end', async () => {
    const world = await setUp();
    const report = await stopDuring(world, 'kept');
    expect(world.did).toEqual(['load', 'watch', 'no more keeping', 'keep', 'configure', 'commit']);
    expect(report).toMatchObject({ changes: ['folder "notes" (/srv/notes): added'] });
    expect(world.current.config).toEqual(world.holds.load);
  });

  it('changes nothing where it still reads when the daemon stops', async () => {
    const world = await setUp();
    const before = world.current.config;
    expect(await stopDuring(world, 'loaded')).toMatchObject(world.refused);
    expect(world.did).toEqual(['load', 'no more keeping']);
    expect(world.current.config).toBe(before);
  });
});
