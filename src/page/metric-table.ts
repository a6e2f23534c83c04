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
export const BUCKETS = new Map<string, number[]>([
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
