import type { WorkerReport } from './protocol.js';

/** Why workers are not used. */
export interface FleetFailure {
  /**
   * - `redis`: Redis does not answer, or not as it should.
   * - `loading`: Redis loads its data.
   * - `owned`: another peersync with another state uses the same prefix.
   */
  readonly kind: 'redis' | 'loading' | 'owned';
  /** One sentence. */
  readonly message: string;
  /** The remedy, in whole sentences. */
  readonly hint: string;
  readonly since: number;
}

/** A worker as the owner sees it. Times are by the clock of the owner, in ms since the epoch. */
export interface WorkerStatus
  extends Omit<WorkerReport, 'orders' | 'pushSlots' | 'slots' | 'seenAt'> {
  /** The most documents and batches of pushes at a time. */
  readonly slots: number;
  /** Documents a second, over the last minute. Undefined until it is known. */
  readonly perSecond?: number | undefined;
  readonly seenAt: number;
}

/** A worker that ended without reporting that it stops. */
export type LostWorker = Pick<WorkerStatus, 'id' | 'host' | 'seenAt'>;

/** The fleet as people see it. Times are by the clock of the owner, in ms since the epoch. */
export interface FleetStatus {
  /** The address of Redis, which contains no password. */
  readonly address: string;
  readonly prefix: string;
  /** Version and commit of the owner. Workers must have the same. */
  readonly build: string;
  /** `connecting`: it has not answered yet, and has some time left to do so. */
  readonly redis: 'connecting' | 'there' | 'loading' | 'away';
  readonly failure?: FleetFailure | undefined;
  /** Jobs that no worker has taken yet: documents, and batches of pushes. */
  readonly waiting: number;
  /** When the oldest of these was added. */
  readonly oldestSince?: number | undefined;
  /** Jobs that workers do now. */
  readonly active: number;
  readonly workers: readonly WorkerStatus[];
  readonly lost: readonly LostWorker[];
  /** Since when there is no worker. Set after a while, so that a restart of one is not told. */
  readonly noneSince?: number | undefined;
}
