import { join } from 'node:path';
import type { Config } from './config/config.js';
import { type EmbeddedPeer, startEmbeddedPeer } from './embedded/embedded-peer.js';
import { Figures } from './figures/figures.js';
import { answers } from './inspect/answers.js';
import type { Live } from './inspect/live.js';
import { LiveFeed } from './inspect/live-feed.js';
import { statusReport } from './inspect/status.js';
import type { Clock } from './lib/clock.js';
import { messageOf } from './lib/errors.js';
import type { Logger } from './lib/logger.js';
import { WorkThread } from './lib/work-thread.js';
import { Mirrors } from './mirror/mirrors.js';
import type { PeerClient } from './peer/client.js';
import { Door } from './queue/door.js';
import { ControlServer } from './service/control.js';
import { Housekeeping } from './service/housekeeping.js';
import { acquireLock } from './service/lock.js';
import { RecentEvents } from './service/recent.js';
import type { Place } from './state/entries.js';
import { State } from './state/state.js';
import { Audit } from './uplink/audit.js';
import { cannotTravel } from './uplink/can-travel.js';
import { configuredPeer } from './uplink/configured-peer.js';
import { ThreadPacker } from './uplink/packer.js';
import { patientCommit } from './uplink/patience.js';
import { PeerDialect, rememberedDialect } from './uplink/peer-dialect.js';
import { classify } from './uplink/trouble.js';
import { Uplink } from './uplink/uplink.js';
import { ThreadReader } from './watch/thread-reader.js';
import { Watcher } from './watch/watcher.js';

/** How long requests that are under way may take to end when the daemon stops, in ms. */
const STOP_GRACE_MS = 8_000;
/** How many requests may be under way beside pushes and look-ups. */
const SPARE_CONCURRENCY = 2;
/** So many items a second are looked up once more at most. */
const AUDIT_REQUESTS_PER_SECOND = 10;

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
}

/** What a stop has to undo, in reverse order. */
type Undo = readonly [what: string, undo: () => Promise<void>];

/**
 * Everything between the folders and the peer, built from a configuration.
 *
 * Life: `open` takes the lock, reads the state and brings up the embedded peer where that is the peer; `start` lets the loops go.
 * `stop` ends them in order: nothing new begins, what is under way may finish, everything known is on disk, the
 * lock is given back. A failure while opening undoes what was done.
 */
export class Daemon {
  readonly #options: DaemonOptions;
  readonly #undo: Undo[] = [];
  readonly #stopping = new AbortController();
  readonly #recents: RecentEvents;
  readonly startedAt: number;
  #state: State | undefined;
  #parts:
    | {
        readonly client: PeerClient;
        readonly door: Door;
        readonly dialect: PeerDialect;
        readonly uplink: Uplink;
        readonly audit: Audit;
        readonly watcher: Watcher;
        readonly mirrors: Mirrors;
        readonly figures: Figures;
      }
    | undefined;
  #peerUrl = '';

  private constructor(options: DaemonOptions) {
    this.#recents = new RecentEvents(options.log, options.clock);
    this.#options = { ...options, log: this.#recents };
    this.startedAt = options.clock.now();
  }

  static async open(options: DaemonOptions): Promise<Daemon> {
    const daemon = new Daemon(options);
    try {
      await daemon.#open();
    } catch (error) {
      await daemon.stop().catch(() => {});
      throw error;
    }
    return daemon;
  }

  async #open(): Promise<void> {
    const { config, clock, log } = this.#options;
    const lock = await acquireLock(config.state.dir, { clock });
    this.#undo.push(['lock', () => lock.release()]);
    const state = await State.open(config.state.dir, { clock, log });
    this.#undo.push(['state', () => state.close()]);
    const housekeeping = new Housekeeping({
      state,
      folders: config.folders.map((folder) => folder.name),
      keepGoneMs: config.state.keepGone,
      clock,
      log,
    });
    this.#undo.push(['housekeeping', () => housekeeping.stop()]);
    await housekeeping.start();
    const client = await this.#openPeer(state);
    this.#undo.push(['peer', () => client.close()]);
    const door = new Door({
      lanes: {
        interactive: { requestsPerSecond: config.confirm.requestsPerSecond, concurrency: SPARE_CONCURRENCY },
        confirm: config.confirm,
        push: config.push,
        mirror: { requestsPerSecond: config.mirror.requestsPerSecond, concurrency: SPARE_CONCURRENCY },
        audit: {
          requestsPerSecond: Math.min(AUDIT_REQUESTS_PER_SECOND, config.confirm.requestsPerSecond),
          concurrency: 1,
        },
      },
      maxConcurrency: config.push.concurrency + config.confirm.concurrency + SPARE_CONCURRENCY,
      classify,
      clock,
      log,
      peerName: 'The peer',
    });
    this.#undo.push(['door', () => door.stop(STOP_GRACE_MS)]);
    const commit = this.#options.patient
      ? patientCommit(() => state.commit(), { clock, log, signal: this.#stopping.signal })
      : () => state.commit();
    const dialect = new PeerDialect({
      configured: config.peer.dialect,
      url: this.#peerUrl,
      client,
      door,
      state,
      commit,
      clock,
      log,
      onChange: () => void watcher.rescan(undefined).catch(this.#options.onFailure),
    });
    const folders = new Map(config.folders.map((folder) => [folder.name, folder]));
    const fileThread = new WorkThread(new URL('./file-thread.js', import.meta.url), (error) =>
      log.error(
        { err: error },
        `the thread that reads files broke down: ${messageOf(error)}; it starts anew`,
      ),
    );
    this.#undo.push(['file thread', () => fileThread.close()]);
    const watcher: Watcher = new Watcher({
      folders: config.folders,
      state,
      clock,
      log,
      accepts: (encoding) => cannotTravel(encoding, dialect.current?.content),
      groups: new ThreadReader(fileThread),
      hints: this.#options.follow && config.watch.hints,
      rescanMs: config.watch.rescan,
    });
    const uplink = new Uplink({
      dialect,
      packer: new ThreadPacker(fileThread),
      commit,
      state,
      door,
      peer: client,
      clock,
      log,
      settings: config,
      pathOf: ({ folder, path }) => {
        const root = folders.get(folder)?.path;
        return root === undefined ? undefined : join(root, path);
      },
      look: (place) => watcher.lookSoon(place),
    });
    const mirrors = new Mirrors({
      settings: config.mirror,
      stateDir: config.state.dir,
      state,
      commit,
      door,
      peer: client,
      clock,
      log,
    });
    const audit = new Audit({
      ...{ state, commit, door, peer: client, dialect, clock, log },
      everyMs: config.audit.every,
    });
    this.#undo.push(['mirrors', () => mirrors.stop()]);
    this.#state = state;
    const figures = new Figures({ state, clock });
    this.#parts = { client, dialect, door, uplink, audit, watcher, mirrors, figures };
  }

  async #openPeer(state: State): Promise<PeerClient> {
    const { config, clock, log } = this.#options;
    if (config.peer.url !== 'embedded') {
      this.#peerUrl = config.peer.url;
      const { url, dialect } = config.peer;
      const known = dialect === 'auto' ? rememberedDialect(state, url) : dialect;
      return configuredPeer({ ...config.peer, dialect: known ?? 'auto' }, { clock, log });
    }
    const { dir, port, requireAuth } = config.peer.embedded;
    const peer: EmbeddedPeer = await startEmbeddedPeer({
      dir,
      port,
      requireAuthEverywhere: requireAuth,
      log,
    });
    this.#undo.push(['embedded peer', () => peer.close()]);
    void peer.exited.then((error) => {
      if (error !== undefined) this.#options.onFailure(error);
    });
    this.#peerUrl = peer.url;
    return configuredPeer(config.peer, { clock, log }, peer);
  }

  /** Starts the loops, and the ear for commands. Resolves when changes are being followed. */
  async start(): Promise<void> {
    const { config, clock, log, onFailure, follow } = this.#options;
    const { state, client, dialect, watcher, uplink, audit, door, mirrors, figures } = this.#opened();
    const live = this.live();
    figures.start();
    this.#undo.push(['figures', async () => figures.stop()]);
    const feed = new LiveFeed({
      status: () => statusReport(config, state, live),
      figures,
      recents: this.#recents,
      clock,
    });
    const control = await ControlServer.open(
      config.state.dir,
      answers({
        config,
        state,
        clock,
        live,
        feed,
        stopping: this.#stopping.signal,
        look: (place) => watcher.lookSoon(place),
        tryPeer: () => door.tryNow(),
        lookUp: (url) => door.run('interactive', (signal) => client.peerdoc({ url }, { signal })),
        holdMs: () => dialect.current?.holdMs,
        log,
        rescan: (folder) => watcher.rescan(folder),
        mirrors,
      }),
      log,
    );
    this.#undo.push(['control socket', () => control.close()]);
    uplink.start(onFailure);
    this.#undo.push([
      'uplink',
      async () => {
        const stopped = uplink.stop();
        await door.stop(STOP_GRACE_MS);
        await stopped;
      },
    ]);
    this.#undo.push(['watcher', () => watcher.stop()]);
    watcher.start();
    // A long answer is called off at once: the next run asks for it again, and what is to be pushed does not wait for it.
    this.#undo.push(['mirrors', () => mirrors.stop()]);
    if (follow) mirrors.start(onFailure);
    if (follow && config.audit.every > 0) {
      audit.start(onFailure);
      this.#undo.push(['audit', () => audit.stop()]);
    }
  }

  /** @throws what went wrong on the way, an AggregateError when that was more than one thing */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const failures: unknown[] = [];
    for (const [what, undo] of this.#undo.splice(0).reverse()) {
      try {
        await undo();
      } catch (error) {
        this.#options.log.error(
          { what, error: messageOf(error) },
          `stopping the ${what} failed: ${messageOf(error)}`,
        );
        failures.push(error);
      }
    }
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) throw new AggregateError(failures, 'the daemon did not stop cleanly');
  }

  /** The peer's address, also of the embedded one. */
  get peerUrl(): string {
    return this.#peerUrl;
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

  live(): Live {
    const { client, door, uplink, watcher, mirrors, figures } = this.#opened();
    return {
      pid: process.pid,
      startedAt: this.startedAt,
      peerUrl: this.#peerUrl,
      dialect: () => client.dialect,
      door: () => door.status(),
      uplink: () => uplink.status(),
      folders: () => watcher.status(),
      problems: () => watcher.problems(),
      figures: () => figures.report(),
      mirrors: () => mirrors.status(),
      isInFlight: (place: Place) => uplink.isInFlight(place),
      nextLook: (place: Place) => uplink.nextLook(place),
    };
  }

  #opened() {
    if (this.#state === undefined || this.#parts === undefined) throw new Error('the daemon is not open');
    return { state: this.#state, ...this.#parts };
  }
}
