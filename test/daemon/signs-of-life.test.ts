import { expect, it } from 'vitest';
import type { Daemon } from '../../src/daemon/daemon.js';
import { createNotifier } from '../../src/daemon/systemd-notifier.js';
import { giveSigns } from '../../src/daemon/watchdog.js';
import { silentLogger } from '../../src/lib/logger.js';
import { report } from '../commands/report.js';
import { FakeClock } from '../support/fake-clock.js';

const items = { pending: 0, accepted: 0, confirmed: 1, quarantined: 0, gone: 0 };
const at = (time: string): number => new Date(`2026-11-21T${time}`).getTime();

it('tells systemd how the daemon stands, with the last confirmation and a configuration that was refused', () => {
  const told: string[] = [];
  const figures = { timeToSearch: [], confirmedPerSecond: 0, alerts: [], lastConfirmedAt: at('10:04:12') };
  let status = report({ items, figures });
  const daemon = { status: () => status } as unknown as Daemon;
  const notifier = createNotifier({}, { log: silentLogger });
  notifier.status = (sentence) => void told.push(sentence);
  const calm = '1 document confirmed, nothing waiting, last confirmation 2026-11-21 10:04:12';
  giveSigns(daemon, notifier, { clock: new FakeClock(), log: silentLogger })();
  const refused = { code: 'X', message: 'It is wrong.', hint: 'Mend it.', at: at('10:05:00') };
  status = report({ items, figures, configuration: { takenUpAt: 0, refused } });
  giveSigns(daemon, notifier, { clock: new FakeClock(), log: silentLogger })();
  expect(told).toEqual([
    calm,
    `${calm}; The changed configuration was refused, and the one before holds: It is wrong (since 2026-11-21 10:05:00)`,
  ]);
});

it('lets the daemon know what stands still, for those who ask it, also without systemd', async () => {
  const clock = new FakeClock();
  let neglect: string | undefined;
  const daemon = {
    status: () => report({ items }),
    duties: () => [{ name: 'work', moves: () => 0, neglects: () => neglect }],
    disks: () => [],
    stuck: () => [],
  } as unknown as Daemon;
  const end = giveSigns(daemon, createNotifier({}, { log: silentLogger }), { clock, log: silentLogger });
  await clock.advance(300_000);
  expect(daemon.stuck()).toEqual([]);
  neglect = 'what is due is not done';
  await clock.advance(300_000);
  expect(daemon.stuck()).toMatchObject([{ name: 'work', what: 'what is due is not done' }]);
  end();
});
