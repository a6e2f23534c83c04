import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { described, METRICS, MIRRORS_NAMED, metricDocs } from '../../src/page/metrics.js';
import { DiskWithFaults } from '../fault/state-disk.js';
import { lifeOf, pendingRecord } from '../state/records.js';
import { readExposition } from './exposition-reader.js';
import { PageAtWork } from './page-at-work.js';

const OPENMETRICS = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';

async function scraped(page: PageAtWork, format: 'openmetrics' | 'prometheus') {
  const answer = await page.fetch(
    '/metrics',
    format === 'openmetrics' ? { headers: { accept: OPENMETRICS } } : {},
  );
  expect(answer.status).toBe(200);
  const type =
    format === 'openmetrics'
      ? /^application\/openmetrics-text; version=1\.0\.0/
      : /^text\/plain; version=0\.0\.4/;
  expect(answer.headers.get('content-type')).toMatch(type);
  return readExposition(await answer.text(), format);
}

/** Everything that has to be escaped. */
const ODD = 'a "quoted" \\ back\nline, {and} more=';

/** The value of one series; undefined where there is none. */
async function seriesValue(page: PageAtWork, name: string, labels: Readonly<Record<string, string>> = {}) {
  const families = await scraped(page, 'prometheus');
  for (const { samples } of families.values())
    for (const sample of samples)
      if (
        sample.name === name &&
        Object.entries(labels).every(([label, value]) => sample.labels.get(label) === value)
      )
        return sample.value;
  return undefined;
}

async function busy(): Promise<PageAtWork> {
  const page = await PageAtWork.start();
  for (const entry of lifeOf(pendingRecord('a.md'))) page.state.put(entry);
  page.state.put(pendingRecord('b.md'));
  await page.state.commit();
  page.mirrors = [
    { name: ODD, kind: 'share', path: 'x', succeededAt: Date.now() - 60_000 },
    { name: 'alarmed', kind: 'table', path: 'y', alarm: { code: 'A', message: 'm', hint: 'h', since: 0 } },
  ];
  return page;
}

describe('GET /metrics', () => {
  it.each(['openmetrics', 'prometheus'] as const)('is well formed as %s, time after time', async (format) => {
    const page = await busy();
    await scraped(page, format === 'openmetrics' ? 'prometheus' : 'openmetrics');
    for (let i = 0; i < 2; i += 1) {
      const families = await scraped(page, format);
      for (const name of [
        'peersync_items',
        'process_resident_memory_bytes',
        'nodejs_gc_duration_seconds',
        'peersync_build_info',
      ])
        expect([...families.keys()]).toContain(name);
      // Each directory that is watched is an open handle, and to list them all takes its time.
      expect([...families.keys()].filter((name) => name.startsWith('nodejs_active'))).toEqual([]);
      const cpu = format === 'openmetrics' ? 'process_cpu_seconds' : 'process_cpu_seconds_total';
      expect(families.get(cpu)?.samples[0]?.name).toBe('process_cpu_seconds_total');
    }
  });

  it('has everything that the table names, with the labels that it names', async () => {
    const page = await busy();
    const families = await scraped(page, 'prometheus');
    const idle = /alert|time_to_search|items_waiting|oldest_waiting|last_confirmed|mirror_failures/;
    for (const { name, labels } of Object.keys(METRICS).map(described)) {
      const samples = families.get(name)?.samples ?? [];
      if (!idle.test(name)) expect([name, samples.length > 0]).toEqual([name, true]);
      for (const sample of samples)
        expect([...sample.labels.keys()].filter((label) => label !== 'le').sort()).toEqual(
          [...labels].sort(),
        );
    }
  });

  it('says how things stand, and how they stand then', async () => {
    const page = await busy();
    expect(await seriesValue(page, 'peersync_items', { folder: 'inbox', status: 'confirmed' })).toBe(1);
    expect(await seriesValue(page, 'peersync_items', { folder: 'inbox', status: 'pending' })).toBe(1);
    expect(await seriesValue(page, 'peersync_push_bytes_total')).toBe(1234);
    expect(await seriesValue(page, 'peersync_pushes_total')).toBe(5);
    expect(await seriesValue(page, 'peersync_items_confirmed_total')).toBe(4);
    expect(await seriesValue(page, 'peersync_lookups_per_confirmed_item')).toBe(7 / 4);
    expect(await seriesValue(page, 'peersync_requests_failed_total', { lane: 'push' })).toBe(1);
    expect(await seriesValue(page, 'peersync_request_latency_median_seconds', { lane: 'confirm' })).toBe(
      0.012,
    );
    expect(await seriesValue(page, 'peersync_folder_last_scan_duration_seconds', { folder: 'inbox' })).toBe(
      0.25,
    );
    expect(await seriesValue(page, 'peersync_state_sync_seconds_count')).toBe(1);
    expect(await seriesValue(page, 'peersync_mirrors', { state: 'alarm' })).toBe(1);
    expect(await seriesValue(page, 'peersync_mirror_alarm', { mirror: 'alarmed' })).toBe(1);
    expect(await seriesValue(page, 'peersync_mirror_age_seconds', { mirror: ODD })).toBeGreaterThanOrEqual(
      60,
    );
    expect(await seriesValue(page, 'peersync_mirror_age_seconds', { mirror: 'alarmed' })).toBeUndefined();
    expect(await seriesValue(page, 'peersync_peer_up')).toBe(1);
    expect(await seriesValue(page, 'peersync_circuit_state', { state: 'closed' })).toBe(1);
    expect(await seriesValue(page, 'peersync_paused')).toBe(0);

    expect(await seriesValue(page, 'peersync_config_last_reload_successful')).toBe(1);
    const takenUpAt = 'peersync_config_last_reload_success_timestamp_seconds';
    expect(await seriesValue(page, takenUpAt)).toBe(1_700_000_000);
    const refused = { code: 'CONFIG_SYNTAX', message: 'm', hint: 'h', at: 1_700_000_009_000 };
    page.configuration = { ...page.configuration, refused };
    expect(await seriesValue(page, 'peersync_config_last_reload_successful')).toBe(0);
    expect(await seriesValue(page, takenUpAt)).toBe(1_700_000_000);

    page.figures = {
      confirmedPerSecond: 0,
      lastConfirmedAt: 1_700_000_000_500,
      timeToSearch: [
        {
          collection: 'inbox',
          hour: { count: 3, p50Ms: 1_500, p95Ms: 2_000, p99Ms: 2_000 },
          day: { count: 0 },
          waiting: 2,
          oldestSince: Date.now() - 90_000,
        },
      ],
      alerts: [{ code: 'TIME_TO_SEARCH', collection: 'inbox', message: 'm', hint: 'h', since: 0 }],
    };
    const median = { collection: 'inbox', window: '1h', percentile: '50' };
    expect(await seriesValue(page, 'peersync_time_to_search_recent_seconds', median)).toBe(1.5);
    expect(
      await seriesValue(page, 'peersync_time_to_search_recent_seconds', { window: '24h' }),
    ).toBeUndefined();
    expect(await seriesValue(page, 'peersync_time_to_search_seconds_bucket', { le: '10' })).toBe(4);
    expect(await seriesValue(page, 'peersync_time_to_search_seconds_bucket', { le: '+Inf' })).toBe(5);
    expect(await seriesValue(page, 'peersync_time_to_search_seconds_sum')).toBe(41.5);
    expect(await seriesValue(page, 'peersync_items_waiting', { collection: 'inbox' })).toBe(2);
    expect(await seriesValue(page, 'peersync_oldest_waiting_seconds')).toBeGreaterThanOrEqual(90);
    expect(await seriesValue(page, 'peersync_alert', { code: 'TIME_TO_SEARCH' })).toBe(1);
    expect(await seriesValue(page, 'peersync_last_confirmed_timestamp_seconds')).toBe(1_700_000_000.5);

    for (const entry of lifeOf(pendingRecord('b.md'))) page.state.put(entry);
    const reason = { kind: 'unreachable', message: 'It is away.' } as const;
    page.queue = {
      ...page.queue,
      circuit: { state: 'open', since: 0, reason, held: ['push'], tries: 3 },
      paused: { since: 0 },
    };
    expect(await seriesValue(page, 'peersync_items', { folder: 'inbox', status: 'confirmed' })).toBe(2);
    expect(await seriesValue(page, 'peersync_peer_up')).toBe(0);
    expect(await seriesValue(page, 'peersync_circuit_state', { state: 'closed' })).toBe(0);
    expect(await seriesValue(page, 'peersync_circuit_state', { state: 'open' })).toBe(1);
    expect(await seriesValue(page, 'peersync_paused')).toBe(1);
  });

  it('says when the state cannot be written', async () => {
    const disk = new DiskWithFaults();
    const page = await PageAtWork.start({ open: disk.open });
    expect(await seriesValue(page, 'peersync_state_writable')).toBe(1);
    disk.space = 0;
    page.state.put(pendingRecord('a.md'));
    await expect(page.state.commit()).rejects.toThrow();
    expect(await seriesValue(page, 'peersync_state_writable')).toBe(0);
    expect(await seriesValue(page, 'peersync_state_unsaved_changes')).toBe(1);
    disk.space = Number.POSITIVE_INFINITY;
  });

  it('names no more mirrors than it says, and counts the rest', async () => {
    const page = await PageAtWork.start();
    page.mirrors = Array.from({ length: 2_000 }, (_, i) => ({
      name: `m${i}`,
      kind: 'share',
      path: `${i}`,
      succeededAt: i,
    }));
    const families = await scraped(page, 'openmetrics');
    expect(families.get('peersync_mirror_age_seconds')?.samples).toHaveLength(MIRRORS_NAMED);
    expect(await seriesValue(page, 'peersync_mirrors', { state: 'good' })).toBe(2_000);
    expect(await seriesValue(page, 'peersync_mirrors_unnamed')).toBe(2_000 - MIRRORS_NAMED);
    expect(await seriesValue(page, 'peersync_mirrors_oldest_success_seconds')).toBeGreaterThan(1e9);
  });

  it.each([
    ['text/plain', 'text/plain'],
    ['application/openmetrics-text;q=0, text/plain', 'text/plain'],
    ['text/html,*/*', 'text/plain'],
    ['application/openmetrics-text', 'application/openmetrics-text'],
  ])('answers who accepts "%s" with %s', async (accept, type) => {
    const page = await PageAtWork.start();
    const answer = await page.fetch('/metrics', { headers: { accept } });
    expect(answer.headers.get('content-type')).toContain(type);
  });
});

describe('the names of the metrics', () => {
  it('keep to the customs: a prefix, base units, _total for what only grows', () => {
    for (const [key, help] of Object.entries(METRICS)) {
      const { name, type } = described(key);
      expect(name).toMatch(/^peersync_[a-z][a-z_]*$/);
      expect(name).not.toMatch(/_(ms|millis|minutes|kb|mb)(_|$)/);
      expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
      expect(help).toMatch(/^[A-Z0-9][^"\n]*\.$/);
    }
    const names = Object.keys(METRICS).map((key) => described(key).name);
    expect(new Set(names).size).toBe(names.length);
  });

  it('stand in src/report/README.md as they are', () => {
    const readme = readFileSync(new URL('../../src/report/README.md', import.meta.url), 'utf8');
    expect(readme).toContain(metricDocs());
  });
});

describe('the reader of expositions in these tests', () => {
  it.each([
    ['# HELP a b\n# TYPE a gauge\na 1\n', 'no # EOF'],
    ['# HELP a b\n# TYPE a gauge\na 1\na 2\n# EOF\n', 'the same series twice'],
    ['# HELP a_total b\n# TYPE a_total counter\na_total 1\n# EOF\n', 'family named _total'],
    ['# HELP a b\n# TYPE a counter\na 1\n# EOF\n', 'do not belong'],
    ['# HELP a b\n# TYPE a gauge\na{x="\\q"} 1\n# EOF\n', 'cannot be read'],
    ['# HELP a b\n# TYPE a gauge\na{x="1"x="2"} 1\n# EOF\n', 'cannot be read'],
    ['# HELP a b\n# TYPE a gauge\na 1 \n# EOF\n', 'no line of an exposition'],
    ['# HELP a b\n# TYPE a gauge\nb 1\n# EOF\n', 'do not belong'],
    [
      '# HELP a b\n# TYPE a histogram\na_bucket{le="1"} 2\na_sum 1\na_count 2\n# EOF\n',
      'no bucket for everything',
    ],
    [
      '# HELP a b\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n# EOF\n',
      'do not add up',
    ],
    ['a 1\n# EOF\n', 'do not belong'],
  ])('refuses %j', (text, why) => {
    expect(() => readExposition(text, 'openmetrics')).toThrow(why);
  });
});
