import type { FleetReport, WorkerStatus } from '../../src/report/fleet.js';
import { NOW } from '../commands/report.js';

/** A worker that reads two documents. */
export function workerOf(host: string, parts: Partial<WorkerStatus> = {}): WorkerStatus {
  return {
    id: `id-of-${host}`,
    host,
    pid: 4711,
    version: '1.2.3',
    build: '1.2.3 abc',
    slots: 4,
    active: 2,
    done: 1_204,
    failed: 3,
    perSecond: 1.5,
    seenAt: NOW - 2_000,
    ...parts,
  };
}

/** A fleet whose Redis answers, with these workers. */
export function fleetOf(
  workers: readonly WorkerStatus[],
  parts: Partial<FleetReport> = {},
): FleetReport {
  return {
    address: 'redis://10.0.0.5:6379',
    prefix: 'peersync',
    build: '1.2.3 abc',
    redis: 'there',
    waiting: 0,
    active: workers.reduce((sum, { active }) => sum + active, 0),
    workers,
    lost: [],
    ...parts,
  };
}
