import { describe, expect, it } from 'vitest';
import { status as statusRequest } from '../../src/api/status.js';
import { checkCode } from '../../src/commands/status.js';
import { shownConditions } from '../../src/page/browser/words.js';
import { valuesOf } from '../../src/page/metric-values.js';
import { readyReasons } from '../../src/report/conditions.js';
import type { FleetReport } from '../../src/report/fleet.js';
import type { Live } from '../../src/report/live.js';
import { statusReport } from '../../src/report/status.js';
import { NOW, report, statusText } from '../commands/report.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { fleetOf, workerOf } from './fleets.js';
import { setUp } from './world.js';

/** The conditions of a fleet as lines: the code, the subject, the message and the hint. */
const conditionsOf = (fleet: FleetReport) =>
  report({ fleet }).conditions.map(
    ({ code, hint, message, subject }) => `${code} ${subject}: ${message} | ${hint}`,
  );
const textOf = (fleet: FleetReport | undefined) => statusText(report({ fleet }), NOW).join('\n');

describe('a fleet that is well', () => {
  const fleet = fleetOf([workerOf('ada'), workerOf('bob', { perSecond: undefined, active: 0 })], {
    waiting: 5,
    oldestSince: NOW - 70_000,
  });

  it('has no condition, and a row for each worker in status', () => {
    expect(conditionsOf(fleet)).toEqual([]);
    const text = textOf(fleet);
    expect(text).toContain(
      '\nfleet    2 workers, 2 jobs under way, 5 waiting (the oldest for 1m 10s)\n',
    );
    expect(text).toMatch(/^worker +version +jobs +done +failed +documents\/s +last seen$/m);
    expect(text).toMatch(/^ada \(4711\) +1\.2\.3 +2 of 4 +1,204 +3 +1\.5 +2s ago$/m);
    expect(text).toMatch(/^bob \(4711\) +1\.2\.3 +0 of 4 +1,204 +3 +- +2s ago$/m);
  });

  it('is nothing that status speaks of without workers in the configuration', () => {
    expect(textOf(undefined)).not.toMatch(/fleet|worker/);
  });

  it('has metrics for the queue and for each worker', () => {
    const parts = {
      statistics: { totals: { accepted: 0, confirmed: 0, quarantined: 0 } },
      client: { requests: {}, pushedBytes: 0 },
      state: { figures: () => ({}) },
      uplink: { readTotals: { documents: 0, pages: 0, ocrPages: 0 } },
    };
    const metricsOf = (parted: FleetReport | undefined) =>
      valuesOf({
        status: () => report({ fleet: parted }),
        clock: new FakeClock(NOW),
        parts,
      } as unknown as Live);
    const values = metricsOf(fleet);
    expect(values.get('peersync_fleet_redis_up')).toEqual([[{}, 1]]);
    expect(values.get('peersync_fleet_jobs')).toEqual([
      [{ state: 'waiting' }, 5],
      [{ state: 'active' }, 2],
    ]);
    expect(values.get('peersync_fleet_oldest_waiting_seconds')).toEqual([[{}, 70]]);
    expect(values.get('peersync_fleet_workers')).toEqual([[{}, 2]]);
    const ada = { host: 'ada', worker: 'id-of-ada' };
    for (const [name, value] of [
      ['ready', 1],
      ['peer_up', 1],
      ['jobs', 2],
      ['slots', 4],
      ['done_total', 1_204],
      ['failed_total', 3],
      ['seen_seconds', 2],
    ] as const)
      expect(values.get(`peersync_worker_${name}`)).toContainEqual([ada, value]);
    const cut = metricsOf(fleetOf([workerOf('ada', { noPush: 'unreachable' })]));
    expect(cut.get('peersync_worker_peer_up')).toContainEqual([ada, 0]);
    const failure = { kind: 'owned' as const, message: '', hint: '', since: NOW };
    expect(metricsOf({ ...fleet, failure }).get('peersync_fleet_redis_up')).toEqual([[{}, 0]]);
    const none = [...metricsOf(undefined).keys()];
    expect(none.filter((name) => /fleet|worker/.test(name))).toEqual([]);
  });

  it('is in the status of its daemon, in the form that the requests promise', async () => {
    const { config, state, now } = await setUp();
    const status = { ...statusReport(config, state, undefined, now), fleet };
    expect(statusRequest.line.parse(status).fleet).toEqual(fleet);
  });
});

describe('a condition of the fleet', () => {
  it('says that Redis is loading its data, and that there is nothing to do', () => {
    const failure = {
      kind: 'loading' as const,
      message: 'Redis is loading its data; peersync waits for it.',
      hint: 'There is nothing to do.',
      since: NOW,
    };
    const fleet = fleetOf([workerOf('ada')], { redis: 'loading', failure });
    expect(conditionsOf(fleet)).toEqual([
      'FLEET_LOADING fleet: Redis is loading its data; peersync waits for it. This machine does all the work itself until workers can be used again. | There is nothing to do.',
    ]);
    expect(textOf(fleet)).toContain(
      '\nfleet    Redis is loading its data; this machine does everything',
    );
  });

  it('says that Redis is away and why, and that the work goes on', async () => {
    const since = NOW - 60_000;
    const failure = {
      kind: 'redis' as const,
      message: 'redis://10.0.0.5:6379 does not answer.',
      hint: 'See whether it runs.',
      since,
    };
    const fleet = fleetOf([workerOf('ada')], { redis: 'away', failure });
    expect(conditionsOf(fleet)).toEqual([
      'FLEET_AWAY fleet: redis://10.0.0.5:6379 does not answer. This machine does all the work itself until workers can be used again. | See whether it runs. `peersync check` looks again.',
    ]);
    expect(textOf(fleet)).toContain(
      '\nfleet    Redis does not answer; this machine does everything',
    );
    const status = report({ fleet });
    expect(status.conditions).toMatchObject([{ severity: 'warning', since }]);
    expect(await readyReasons(status, temporaryDirectory())).toEqual([]);
    expect(checkCode(status)).toBe(3);
    expect(shownConditions(status)).toMatchObject([{ level: 'warn', href: '#workers' }]);
  });

  it('names the other owner of the prefix, and nothing that it does not know', () => {
    const failure = { kind: 'owned' as const, message: 'It is taken.', hint: 'Go.', since: NOW };
    const worker = workerOf('ada', { idle: { reason: 'build' } });
    expect(conditionsOf(fleetOf([worker], { failure, noneSince: NOW }))).toEqual([
      expect.stringMatching(/^FLEET_OWNED fleet: It is taken\. This machine .*\| Go\.$/),
    ]);
  });

  it('says that no worker is there', () => {
    expect(conditionsOf(fleetOf([]))).toEqual([]);
    expect(conditionsOf(fleetOf([], { noneSince: NOW }))).toEqual([
      expect.stringMatching(/^FLEET_ALONE fleet: No worker is there.*Start `peersync worker`/),
    ]);
  });

  it('names the machine of a worker with another version, and both versions', () => {
    const worker = workerOf('ada', { build: '1.2.2 def', idle: { reason: 'build' } });
    const fleet = fleetOf([worker, workerOf('bob')]);
    expect(conditionsOf(fleet)).toEqual([
      expect.stringMatching(
        /^WORKER_VERSION ada: The worker on "ada" .* has version 1\.2\.2 def; here it is 1\.2\.3 abc\. \| Install the same/,
      ),
    ]);
    expect(textOf(fleet)).toMatch(/^ada .* has another version$/m);
    expect(shownConditions(report({ fleet }))).toMatchObject([{ about: 'ada', href: '#workers' }]);
  });

  it('names the machine of a worker and the folders that it does not see', () => {
    const seesNot = (...folders: string[]) =>
      workerOf('ada', { idle: { reason: 'folders', folders } });
    expect(conditionsOf(fleetOf([seesNot('docs')]))).toEqual([
      expect.stringMatching(
        /^WORKER_FOLDERS ada: The worker on "ada" takes no jobs, because it does not see the folder "docs"\. \| Mount it there/,
      ),
    ]);
    expect(conditionsOf(fleetOf([seesNot('a', 'b', 'c', 'd', 'e')]))[0]).toContain(
      'does not see the folders "a", "b", "c" and 2 more.',
    );
    // It has not looked yet.
    expect(conditionsOf(fleetOf([seesNot()]))).toEqual([]);
  });

  it('names the machine of a worker with other programs, and what differs', () => {
    const abilities = ['worker: catdoc 0.94', 'owner: catdoc 0.95'];
    const fleet = fleetOf([workerOf('ada', { idle: { reason: 'programs', abilities } })]);
    expect(conditionsOf(fleet)).toEqual([
      expect.stringMatching(
        /^WORKER_PROGRAMS ada: .* \(worker: catdoc 0\.94, owner: catdoc 0\.95\)\. \| Install the same versions/,
      ),
    ]);
    expect(textOf(fleet)).toMatch(/^ada .* has other programs$/m);
  });

  it('names the machine of a worker that does not push, or did not at its last attempt, why, and what to do', () => {
    const texts = (['peer', 'urls', 'denied', 'unreachable'] as const).map((noPush) => {
      const fleet = fleetOf([workerOf('ada', { noPush })]);
      const [condition] = conditionsOf(fleet);
      return `${condition} (${/^ada .* ago +(.*)$/m.exec(textOf(fleet))?.[1]})`;
    });
    expect(texts).toEqual([
      'WORKER_PEER ada: The worker on "ada" pushes nothing, because its `peer.url` is another one. | Set `peer.url` there as it is here, and start the worker again. (has another `peer.url`)',
      'WORKER_PEER ada: The worker on "ada" left out its last push, because a folder has another `url` there. | Set the `url` of each folder there as it is here, and start the worker again. (has another `url` for a folder)',
      'WORKER_PEER ada: The worker on "ada" was not let in by the peer at its last push. | See `peer.auth` there. `peersync check --worker` there says more. (was not let in by the peer)',
      'WORKER_PEER ada: The worker on "ada" did not reach the peer at its last push. | See whether the network and the firewall let it. `peersync check --worker` there says more. (did not reach the peer)',
    ]);
    // One that takes no jobs has one condition.
    const idle = workerOf('ada', { noPush: 'denied', idle: { reason: 'build' } });
    expect(conditionsOf(fleetOf([idle]))).toEqual([expect.stringMatching(/^WORKER_VERSION/)]);
    const fleet = fleetOf([workerOf('ada', { noPush: 'denied' })]);
    expect(shownConditions(report({ fleet }))).toMatchObject([{ about: 'ada', href: '#workers' }]);
  });

  it('names a worker that is gone, and counts many', () => {
    const lostOf = (...hosts: string[]) =>
      fleetOf([workerOf('here')], {
        lost: hosts.map((host) => ({ id: host, host, seenAt: NOW - 90_000 })),
      });
    expect(conditionsOf(lostOf('ada'))).toEqual([
      expect.stringMatching(/^WORKER_LOST ada: The worker on "ada" is gone; others do its jobs\./),
    ]);
    expect(textOf(lostOf('ada'))).toMatch(/^worker {3}The worker on "ada" is gone.* Since 2026/m);
    expect(conditionsOf(lostOf('a', 'b', 'c', 'd'))).toEqual([
      expect.stringMatching(/^WORKER_LOST a: 4 workers are gone, the first of them a: /),
    ]);
  });
});
