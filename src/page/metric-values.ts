import { wallAheadMs } from '../lib/clock.js';
import { readBuild, VERSION } from '../lib/process.js';
import type { Live } from '../report/live.js';

/** The number of mirrors with series of their own. Patterns may bring thousands. */
export const MAX_MIRRORS = 200;

/** The number of workers with series of their own. */
const MAX_WORKERS = 200;

type Labels = Readonly<Record<string, string>>;

/** The labels that name this version; read from disk once. */
const BUILD: Labels = {
  version: VERSION,
  commit: readBuild().commit ?? '',
  node: process.versions.node,
};

/** The values of each metric. */
export type Values = ReadonlyMap<string, readonly (readonly [labels: Labels, value: number])[]>;

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
