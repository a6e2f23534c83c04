import { describe, expect, it } from 'vitest';
import { Shutdown } from '../../src/daemon/parts.js';
import { silentLogger } from '../../src/lib/logger.js';
import { FakeClock } from '../support/fake-clock.js';

function setting() {
  const clock = new FakeClock();
  const ended: string[] = [];
  const shutdown = new Shutdown(clock, silentLogger);
  const add = (name: string, work: () => Promise<void> | void = () => {}) =>
    shutdown.add(name, async () => {
      await work();
      ended.push(name);
    });
  return { clock, ended, shutdown, add };
}
const never = () => new Promise<void>(() => {});

describe('a stop', () => {
  it('ends what was begun last first, also where some of it fails', async () => {
    const { add, clock, ended, shutdown } = setting();
    add('lock');
    add('state', () => Promise.reject(new Error('no')));
    add('page');
    await expect(shutdown.all()).rejects.toThrow('no');
    expect(ended).toEqual(['page', 'lock']);
    expect(clock.waiting).toBe(0);
  });

  it('waits for what takes long', async () => {
    const { add, clock, ended, shutdown } = setting();
    add('lock');
    add('state', () => clock.sleep(13_000));
    const all = shutdown.all();
    await clock.advance(14_000);
    await all;
    expect(ended).toEqual(['state', 'lock']);
  });

  it.each([
    [false, 20_000],
    [true, 3_000],
  ])(
    'gives up after its grace, sooner where a disk is known to hang (%s), and begins nothing more',
    async (isDiskSilent, graceMs) => {
      const { add, clock, ended, shutdown } = setting();
      let goOn = () => {};
      add('lock');
      add(
        'watcher',
        () =>
          new Promise<void>((resolve) => {
            goOn = resolve;
          }),
      );
      add('page');
      let failure: unknown;
      const all = shutdown.all(isDiskSilent).catch((error: unknown) => {
        failure = error;
      });
      await clock.advance(graceMs - 1);
      expect(failure).toBeUndefined();
      await clock.advance(1);
      await all;
      expect(failure).toMatchObject({
        code: 'STOP_GAVE_UP',
        message: 'Stopped without waiting any longer for the watcher.',
      });
      goOn();
      await clock.advance(1_000);
      expect(ended).toEqual(['page', 'watcher']);
    },
  );

  it('says what it waited for, and not what failed before', async () => {
    const { add, clock, shutdown } = setting();
    add('state', never);
    add('page', () => Promise.reject(new Error('no')));
    const all = expect(shutdown.all()).rejects.toMatchObject({ code: 'STOP_GAVE_UP' });
    await clock.advance(20_000);
    await all;
  });
});
