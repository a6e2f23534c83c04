import type { MirrorReport } from '../mirror/record.js';
import type { DialectName } from '../peer/dialect.js';
import type { QueueStatus } from '../queue/request-queue.js';
import type { NextLook } from '../uplink/looks.js';
import type { UplinkStatus } from '../uplink/uplink.js';
import type { FolderStatus, PathProblem } from '../watch/watcher.js';
import type { ConfigurationReport } from './reload-report.js';
import type { FiguresReport } from './time-to-search.js';

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
  figures(): FiguresReport;
  mirrors(): readonly MirrorReport[];
  isInFlight(place: { folder: string; path: string }): boolean;
  nextLook(place: { folder: string; path: string }): NextLook | undefined;
  /** The keys of the configuration whose new values wait for a restart. */
  restart(): readonly string[];
  configuration(): ConfigurationReport;
  /** The disk that is waited for, if one is. */
  silentDisk(): SilentDisk | undefined;
}
