import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/check.js';
import type { Config } from '../../src/config/config.js';
import { Current } from '../../src/daemon/current.js';
import { Reloading, type ReloadingParts } from '../../src/daemon/reloading.js';
import { silentLogger } from '../../src/lib/logger.js';

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
  readonly watch?: Promise<void>;
}

async function world(holds: Held) {
  const did: string[] = [];
  const failures: unknown[] = [];
  const current = new Current(await configOf('inbox'));
  const wanted = await configOf('inbox', 'notes');
  const does = (what: string) => async () => void did.push(what);
  const parts: ReloadingParts['parts'] = {
    client: { authenticate: () => false, trust: () => false },
    door: { limit: () => {}, tryNow: () => {} },
    watcher: {
      watch: async () => {
        did.push('watch');
        await holds.watch;
      },
    },
    housekeeping: { keep: does('keep'), stop: does('no more keeping') },
    mirrors: { configure: does('configure') },
    audit: { start: () => {}, stop: does('audit') },
    commit: does('commit'),
  };
  const reloading = new Reloading({
    ...{ current, parts, log: silentLogger },
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
  return { current, did, failures, reloading, stop, wanted };
}

describe('a reload while the daemon stops', () => {
  it('is waited for where it changes something, to the end', async () => {
    const watch = held<void>();
    const { current, did, failures, reloading, stop, wanted } = await world({ watch: watch.promise });
    const reload = reloading.reload();
    await settle();
    const { over, isOver } = stop();
    await settle();
    expect(isOver()).toBe(false);
    watch.release();
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
