import { describe, expect, it } from 'vitest';
import { gone } from '../../src/state/transitions.js';
import { DAY, desk, expectNear, HOUR, MINUTE, SECOND } from './world.js';

describe('time-to-search', () => {
  it('counts once a version: not when a confirmed file is only touched', async () => {
    const d = await desk();
    await d.searchable(0, 'a');
    await d.clock.advance(SECOND);
    await d.touch('a', d.confirmed('a'));
    expect(d.confirmed('a').version.ctimeMs).toBe(d.clock.now());
    expect(d.row().hour.count).toBe(1);
    expect(d.figures.totals).toEqual({ accepted: 1, confirmed: 1, quarantined: 0 });
  });

  it('tells how many wait, and about since when: quarantined and removed ones do not', async () => {
    const d = await desk();
    for (const name of ['a', 'b', 'c', 'd']) {
      await d.drop(name);
      await d.clock.advance(MINUTE);
    }
    const { waiting, oldestSince = 0 } = d.row();
    expect(waiting).toBe(4);
    expect(d.clock.now() - oldestSince).toBeGreaterThan(4 * MINUTE);
    await d.accept('a');
    expect(d.row()).toMatchObject({ waiting: 4, oldestSince });
    await d.quarantine('b');
    d.state.remove('f', 'c');
    await d.state.commit();
    await d.confirm('a');
    expect(d.row().waiting).toBe(1);
    expect(d.clock.now() - (d.row().oldestSince ?? 0)).toBeLessThanOrEqual(MINUTE);
    await d.confirm('d');
    expect(d.row().waiting).toBe(0);
    expect(d.row()).not.toHaveProperty('oldestSince');
  });

  it('is kept across restarts, and so is since when the others wait and when something was last confirmed', async () => {
    const d = await desk();
    await d.drop('a', 'slow');
    await d.clock.advance(10 * SECOND);
    await d.confirm('a');
    const at = d.clock.now();
    // Its last record is not a confirmed one.
    await d.drop('a');
    await d.clock.advance(8 * SECOND);
    const before = d.row();
    for (let restart = 0; restart < 2; restart += 1) {
      await d.close();
      await d.clock.advance(MINUTE);
      await d.open();
      expect(d.row()).toEqual(before);
      expect(d.figures.report().lastConfirmedAt).toBe(at);
    }
    await d.confirm('slow');
    expectNear(d.row().hour.p99Ms, 2 * MINUTE + 20 * SECOND);
    expect(d.figures.report().lastConfirmedAt).toBe(d.clock.now());
    await d.close();
    d.clock.skip(2 * DAY);
    await d.open();
    expect(d.figures.report().lastConfirmedAt).toBe(d.clock.now() - 2 * DAY);
  });

  it('loses nothing by a kill, and counts each version that was confirmed, also of a file that is gone', async () => {
    const d = await desk();
    for (const name of ['a', 'b', 'a', 'b', 'c']) await d.searchable(MINUTE, name);
    await d.drop('b');
    await d.find('late', d.clock.now() - 30 * HOUR);
    d.state.put(gone(d.confirmed('c'), d.clock.now()));
    await d.state.commit();
    const before = d.figures.report();
    expect(d.row().hour).toMatchObject({ count: 5 });
    const killed = d.figures;
    await d.begin();
    expect(d.figures.report()).toEqual({ ...before, confirmedPerSecond: 0 });
    await killed.stop();
  });

  it('has figures of its own for 100 collections, and puts the others together', async () => {
    const d = await desk();
    const waiting = () =>
      d.figures.report().timeToSearch.reduce((sum, row) => sum + row.waiting, 0);
    for (let i = 0; i < 130; i += 1) {
      await d.find(`${i}`, d.clock.now(), `c${i}`);
      if (i % 2 === 0) await d.confirm(`${i}`);
    }
    expect(d.figures.report().timeToSearch).toHaveLength(101);
    expect(waiting()).toBe(65);
    expect(d.row('(others)')).toMatchObject({ waiting: 16, hour: { count: 15 } });
    for (let i = 1; i < 130; i += 2) await d.confirm(`${i}`);
    expect(waiting()).toBe(0);
  });
});

it('samples tell what happened in each 10 s of the last hour', async () => {
  const d = await desk();
  await d.drop('a', 'b');
  await d.clock.advance(3 * SECOND);
  await d.confirm('a');
  await d.clock.advance(10 * SECOND);
  const [sample] = d.figures.samples;
  expect(sample).toMatchObject({ confirmed: 1, waiting: 1 });
  expectNear(sample?.p50Ms, 3 * SECOND);
  await d.clock.advance(2 * HOUR);
  expect(d.figures.samples).toHaveLength(360);
});

it('the speed is what the last half minute confirmed; it begins with the first confirmation, and ends by itself', async () => {
  const d = await desk();
  const perSecond = () => d.figures.report().confirmedPerSecond;
  const names = Array.from({ length: 41 }, (_, i) => `${i}`);
  await d.drop(...names);
  // They are read and pushed for long, before the first one is shown.
  await d.clock.advance(5 * MINUTE);
  for (const [i, name] of names.entries()) {
    await d.confirm(name);
    if (i < 5) expect(perSecond()).toBe(0);
    if (i > 5) expect(perSecond()).toBeCloseTo(1, 0);
    await d.clock.advance(SECOND);
  }
  await d.clock.advance(31 * SECOND);
  expect(perSecond()).toBe(0);
});

it('the speed of single files is not that of a backlog that just came', async () => {
  const d = await desk();
  const perSecond = () => d.figures.report().confirmedPerSecond;
  for (let i = 0; i < 8; i += 1) await d.searchable(8 * SECOND, `single${i}`);
  expect(perSecond()).toBeCloseTo(0.125, 1);

  const names = Array.from({ length: 300 }, (_, i) => `${i}`);
  await d.drop(...names);
  expect(perSecond()).toBe(0);
  for (const [i, name] of names.slice(0, 120).entries()) {
    await d.confirm(name);
    if (i % 10 === 9) await d.clock.advance(SECOND);
  }
  expect(perSecond()).toBeGreaterThan(5);
  // A few more files do not begin it anew.
  await d.drop('late', 'later');
  expect(perSecond()).toBeGreaterThan(5);
});

it('monitoring reads what happened since the daemon began, and no acceptance that only was remembered', async () => {
  const d = await desk();
  const took: string[] = [];
  d.figures.onConfirmed = (collection, ms) => took.push(`${collection} ${ms}`);
  await d.searchable(3 * SECOND, 'a');
  const item = d.confirmed('a');
  await d.drop('a');
  await d.touch('a', item);
  expect(d.get('a')?.status).toBe('accepted');
  await d.confirm('a');
  await d.drop('b');
  await d.quarantine('b');
  expect(d.figures.totals).toEqual({ accepted: 1, confirmed: 2, quarantined: 1 });
  expect(took).toEqual(['docs 3000', 'docs 0']);
});

describe('alerts.timeToSearch', () => {
  it('is raised when one waits for longer, and is over 5 min after that was mended; both are said once', async () => {
    const d = await desk(MINUTE);
    await d.drop('a');
    const began = d.clock.now();
    await d.clock.advance(50 * SECOND);
    expect(d.alerts).toEqual([]);
    await d.clock.advance(30 * SECOND);
    const [alert] = d.alerts;
    expect(alert).toMatchObject({ code: 'TIME_TO_SEARCH', collection: 'docs' });
    expect(alert?.since).toBeGreaterThan(began + MINUTE);
    expect(alert?.message).toMatch(
      /^Files of the collection "docs" become searchable later than 1m \(`alerts\.timeToSearch`\): of 1 waiting, the oldest waits for 1m \d+s\.$/,
    );
    await d.clock.advance(20 * MINUTE);
    expect(d.alerts).toMatchObject([{ since: alert?.since }]);
    expect(d.alerts[0]?.message).toMatch(/the oldest waits for 21m/);
    await d.quarantine('a');
    await d.clock.advance(5 * MINUTE - 10 * SECOND);
    expect(d.alerts).toHaveLength(1);
    await d.clock.advance(30 * SECOND);
    expect(d.alerts).toEqual([]);
    expect(d.said).toEqual([
      expect.stringMatching(/^warn: ALERT: Files .* See `peersync status`/),
      expect.stringMatching(
        /^info: files of .* are searchable in time again; the alert lasted 2\dm/,
      ),
    ]);
  });

  it('is raised when more than 5 % of the files of the last hour took longer, be they few or many', async () => {
    const d = await desk(MINUTE);
    const some = (count: number, name: string) =>
      Array.from({ length: count }, (_, i) => `${name}${i}`);
    await d.searchable(30 * SECOND, ...some(95, 'quick'));
    await d.searchable(2 * MINUTE, ...some(5, 'slow'));
    await d.clock.advance(10 * SECOND);
    // The condition of the files that waited was reported, and has ended.
    await d.clock.advance(6 * MINUTE);
    expect(d.alerts).toEqual([]);
    await d.searchable(2 * MINUTE, 'one too many');
    await d.clock.advance(10 * SECOND);
    expect(d.alerts[0]?.message).toMatch(/: 95 % of 101 in the last hour took up to 2m/);
    await d.clock.advance(67 * MINUTE);
    expect(d.alerts).toEqual([]);
    await d.searchable(2 * MINUTE, 'alone');
    await d.clock.advance(10 * SECOND);
    expect(d.alerts[0]?.message).toMatch(/: 95 % of 1 in the last hour took up to 2m/);
  });

  it('is not raised after a start for a part of what was confirmed before', async () => {
    const d = await desk(MINUTE);
    const slow = Array.from({ length: 60 }, (_, i) => `slow-${i}`);
    const quick = Array.from({ length: 1_940 }, (_, i) => `quick-${i}`);
    await d.confirmedBefore(2 * MINUTE, slow);
    await d.confirmedBefore(SECOND, quick);
    await d.figures.stop();
    let goOn = () => {};
    d.clock.sleep = () =>
      new Promise((resolve) => {
        goOn = resolve;
      });
    const begun = d.begin();
    await d.clock.advance(10 * SECOND);
    const early = { counted: d.row().hour.count, alerts: d.alerts };
    goOn();
    await d.clock.advance(0);
    goOn();
    await begun;
    await d.clock.advance(10 * SECOND);
    expect(early.counted).toBeLessThan(d.row().hour.count);
    expect(early.alerts).toEqual([]);
    expect(d.alerts).toEqual([]);
  });

  it('does not come and go with each file around the limit', async () => {
    const d = await desk(MINUTE);
    for (let i = 0; i < 10; i += 1) {
      await d.searchable(70 * SECOND, `${i}`);
      await d.searchable(SECOND, ...Array.from({ length: 50 }, (_, n) => `quick ${i} ${n}`));
    }
    expect(d.said).toHaveLength(1);
  });

  it('follows the configuration: another limit counts at once, and none ends it', async () => {
    const d = await desk(MINUTE);
    await d.drop('a');
    await d.clock.advance(30 * SECOND);
    d.limitMs = 10 * SECOND;
    await d.clock.advance(10 * SECOND);
    expect(d.alerts).toHaveLength(1);
    d.limitMs = undefined;
    await d.clock.advance(10 * SECOND);
    expect(d.alerts).toEqual([]);
  });
});

describe.each([0, 365 * DAY, -HOUR])('a clock that is set by %d ms while peersync runs', (byMs) => {
  it('has time-to-search count from at rest to confirmed, for the hour and the day, and raises no alert', async () => {
    const d = await desk(MINUTE);
    await d.drop('a');
    await d.clock.advance(20 * SECOND);
    d.clock.set(byMs);
    await d.clock.advance(20 * SECOND);
    await d.confirm('a');
    expect(d.row().day).toMatchObject({ count: 1 });
    expectNear(d.row().hour.p99Ms, 40 * SECOND);
    await d.clock.advance(30 * MINUTE);
    expect(d.said).toEqual([]);
    d.clock.set(byMs);
    await d.clock.advance(24 * MINUTE);
    expect(d.row()).toMatchObject({ hour: { count: 1 }, day: { count: 1 } });
    await d.clock.advance(11 * MINUTE);
    expect(d.row()).toMatchObject({ hour: { count: 0 }, day: { count: 1 } });
    await d.clock.advance(DAY);
    expect(d.row()).toMatchObject({ hour: { count: 0 }, day: { count: 0 } });
  });
});

it.each([-HOUR, -365 * DAY])(
  'a clock that was set by %d ms between two runs makes nothing late',
  async (byMs) => {
    const d = await desk(MINUTE);
    await d.drop('a');
    await d.searchable(10 * SECOND, 'b');
    await d.close();
    d.clock.set(byMs);
    await d.open();
    expect(d.figures.report().lastConfirmedAt).toBe(d.clock.now());
    expect(d.row().waiting).toBe(1);
    await d.clock.advance(2 * MINUTE);
    expect(d.alerts).toEqual([]);
    await d.confirm('a');
    await d.searchable(10 * SECOND, 'c');
    expectNear(d.row().hour.p99Ms, 10 * SECOND);
    expect(d.row().waiting).toBe(0);
  },
);

it('a night in which the machine is suspended counts for a file that waits, and passes in the windows', async () => {
  const d = await desk();
  await d.searchable(10 * SECOND, 'a');
  await d.drop('b');
  d.clock.suspend(8 * HOUR);
  await d.clock.advance(10 * SECOND);
  expect(d.row().hour.count).toBe(0);
  await d.confirm('b');
  expectNear(d.row().hour.p99Ms, 8 * HOUR);
  expect(d.row().day.count).toBe(2);
});
