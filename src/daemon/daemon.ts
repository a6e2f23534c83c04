import type { Config } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Mirrors } from '../mirror/mirrors.js';
import { StatusPage } from '../page/status-page.js';
import type { PeerClient } from '../peer/client.js';
import { answers, LiveFeed } from '../report/answers.js';
import type { Live, ReloadReport } from '../report/live.js';
import { RecentEvents } from '../report/live.js';
import { type StatusReport, statusReport } from '../report/status.js';
import type { State } from '../state/state.js';
import { ConfigHolder } from './config-holder.js';
import { ControlServer } from './control.js';
import { Repeats } from './log-repeats.js';
import { liveView, openParts, type Parts, STOP_GRACE_MS } from './parts.js';
import { Reloading } from './reloading.js';
import { ShutdownSteps } from './shutdown.js';
import type { Notifier } from './systemd-notifier.js';
import { disksOf, Watchdog } from './watchdog.js';

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
  readonly #options: DaemonOptions;
  readonly #shutdown: ShutdownSteps;
  readonly #stopping = new AbortController();
  readonly #recents: RecentEvents;
  readonly #repeats: Repeats;
  readonly current: ConfigHolder;
  readonly #startedAt: number;
  #parts: Parts | undefined;
  #reloading: Reloading | undefined;
  #page: StatusPage | undefined;
  #live: Live | undefined;
  #watchdog: Watchdog | undefined;

  private constructor(options: DaemonOptions) {
    this.#recents = new RecentEvents(options.log, options.clock);
    this.#repeats = new Repeats(this.#recents, options.clock);
    this.#options = { ...options, log: this.#repeats };
    this.current = new ConfigHolder(options.config);
    const { clock } = options;
    this.#startedAt = clock.now();
    const isDiskSilent = () => this.#watchdog?.silentDisk !== undefined;
    this.#shutdown = new ShutdownSteps({ clock, log: this.#recents, isDiskSilent });
  }

  static async open(options: DaemonOptions): Promise<Daemon> {
    const daemon = new Daemon(options);
    try {
      daemon.#parts = await openParts({
        ...daemon.#options,
        current: daemon.current,
        shutdown: daemon.#shutdown,
        stopping: daemon.#stopping.signal,
      });
    } catch (error) {
      await daemon.stop().catch(() => {});
      throw error;
    }
    return daemon;
  }

  /** Starts the loops, and the ear for commands. Resolves when changes are being followed. */
  async start(): Promise<void> {
    const { clock, log, onFailure, follow, load, notifier } = this.#options;
    const parts = this.#opened();
    const { state, client, dialect, watcher, uplink, audit, queue, mirrors, statistics } = parts;
    const { current } = this;
    const { config } = current;
    const live = this.live();
    await statistics.start();
    this.#shutdown.add('statistics', () => statistics.stop());
    const status = () => this.status();
    const feed = new LiveFeed({
      status,
      statistics,
      recents: this.#recents,
      clock,
    });
    const answer = answers({
      ...{ current, state, clock, live, feed, log, mirrors, queue, watcher },
      stopping: this.#stopping.signal,
      lookUp: (url) => queue.run('interactive', (signal) => client.peerdoc({ url }, { signal })),
      holdMs: () => dialect.current?.holdMs,
      reload: () => this.reload(),
    });
    const control = await ControlServer.open(config.state.dir, answer, log);
    this.#shutdown.add('control socket', () => control.close());
    uplink.start(onFailure);
    this.#shutdown.add('uplink', async () => {
      const stopped = uplink.stop();
      await queue.stop(STOP_GRACE_MS);
      await stopped;
    });
    this.#shutdown.add('watcher', () => watcher.stop());
    watcher.start();
    // A long answer is called off at once: the next run asks for it again, and what is to be pushed does not wait for it.
    this.#shutdown.add('mirrors', () => mirrors.stop());
    if (follow) mirrors.start(onFailure);
    if (follow) audit.start(config.audit.every, onFailure);
    this.#shutdown.add('audit', () => audit.stop());
    const page = new StatusPage({
      ...{ current, state, live, status, feed, statistics, ask: answer, client, clock, log },
      env: process.env,
    });
    this.#shutdown.add('status page', () => page.stop());
    this.#page = page;
    if (follow) page.start();
    if (load !== undefined) {
      const reloading = new Reloading({ current, load, parts, clock, log, onFailure });
      this.#shutdown.add('reload', () => reloading.stop());
      this.#reloading = reloading;
    }
    if (notifier !== undefined) {
      const disks = () => disksOf(current.config);
      this.#watchdog = new Watchdog({ health: parts.health, disks, status, notifier, clock, log });
      notifier.ready();
      this.#watchdog.start();
    }
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

  /** @throws what went wrong on the way, an AggregateError when that was more than one thing; see `isLeft` */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#watchdog?.stop();
    try {
      await this.#shutdown.all();
    } finally {
      this.#repeats.flush();
    }
  }

  /** The peer's address, also of the embedded one. */
  get peerUrl(): string {
    return this.#opened().peerUrl;
  }

  get state(): State {
    return this.#opened().state;
  }

  get requests(): PeerClient['requests'] {
    return this.#opened().client.requests;
  }

  get mirrors(): Mirrors {
    return this.#opened().mirrors;
  }

  /** Resolves when the first scan is over and nothing is settling any more. */
  scanned(): Promise<void> {
    return this.#opened().watcher.idle();
  }

  /** Whether nothing is left to do for the items until a file changes or a folder is back. */
  get isIdle(): boolean {
    return this.#opened().uplink.isIdle;
  }

  status(): StatusReport {
    return statusReport(this.current.config, this.state, this.live());
  }

  live(): Live {
    this.#live ??= liveView(this.#opened(), this.current, this.#options.clock, {
      startedAt: this.#startedAt,
      silentDisk: () => this.#watchdog?.silentDisk,
      stuck: () => this.#watchdog?.stuck ?? [],
      page: () => this.#page?.url,
    });
    return this.#live;
  }

  #opened(): Parts {
    if (this.#parts === undefined) throw new Error('the daemon is not open');
    return this.#parts;
  }
}
