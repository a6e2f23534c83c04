import type { Config } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import type { CurrentConfig } from '../report/live.js';
import type { DaemonLog } from './log-repeats.js';
import type { Notifier } from './notifier.js';
import type { Shutdown } from './shutdown.js';

export interface DaemonOptions {
  readonly config: Config;
  /** Absolute path of the configuration file. */
  readonly file?: string | undefined;
  /** The same path, set only if commands must name it with `-c`. */
  readonly configFile?: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Whether to follow folders and peer as they change. Otherwise there is one scan, and mirrors run
   * on request.
   */
  readonly follow: boolean;
  /** Whether to wait while the disk of the state is full. Otherwise a full disk is a failure. */
  readonly waitWhileDiskFull: boolean;
  /** Called with a failure that ends the work of the daemon: a failing disk, a bug. */
  readonly onFailure: (error: unknown) => void;
  /** Reads the configuration file for a reload. Without it, `reload` is refused. */
  readonly load?: () => Promise<Config>;
  /** Called with the new configuration after a reload. */
  readonly onReload?: (config: Config) => void;
  /** Reports to systemd. Without it, the loops are not watched either (`Watchdog`). */
  readonly notifier?: Notifier;
}

/** Dependencies that all parts of a daemon share. */
export interface OpenDeps extends DaemonOptions {
  readonly log: DaemonLog;
  readonly current: CurrentConfig;
  readonly shutdown: Shutdown;
}
