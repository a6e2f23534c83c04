// Status reports of an imaginary daemon. Everything is at rest unless a test overrides it.

import type { MirrorReport } from '../../src/mirror/record.js';
import type { ItemLine } from '../../src/page/api.js';
import type { QueueStatus } from '../../src/queue/request-queue.js';
import type { WorkerStatus } from '../../src/report/fleet.js';
import type { RecentEvent } from '../../src/report/live.js';
import type { Sample } from '../../src/report/statistics.js';
import type { FolderReport, StatusFacts, StatusReport } from '../../src/report/status-report.js';
import type { Entry } from '../../src/state/entry.js';
import { NO_ITEMS, report, queue as rest } from '../commands/report.js';

export const MIN = 60_000;
export const NOW = Date.now();

export function queue(over: Partial<QueueStatus> = {}): QueueStatus {
  const { lanes } = rest;
  const push = { ...lanes.push, failed: 1, p50LatencyMs: 84 };
  return { ...rest, lanes: { ...lanes, push }, ...over };
}

/** The watch status of a folder. */
export const WATCHED = { since: NOW - 60 * MIN, directoriesWatched: 210, settling: 0 };

/** Returns a condition. */
export const failure = (code: string, message: string, hint: string, minutes = 0) => ({
  code,
  message,
  hint,
  since: NOW - minutes * MIN,
});

export function folder(
  name: string,
  items: Partial<FolderReport['items']> = {},
  over: Partial<FolderReport> = {},
): FolderReport {
  const lastScan = {
    folder: name,
    files: 5210,
    directories: 210,
    durationMs: 412,
    at: NOW - 9 * MIN,
  };
  return {
    name,
    path: `/srv/library/${name}`,
    collection: name,
    items: { ...NO_ITEMS, ...items },
    watch: { ...WATCHED, name, state: 'watching', lastScan },
    ...over,
  };
}

/** Returns a status with these folders. */
export function statusOf(
  folders: readonly FolderReport[],
  over: Partial<StatusFacts> = {},
): StatusReport {
  const items = { ...NO_ITEMS };
  for (const { items: own } of folders) {
    for (const status of Object.keys(own) as (keyof typeof own)[]) items[status] += own[status];
  }
  return report({
    items,
    folders: [...folders],
    startedAt: NOW - 26 * 60 * MIN,
    mirrorRoot: '/srv/mirror',
    peer: { url: 'https://search.example.org', dialect: 'standard', queue: queue() },
    uplink: { inFlight: 0, confirming: 0, timeToVisibleMs: 1_900 },
    figures: { timeToSearch: [], confirmedPerSecond: 0, lastConfirmedAt: undefined, alerts: [] },
    ...over,
  });
}

export const timeToSearch = (collection: string, factor: number, waiting = 0) => ({
  collection,
  hour: { count: 320, p50Ms: 2_300 * factor, p95Ms: 4_900 * factor, p99Ms: 9_700 * factor },
  day: { count: 8_204, p50Ms: 2_500 * factor, p95Ms: 5_600 * factor, p99Ms: 14_200 * factor },
  waiting,
  ...(waiting > 0 ? { oldestSince: NOW - 48_000 } : {}),
});

/** Returns the samples of an hour with a burst in it. */
export function hourOf(peak: number): Sample[] {
  return Array.from({ length: 360 }, (_, i) => {
    const burst = Math.max(0, Math.sin((i - 90) / 38)) ** 3;
    const noise = 0.7 + 0.3 * Math.sin(i * 12.9898) * Math.cos(i * 4.1414);
    const confirmed = Math.round(peak * 10 * (0.06 + burst) * noise);
    return {
      at: NOW - (360 - i) * 10_000,
      confirmed,
      waiting: Math.round(peak * 60 * Math.max(0, Math.sin((i - 78) / 40)) ** 2 * noise),
      ...(confirmed > 0
        ? { p50Ms: 1_900 + 1_500 * burst * noise, p95Ms: 3_400 + 5_200 * burst * noise }
        : {}),
    };
  });
}

export function event(
  id: number,
  minutes: number,
  level: RecentEvent['level'],
  message: string,
): RecentEvent {
  return { id, at: NOW - minutes * MIN, level, message };
}

export function mirror(name: string, over: Partial<MirrorReport> = {}): MirrorReport {
  return {
    name,
    kind: 'table',
    path: `tables/${name}.csv`,
    table: name,
    rows: 1_204,
    bytes: 88_412,
    succeededAt: NOW - 4 * MIN,
    changedAt: NOW - 190 * MIN,
    nextAt: NOW + 11 * MIN,
    ...over,
  };
}

/** Returns a worker at rest. */
export function worker(host: string, over: Partial<WorkerStatus> = {}): WorkerStatus {
  return {
    id: `id-of-${host}`,
    host,
    pid: 4_711,
    version: '1.2.3',
    build: '1.2.3 abc',
    slots: 8,
    active: 0,
    done: 1_204,
    failed: 0,
    perSecond: 1.95,
    seenAt: NOW - 2_000,
    ...over,
  };
}

const TYPE =
  'The peer refused the document: "the content type application/x-tar is not supported".';
const NEVER = 'The peer accepted the document three times and never showed it.';
const REASONS = [
  failure(
    'PEER_REFUSED_ITEM',
    TYPE,
    'Convert the file to text or PDF, or keep it out with folders[].ignore.',
  ),
  failure('NOT_SHOWN', NEVER, 'Look whether its address is one that the peer takes, then retry.'),
  failure(
    'FILE_UNREADABLE',
    'The file cannot be read: permission denied.',
    'Let peersync read it, then retry.',
  ),
] as const;

export function item(index: number, status: string): ItemLine {
  const { code, message, hint } = REASONS[index % REASONS.length] ?? REASONS[0];
  const name = ['field-report', 'minutes', 'annual-review', 'draft'][index % 4];
  const number = String(index + 1).padStart(4, '0');
  const path = `${2020 + (index % 7)}/${name}-${number}.${['pdf', 'md', 'txt'][index % 3]}`;
  return {
    folder: 'papers',
    path,
    file: `/srv/library/papers/${path}`,
    status: status as Entry['status'],
    since: NOW - (index + 3) * 7 * MIN,
    size: 4_000 + index * 977,
    sha256: undefined,
    url: `https://files.example.org/papers/${path}`,
    isOlderSearchable: undefined,
    attempts: undefined,
    code: undefined,
    message: undefined,
    hint: undefined,
    ...(status === 'quarantined' ? { attempts: 3, code, message, hint } : {}),
    ...(status === 'skipped'
      ? { code: 'EMPTY', message: 'It is empty.', hint: 'Nothing is to be done.' }
      : {}),
  };
}
