import { expect, it } from 'vitest';
import type { Daemon } from '../../src/daemon/daemon.js';
import { giveSigns } from '../../src/daemon/signs-of-life.js';
import { createNotifier } from '../../src/daemon/systemd-notifier.js';
import { silentLogger } from '../../src/lib/logger.js';
import { FakeClock } from '../support/fake-clock.js';

const circuit = { state: 'closed', since: 0, held: [], tries: 0 };

it('tells systemd how the daemon stands, with the last confirmation and a configuration that was refused', () => {
  const told: string[] = [];
  let configuration = {};
  const daemon = {
    state: { counts: () => ({ pending: 0, accepted: 0, confirmed: 1, quarantined: 0, gone: 0, passed: 0 }) },
    live: () => ({
      queue: () => ({ circuit }),
      figures: () => ({ lastConfirmedAt: new Date('2026-11-21T10:04:12').getTime() }),
      mirrors: () => [],
      configuration: () => configuration,
    }),
  } as unknown as Daemon;
  const notifier = createNotifier({}, { log: silentLogger });
  notifier.status = (sentence) => void told.push(sentence);
  const calm = '1 document confirmed, nothing waiting, last confirmation 2026-11-21 10:04:12';
  giveSigns(daemon, notifier, { clock: new FakeClock(), log: silentLogger })();
  configuration = { refused: { at: new Date('2026-11-21T10:05:00').getTime() } };
  giveSigns(daemon, notifier, { clock: new FakeClock(), log: silentLogger })();
  expect(told).toEqual([
    calm,
    `${calm}; the changed configuration was refused 2026-11-21 10:05:00, and the one before holds`,
  ]);
});

it('lets the daemon know what stands still, for those who ask it, also without systemd', async () => {
  const clock = new FakeClock();
  let neglect: string | undefined;
  const lane = { started: 0, failed: 0, running: 0, waiting: 0 };
  const daemon = {
    state: { counts: () => ({ pending: 0, accepted: 0, confirmed: 0, quarantined: 0, gone: 0, passed: 0 }) },
    live: () => ({
      queue: () => ({
        circuit,
        concurrency: { running: 0, limit: 1, max: 1 },
        lanes: { interactive: lane, confirm: lane, push: lane, mirror: lane, audit: lane },
      }),
      figures: () => ({}),
      mirrors: () => [],
      configuration: () => ({}),
    }),
    duties: () => [{ name: 'work', moves: () => 0, neglects: () => neglect }],
    disks: () => [],
    stuck: () => undefined,
  } as unknown as Daemon;
  const end = giveSigns(daemon, createNotifier({}, { log: silentLogger }), { clock, log: silentLogger });
  await clock.advance(300_000);
  expect(daemon.stuck()).toBeUndefined();
  neglect = 'what is due is not done';
  await clock.advance(300_000);
  expect(daemon.stuck()).toMatchObject([{ name: 'work', what: 'what is due is not done' }]);
  end();
});
