import { join } from 'node:path';
import type { Config, FolderConfig } from '../config/config.js';
import { documentUrl } from '../config/url.js';
import { startEmbeddedPeer } from '../embedded/embedded-peer.js';
import { type Clock, wallAheadMs } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import type { Logger } from '../lib/logger.js';
import { WorkThread } from '../lib/work-thread.js';
import { Mirrors } from '../mirror/mirrors.js';
import type { PeerClient } from '../peer/client.js';
import type { QueueLimits } from '../queue/options.js';
import { RequestQueue } from '../queue/request-queue.js';
import type { Live } from '../report/live.js';
import { restorePause } from '../report/pausing.js';
import { Statistics } from '../report/statistics.js';
import { lockState } from '../state/directory.js';
import type { Item } from '../state/entry.js';
import { patientCommit, State } from '../state/state.js';
import { Audit } from '../uplink/audit.js';
import { configuredPeer } from '../uplink/configured-peer.js';
import { ThreadPacker } from '../uplink/packer.js';
import { PeerDialect } from '../uplink/peer-dialect.js';
import { rememberedDialect } from '../uplink/remembered-dialect.js';
import { cannotTravel } from '../uplink/treatment.js';
import { classify } from '../uplink/trouble.js';
import { Uplink } from '../uplink/uplink.js';
import { listIn } from '../watch/lister.js';
import { Watcher } from '../watch/watcher.js';
import type { ConfigHolder } from './config-holder.js';
import { Housekeeping } from './housekeeping.js';
import type { ShutdownSteps } from './shutdown.js';

/** It may have several large batches to read from a disk that is far away; one file or batch is read in seconds. In ms. */
const LONGEST_ORDER_MS = 15 * 60_000;
/** How long requests that are under way may take to end when the daemon stops, in ms. */
export const STOP_GRACE_MS = 8_000;

export interface OpenOptions {
  readonly current: ConfigHolder;
  readonly clock: Clock;
  readonly log: Logger;
  /** Watch for changes; without it one scan is all. */
  readonly follow: boolean;
  /** Wait while the disk of the state is full. */
  readonly patient: boolean;
  readonly onFailure: (error: unknown) => void;
  readonly shutdown: ShutdownSteps;
  /** Aborts when the daemon stops. */
  readonly stopping: AbortSignal;
}

/** What a daemon is made of. */
export interface Parts {
  readonly state: State;
  /** Brings all changes of the state so far to the disk. */
  readonly commit: () => Promise<void>;
  readonly housekeeping: Housekeeping;
  readonly client: PeerClient;
  /** The peer's address, also of the embedded one. */
  readonly peerUrl: string;
  readonly queue: RequestQueue;
  readonly dialect: PeerDialect;
  readonly uplink: Uplink;
  readonly audit: Audit;
  readonly watcher: Watcher;
  readonly mirrors: Mirrors;
  readonly statistics: Statistics;
  /** Of every loop; asked anew each time, for a reload brings others. */
  readonly health: () => readonly HealthCheck[];
}

/** Takes the lock, reads the state, brings up the peer and makes everything between folders and peer; nothing runs yet. */
export async function openParts(options: OpenOptions): Promise<Parts> {
  const { current, clock, log, shutdown, onFailure } = options;
  const { config } = current;
  const lock = await lockState(config.state.dir, { clock });
  shutdown.add('lock', () => lock.release());
  const state = await State.open(config.state.dir, { clock, log });
  shutdown.add('state', () => state.close());
  const commit = options.patient
    ? patientCommit(() => state.commit(), { clock, log, signal: options.stopping })
    : () => state.commit();
  const housekeeping = new Housekeeping({
    state,
    commit,
    folders: config.folders.map((folder) => folder.name),
    keepGoneMs: config.state.keepGone,
    clock,
    log,
  });
  shutdown.add('housekeeping', () => housekeeping.stop());
  await housekeeping.start();
  const { client, url: peerUrl } = await openPeer(config.peer, { clock, log, state, shutdown, onFailure });
  const queue = new RequestQueue({ ...queueLimits(config), classify, clock, log, peerName: 'The peer' });
  shutdown.add('queue', () => queue.stop(STOP_GRACE_MS));
  restorePause({ state, queue, clock, log }, queue);
  const dialect = new PeerDialect({
    configured: config.peer.dialect,
    url: peerUrl,
    client,
    queue,
    state,
    commit,
    clock,
    log,
    onChange: () => void watcher.rescan().catch(onFailure),
  });
  const fileThread = new WorkThread(new URL('../file-thread.js', import.meta.url), (error) =>
    log.error({ err: error }, `the thread that reads files broke down: ${messageOf(error)}; it starts anew`),
  );
  shutdown.add('file thread', () => fileThread.close());
  const files = new HealthCheck('file thread', 'the thread that reads files gives no answer', {
    limitMs: LONGEST_ORDER_MS,
  });
  const askFiles: WorkThread['ask'] = (work, order, transfer) =>
    files.during(() => fileThread.ask(work, order, transfer));
  const listThread = () =>
    new WorkThread(new URL('../file-thread.js', import.meta.url), (error) =>
      log.error(
        { err: error },
        `a thread that lists folders broke down: ${messageOf(error)}; it starts anew`,
      ),
    );
  const listThreads = [listThread(), listThread()] as const;
  shutdown.add('list threads', async () => {
    for (const thread of listThreads) await thread.close();
  });
  const watcher: Watcher = new Watcher({
    folders: config.folders,
    state,
    commit,
    clock,
    log,
    accepts: (encoding) => cannotTravel(encoding, dialect.current?.content),
    readGroup: (orders) => askFiles('read', orders),
    list: listIn(listThreads),
    hints: options.follow && config.watch.hints,
    rescanMs: config.watch.rescan,
    onStanding: () => uplink.foldersChanged(),
  });
  const uplink: Uplink = new Uplink({
    dialect,
    packer: new ThreadPacker({ ask: askFiles }),
    commit,
    state,
    queue,
    peer: client,
    clock,
    log,
    settings: {
      get push() {
        return current.config.push;
      },
      get confirm() {
        return current.config.confirm;
      },
    },
    pathOf: (item) => pathOf(item, current.config.folders),
    standing: (folder) => watcher.standing(folder),
    look: (place) => watcher.lookSoon(place),
  });
  const mirrors = new Mirrors({
    settings: config.mirror,
    stateDir: config.state.dir,
    state,
    commit,
    queue,
    peer: client,
    clock,
    log,
  });
  const audit = new Audit({ state, commit, queue, peer: client, dialect, clock, log });
  shutdown.add('mirrors', () => mirrors.stop());
  const statistics = new Statistics({
    ...{ state, clock, log },
    settings: () => current.config,
    dir: config.state.dir,
    paused: () => queue.status().paused !== undefined,
  });
  current.onChange(() => statistics.reconfigured());
  return {
    ...{
      state,
      commit,
      housekeeping,
      client,
      peerUrl,
      queue,
      dialect,
      uplink,
      audit,
      watcher,
      mirrors,
      statistics,
    },
    health: () => [
      ...watcher.health,
      files,
      ...uplink.health,
      ...queue.health,
      ...mirrors.health,
      state.health,
    ],
  };
}

/** How many requests may be under way beside pushes and look-ups. */
const SPARE_CONCURRENCY = 2;
/** So many items a second are looked up once more at most. */
const AUDIT_REQUESTS_PER_SECOND = 10;

/** A task in the queue may ask again, with other credentials or for another page. */
const REQUESTS_A_TASK = 3;
/** Shorter time-outs make no shorter tasks: one that writes a table asks once for each of a thousand rows. In ms. */
const SHORTEST_TOTAL_MS = 5 * 60_000;

/** What a configuration lets pass through the queue. */
export function queueLimits({ confirm, peer, push, mirror }: Config): QueueLimits {
  return {
    longestMs: REQUESTS_A_TASK * Math.max(peer.timeouts.total, SHORTEST_TOTAL_MS),
    lanes: {
      interactive: { requestsPerSecond: confirm.requestsPerSecond, concurrency: SPARE_CONCURRENCY },
      confirm,
      push,
      mirror: { requestsPerSecond: mirror.requestsPerSecond, concurrency: SPARE_CONCURRENCY },
      audit: {
        requestsPerSecond: Math.min(AUDIT_REQUESTS_PER_SECOND, confirm.requestsPerSecond),
        concurrency: 1,
      },
    },
    maxConcurrency: push.concurrency + confirm.concurrency + SPARE_CONCURRENCY,
  };
}

/**
 * Absolute path of the file that is to become this document; undefined where its folder is not configured any more, or gives
 * the file another address now, which the item has not got yet.
 */
export function pathOf(
  { folder, path, url }: Pick<Item, 'folder' | 'path' | 'url'>,
  folders: readonly Pick<FolderConfig, 'name' | 'path' | 'url'>[],
): string | undefined {
  const found = folders.find(({ name }) => name === folder);
  if (found === undefined || documentUrl(found.url, path) !== url) return undefined;
  return join(found.path, path);
}

export interface PeerParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly state: State;
  readonly shutdown: ShutdownSteps;
  /** Hears of an embedded peer that ended by itself. */
  readonly onFailure: (error: unknown) => void;
}

export interface OpenPeer {
  readonly client: PeerClient;
  /** Its address, also of the embedded one, which only has it now. */
  readonly url: string;
}

/** A client for the configured peer; brings up the embedded one where that is the peer. */
export async function openPeer(config: Config['peer'], parts: PeerParts): Promise<OpenPeer> {
  const { clock, log, state, shutdown, onFailure } = parts;
  const client = async (): Promise<OpenPeer> => {
    if (config.url !== 'embedded') {
      const { url, dialect } = config;
      const known = dialect === 'auto' ? rememberedDialect(state, url) : dialect;
      return { url, client: await configuredPeer({ ...config, dialect: known ?? 'auto' }, { clock, log }) };
    }
    const { dir, port, requireAuth } = config.embedded;
    const peer = await startEmbeddedPeer({ dir, port, requireAuthEverywhere: requireAuth, log });
    shutdown.add('embedded peer', () => peer.close());
    void peer.exited.then((error) => {
      if (error !== undefined) onFailure(error);
    });
    return { url: peer.url, client: await configuredPeer(config, { clock, log }, peer) };
  };
  const opened = await client();
  shutdown.add('peer', () => opened.client.close());
  return opened;
}

/** What only a running daemon can tell, for who inspects it. */
export function liveView(
  parts: Parts,
  current: ConfigHolder,
  clock: Clock,
  { startedAt, silentDisk, stuck, page }: Pick<Live, 'startedAt' | 'silentDisk' | 'stuck' | 'page'>,
): Live {
  const { client, queue, uplink, watcher, mirrors, statistics, peerUrl } = parts;
  return {
    pid: process.pid,
    startedAt,
    wallAheadMs: () => wallAheadMs(clock),
    peerUrl,
    page,
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
    configuration: () => {
      const { takenUpAt = startedAt, refused } = current;
      return { takenUpAt, ...(refused === undefined ? {} : { refused }) };
    },
    silentDisk,
    stuck,
  };
}
