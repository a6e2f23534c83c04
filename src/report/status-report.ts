import type { Stuck } from '../lib/health.js';
import type { MirrorReport } from '../mirror/record.js';
import type { DialectName } from '../peer/dialects/dialect.js';
import type { Paused, QueueStatus } from '../queue/request-queue.js';
import type { Counts } from '../state/entries.js';
import type { Failure } from '../state/entry.js';
import type { RepairAuditProgress } from '../uplink/repair-audit.js';
import type { UplinkStatus } from '../uplink/uplink.js';
import type { MassDeletion } from '../watch/mass-deletions.js';
import type { FolderStatus, PathProblem } from '../watch/watcher.js';
import type { FormerFolder } from './former-folders.js';
import type { Pace } from './pace.js';
import type { StatisticsReport } from './statistics.js';

/** The failure of a disk that does not answer. `since` is in ms since the epoch. */
export type DiskFailure = Failure & { readonly path: string; readonly since: number };

/** Tells whether the running daemon uses its configuration file as it is now. */
export interface ConfigurationReport {
  /** When the file was last loaded, by a start or a reload, in ms since the epoch. */
  readonly takenUpAt: number;
  /** The absolute path of the file. */
  readonly file?: string | undefined;
  /** Set if the last reload failed: the reason, and when that was. */
  readonly refused?: (Failure & { readonly at: number }) | undefined;
}

/** A part of a list that is too long for a status. */
interface Truncated {
  readonly total: number;
  readonly shown: number;
}

export interface QuarantinedFile {
  /** `FOLDER/path`. */
  readonly file: string;
  readonly code: string;
  readonly message: string;
}

/** The state of one configured folder. */
export interface FolderReport {
  readonly name: string;
  readonly path: string;
  readonly collection: string;
  readonly items: Counts;
  /** Set while a daemon runs. */
  readonly watch?: FolderStatus | undefined;
  /** Removed files whose documents wait for `approve-deletes`. */
  readonly massDeletion?: MassDeletion | undefined;
}

/** The progress of `uplink`; see UplinkStatus. */
interface UplinkReport {
  readonly inFlight: number;
  readonly confirming: number;
  readonly timeToVisibleMs?: number | undefined;
  readonly removalsFailing?: UplinkStatus['removalsFailing'];
  readonly readersFailure?: UplinkStatus['readersFailure'];
}

interface PeerReport {
  readonly url: string;
  /** Whether it is the embedded peer, which has pages of its own. */
  readonly embedded?: boolean | undefined;
  /** Undefined until the peer has answered once. */
  readonly dialect?: DialectName | undefined;
  /** Set while a daemon runs. */
  readonly queue?: QueueStatus | undefined;
}

/** A status without its conditions, which follow from it. Times are in ms since the epoch. */
export interface StatusFacts {
  readonly version: string;
  readonly running: boolean;
  /** Set while a daemon runs, as are `startedAt`, `uplink`, `figures` and `configuration`. */
  readonly pid?: number | undefined;
  readonly startedAt?: number | undefined;
  /**
   * The lead of the wall clock over the daemon's steady clock, by which all times here are, in ms.
   * Set if the wall clock was set since the daemon started. Rounded to seconds, so that a status
   * changes only when something else does.
   */
  readonly wallAheadMs?: number | undefined;
  readonly uplink?: UplinkReport | undefined;
  readonly figures?: StatisticsReport | undefined;
  readonly configuration?: ConfigurationReport | undefined;
  /** A pause that a person asked for. */
  readonly paused?: Paused | undefined;
  /** The keys of the configuration whose new values take effect after a restart. */
  readonly restart?: readonly string[] | undefined;
  /** The URL of the status page. Set while the page is open. */
  readonly page?: string | undefined;
  readonly peer: PeerReport;
  readonly items: Counts;
  /** The speed at which waiting files become searchable. Set while files wait and move. */
  readonly pace?: Pace | undefined;
  readonly folders: readonly FolderReport[];
  /** Folders that left the configuration, and whose documents the peer may still have. */
  readonly formerFolders: readonly FormerFolder[];
  /** The reasons why the peer may never show documents of some addresses. */
  readonly unseenAddresses: readonly (Failure & { readonly since: number })[];
  /** The directory that the paths of mirrors are relative to. */
  readonly mirrorRoot: string;
  readonly mirrors: readonly MirrorReport[];
  /** The first few quarantined files. */
  readonly quarantined: readonly QuarantinedFile[];
  readonly problems: readonly PathProblem[];
  /** The lists that are cut short, by name. */
  readonly truncated?: Readonly<Record<string, Truncated>> | undefined;
  /** The reason why the state cannot be written. Nothing is sent meanwhile. */
  readonly stateFailure?: Failure | undefined;
  /** A disk that does not answer. */
  readonly diskFailure?: DiskFailure | undefined;
  /** Loops that make no progress. */
  readonly stuck: readonly Stuck[];
  /** Repairs that were made when the state was opened. */
  readonly repairs: readonly string[];
  /** The progress of the full audit that follows a repair. Set until the audit is done. */
  readonly repairAudit?: RepairAuditProgress | undefined;
}

/** Everything that `status` shows, also as JSON. */
export interface StatusReport extends StatusFacts {
  /** The most severe first. */
  readonly conditions: readonly Condition[];
}

/** From the most to the least severe. */
export const SEVERITIES = ['critical', 'error', 'warning', 'info'] as const;
export type Severity = (typeof SEVERITIES)[number];

/**
 * A condition that a person should know about.
 *
 * - `critical`: new files do not become searchable, and `/readyz` fails.
 * - `error`: a promise is broken, or work waits for a person.
 * - `warning`: a part is left out, or waits for a person.
 * - `info`: a person wanted it so.
 */
export interface Condition {
  readonly code: string;
  readonly severity: Severity;
  /**
   * The part that it is about: `peer`, `state`, `disk`, `documents`, `configuration`, or the name
   * of a folder, a collection or a mirror.
   */
  readonly subject: string;
  /** Whole sentences. */
  readonly message: string;
  /** The remedy, in whole sentences. */
  readonly hint: string;
  /** In ms since the epoch. */
  readonly since?: number | undefined;
}
