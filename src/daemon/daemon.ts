import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import { StatusPage } from '../page/status-page.js';
import { answers, LiveFeed, RecentEvents } from '../report/answers.js';
import type { Live, ReloadReport } from '../report/status.js';
import { type StatusReport, statusReport } from '../report/status.js';
import { openControl } from './control.js';
import { Repeats } from './log-repeats.js';
import {
  ConfigHolder,
  type DaemonOptions,
  type OpenDeps,
  openParts,
  type Parts,
  Shutdown,
  STOP_GRACE_MS,
} from './parts.js';
import { Reloading } from './reloading.js';
import { disksOf, Watchdog } from './watchdog.js';

/**
 * Everything between the folders and the peer, built from a configuration.
 *
 * Life: `open` takes the lock, reads the state and brings up the embedded peer where that is the peer; `start` lets the loops go.
 * `stop` ends them in order: nothing new begins, what is under way may finish, everything known is on disk, the
 * lock is given back. A failure while opening undoes what was done.
 */
export class Daemon implements Live {
  readonly current: ConfigHolder;
  readonly parts: Parts;
  readonly startedAt: number;
  readonly clock: Clock;
  page: StatusPage | undefined;
  watchdog: Watchdog | undefined;
  readonly #deps: OpenDeps;
  #reloading: Reloading | undefined;

  private constructor(deps: OpenDeps, parts: Parts) {
    this.current = deps.current;
    this.parts = parts;
    this.#deps = deps;
    this.clock = deps.clock;
    this.startedAt = deps.clock.now();
  }

  static async open(options: DaemonOptions): Promise<Daemon> {
    const { clock, config } = options;
    const recents = new RecentEvents(options.log, clock);
    const log = new Repeats(recents, clock);
    const shutdown = new Shutdown(clock, recents);
    const deps = { ...options, log, recents, shutdown, current: new ConfigHolder(config, clock.now()) };
    try {
      return new Daemon(deps, await openParts(deps));
    } catch (error) {
      await shutdown.all().catch(() => {});
      log.flush();
      throw error;
    }
  }

  /** Starts the loops, and answers commands. Resolves when changes are being followed. */
  async start(): Promise<void> {
    const { follow, load, notifier, onFailure, clock, current, log, recents, shutdown } = this.#deps;
    const { state, client, dialect, watcher, uplink, audit, queue, mirrors, statistics, health } = this.parts;
    await statistics.start();
    shutdown.add('statistics', () => statistics.stop());
    const status = () => this.status();
    const feed = new LiveFeed({ status, statistics, recents, clock });
    const ask = answers({
      ...{ current, state, clock, live: this, feed, log, mirrors, queue, watcher, stopping: shutdown.signal },
      lookUp: (url) => queue.run('interactive', (signal) => client.peerdoc({ url }, { signal })),
      holdMs: () => dialect.current?.holdMs,
      reload: () => this.reload(),
    });
    shutdown.add('control socket', await openControl(current.config.state.dir, ask, log));
    uplink.start(onFailure);
    shutdown.add('uplink', async () => {
      const stopped = uplink.stop();
      await queue.stop(STOP_GRACE_MS);
      await stopped;
    });
    shutdown.add('watcher', () => watcher.stop());
    watcher.start();
    // A long answer is called off at once: the next run asks for it again, and what is to be pushed does not wait for it.
    shutdown.add('mirrors', () => mirrors.stop());
    if (follow) mirrors.start(onFailure);
    if (follow) audit.start(current.config.audit.every, onFailure);
    shutdown.add('audit', () => audit.stop());
    const page = new StatusPage({
      ...{ current, state, live: this, status, feed, statistics, ask, client, clock, log },
      env: process.env,
    });
    shutdown.add('status page', () => page.stop());
    this.page = page;
    if (follow) page.start();
    if (load !== undefined) {
      const reloading = new Reloading({ current, load, parts: this.parts, clock, log, onFailure });
      shutdown.add('reload', () => reloading.stop());
      this.#reloading = reloading;
    }
    if (notifier === undefined) return;
    const disks = () => disksOf(current.config);
    this.watchdog = new Watchdog({ health, disks, status, notifier, clock, log });
    notifier.ready();
    this.watchdog.start();
  }

  /**
   * Takes up the configuration as its file is now.
   *
   * @throws PeersyncError what is wrong with it, and then nothing changed; NOT_RELOADABLE before the daemon has started
   */
  async reload(): Promise<ReloadReport> {
    if (this.#reloading !== undefined) return this.#reloading.reload();
    throw new PeersyncError({
      code: 'NOT_RELOADABLE',
      message: 'This run cannot reload its configuration now: it is starting, or does one round only.',
      hint: 'Ask `peersync run`, once it watches.',
    });
  }

  /** @throws see Shutdown */
  async stop(): Promise<void> {
    this.watchdog?.stop();
    try {
      await this.#deps.shutdown.all(this.watchdog?.silentDisk !== undefined);
    } finally {
      this.#deps.log.flush();
    }
  }

  status(): StatusReport {
    return statusReport(this.current.config, this.parts.state, this);
  }
}
