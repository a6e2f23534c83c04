import { readFileSync, rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { described, METRICS, metricDocs } from '../../src/page/metric-table.js';
import { MAX_MIRRORS } from '../../src/page/metric-values.js';
import { fleetOf, workerOf } from '../report/fleets.js';
import { lifeOf, pendingRecord } from '../state/records.js';
import { DiskWithFaults } from '../state/state-disk.js';
import { PageAtWork } from './page-at-work.js';

interface Series {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

const OPENMETRICS =
  'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1';

/** Scrapes the metrics as Prometheus does, which refuses duplicate series. */
async function scraped(page: PageAtWork): Promise<Series[]> {
  const text = await (await page.fetch('/metrics')).text();
  const lines = [...text.matchAll(/^([a-z_]+)(?:\{(.*)\})? (\S+)$/gm)];
  expect(new Set(lines.map(([, name, labels]) => `${name} ${labels}`)).size).toBe(lines.length);
  return lines.map(([, name = '', labels = '', value = '']) => ({
    name,
    labels: new Map(
      [...labels.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = '', of = '']) => [
        key,
        of,
      ]),
    ),
    value: Number(value.replace('Inf', 'Infinity')),
  }));
}

/** Compares series, written `name` or `name{label=value}` without the prefix, with their values. */
async function expectSeries(
  page: PageAtWork,
  expected: Readonly<Record<string, unknown>>,
): Promise<void> {
  const all = await scraped(page);
  for (const [series, value] of Object.entries(expected)) {
    const [name, label, wanted] = series.split(/[{=}]/);
    const isIt = (one: Series) =>
      one.name === `peersync_${name}` && (label === undefined || one.labels.get(label) === wanted);
    expect([series, all.find(isIt)?.value]).toEqual([series, value]);
  }
}

/** Everything that has to be escaped. */
const ODD = 'a "quoted" \\ back\nline, and} more';

async function busy(): Promise<PageAtWork> {
  const page = await PageAtWork.start();
  for (const entry of lifeOf(pendingRecord('a.md'))) page.state.put(entry);
  page.state.put(pendingRecord('b.md'));
  await page.state.commit();
  page.mirrors = [
    { name: ODD, kind: 'share', path: 'x', succeededAt: Date.now() - 60_000 },
    {
      name: 'reported',
      kind: 'table',
      path: 'y',
      condition: { code: 'A', message: 'm', hint: 'h', since: 0 },
    },
  ];
  page.fleet = fleetOf([workerOf(ODD)]);
  return page;
}

describe('GET /metrics', () => {
  it('has metrics of the process and the build, but none that are slow to collect', async () => {
    const names = (await scraped(await busy())).map(({ name }) => name);
    const process = ['process_resident_memory_bytes', 'process_cpu_seconds_total'];
    expect(names).toEqual(
      expect.arrayContaining([...process, 'nodejs_version_info', 'peersync_build_info']),
    );
    // Each directory that is watched is an open handle.
    expect(names.filter((name) => name.startsWith('nodejs_active'))).toEqual([]);
    // They would need a timer.
    expect(names.filter((name) => /eventloop_lag_.*(p99|max|mean)/.test(name))).toEqual([]);
  });

  it('has all metrics of the table, with their labels', async () => {
    const all = await scraped(await busy());
    const idle = /alert|time_to_search|items_waiting|oldest_waiting|last_confirmed|mirror_failures/;
    for (const { name, labels } of Object.keys(METRICS).map(described)) {
      const own = all.filter(
        (one) => one.name.replace(/_(bucket|sum|count)$/, '') === name || one.name === name,
      );
      if (!idle.test(name)) expect([name, own.length > 0]).toEqual([name, true]);
      for (const sample of own)
        expect([...sample.labels.keys()].filter((label) => label !== 'le').sort()).toEqual(
          [...labels].sort(),
        );
    }
    const mirrors = all.filter(({ name }) => name === 'peersync_mirror_age_seconds');
    expect(mirrors.map(({ labels }) => labels.get('mirror'))).toEqual([
      ODD.replace(/["\\]/g, '\\$&').replace('\n', '\\n'),
    ]);
    expect(mirrors[0]?.value).toBeGreaterThan(59);
  });

  it('has the current values, and the new values after a change', async () => {
    const page = await busy();
    await expectSeries(page, {
      'items{status=confirmed}': 1,
      'items{status=pending}': 1,
      push_bytes_total: 1234,
      pushes_total: 5,
      items_confirmed_total: 4,
      documents_read_total: 12,
      document_pages_ocr_total: 37,
      lookups_per_confirmed_item: 7 / 4,
      'requests_failed_total{lane=push}': 1,
      'request_latency_median_seconds{lane=confirm}': 0.012,
      'folder_last_scan_duration_seconds{folder=inbox}': 0.25,
      state_sync_seconds_count: 1,
      'mirrors{state=condition}': 1,
      'mirror_condition{mirror=reported}': 1,
      peer_up: 1,
      'circuit_state{state=closed}': 1,
      paused: 0,
      config_last_reload_successful: 1,
      config_last_reload_success_timestamp_seconds: 1_700_000_000,
      state_writable: 1,
    });
    const refused = { code: 'CONFIG_SYNTAX', message: 'm', hint: 'h', at: 1_700_000_009_000 };
    page.configuration = { ...page.configuration, refused };
    const hour = { count: 3, p50Ms: 1_500, p95Ms: 2_000, p99Ms: 2_000 };
    const inbox = {
      collection: 'inbox',
      hour,
      day: { count: 0 },
      waiting: 2,
      oldestSince: Date.now() - 90_000,
    };
    page.figures = {
      confirmedPerSecond: 0,
      lastConfirmedAt: 1_700_000_000_500,
      timeToSearch: [inbox],
      alerts: [{ code: 'TIME_TO_SEARCH', collection: 'inbox', message: 'm', hint: 'h', since: 0 }],
    };
    for (const entry of lifeOf(pendingRecord('b.md'))) page.state.put(entry);
    await page.state.commit();
    const reason = { kind: 'unreachable', message: 'It is away.' } as const;
    const circuit = { state: 'open', since: 0, reason, held: ['push'], tries: 3 } as const;
    page.queue = { ...page.queue, circuit: { ...circuit, held: ['push'] }, paused: { since: 0 } };
    await expectSeries(page, {
      config_last_reload_successful: 0,
      config_last_reload_success_timestamp_seconds: 1_700_000_000,
      'time_to_search_recent_seconds{percentile=50}': 1.5,
      'time_to_search_recent_seconds{window=24h}': undefined,
      'time_to_search_seconds_bucket{le=10}': 4,
      'time_to_search_seconds_bucket{le=+Inf}': 5,
      time_to_search_seconds_sum: 41.5,
      'items_waiting{collection=inbox}': 2,
      oldest_waiting_seconds: expect.closeTo(92, -1),
      'alert{code=TIME_TO_SEARCH}': 1,
      last_confirmed_timestamp_seconds: 1_700_000_000.5,
      'items{status=confirmed}': 2,
      peer_up: 0,
      'circuit_state{state=closed}': 0,
      'circuit_state{state=open}': 1,
      paused: 1,
    });
  });

  it('names a limited number of mirrors, and counts the rest', async () => {
    const page = await PageAtWork.start();
    const mirror = (_: unknown, i: number) => ({
      name: `m${i}`,
      kind: 'share' as const,
      path: `${i}`,
      succeededAt: i,
    });
    page.mirrors = Array.from({ length: 2_000 }, mirror);
    const all = await scraped(page);
    expect(all.filter(({ name }) => name === 'peersync_mirror_age_seconds')).toHaveLength(
      MAX_MIRRORS,
    );
    await expectSeries(page, {
      'mirrors{state=good}': 2_000,
      mirrors_unnamed: 2_000 - MAX_MIRRORS,
    });
    const oldest = all.find(({ name }) => name === 'peersync_mirrors_oldest_success_seconds');
    expect(oldest?.value).toBeGreaterThan(1e9);
  });

  it.each([
    ['text/html,*/*', 'text/plain; version=0.0.4'],
    ['application/openmetrics-text;q=0, text/plain', 'text/plain; version=0.0.4'],
    [OPENMETRICS, 'application/openmetrics-text; version=1.0.0'],
  ])('answers a client that accepts "%s" with %s', async (accept, type) => {
    const page = await busy();
    // The next one may take another form.
    for (const other of ['*/*', OPENMETRICS, accept]) {
      const { headers, status } = await page.fetch('/metrics', { headers: { accept: other } });
      if (other === accept)
        expect([status, headers.get('content-type')]).toEqual([200, expect.stringContaining(type)]);
    }
  });
});

it('the names of the metrics follow the conventions, and src/report/README.md lists them', () => {
  for (const [key, help] of Object.entries(METRICS)) {
    const { name, type } = described(key);
    expect(name).toMatch(/^peersync_[a-z][a-z_]*$/);
    expect(name).not.toMatch(/_(ms|millis|minutes|kb|mb)(_|$)/);
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    expect(help).toMatch(/^[A-Z0-9][^"\n]*\.$/);
  }
  const readme = readFileSync(new URL('../../src/report/README.md', import.meta.url), 'utf8');
  expect(readme).toContain(metricDocs());
});

it('GET /healthz reports that the daemon is alive, or the loops that are stuck', async () => {
  const page = await PageAtWork.start();
  const healthz = async () => {
    const answer = await page.fetch('/healthz');
    return [answer.status, await answer.json()];
  };
  expect(await healthz()).toMatchObject([200, { alive: true, reasons: [] }]);
  page.stuck = [{ name: 'push', what: 'what is due is not pushed', since: 0 }];
  const reason = { code: 'STUCK', message: 'It stands still: what is due is not pushed.' };
  expect(await healthz()).toMatchObject([503, { alive: false, reasons: [reason] }]);
});

describe('GET /readyz', () => {
  async function reasons(page: PageAtWork): Promise<string[]> {
    const answer = await page.fetch('/readyz');
    const { ready, reasons } = (await answer.json()) as {
      ready: boolean;
      reasons: { code: string; message: string; hint: string }[];
    };
    expect([answer.status, ready]).toEqual(reasons.length === 0 ? [200, true] : [503, false]);
    for (const { message, hint } of reasons) expect(`${message}${hint}`).toMatch(/\..*\.$/);
    return reasons.map(({ code, message }) => `${code}: ${message}`);
  }

  it('is ready if nothing prevents files from becoming searchable', async () => {
    const page = await PageAtWork.start();
    expect(await reasons(page)).toEqual([]);
    page.queue = { ...page.queue, paused: { since: 0 } };
    expect(await reasons(page)).toEqual([]);
  });

  it('reports a peer that fails or has never answered', async () => {
    const page = await PageAtWork.start();
    const { circuit } = page.queue;
    const reason = {
      kind: 'unreachable',
      message: 'It refused the connection',
      hint: 'Start it.',
    } as const;
    page.queue = {
      ...page.queue,
      circuit: { ...circuit, state: 'half-open', reason, held: ['push'] },
    };
    expect(await reasons(page)).toEqual([
      'PEER: The peer does not answer: It refused the connection.',
    ]);
    page.queue = { ...page.queue, circuit };
    page.isDialectKnown = false;
    expect(await reasons(page)).toEqual([
      'PEER: The peer has not answered yet since peersync started.',
    ]);
  });

  it('reports, like the metrics, that the state cannot be written, and when it can again', async () => {
    const disk = new DiskWithFaults();
    const page = await PageAtWork.start({ open: disk.open });
    disk.space = 0;
    page.state.put(pendingRecord('a.md'));
    await expect(page.state.commit()).rejects.toThrow();
    expect((await reasons(page))[0]).toMatch(/^STATE_FULL: The state in .* cannot grow/);
    await expectSeries(page, { state_writable: 0, state_unsaved_changes: 1 });
    disk.space = Number.POSITIVE_INFINITY;
    await page.state.commit();
    expect(await reasons(page)).toEqual([]);
  });

  it('reports that the state directory is gone, or at once that its disk does not answer', async () => {
    const page = await PageAtWork.start();
    rmSync(page.config.state.dir, { recursive: true });
    expect((await reasons(page))[0]).toMatch(/^STATE_UNWRITABLE: /);
    const message =
      'The disk of /srv/state does not answer: what is known is not brought to the disk.';
    page.diskFailure = {
      code: 'DISK_SILENT',
      path: '/srv/state',
      since: 0,
      message,
      hint: 'Nothing is lost.',
    };
    expect(await reasons(page)).toEqual([`DISK_SILENT: ${message}`]);
  });
});
