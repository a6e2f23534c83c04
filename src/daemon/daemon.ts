import type { Config } from '../config/config.js';
import { type Clock, wallAheadMs } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Mirrors } from '../mirror/mirrors.js';
import { StatusPage } from '../page/status-page.js';
import type { PeerClient } from '../peer/client.js';
import { answers, LiveFeed } from '../report/answers.js';
import { type Live, RecentEvents, type ReloadReport } from '../report/live.js';
import { type StatusReport, statusReport } from '../report/status.js';
import type { State } from '../state/state.js';
import { openControl } from './control.js';
import { Repeats } from './log-repeats.js';
import { ConfigHolder, type OpenDeps, openParts, type Parts, Shutdown, STOP_GRACE_MS } from './parts.js';
import { Reloading } from './reloading.js';
import { disksOf, type Notifier, Watchdog } from './watchdog.js';

export interface DaemonOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  /** Follow folders and peer as they change; without it one scan is all, and mirrors run when they are asked to. */
  readonly follow: boolean;
  /** Wait while the disk of the state is full; without it that is a failure. */
  readonly patient: boolean;
  /** Hears of a failure that ends the daemon's work: a disk that fails, a bug. */
  readonly onFailure: (error: unknown) => void;
  /** Reads the configuration anew, for `reload`; without it there is none. */
  readonly load?: () => Promise<Config>;
  /** Learns that the daemon is ready, how it stands, and that its loops go on; without it nobody watches them. */
  readonly notifier?: Notifier;
}

/**
 * Everything between the folders and the peer, built from a configuration.
 *
 * Life: `open` takes the lock, reads the state and brings up the embedded peer where that is the peer; `start` lets the loops go.
 * `stop` ends them in order: nothing new begins, what is under way may finish, everything known is on disk, the
 * lock is given back. A failure while opening undoes what was done.
 */
export class Daemon {
  readonly current: ConfigHolder;
  readonly #options: DaemonOptions;
  readonly #deps: OpenDeps;
  readonly #parts: Parts;
  readonly #recents: RecentEvents;
  readonly #repeats: Repeats;
  readonly #live: Live;
  #reloading: Reloading | undefined;
  #page: StatusPage | undefined;
  #watchdog: Watchdog | undefined;

  private constructor(
    options: DaemonOptions,
    recents: RecentEvents,
    repeats: Repeats,
    deps: OpenDeps,
    parts: Parts,
  ) {
    this.current = deps.current;
    this.#options = options;
    this.#recents = recents;
    this.#repeats = repeats;
    this.#deps = deps;
    this.#parts = parts;
    this.#live = this.#makeLive();
  }

  static async open(options: DaemonOptions): Promise<Daemon> {
    const { clock, config, follow, onFailure, patient } = options;
    const recents = new RecentEvents(options.log, clock);
    const log = new Repeats(recents, clock);
    const shutdown = new Shutdown(clock, recents);
    const current = new ConfigHolder(config, clock.now());
    const deps = { current, clock, log, follow, patient, onFailure, shutdown };
    try {
      return new Daemon(options, recents, log, deps, await openParts(deps));
    } catch (error) {
      await shutdown.all().catch(() => {});
      log.flush();
      throw error;
    }
  }

  /** Starts the loops, and answers commands. Resolves when changes are being followed. */
  async start(): Promise<void> {
    const { follow, load, notifier, onFailure } = this.#options;
    const { clock, current, log, shutdown } = this.#deps;
    const { state, client, dialect, watcher, uplink, audit, queue, mirrors, statistics, health } =
      this.#parts;
    const live = this.#live;
    await statistics.start();
    shutdown.add('statistics', () => statistics.stop());
    const status = () => this.status();
    const feed = new LiveFeed({ status, statistics, recents: this.#recents, clock });
    const ask = answers({
      ...{ current, state, clock, live, feed, log, mirrors, queue, watcher, stopping: shutdown.signal },
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
    const { env } = process;
    const page = new StatusPage({
      current,
      state,
      live,
      status,
      feed,
      statistics,
      ask,
      client,
      clock,
      log,
      env,
    });
    shutdown.add('status page', () => page.stop());
    this.#page = page;
    if (follow) page.start();
    if (load !== undefined) {
      const reloading = new Reloading({ current, load, parts: this.#parts, clock, log, onFailure });
      shutdown.add('reload', () => reloading.stop());
      this.#reloading = reloading;
    }
    if (notifier === undefined) return;
    const disks = () => disksOf(current.config);
    this.#watchdog = new Watchdog({ health, disks, status, notifier, clock, log });
    notifier.ready();
    this.#watchdog.start();
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
    this.#watchdog?.stop();
    try {
      await this.#deps.shutdown.all(this.#watchdog?.silentDisk !== undefined);
    } finally {
      this.#repeats.flush();
    }
  }

  /** The peer's address, also of the embedded one. */
  get peerUrl(): string {
    return this.#parts.peerUrl;
  }

  get state(): State {
    return this.#parts.state;
  }

  get requests(): PeerClient['requests'] {
    return this.#parts.client.requests;
  }

  get mirrors(): Mirrors {
    return this.#parts.mirrors;
  }

  /** Resolves when the first scan is over and nothing is settling any more. */
  scanned(): Promise<void> {
    return this.#parts.watcher.idle();
  }

  /** Whether nothing is left to do for the items until a file changes or a folder is back. */
  get isIdle(): boolean {
    return this.#parts.uplink.isIdle;
  }

  status(): StatusReport {
    return statusReport(this.current.config, this.state, this.#live);
  }

  live(): Live {
    return this.#live;
  }

  #makeLive(): Live {
    const { client, queue, uplink, watcher, mirrors, statistics, peerUrl } = this.#parts;
    const { clock, current } = this.#deps;
    return {
      pid: process.pid,
      startedAt: clock.now(),
      wallAheadMs: () => wallAheadMs(clock),
      peerUrl,
      page: () => this.#page?.url,
      dialect: () => client.dialect,
      queue: () => queue.status(),
      uplink: () => uplink.status(),
      folders: () => watcher.status(),
      problems: () => watcher.problems(),
      figures: () => statistics.report(),
      mirrors: () => mirrors.status(),
      isInFlight: (place) => uplink.isInFlight(place),
      nextLook: (place) => uplink.nextLook(place),
      restart: () => current.restart,
      configuration: () => current.report,
      silentDisk: () => this.#watchdog?.silentDisk,
      stuck: () => this.#watchdog?.stuck ?? [],
    };
  }
}
