import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { wallAheadMs } from '../lib/clock.js';
import { readBuild, VERSION } from '../lib/process.js';
import { nextTurn } from '../lib/slices.js';
import type { Live } from '../report/live.js';

/** The number of mirrors with series of their own. Patterns may bring thousands. */
export const MAX_MIRRORS = 200;

/** The number of workers with series of their own. */
const MAX_WORKERS = 200;

/**
 * All metrics of peersync with their labels, and their meaning in one sentence. The sentences also
 * appear in src/report/README.md. They contain no double quotes, which one of the two formats does
 * not allow. A name that ends in `_total` is a counter, one in `BUCKETS` a histogram; all others
 * are gauges.
 */
export const METRICS = {
  'peersync_items{folder, status}':
    'Known files by status: pending, accepted, confirmed, quarantined, gone, removing, removed or skipped.',
  peersync_items_accepted_total:
    'How often the peer accepted a file. A file may be accepted more than once until it is searchable.',
  peersync_items_confirmed_total: 'How often a file was confirmed to be searchable.',
  peersync_items_quarantined_total: 'How often a file was quarantined.',
  peersync_lookups_per_confirmed_item:
    'Look-up requests for each confirmation since the start, those of removals and checks included. It is a little more than 1 when peersync has learned how long the peer takes.',
  peersync_items_in_flight: 'Files in push requests under way.',
  peersync_documents_reading: 'Documents whose text is being extracted.',
  peersync_documents_waiting:
    'Documents whose text is still to be extracted, as far as they are in memory: up to 20,000.',
  peersync_documents_read_total:
    'Documents that were read since the start, those included in which nothing could be read.',
  peersync_document_pages_ocr_total: 'Pages of documents that were read by OCR since the start.',
  peersync_items_confirming: 'Accepted files that are looked up until the peer shows them.',
  peersync_last_confirmed_timestamp_seconds:
    'When a file was last confirmed to be searchable, as Unix time.',
  peersync_time_to_visible_seconds: 'Learned time from a push until the peer shows the document.',
  'peersync_time_to_search_seconds{collection}':
    'Time from a file at rest until it is confirmed, since the start.',
  'peersync_time_to_search_recent_seconds{collection, window, percentile}':
    'Percentiles of the time from a file at rest until it is confirmed, over the last hour (1h) and day (24h).',
  'peersync_items_waiting{collection}': 'Files pending or accepted, by collection.',
  'peersync_oldest_waiting_seconds{collection}':
    'Time since the file that waits longest was at rest, or 0 if none waits.',
  'peersync_alert{code, collection}':
    '1 for each missed target of the section alerts of the configuration, absent if there is none.',
  'peersync_condition{code, severity, subject}':
    '1 for each condition that `peersync status` shows, absent if there is none.',
  peersync_peer_up: 'Whether the peer answers: 0 until its first answer, and while it fails.',
  'peersync_circuit_state{state}':
    'State of the circuit breaker: 1 for the current one, 0 for the others.',
  peersync_paused: 'Whether a person paused the work with the peer.',
  peersync_peer_asked_to_wait: 'Whether the peer asked to wait (429, or 503 with Retry-After).',
  peersync_pushes_total: 'Push requests that were sent, including retries.',
  peersync_push_bytes_total: 'Bytes of the bodies of push requests that began to be sent.',
  peersync_lookups_total: 'Requests that looked up a document.',
  'peersync_requests_total{lane}':
    'Started tasks for the peer, by lane. A task may take more than one request.',
  'peersync_requests_failed_total{lane}': 'Failed tasks for the peer, by lane.',
  'peersync_requests_running{lane}': 'Tasks for the peer under way, by lane.',
  'peersync_requests_waiting{lane}':
    'Waiting tasks for the peer, by lane. The backlog itself is on disk, see peersync_items.',
  'peersync_request_latency_median_seconds{lane}':
    'Median time of the last hundred answered tasks, by lane.',
  peersync_concurrency_running: 'Pushes and look-ups under way.',
  peersync_concurrency_limit: 'Learned limit of concurrent pushes and look-ups.',
  peersync_concurrency_max: 'Configured limit of concurrent pushes and look-ups.',
  peersync_fleet_redis_up:
    'Whether Redis answers, and no other peersync uses the same prefix. Absent without workers in the configuration, as all metrics of the fleet are.',
  'peersync_fleet_jobs{state}':
    'Jobs of the fleet: waiting for a worker, or active (a worker does them).',
  peersync_fleet_oldest_waiting_seconds:
    'Time since the job was added that waits longest for a worker, or 0 if none waits.',
  peersync_fleet_workers: 'Workers that were seen lately, those included that take no jobs.',
  'peersync_worker_ready{host, worker}':
    'Whether a worker takes jobs: 0 while it has another version or does not see a folder.',
  'peersync_worker_peer_up{host, worker}':
    'Whether a worker may push, as far as it knows: 0 while its configuration names another peer, or after the peer did not let it in or was not reached.',
  'peersync_worker_jobs{host, worker}': 'Jobs that a worker does now.',
  'peersync_worker_slots{host, worker}': 'The most jobs that a worker does at a time.',
  'peersync_worker_done_total{host, worker}': 'Documents that a worker did since its start.',
  'peersync_worker_failed_total{host, worker}': 'Jobs of a worker that failed since its start.',
  'peersync_worker_seen_seconds{host, worker}': 'Time since a worker was last seen.',
  'peersync_folder_state{folder, state}':
    'State of the watch of a folder: 1 for the current one. In held, the root is missing. In degraded, a limit of the system is reached, and only scans find changes.',
  'peersync_folder_last_scan_timestamp_seconds{folder}':
    'When the last scan of a folder ended, as Unix time.',
  'peersync_folder_last_scan_duration_seconds{folder}': 'How long the last scan of a folder took.',
  'peersync_folder_last_scan_files{folder}': 'Files that the last scan of a folder listed.',
  'peersync_folder_directories_watched{folder}': 'Directories with file system events.',
  'peersync_folder_settling_files{folder}': 'Files that are not yet at rest.',
  'peersync_folder_problems{folder}': 'Paths that could not be read.',
  'peersync_folder_deletes_awaiting_approval{folder}':
    'Removed files whose documents stay in the peer until a person approves their removal.',
  'peersync_mirrors{state}':
    'Mirrors by state: good, failing, condition (a person has to look), or waiting for the first try.',
  peersync_mirror_conflicts:
    'Conflicts of all mirrors: cells of two-way tables that changed on both sides, and mirrored files that somebody edited.',
  peersync_mirrors_oldest_success_seconds:
    'The greatest peersync_mirror_age_seconds of all mirrors.',
  'peersync_mirror_age_seconds{mirror}':
    'Time since a mirrored file was last known to be up to date, for the first 200 mirrors.',
  'peersync_mirror_condition{mirror}':
    'Whether a mirror reports a condition and waits for a person, for the first 200 mirrors.',
  'peersync_mirror_failures{mirror}':
    'Consecutive failures of a mirror, for the first 200 mirrors.',
  peersync_mirrors_unnamed:
    'Mirrors without series of their own, because there are too many. They count in the sums.',
  peersync_state_records: 'Files in the state.',
  peersync_state_journal_bytes: 'Size of the journal: the changes since the last snapshot.',
  peersync_state_snapshot_bytes: 'Size of the last snapshot.',
  peersync_state_unsaved_changes: 'Changes that are not on disk yet. Nothing acts on them.',
  peersync_state_compactions_total:
    'How often the journal and the snapshot were merged into a new snapshot.',
  peersync_state_sync_seconds: 'How long the disk took to make changes durable (fdatasync).',
  peersync_state_writable:
    'Whether the last changes could be written: 0 while the disk is full or fails.',
  peersync_state_repairs:
    'Damages that were found and repaired when the state was loaded at the start.',
  peersync_state_repair_audit_left:
    'Documents that are still to be compared with the peer after the state lost changes, or 0.',
  peersync_config_last_reload_successful:
    'Whether the configuration file was applied when it was last read: 0 while a changed one is refused, and the one before is in effect.',
  peersync_config_last_reload_success_timestamp_seconds:
    'When the configuration file was last applied, by a start or a reload, as Unix time.',
  'peersync_event_loop_seconds_total{state}':
    'Time of the event loop since the start, active or idle. The rate of active is its utilisation.',
  peersync_page_followers: 'Browsers with the status page open.',
  'peersync_build_info{version, commit, node}': 'Always 1. The labels name the version that runs.',
} as const;

/** The histograms, with the upper ends of their buckets in the unit of the name. */
const BUCKETS = new Map<string, number[]>([
  [
    'peersync_time_to_search_seconds',
    [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 10_800, 21_600, 43_200, 86_400],
  ],
  [
    'peersync_state_sync_seconds',
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
  ],
]);

/** Returns the name and the labels of a key of `METRICS`: `peersync_items{folder, status}`. */
export function described(key: string): {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
} {
  const [name = '', labels = ''] = key.split(/[{}]/);
  const type = name.endsWith('_total') ? 'counter' : BUCKETS.has(name) ? 'histogram' : 'gauge';
  return { name, type, labels: labels === '' ? [] : labels.split(', ') };
}

/** The table of them in src/report/README.md. */
export function metricDocs(): string {
  const rows = Object.entries(METRICS).map(
    ([key, help]) => `| \`${key}\` | ${described(key).type} | ${help} |`,
  );
  return ['| metric | kind | meaning |', '| --- | --- | --- |', ...rows].join('\n');
}

/** Resolution of a sampler of the event loop that is not used, in ms: a day. */
const UNUSED_SAMPLER_MS = 24 * 60 * 60_000;
/**
 * Metrics of the process that are left out. Listing open handles takes 100 ms with 100,000 watched
 * directories. Percentiles of the lag of the event loop need a timer: every 10 ms, it takes ten
 * times the processor time of a daemon at rest. The lag itself is measured here, because the one of
 * prom-client computes these percentiles at each scrape, a third of its time.
 */
const LEFT_OUT = /^nodejs_(active_|eventloop_lag_)/;
const LAG = {
  name: 'nodejs_eventloop_lag_seconds',
  help: 'Lag of event loop in seconds.',
};

type Labels = Readonly<Record<string, string>>;

/** The labels that name this version; read from disk once. */
const BUILD: Labels = {
  version: VERSION,
  commit: readBuild().commit ?? '',
  node: process.versions.node,
};

/** The values of each metric. */
type Values = ReadonlyMap<string, readonly (readonly [labels: Labels, value: number])[]>;

/**
 * Writes the metrics in the requested format.
 *
 * The counters are kept where things happen, and a scrape reads them. There is one registry for
 * each of the two formats, created at its first scrape, because a counter's name depends on the
 * format. Metrics of the process are read at a scrape, too: between two, nothing is sampled.
 */
export class Metrics {
  readonly #live: Live;
  readonly #registries = new Map<string, Registry>();
  readonly #histograms: readonly Histogram[];
  #values: Values = new Map();
  /** How long the last scrape waited for the event loop, in seconds. */
  #lag = 0;

  constructor(live: Live) {
    this.#live = live;
    const timeToSearch = histogramOf('peersync_time_to_search_seconds{collection}');
    const stateSync = histogramOf('peersync_state_sync_seconds');
    this.#histograms = [timeToSearch, stateSync];
    live.parts.statistics.onConfirmed = (collection, ms) =>
      timeToSearch.observe({ collection }, ms / 1_000);
    live.parts.state.onSync = (seconds) => stateSync.observe(seconds);
  }

  /**
   * @param accept the `accept` header of the request
   * @param followers the number of browsers that follow the page
   */
  async write(
    accept = '',
    followers = 0,
  ): Promise<{ readonly type: string; readonly text: string }> {
    const type = wantsOpenMetrics(accept)
      ? Registry.OPENMETRICS_CONTENT_TYPE
      : Registry.PROMETHEUS_CONTENT_TYPE;
    const registry = this.#registries.get(type) ?? this.#newRegistry(type);
    this.#values = valuesOf(this.#live, followers);
    // With thousands of mirrors, reading takes a moment. Other work proceeds before the values are
    // written.
    const { clock } = this.#live;
    const waitsSince = clock.now();
    await nextTurn();
    this.#lag = (clock.now() - waitsSince) / 1_000;
    return { type, text: await registry.metrics() };
  }

  #newRegistry(type: string): Registry {
    const registry = new Registry();
    registry.setContentType(type as typeof registry.contentType);
    this.#registries.set(type, registry);
    const valuesNow = (name: string) => this.#values.get(name) ?? [];
    for (const [key, help] of Object.entries(METRICS)) {
      const { name, labels: labelNames, type: kind } = described(key);
      if (kind === 'histogram') continue;
      const Kind = kind === 'counter' ? Counter : Gauge;
      new Kind({
        name,
        help,
        labelNames,
        registers: [registry],
        collect() {
          this.reset();
          // A metric without labels would be 0 if it has no value.
          if (labelNames.length === 0) this.remove();
          for (const [labels, value] of valuesNow(name)) this.inc(labels, value);
        },
      });
    }
    for (const histogram of this.#histograms) registry.registerMetric(histogram);
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: UNUSED_SAMPLER_MS });
    for (const { name } of registry.getMetricsAsArray())
      if (LEFT_OUT.test(name)) registry.removeSingleMetric(name);
    const lagNow = () => this.#lag;
    new Gauge({
      ...LAG,
      registers: [registry],
      collect() {
        this.set(lagNow());
      },
    });
    return registry;
  }
}

function histogramOf(key: keyof typeof METRICS): Histogram {
  const { labels: labelNames, name } = described(key);
  const buckets = BUCKETS.get(name) ?? [];
  return new Histogram({ name, help: METRICS[key], labelNames, buckets, registers: [] });
}

/**
 * Returns whether a client accepts OpenMetrics by name. Prometheus does; browsers get the other
 * format.
 */
function wantsOpenMetrics(accept: string): boolean {
  const parts = accept
    .split(',')
    .filter((part) => /^\s*application\/openmetrics-text\s*(;|$)/i.test(part));
  return parts.some((part) => !/;\s*q=0(\.0*)?\s*(;|$)/.test(part));
}

const FOLDER_STATES = ['scanning', 'watching', 'unwatched', 'held', 'degraded'];
const CIRCUIT_STATES = ['closed', 'open', 'half-open'];

/**
 * Returns all values that a scrape reads, taken at one moment. Metrics without a value are left
 * out.
 */
export function valuesOf(live: Live, followers = 0): Values {
  const { clock, parts } = live;
  const status = live.status();
  const now = clock.now();
  const values = new Map<string, (readonly [Labels, number])[]>();
  const set = (name: string, value: number | boolean | undefined, labels: Labels = {}) => {
    if (value === undefined) return;
    const all = values.get(name) ?? [];
    values.set(name, all);
    all.push([labels, Number(value)]);
  };
  const ageOf = (at: number) => Math.max(0, now - at) / 1_000;
  items();
  peer();
  fleet();
  folders();
  mirrors();
  state();
  return values;

  function items(): void {
    const { conditions, figures, uplink } = status;
    const { totals } = parts.statistics;
    const { peerdoc } = parts.client.requests;
    for (const { name: folder, items } of status.folders)
      for (const [status, count] of Object.entries(items))
        set('peersync_items', count, { folder, status });
    set('peersync_items_accepted_total', totals.accepted);
    set('peersync_items_confirmed_total', totals.confirmed);
    set('peersync_items_quarantined_total', totals.quarantined);
    if (totals.confirmed > 0)
      set('peersync_lookups_per_confirmed_item', peerdoc / totals.confirmed);
    set('peersync_items_in_flight', uplink?.inFlight);
    set('peersync_documents_reading', uplink?.documents?.reading);
    set('peersync_documents_waiting', uplink?.documents?.waiting);
    const { documents, ocrPages } = parts.uplink.readTotals;
    set('peersync_documents_read_total', documents);
    set('peersync_document_pages_ocr_total', ocrPages);
    set('peersync_items_confirming', uplink?.confirming);
    set('peersync_time_to_visible_seconds', seconds(uplink?.timeToVisibleMs));
    const last = figures?.lastConfirmedAt;
    set('peersync_last_confirmed_timestamp_seconds', seconds(last && last + wallAheadMs(clock)));
    for (const { collection, day, hour, oldestSince, waiting } of figures?.timeToSearch ?? []) {
      for (const [window, times] of [['1h', hour] as const, ['24h', day] as const]) {
        const name = 'peersync_time_to_search_recent_seconds';
        set(name, seconds(times.p50Ms), { collection, window, percentile: '50' });
        set(name, seconds(times.p95Ms), { collection, window, percentile: '95' });
        set(name, seconds(times.p99Ms), { collection, window, percentile: '99' });
      }
      set('peersync_items_waiting', waiting, { collection });
      set('peersync_oldest_waiting_seconds', ageOf(oldestSince ?? now), { collection });
    }
    for (const { code, collection } of figures?.alerts ?? [])
      set('peersync_alert', 1, { code, collection });
    const known = conditions.map(({ code, severity, subject }) => ({ code, severity, subject }));
    for (const labels of new Map(known.map((one) => [JSON.stringify(one), one])).values())
      set('peersync_condition', 1, labels);
  }

  function peer(): void {
    const { dialect, queue } = status.peer;
    const { pushedBytes, requests } = parts.client;
    const circuit = queue?.circuit.state ?? 'closed';
    set('peersync_peer_up', dialect !== undefined && queue?.circuit.state === 'closed');
    for (const state of CIRCUIT_STATES) set('peersync_circuit_state', state === circuit, { state });
    set('peersync_paused', queue?.paused !== undefined);
    set('peersync_peer_asked_to_wait', (queue?.retryAfterUntil ?? 0) > now);
    set('peersync_pushes_total', requests.push);
    set('peersync_push_bytes_total', pushedBytes);
    set('peersync_lookups_total', requests.peerdoc);
    for (const [lane, { failed, p50LatencyMs, running, started, waiting }] of Object.entries(
      queue?.lanes ?? {},
    )) {
      set('peersync_requests_total', started, { lane });
      set('peersync_requests_failed_total', failed, { lane });
      set('peersync_requests_running', running, { lane });
      set('peersync_requests_waiting', waiting, { lane });
      set('peersync_request_latency_median_seconds', seconds(p50LatencyMs), { lane });
    }
    set('peersync_concurrency_running', queue?.concurrency.running);
    set('peersync_concurrency_limit', queue?.concurrency.limit);
    set('peersync_concurrency_max', queue?.concurrency.max);
  }

  function fleet(): void {
    const { fleet: known } = status;
    if (known === undefined) return;
    const { active, failure, oldestSince, redis, waiting, workers } = known;
    set('peersync_fleet_redis_up', redis === 'there' && failure === undefined);
    set('peersync_fleet_jobs', waiting, { state: 'waiting' });
    set('peersync_fleet_jobs', active, { state: 'active' });
    set('peersync_fleet_oldest_waiting_seconds', ageOf(oldestSince ?? now));
    set('peersync_fleet_workers', workers.length);
    for (const worker of workers.slice(0, MAX_WORKERS)) {
      const labels = { host: worker.host, worker: worker.id };
      set('peersync_worker_ready', worker.idle === undefined, labels);
      set('peersync_worker_peer_up', worker.noPush === undefined, labels);
      set('peersync_worker_jobs', worker.active, labels);
      set('peersync_worker_slots', worker.slots, labels);
      set('peersync_worker_done_total', worker.done, labels);
      set('peersync_worker_failed_total', worker.failed, labels);
      set('peersync_worker_seen_seconds', ageOf(worker.seenAt), labels);
    }
  }

  function folders(): void {
    for (const { name: folder, watch, massDeletion } of status.folders) {
      const problems = status.problems.filter((problem) => problem.folder === folder);
      set('peersync_folder_problems', problems.length, { folder });
      set('peersync_folder_deletes_awaiting_approval', massDeletion?.files ?? 0, { folder });
      if (watch === undefined) continue;
      for (const state of FOLDER_STATES)
        set('peersync_folder_state', state === watch.state, { folder, state });
      const { directoriesWatched, lastScan, settling } = watch;
      set('peersync_folder_last_scan_timestamp_seconds', seconds(lastScan?.at), { folder });
      set('peersync_folder_last_scan_duration_seconds', seconds(lastScan?.durationMs), { folder });
      set('peersync_folder_last_scan_files', lastScan?.files, { folder });
      set('peersync_folder_directories_watched', directoriesWatched, { folder });
      set('peersync_folder_settling_files', settling, { folder });
    }
  }

  function mirrors(): void {
    const { mirrors: all } = status;
    const counts = { good: 0, waiting: 0, failing: 0, condition: 0 };
    let [conflicts, oldest] = [0, now];
    for (const [
      i,
      { condition, conflicts: own = [], failure, failures = 0, name, succeededAt },
    ] of all.entries()) {
      const good = succeededAt === undefined ? 'waiting' : 'good';
      counts[condition ? 'condition' : failure ? 'failing' : good] += 1;
      conflicts += own.length;
      oldest = Math.min(oldest, succeededAt ?? now);
      if (i >= MAX_MIRRORS) continue;
      if (succeededAt !== undefined)
        set('peersync_mirror_age_seconds', ageOf(succeededAt), { mirror: name });
      set('peersync_mirror_condition', condition !== undefined, { mirror: name });
      set('peersync_mirror_failures', failures, { mirror: name });
    }
    for (const [state, count] of Object.entries(counts)) set('peersync_mirrors', count, { state });
    set('peersync_mirror_conflicts', conflicts);
    if (all.length > 0) set('peersync_mirrors_oldest_success_seconds', ageOf(oldest));
    set('peersync_mirrors_unnamed', Math.max(0, all.length - MAX_MIRRORS));
  }

  function state(): void {
    const { compactions, failure, journalBytes, records, snapshotBytes, unsaved } =
      parts.state.figures();
    const { configuration } = status;
    set('peersync_state_records', records);
    set('peersync_state_journal_bytes', journalBytes);
    set('peersync_state_snapshot_bytes', snapshotBytes);
    set('peersync_state_unsaved_changes', unsaved);
    set('peersync_state_compactions_total', compactions);
    set('peersync_state_writable', failure === undefined);
    set('peersync_state_repairs', status.repairs.length);
    const { checked = 0, of = 0 } = status.repairAudit ?? {};
    set('peersync_state_repair_audit_left', of - checked);
    set(
      'peersync_config_last_reload_successful',
      configuration && configuration.refused === undefined,
    );
    set('peersync_config_last_reload_success_timestamp_seconds', seconds(configuration?.takenUpAt));
    const { active, idle } = performance.eventLoopUtilization();
    set('peersync_event_loop_seconds_total', active / 1_000, { state: 'active' });
    set('peersync_event_loop_seconds_total', idle / 1_000, { state: 'idle' });
    set('peersync_page_followers', followers);
    set('peersync_build_info', 1, BUILD);
  }
}

function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1_000;
}
