import type { Stuck } from '../lib/health.js';
import type { MirrorReport } from '../mirror/record.js';
import type { DialectName } from '../peer/dialect.js';
import type { QueueStatus } from '../queue/request-queue.js';
import type { Trouble } from '../state/entry.js';
import type { NextLook } from '../uplink/looks.js';
import type { UplinkStatus } from '../uplink/uplink.js';
import type { FolderStatus, PathProblem } from '../watch/watcher.js';
import type { StatisticsReport } from './statistics.js';

/** A disk that gives no answer, and what waits for it. */
export interface SilentDisk {
  readonly path: string;
  /** The beginning of a sentence. */
  readonly what: string;
  /** Since when it waits, in ms since the epoch. */
  readonly since: number;
}

/** What only the running daemon knows. */
export interface Live {
  readonly pid: number;
  /** When the daemon started, in ms since the epoch. */
  readonly startedAt: number;
  /** How far the wall clock is ahead of the steady time that all dates here are of, in ms; 0 while nobody has set it. */
  wallAheadMs(): number;
  /** The peer's address, which the embedded peer only has while it runs. */
  readonly peerUrl: string;
  /** Where the status page is open; undefined while it is not. */
  page(): string | undefined;
  /** Undefined as long as it is not known. */
  dialect(): DialectName | undefined;
  queue(): QueueStatus;
  uplink(): UplinkStatus;
  folders(): readonly FolderStatus[];
  problems(): readonly PathProblem[];
  figures(): StatisticsReport;
  mirrors(): readonly MirrorReport[];
  isInFlight(place: { folder: string; path: string }): boolean;
  nextLook(place: { folder: string; path: string }): NextLook | undefined;
  /** The keys of the configuration whose new values wait for a restart. */
  restart(): readonly string[];
  configuration(): ConfigurationReport;
  /** The disk that is waited for, if one is. */
  silentDisk(): SilentDisk | undefined;
  /** What does not go on by itself. */
  stuck(): readonly Stuck[];
}

/** What a reload of the configuration did. */
export interface ReloadReport {
  /** What takes effect from now on, a line each. */
  readonly changes: readonly string[];
  /** The keys whose new values wait for a restart. */
  readonly restart: readonly string[];
}

/** What is wrong with a changed configuration, of which nothing was taken; when that was, in ms since the epoch. */
export type Refused = Trouble & { readonly at: number };

/** How a running daemon stands to the file of its configuration. */
export interface ConfigurationReport {
  /** When the file was last taken up, by a start or a reload, in ms since the epoch. */
  readonly takenUpAt: number;
  /** Why the last reload took nothing of it; only where that is so. */
  readonly refused?: Refused;
}

/** What waits for a disk that does not answer, and since when in ms since the epoch. */
export type DiskTrouble = Trouble & { readonly since: number };
