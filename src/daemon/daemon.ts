import { LiveFeed } from '../api/live-feed.js';
import { answererOf } from '../api/requests.js';
import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import { collectGarbageAtRest } from '../lib/process.js';
import { StatusPage } from '../page/status-page.js';
import type { CurrentConfig, Live, RecentEvent, ReloadReport } from '../report/live.js';
import { statusReport } from '../report/status.js';
import type { StatusReport } from '../report/status-report.js';
import { openControl } from './control.js';
import { DaemonLog } from './log-repeats.js';
import type { DaemonOptions, OpenDeps } from './options.js';
import { openParts, type Parts } from './parts.js';
import { Reloading } from './reloading.js';
import { Shutdown, STOP_GRACE_MS } from './shutdown.js';
import { Watchdog } from './watchdog.js';

/**
 * Everything between the folders and the peer, built from a configuration.
 *
 * - *Open*, after `open`: the lock is held, the state is read, and the embedded peer runs if it is
 *   the configured one. If opening fails, the steps so far are undone.
 * - *Started*, after `start`: the loops run, and commands are answered.
 * - *Stopping*, entered by `stop`: no new work begins, work in flight may finish, the state is
 *   written to disk, and the lock is released.
 */
export class Daemon implements Live {
  readonly startedAt: number;
  readonly clock: Clock;
  readonly log: DaemonLog;
  readonly recents: readonly RecentEvent[];
  readonly current: CurrentConfig;
  readonly configFile: string | undefined;
  readonly parts: Parts;
  page: StatusPage | undefined;
  watchdog: Watchdog | undefined;
  readonly #deps: OpenDeps;
  #reloading: Reloading | undefined;

  private constructor(deps: OpenDeps, parts: Parts) {
    this.startedAt = deps.clock.now();
    this.clock = deps.clock;
    this.log = deps.log;
    this.recents = deps.log.recents;
    this.current = deps.current;
    this.configFile = deps.configFile;
    this.parts = parts;
    this.#deps = deps;
  }

  static async open(options: DaemonOptions): Promise<Daemon> {
    const { clock, config, file } = options;
    const log = new DaemonLog(options.log, clock);
    const shutdown = new Shutdown(clock, log);
    const current = { config, restart: [], report: { takenUpAt: clock.now(), file } };
    const deps = { ...options, log, current, shutdown };
    try {
      return new Daemon(deps, await openParts(deps));
    } catch (error) {
      await shutdown.all().catch(() => {});
      log.flush();
      throw error;
    }
  }

  /** Starts the loops and the servers. Resolves when changes are being followed. */
  async start(): Promise<void> {
    const { clock, current, follow, load, log, notifier, onFailure, shutdown } = this.#deps;
    const { watcher, uplink, audit, queue, mirrors, statistics, health } = this.parts;
    await statistics.start();
    shutdown.add('statistics', () => statistics.stop());
    const feed = new LiveFeed(this);
    const answer = answererOf({ live: this, feed });
    shutdown.add('control socket', await openControl(current.config.state.dir, answer, log));
    uplink.start(onFailure);
    shutdown.add('uplink', async () => {
      const stopped = uplink.stop();
      await queue.stop(STOP_GRACE_MS);
      await stopped;
    });
    shutdown.add('watcher', () => watcher.stop());
    watcher.start();
    // Long downloads are aborted at once, so that pushes do not wait for them. The next run starts
    // them again.
    shutdown.add('mirrors', () => mirrors.stop());
    if (follow) mirrors.start(onFailure);
    // `once` also audits after a repair of the state, which leaves records in doubt.
    audit.start(follow ? current.config.audit.every : 0, onFailure);
    shutdown.add('audit', () => audit.stop());
    const page = new StatusPage({
      live: this,
      answer,
      feed,
      env: process.env,
      onUrl: this.parts.linkTo,
    });
    shutdown.add('status page', () => page.stop());
    this.page = page;
    if (follow) page.configure();
    if (load !== undefined) {
      const onReload = () => {
        page.configure();
        this.#deps.onReload?.(current.config);
      };
      const reloading = new Reloading({ ...this.#deps, parts: this.parts, load, onReload });
      shutdown.add('reload', () => reloading.stop());
      this.#reloading = reloading;
    }
    if (follow) {
      const timer = collectGarbageAtRest(clock);
      shutdown.add('heap', () => timer.cancel());
    }
    if (notifier === undefined) return;
    this.watchdog = new Watchdog(this, { health, notifier });
    void notifier.ready();
    void this.watchdog.start();
  }

  /**
   * Reads the configuration file again and applies the changes.
   *
   * @throws PeersyncError if the configuration has errors, and then nothing changed;
   *   NOT_RELOADABLE before the daemon has started
   */
  async reload(): Promise<ReloadReport> {
    if (this.#reloading !== undefined) return this.#reloading.reload();
    throw new PeersyncError({
      code: 'NOT_RELOADABLE',
      message:
        'This run cannot reload its configuration now: it is starting, or does one round only.',
      hint: 'Use it with `peersync run`, after the start.',
    });
  }

  /** @throws see Shutdown */
  async stop(): Promise<void> {
    this.watchdog?.stop();
    try {
      await this.#deps.shutdown.all(this.watchdog?.diskFailure !== undefined);
    } finally {
      this.log.flush();
    }
  }

  get stopping(): AbortSignal {
    return this.#deps.shutdown.signal;
  }

  status(): StatusReport {
    return statusReport(this.current.config, this.parts.state.committed, this);
  }
}
