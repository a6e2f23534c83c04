import type { FolderReport } from '../../report/status.js';
import type { Metric, Value } from './metric.js';

/** What becomes of the files. */
export const ITEM_METRICS: readonly Metric[] = [
  {
    name: 'peersync_items',
    type: 'gauge',
    help: 'Files known, by what became of them: pending, accepted, confirmed, quarantined, gone or passed (over by a rule).',
    labels: ['folder', 'status'],
    *read({ status }) {
      for (const folder of status.folders) yield* itemsOf(folder);
    },
  },
  {
    name: 'peersync_items_accepted_total',
    type: 'counter',
    help: 'How often the peer accepted a file; it may take more than one acceptance until a file is searchable.',
    read: ({ totals }) => totals.accepted,
  },
  {
    name: 'peersync_items_confirmed_total',
    type: 'counter',
    help: 'How often a file was confirmed to be searchable.',
    read: ({ totals }) => totals.confirmed,
  },
  {
    name: 'peersync_items_quarantined_total',
    type: 'counter',
    help: 'How often a file was quarantined.',
    read: ({ totals }) => totals.quarantined,
  },
  {
    name: 'peersync_lookups_per_confirmed_item',
    type: 'gauge',
    help: 'Look-ups for each confirmation since the start; little more than 1 where peersync knows its peer well.',
    read: ({ requests, totals }) =>
      totals.confirmed === 0 ? undefined : requests.peerdoc / totals.confirmed,
  },
  {
    name: 'peersync_items_in_flight',
    type: 'gauge',
    help: 'Files in push requests that are under way.',
    read: ({ status }) => status.uplink?.inFlight,
  },
  {
    name: 'peersync_items_confirming',
    type: 'gauge',
    help: 'Files that the peer accepted and that are looked up until it shows them.',
    read: ({ status }) => status.uplink?.confirming,
  },
  {
    name: 'peersync_last_confirmed_timestamp_seconds',
    type: 'gauge',
    help: 'When a file was last confirmed to be searchable, as Unix time.',
    read: ({ status, wallAheadMs }) => {
      const at = status.figures?.lastConfirmedAt;
      return at === undefined ? undefined : seconds(at + wallAheadMs);
    },
  },
  {
    name: 'peersync_time_to_visible_seconds',
    type: 'gauge',
    help: 'How long the peer takes from a push until it shows the document, as peersync has learned it.',
    read: ({ status }) => seconds(status.uplink?.timeToVisibleMs),
  },
  {
    name: 'peersync_time_to_search_seconds',
    type: 'histogram',
    help: 'Time from a file being at rest until it is confirmed, since the start.',
    labels: ['collection'],
    read: ({ timeToSearch }) => timeToSearch,
  },
  {
    name: 'peersync_time_to_search_recent_seconds',
    type: 'gauge',
    help: 'Percentiles of the time from a file being at rest until it is confirmed, over the last hour (1h) and day (24h).',
    labels: ['collection', 'window', 'percentile'],
    *read({ status }) {
      for (const { collection, hour, day } of status.figures?.timeToSearch ?? []) {
        for (const [window, times] of Object.entries({ '1h': hour, '24h': day })) {
          const percentiles = { 50: times.p50Ms, 95: times.p95Ms, 99: times.p99Ms };
          for (const [percentile, ms] of Object.entries(percentiles)) {
            if (ms !== undefined) yield { labels: { collection, window, percentile }, value: ms / 1000 };
          }
        }
      }
    },
  },
  {
    name: 'peersync_items_waiting',
    type: 'gauge',
    help: 'Files pending or accepted, by collection.',
    labels: ['collection'],
    *read({ status }) {
      for (const { collection, waiting } of status.figures?.timeToSearch ?? [])
        yield { labels: { collection }, value: waiting };
    },
  },
  {
    name: 'peersync_oldest_waiting_seconds',
    type: 'gauge',
    help: 'How long the file that has waited longest has been at rest; 0 where none waits.',
    labels: ['collection'],
    *read({ status, now }) {
      for (const { collection, oldestSince } of status.figures?.timeToSearch ?? [])
        yield {
          labels: { collection },
          value: oldestSince === undefined ? 0 : Math.max(0, now - oldestSince) / 1000,
        };
    },
  },
  {
    name: 'peersync_alert',
    type: 'gauge',
    help: '1 for each alarm that the alerts of the configuration raise; absent where there is none.',
    labels: ['code', 'collection'],
    *read({ status }) {
      for (const { code, collection } of status.figures?.alerts ?? [])
        yield { labels: { code, collection }, value: 1 };
    },
  },
  {
    name: 'peersync_condition',
    type: 'gauge',
    help: '1 for each thing that a person should know, as `peersync status` names it; absent where there is none.',
    labels: ['code', 'severity', 'subject'],
    *read({ status }) {
      const seen = new Set<string>();
      for (const { code, severity, subject } of status.conditions) {
        const labels = { code, severity, subject };
        const key = JSON.stringify(labels);
        if (!seen.has(key)) yield { labels, value: 1 };
        seen.add(key);
      }
    },
  },
];

function* itemsOf({ name, items, passedOver }: FolderReport): Generator<Value> {
  for (const [status, value] of Object.entries({ ...items, passed: passedOver }))
    yield { labels: { folder: name, status }, value };
}

function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}
