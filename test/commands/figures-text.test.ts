import { describe, expect, it } from 'vitest';
import { figuresLines } from '../../src/commands/status.js';
import type { StatisticsReport, TimeToSearch } from '../../src/report/statistics.js';

const NOW = Date.UTC(2026, 0, 1);
const none = { count: 0 };

function report(timeToSearch: readonly TimeToSearch[]): StatisticsReport {
  return { timeToSearch: [...timeToSearch], confirmedPerSecond: 0, lastConfirmedAt: undefined, alerts: [] };
}

describe('time to search in status', () => {
  it('has a line for each collection that something is known of', () => {
    const hour = { count: 3, p50Ms: 1_200, p95Ms: 65_000, p99Ms: 65_000 };
    const lines = figuresLines(
      report([
        { collection: 'docs', hour, day: { ...hour, count: 40 }, waiting: 1_200, oldestSince: NOW - 90_000 },
        { collection: 'empty', hour: none, day: none, waiting: 0 },
        { collection: 'new', hour: none, day: none, waiting: 1, oldestSince: NOW },
      ]),
      NOW,
    );
    expect(lines).toEqual([
      'time to search  last hour  p50  p95    p99    last 24 h  p50  p95    p99',
      'docs                    3  1s   1m 5s  1m 5s         40  1s   1m 5s  1m 5s  1,200 waiting, the oldest for 1m 30s',
      'new                     0  -    -      -              0  -    -      -      1 waiting, the oldest for 0ms',
    ]);
  });

  it('is left out where nothing is known', () => {
    expect(figuresLines(undefined, NOW)).toEqual([]);
    expect(figuresLines(report([{ collection: 'c', hour: none, day: none, waiting: 0 }]), NOW)).toEqual([]);
  });

  it('names 20 collections, and says how many more there are', () => {
    const many = Array.from({ length: 33 }, (_, i) => ({
      collection: `c${i}`,
      hour: none,
      day: none,
      waiting: 1,
    }));
    const lines = figuresLines(report(many), NOW);
    expect(lines).toHaveLength(22);
    expect(lines.at(-1)).toBe('  and 13 more: `peersync status --json`');
  });
});
