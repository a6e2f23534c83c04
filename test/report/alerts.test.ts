import { describe, expect, it } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import { Desk } from './world.js';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

async function desk(): Promise<Desk> {
  const made = new Desk();
  made.limitMs = MINUTE;
  await made.open();
  afterwards('test', () => made.close());
  return made;
}

const alertsOf = ({ figures }: Desk) => figures.report().alerts;

/** Files that became searchable so long after they were at rest. */
async function searchable(d: Desk, count: number, afterMs: number): Promise<void> {
  const ctimeMs = d.clock.now();
  await d.clock.advance(2 * SECOND + afterMs);
  for (let i = 0; i < count; i += 1) {
    d.find(`${ctimeMs}-${i}`, ctimeMs);
    d.confirm(`${ctimeMs}-${i}`);
  }
}

describe('alerts.timeToSearch', () => {
  it('is raised when one waits for longer, and is over 5 min after that was mended; both are said once', async () => {
    const d = await desk();
    await d.drop('a.txt');
    const began = d.clock.now();
    await d.clock.advance(50 * SECOND);
    expect(alertsOf(d)).toEqual([]);
    await d.clock.advance(30 * SECOND);
    const [alert] = alertsOf(d);
    expect(alert).toMatchObject({ code: 'TIME_TO_SEARCH', collection: 'docs' });
    expect(alert?.since).toBeGreaterThan(began + MINUTE);
    expect(alert?.message).toMatch(
      /^Files of the collection "docs" become searchable later than 1m \(`alerts\.timeToSearch`\): of 1 waiting, the oldest waits for 1m \d+s\.$/,
    );
    await d.clock.advance(20 * MINUTE);
    expect(alertsOf(d)[0]).toMatchObject({ since: alert?.since });
    expect(alertsOf(d)[0]?.message).toMatch(/the oldest waits for 21m/);
    expect(d.said).toEqual([expect.stringMatching(/^warn: ALERT: Files .* See `peersync status`/)]);
    d.quarantine('a.txt');
    await d.clock.advance(5 * MINUTE - 10 * SECOND);
    expect(alertsOf(d)).toHaveLength(1);
    await d.clock.advance(30 * SECOND);
    expect(alertsOf(d)).toEqual([]);
    expect(d.said.slice(1)).toEqual([
      expect.stringMatching(
        /^info: files of the collection "docs" are searchable in time again; the alert lasted 2\dm/,
      ),
    ]);
  });

  it('is raised when more than 5 % of the files of the last hour took longer', async () => {
    const d = await desk();
    await searchable(d, 95, 30 * SECOND);
    await searchable(d, 5, 2 * MINUTE);
    await d.clock.advance(10 * SECOND);
    expect(alertsOf(d)).toEqual([]);
    await searchable(d, 1, 2 * MINUTE);
    await d.clock.advance(10 * SECOND);
    expect(alertsOf(d)[0]?.message).toMatch(/: 95 % of 101 in the last hour took up to 2m/);
    await d.clock.advance(67 * MINUTE);
    expect(alertsOf(d)).toEqual([]);
  });

  it('is raised by one file where few come', async () => {
    const d = await desk();
    await searchable(d, 1, 2 * MINUTE);
    await d.clock.advance(10 * SECOND);
    expect(alertsOf(d)[0]?.message).toMatch(/: 95 % of 1 in the last hour took up to 2m/);
  });

  it('does not come and go with each file around the limit', async () => {
    const d = await desk();
    await d.drop('a.txt');
    await d.clock.advance(70 * SECOND);
    d.confirm('a.txt');
    await searchable(d, 1_000, 1_000);
    for (let i = 0; i < 10; i += 1) {
      await d.drop(`${i}.txt`);
      await d.clock.advance(70 * SECOND);
      d.confirm(`${i}.txt`);
    }
    expect(d.said).toHaveLength(1);
  });

  it('follows the configuration: another limit counts at once, and none ends it', async () => {
    const d = await desk();
    await d.drop('a.txt');
    await d.clock.advance(30 * SECOND);
    d.limitMs = 10 * SECOND;
    await d.clock.advance(10 * SECOND);
    expect(alertsOf(d)).toHaveLength(1);
    d.limitMs = undefined;
    await d.clock.advance(10 * SECOND);
    expect(alertsOf(d)).toEqual([]);
  });
});
