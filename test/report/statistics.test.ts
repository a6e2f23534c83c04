import { describe, expect, it } from 'vitest';
import type { TimeToSearch } from '../../src/report/statistics.js';
import { gone, read } from '../../src/state/entry.js';
import { afterwards } from '../support/afterwards.js';
import { Desk } from './world.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

async function desk(): Promise<Desk> {
  const made = new Desk();
  await made.open();
  afterwards('test', () => made.close());
  return made;
}

function rowOf({ figures }: Desk, collection = 'docs'): TimeToSearch {
  const row = figures.report().timeToSearch.find((one) => one.collection === collection);
  if (row === undefined) throw new Error(`nothing is known of ${collection}`);
  return row;
}

function expectNear(told: number | undefined, ms: number): void {
  expect(told).toBeGreaterThan(ms * 0.96);
  expect(told).toBeLessThan(ms * 1.04);
}

describe('time-to-search', () => {
  it('counts from at rest to confirmed, for the hour and the day', async () => {
    const d = await desk();
    await d.drop('a.txt');
    await d.clock.advance(10_000);
    d.confirm('a.txt');
    expectNear(rowOf(d).hour.p50Ms, 10_000);
    expect(rowOf(d).day).toMatchObject({ count: 1 });
    await d.clock.advance(HOUR);
    expect(rowOf(d).hour).toEqual({ count: 0 });
    expect(rowOf(d).day.count).toBe(1);
    await d.clock.advance(24 * HOUR);
    expect(rowOf(d).day).toEqual({ count: 0 });
  });

  it('counts once a version: not when a confirmed file is only touched', async () => {
    const d = await desk();
    await d.drop('a.txt');
    d.confirm('a.txt');
    const item = d.state.get('f', 'a.txt');
    if (item?.status !== 'confirmed') throw new Error('it is not confirmed');
    const touched = { ...item.version, ctimeMs: d.clock.now() };
    d.state.put(read(item, item, touched, d.clock.now()));
    expect(d.state.get('f', 'a.txt')).toMatchObject({ status: 'confirmed', version: touched });
    expect(rowOf(d).hour.count).toBe(1);
    expect(d.figures.totals).toEqual({ accepted: 1, confirmed: 1, quarantined: 0 });
  });

  it('tells how many wait, and about since when: quarantined and removed ones do not', async () => {
    const d = await desk();
    for (const name of ['a', 'b', 'c', 'd']) {
      await d.drop(name);
      await d.clock.advance(MINUTE);
    }
    const { waiting, oldestSince = 0 } = rowOf(d);
    expect(waiting).toBe(4);
    expect(d.clock.now() - oldestSince).toBeGreaterThan(4 * MINUTE);
    d.accept('a');
    expect(rowOf(d)).toMatchObject({ waiting: 4, oldestSince });
    d.quarantine('b');
    d.state.remove('f', 'c');
    d.confirm('a');
    expect(rowOf(d).waiting).toBe(1);
    expect(d.clock.now() - (rowOf(d).oldestSince ?? 0)).toBeLessThanOrEqual(MINUTE);
    d.confirm('d');
    expect(rowOf(d).waiting).toBe(0);
    expect(rowOf(d)).not.toHaveProperty('oldestSince');
  });

  it('is kept across a restart, and so is since when the others wait', async () => {
    const d = await desk();
    await d.drop('a.txt');
    await d.drop('slow.txt');
    await d.clock.advance(10_000);
    d.confirm('a.txt');
    await d.clock.advance(10_000);
    const before = rowOf(d);
    expect(d.figures.samples.some(({ confirmed }) => confirmed === 1)).toBe(true);
    await d.close();
    await d.clock.advance(5 * MINUTE);
    await d.open();
    expect(rowOf(d)).toEqual(before);
    expect(d.figures.report().lastConfirmedAt).toBe(d.clock.now() - 5 * MINUTE - 10_000);
    d.confirm('slow.txt');
    expectNear(rowOf(d).hour.p99Ms, 5 * MINUTE + 20_000);
  });

  it('knows across a restart when something was last confirmed, also where that file waits anew or is gone', async () => {
    const d = await desk();
    await d.drop('a.txt');
    d.confirm('a.txt');
    const at = d.clock.now();
    await d.clock.advance(MINUTE);
    await d.drop('a.txt');
    expect(d.state.get('f', 'a.txt')?.status).toBe('pending');
    await d.close();
    await d.open();
    expect(d.figures.report().lastConfirmedAt).toBe(at);
    await d.close();
    await d.open();
    expect(d.figures.report().lastConfirmedAt).toBe(at);
    d.confirm('a.txt');
    expect(d.figures.report().lastConfirmedAt).toBe(d.clock.now());
  });

  it('loses nothing by a kill, and counts each version that was confirmed, also of a file that is gone', async () => {
    const d = await desk();
    for (const name of ['a.txt', 'b.txt', 'a.txt', 'b.txt', 'c.txt']) {
      await d.drop(name);
      await d.clock.advance(MINUTE);
      d.confirm(name);
    }
    await d.drop('b.txt');
    d.find('late.txt', d.clock.now() - 30 * HOUR);
    const item = d.state.get('f', 'c.txt');
    if (item?.status !== 'confirmed') throw new Error('it is not known');
    d.state.put(gone(item, d.clock.now()));
    const before = d.figures.report();
    expect(rowOf(d).hour).toMatchObject({ count: 5 });
    const killed = d.figures;
    d.figures = d.make();
    await d.figures.start();
    await d.figures.recalled;
    expect(d.figures.report()).toEqual({ ...before, confirmedPerSecond: 0 });
    await killed.stop();
  });

  it('has figures of its own for 100 collections, and puts the others together', async () => {
    const d = await desk();
    for (let i = 0; i < 130; i += 1) {
      d.find(`${i}.txt`, d.clock.now(), `c${i}`);
      if (i % 2 === 0) d.confirm(`${i}.txt`);
    }
    const { timeToSearch } = d.figures.report();
    expect(timeToSearch).toHaveLength(101);
    expect(timeToSearch.reduce((sum, { waiting }) => sum + waiting, 0)).toBe(65);
    expect(rowOf(d, '(others)')).toMatchObject({ waiting: 16, hour: { count: 15 } });
    for (let i = 1; i < 130; i += 2) d.confirm(`${i}.txt`);
    expect(d.figures.report().timeToSearch.reduce((sum, { waiting }) => sum + waiting, 0)).toBe(0);
  });
});

describe('samples', () => {
  it('tell what happened in each 10 s of the last hour', async () => {
    const d = await desk();
    await d.drop('a.txt');
    await d.drop('b.txt');
    await d.clock.advance(1_000);
    d.accept('a.txt');
    d.confirm('a.txt');
    await d.clock.advance(10_000);
    const [sample] = d.figures.samples;
    expect(sample).toMatchObject({ confirmed: 1, waiting: 1 });
    expectNear(sample?.p50Ms, 3_000);
    expect(d.figures.report().confirmedPerSecond).toBeCloseTo(0.1);
    // It is the present speed: 10 s later nothing goes on.
    await d.clock.advance(10_000);
    expect(d.figures.report().confirmedPerSecond).toBe(0);
    await d.clock.advance(2 * HOUR);
    expect(d.figures.samples).toHaveLength(360);
    expect(d.figures.report().confirmedPerSecond).toBe(0);
  });
});

describe('what monitoring reads', () => {
  it('counts what happened since the daemon began, and no acceptance that only was remembered', async () => {
    const d = await desk();
    const took: string[] = [];
    d.figures.onConfirmed = (collection, ms) => took.push(`${collection} ${ms}`);
    await d.drop('a.txt');
    await d.clock.advance(3_000);
    d.confirm('a.txt');
    const item = d.state.get('f', 'a.txt');
    if (item?.status !== 'confirmed') throw new Error('it is not confirmed');
    await d.drop('a.txt');
    const back = { ...item.version, ctimeMs: d.clock.now() };
    d.state.put(read(d.state.get('f', 'a.txt'), item, back, d.clock.now()));
    expect(d.state.get('f', 'a.txt')?.status).toBe('accepted');
    d.confirm('a.txt');
    await d.drop('b.txt');
    d.quarantine('b.txt');
    expect(d.figures.totals).toEqual({ accepted: 1, confirmed: 2, quarantined: 1 });
    expect(took).toEqual(['docs 3000', 'docs 0']);
  });
});
