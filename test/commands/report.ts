import { textOf } from '../../src/cli/terminal.js';
import { wrapped } from '../../src/cli/text.js';
import { statusLines } from '../../src/commands/status-lines.js';
import { conditionsOf } from '../../src/report/conditions.js';
import {
  type FolderReport,
  paceOf,
  type StatusFacts,
  type StatusReport,
} from '../../src/report/status-report.js';

/** Returns the output of `status` without colours. */
export function statusText(
  ...[status, now, missing, width]: Parameters<typeof statusLines>
): string[] {
  return wrapped(statusLines(status, now, missing, width).map(textOf), width);
}

/** No files at all. */
export const NO_ITEMS = {
  pending: 0,
  accepted: 0,
  confirmed: 0,
  quarantined: 0,
  gone: 0,
  skipped: 0,
  removing: 0,
  removed: 0,
};

/** The time at which the reports of these tests are read. */
export const NOW = new Date(2026, 0, 5, 12, 30, 0).getTime();

const lane = { started: 0, failed: 0, running: 0, waiting: 0 };
/** A queue of a peer that answers. */
export const queue = {
  circuit: { state: 'closed' as const, since: NOW - 60_000, held: [], tries: 0 },
  concurrency: { running: 2, limit: 4, max: 8 },
  lanes: {
    interactive: lane,
    confirm: { ...lane, p50LatencyMs: 12 },
    push: lane,
    removal: lane,
    mirror: lane,
    audit: lane,
  },
};
export const counts = {
  ...NO_ITEMS,
  pending: 1_204_311,
  accepted: 40,
  confirmed: 12_345,
  gone: 7,
  skipped: 12,
};

export function folder(name: string): FolderReport {
  const watch = { name, state: 'watching' as const, since: 0, directoriesWatched: 1, settling: 0 };
  return { name, path: `/data/${name}`, collection: name, items: counts, watch };
}

/** A status without conditions. */
export function report(parts: Partial<StatusFacts> = {}): StatusReport {
  const status: StatusFacts = {
    configuration: undefined,
    paused: undefined,
    restart: undefined,
    page: undefined,
    truncated: undefined,
    stateFailure: undefined,
    diskFailure: undefined,
    stuck: [],
    wallAheadMs: undefined,
    repairAudit: undefined,
    version: '1.2.3',
    running: true,
    pid: 77,
    startedAt: NOW - 7_260_000,
    peer: { url: 'http://127.0.0.1:8090', dialect: 'yacy', queue },
    items: counts,
    pace: undefined,
    folders: [folder('inbox'), folder('notes')],
    formerFolders: [],
    uplink: { inFlight: 0, confirming: 0, timeToVisibleMs: 1_000 },
    figures: {
      confirmedPerSecond: 17.4,
      lastConfirmedAt: NOW - 2_000,
      timeToSearch: [],
      alerts: [],
    },
    unseenAddresses: [],
    mirrorRoot: '/data/mirror',
    mirrors: [],
    quarantined: [],
    problems: [],
    repairs: [],
    ...parts,
  };
  const { figures, folders, items, pace = paceAt(NOW) } = status;
  function paceAt(now: number) {
    const isScanning = folders.some(({ watch }) => watch?.state === 'scanning');
    const { confirmedPerSecond = 0 } = figures ?? {};
    return paceOf({ items, confirmedPerSecond, queue: status.peer.queue, isScanning }, now);
  }
  return { ...status, pace, conditions: conditionsOf(status) };
}
