import { describe, expect, it } from 'vitest';
import type { StatisticsReport } from '../../src/report/statistics.js';
import { afterwards } from '../support/afterwards.js';
import { Desk } from './world.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const YEAR = 365 * 24 * HOUR;
const SETS = [YEAR, HOUR, -HOUR, -YEAR];

async function desk(): Promise<Desk> {
  const made = new Desk();
  made.limitMs = MINUTE;
  await made.open();
  afterwards('test', () => made.close());
  return made;
}

function rowOf(d: Desk): StatisticsReport['timeToSearch'][number] {
  const [row] = d.figures.report().timeToSearch;
  if (row === undefined) throw new Error('nothing is known of it');
  return row;
}

function expectNear(told: number | undefined, ms: number): void {
  expect(told).toBeGreaterThan(ms * 0.96);
  expect(told).toBeLessThan(ms * 1.04);
}

/** A file that becomes searchable so long after it was at rest. */
async function searchable(d: Desk, path: string, afterMs: number): Promise<void> {
  await d.drop(path);
  await d.clock.advance(afterMs);
  d.confirm(path);
}

describe.each(SETS)('a clock that is set by %d ms while peersync runs', (byMs) => {
  it('changes no time-to-search of what was on its way, and raises no alert', async () => {
    const d = await desk();
    await d.drop('a.txt');
    await d.clock.advance(20 * SECOND);
    d.clock.set(byMs);
    await d.clock.advance(20 * SECOND);
    d.confirm('a.txt');
    expect(rowOf(d).hour.count).toBe(1);
    expectNear(rowOf(d).hour.p99Ms, 40 * SECOND);
    await d.clock.advance(20 * SECOND);
    expect(d.figures.report().alerts).toEqual([]);
    expect(d.said).toEqual([]);
  });

  it('neither empties the windows nor keeps anything in them for longer', async () => {
    const d = await desk();
    await searchable(d, 'a.txt', 10 * SECOND);
    await d.clock.advance(30 * MINUTE);
    d.clock.set(byMs);
    await d.clock.advance(20 * MINUTE);
    expect(rowOf(d)).toMatchObject({ hour: { count: 1 }, day: { count: 1 } });
    await d.clock.advance(11 * MINUTE);
    expect(rowOf(d)).toMatchObject({ hour: { count: 0 }, day: { count: 1 } });
    await d.clock.advance(24 * HOUR);
    expect(rowOf(d)).toMatchObject({ hour: { count: 0 }, day: { count: 0 } });
  });

  it('still raises an alert for what really waits for too long, and ends it', async () => {
    const d = await desk();
    await d.drop('a.txt');
    await d.clock.advance(40 * SECOND);
    d.clock.set(byMs);
    await d.clock.advance(10 * SECOND);
    expect(d.figures.report().alerts).toEqual([]);
    await d.clock.advance(25 * SECOND);
    const [alert] = d.figures.report().alerts;
    expect(alert?.message).toMatch(/: of 1 waiting, the oldest waits for 1m( \d+s)?\./);
    const raisedMs = d.clock.now() - (alert?.since ?? 0);
    expect(Math.abs(raisedMs)).toBeLessThan(20 * SECOND);
    d.clock.set(-byMs);
    expect(d.clock.now() - (d.figures.report().alerts[0]?.since ?? 0)).toBe(raisedMs);
    d.confirm('a.txt');
    await d.clock.advance(66 * MINUTE);
    expect(d.figures.report().alerts).toEqual([]);
    expect(d.said.at(-1)).toMatch(/in time again; the alert lasted 1h \d+m$/);
  });
});

describe.each([-HOUR, -YEAR])('a clock that was set by %d ms between two runs', (byMs) => {
  it('makes nothing late, and what is counted then is right again', async () => {
    const d = await desk();
    await d.drop('a.txt');
    await searchable(d, 'b.txt', 10 * SECOND);
    await d.close();
    d.clock.set(byMs);
    await d.open();
    expect(d.figures.report().lastConfirmedAt).toBe(d.clock.now());
    expect(rowOf(d).waiting).toBe(1);
    await d.clock.advance(2 * MINUTE);
    expect(d.figures.report().alerts).toEqual([]);
    d.confirm('a.txt');
    await searchable(d, 'c.txt', 10 * SECOND);
    expectNear(rowOf(d).hour.p99Ms, 10 * SECOND);
    expect(rowOf(d).waiting).toBe(0);
  });
});

describe('a night in which the machine is suspended', () => {
  it('counts for a file that waits through it, and passes in the windows', async () => {
    const d = await desk();
    d.limitMs = undefined;
    await searchable(d, 'a.txt', 10 * SECOND);
    await d.drop('b.txt');
    d.clock.suspend(8 * HOUR);
    await d.clock.advance(10 * SECOND);
    expect(rowOf(d).hour.count).toBe(0);
    d.confirm('b.txt');
    expectNear(rowOf(d).hour.p99Ms, 8 * HOUR);
    expect(rowOf(d).day.count).toBe(2);
  });
});
