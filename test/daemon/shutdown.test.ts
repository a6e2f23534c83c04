import { describe, expect, it } from 'vitest';
import { isLeft, ShutdownSteps } from '../../src/daemon/shutdown.js';
import { silentLogger } from '../../src/lib/logger.js';
import { FakeClock } from '../support/fake-clock.js';

/** What is undone, in turn, and a disk that may not answer. */
function setting() {
  const clock = new FakeClock();
  const ended: string[] = [];
  const said: string[] = [];
  const disk = { silent: undefined as string | undefined, asked: 0, answersMs: 0 };
  const shutdown = new ShutdownSteps({
    clock,
    log: { ...silentLogger, warn: (_, message) => void said.push(message) },
    silentDisk: async () => {
      disk.asked += 1;
      await clock.sleep(disk.answersMs);
      return disk.silent;
    },
  });
  const add = (name: string, work: () => Promise<void> | void = () => {}) =>
    shutdown.add(name, async () => {
      await work();
      ended.push(name);
    });
  return { clock, ended, said, disk, shutdown, add };
}
const never = () => new Promise<void>(() => {});

describe('a stop', () => {
  it('ends what was begun last first, also where some of it fails, and asks no disk', async () => {
    const { add, disk, ended, shutdown } = setting();
    add('lock');
    add('state', () => Promise.reject(new Error('no')));
    shutdown.addBlocking('socket', () => {
      ended.push('socket');
    });
    add('page');
    await expect(shutdown.all()).rejects.toThrow('no');
    expect(ended).toEqual(['page', 'socket', 'lock']);
    expect(disk.asked).toBe(0);
  });

  it('waits for what takes long, as long as the disks answer', async () => {
    const { add, clock, ended, shutdown } = setting();
    add('lock');
    add('state', () => clock.sleep(60_000));
    const all = shutdown.all();
    await clock.advance(59_000);
    expect(ended).toEqual([]);
    await clock.advance(2_000);
    await all;
    expect(ended).toEqual(['state', 'lock']);
  });

  it('believes no disk to be silent while what was to end ends', async () => {
    const { add, clock, disk, ended, shutdown } = setting();
    add('lock', () => clock.sleep(1_000));
    add('state', () => clock.sleep(4_000));
    disk.silent = '/srv/state';
    disk.answersMs = 5_000;
    const all = shutdown.all();
    await clock.advance(10_000);
    await all;
    expect(ended).toEqual(['state', 'lock']);
  });

  it('leaves what waits for a disk that does not answer, says so once, and ends the rest within seconds', async () => {
    const { add, clock, disk, ended, said, shutdown } = setting();
    for (const name of ['lock', 'state', 'figures']) add(name, name === 'lock' ? () => {} : never);
    shutdown.addBlocking('socket', () => {
      ended.push('socket');
    });
    add('uplink', () => clock.sleep(100));
    add('mirrors', never);
    disk.silent = '/srv/mirror';
    let failure: unknown;
    const all = shutdown.all().catch((error: unknown) => {
      failure = error;
    });
    await clock.advance(5_000);
    await all;
    expect(ended).toEqual(['uplink', 'lock']);
    expect(said).toEqual([
      expect.stringMatching(/^the mirrors cannot be stopped: the disk of \/srv\/mirror/),
    ]);
    expect(failure).toMatchObject({
      message: expect.stringMatching(/left as it is: mirrors, socket, figures, state/),
    });
    expect([isLeft(failure), isLeft(new AggregateError([failure])), isLeft(new Error('no'))]).toEqual([
      true,
      true,
      false,
    ]);
  });
});
