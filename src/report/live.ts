import type { Config } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import type { Stuck } from '../lib/health.js';
import type { Logger } from '../lib/logger.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { PeerClient } from '../peer/client.js';
import type { RequestQueue } from '../queue/request-queue.js';
import type { State } from '../state/state.js';
import type { Audit } from '../uplink/audit.js';
import type { DialectSource } from '../uplink/deps.js';
import type { Uplink } from '../uplink/uplink.js';
import type { Watcher } from '../watch/watcher.js';
import type { FleetReport } from './fleet.js';
import type { Statistics } from './statistics.js';
import type { ConfigurationReport, DiskFailure, StatusReport } from './status-report.js';

/** A recent line of the log. */
export interface RecentEvent {
  /** Increases by one with each event. */
  readonly id: number;
  /** In ms since the epoch. */
  readonly at: number;
  readonly level: 'info' | 'warn' | 'error';
  readonly message: string;
  /** The kind of event, if the log line names one. */
  readonly event?: string | undefined;
}

/**
 * The configuration in use. A reload replaces the `config` in it, so long-running code keeps this
 * object and not a `Config`.
 */
export interface CurrentConfig {
  config: Config;
  /** The keys whose new values take effect after a restart. */
  restart: readonly string[];
  report: ConfigurationReport;
}

/** The result of a reload of the configuration. */
export interface ReloadReport {
  /** The changes that took effect, a line each. */
  readonly changes: readonly string[];
  /** The keys whose new values take effect after a restart. */
  readonly restart: readonly string[];
}

/** A running daemon, as requests and reports see it. */
export interface Live {
  /** In ms since the epoch. */
  readonly startedAt: number;
  /** A steady clock. All times in reports are by this clock. */
  readonly clock: Clock;
  readonly log: Logger;
  readonly current: CurrentConfig;
  /** The configuration file, if commands have to name it with `-c`. */
  readonly configFile?: string | undefined;
  readonly parts: {
    readonly state: State;
    /** The URL of the peer. An embedded peer has one only while it runs. */
    readonly peerUrl: string;
    readonly client: PeerClient;
    readonly dialect: DialectSource;
    readonly queue: RequestQueue;
    readonly uplink: Uplink;
    readonly audit: Pick<Audit, 'repairProgress'>;
    readonly watcher: Watcher;
    readonly mirrors: Mirrors;
    readonly statistics: Statistics;
    readonly fleet?: { readonly owner: { status(): FleetReport } } | undefined;
  };
  /** The recent lines of the log, oldest first. */
  readonly recents: readonly RecentEvent[];
  readonly page?: { readonly url: string | undefined } | undefined;
  readonly watchdog?:
    | { readonly diskFailure: DiskFailure | undefined; readonly stuck: readonly Stuck[] }
    | undefined;
  /** Aborts when the daemon stops. */
  readonly stopping: AbortSignal;
  status(): StatusReport;
  /** Loads the configuration file again. */
  reload(): Promise<ReloadReport>;
}
