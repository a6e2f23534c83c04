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

/** A promise that somebody else fulfils. */
function held<T>() {
  let release: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => {
    release = resolve;
  });
  return { promise, release };
}

/** Lets everything happen that nothing holds. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 20));

interface Held {
  readonly load?: Promise<Config>;
  readonly keep?: Promise<void>;
}

async function world(holds: Held) {
  const clock = new FakeClock(1_000);
  const did: string[] = [];
  const failures: unknown[] = [];
  const current = { config: await configOf('inbox'), restart: [], report: { takenUpAt: 500 } };
  const wanted = await configOf('inbox', 'notes');
  const does = (what: string) => async () => void did.push(what);
  const parts = {
    client: { authenticate: () => false, trust: () => false },
    queue: { limit: () => {}, tryNow: () => {} },
    watcher: { watch: () => did.push('watch') },
    housekeeping: {
      keep: async () => {
        await holds.keep;
        did.push('keep');
      },
      stop: does('no more keeping'),
    },
    mirrors: { configure: does('configure') },
    audit: { start: () => {}, stop: does('audit') },
    state: { commit: does('commit') },
  } as unknown as Parts;
  const reloading = new Reloading({
    ...{ current, parts, clock, log: silentLogger, onReload: () => {} },
    load: async () => {
      did.push('load');
      return (await holds.load) ?? wanted;
    },
    onFailure: (error) => failures.push(error),
  });
  const stop = () => {
    let isOver = false;
    const over = reloading.stop().then(() => {
      isOver = true;
    });
    return { over, isOver: () => isOver };
  };
  return { clock, current, did, failures, reloading, stop, wanted };
}

describe('how a daemon stands to the file of its configuration', () => {
  it('is as after the last reload: refused with the reason, or taken up', async () => {
    const problems = 'c.json has 2 problems:\n  push: one\n  watch: two';
    const wrong = new PeersyncError({ code: 'CONFIG_INVALID', message: problems, hint: 'Mend it.' });
    const holds: { load?: Promise<Config> } = {};
    const { clock, current, reloading, stop } = await world(holds);
    expect(current).toMatchObject({ report: { takenUpAt: 500 } });
    await reloading.reload();
    expect(current).toMatchObject({ report: { takenUpAt: 1_000 } });
    clock.skip(1_000);
    holds.load = Promise.reject(wrong);
    await expect(reloading.reload()).rejects.toBe(wrong);
    const message = 'c.json has 2 problems: push: one; watch: two';
    const refused = { code: 'CONFIG_INVALID', message, hint: 'Mend it.', at: 2_000 };
    expect(current.report).toEqual({ takenUpAt: 1_000, refused });
    clock.skip(1_000);
    delete holds.load;
    await reloading.reload();
    expect(current.report).toEqual({ takenUpAt: 3_000 });
    await stop().over;
    await expect(reloading.reload()).rejects.toMatchObject({ code: 'STOPPING' });
    expect(current.report).toEqual({ takenUpAt: 3_000 });
  });
});

describe('a reload while the daemon stops', () => {
  it('is waited for where it changes something, to the end', async () => {
    const keep = held<void>();
    const { current, did, failures, reloading, stop, wanted } = await world({ keep: keep.promise });
    const reload = reloading.reload();
    await settle();
    const { over, isOver } = stop();
    await settle();
    expect(isOver()).toBe(false);
    keep.release();
    await over;
    expect(did).toEqual(['load', 'watch', 'no more keeping', 'keep', 'configure', 'commit']);
    expect((await reload).changes).toEqual(['folder notes (/srv/notes): added']);
    expect(current.config).toEqual(wanted);
    expect(failures).toEqual([]);
  });

  it('changes nothing where it still reads, nor does one after it', async () => {
    const load = held<Config>();
    const { current, did, failures, reloading, stop, wanted } = await world({ load: load.promise });
    const before = current.config;
    const reload = reloading.reload().catch((error: unknown) => error);
    await settle();
    const { over, isOver } = stop();
    await settle();
    expect(isOver()).toBe(false);
    load.release(wanted);
    await over;
    expect(await reload).toMatchObject({ code: 'STOPPING' });
    await expect(reloading.reload()).rejects.toMatchObject({ code: 'STOPPING' });
    expect(did).toEqual(['load', 'no more keeping']);
    expect(current.config).toBe(before);
    expect(failures).toEqual([]);
  });
});
