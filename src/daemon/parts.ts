import { join } from 'node:path';
import { restorePause } from '../api/pause.js';
import type { Config, FolderConfig } from '../config/config.js';
import { documentUrl } from '../config/url.js';
import { startEmbeddedPeer } from '../embedded/embedded-peer.js';
import type { Clock } from '../lib/clock.js';
import { messageOf, PeersyncError } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import type { Logger } from '../lib/logger.js';
import { WorkThread } from '../lib/work-thread.js';
import { Mirrors } from '../mirror/mirrors.js';
import type { QueueLimits } from '../queue/options.js';
import { RequestQueue } from '../queue/request-queue.js';
import type { CurrentConfig } from '../report/live.js';
import { Statistics } from '../report/statistics.js';
import { knownDialect, knownEmbedded } from '../report/status.js';
import { listStateFiles, lockState, StateError } from '../state/directory.js';
import type { Item } from '../state/entry.js';
import { State } from '../state/state.js';
import { Audit } from '../uplink/audit.js';
import { classify } from '../uplink/batch-sender.js';
import type { UplinkDeps } from '../uplink/deps.js';
import { DocumentProcesses } from '../uplink/document-processes.js';
import { cannotTravel } from '../uplink/documents.js';
import { Uplink } from '../uplink/uplink.js';
import { listIn } from '../watch/lister.js';
import { Watcher } from '../watch/watcher.js';
import { configuredPeer, PeerDialect, PeerKind } from './configured-peer.js';
import { Housekeeping } from './housekeeping.js';
import type { DaemonLog } from './log-repeats.js';
import type { Notifier } from './watchdog.js';

/** How long requests that are under way may take to end when the daemon stops, in ms. */
export const STOP_GRACE_MS = 8_000;
/**
 * One order may be several large batches to read from a disk that is far away; one file or batch is
 * read in seconds. In ms.
 */
const LONGEST_ORDER_MS = 15 * 60_000;

export interface DaemonOptions {
  readonly config: Config;
  /** Its file, absolute. */
  readonly file?: string | undefined;
  /** The same where commands have to name it with `-c`. */
  readonly configFile?: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Follow folders and peer as they change; without it one scan is all, and mirrors run when they
   * are asked to.
   */
  readonly follow: boolean;
  /** Wait while the disk of the state is full; without it that is a failure. */
  readonly waitWhileDiskFull: boolean;
  /** Hears of a failure that ends the daemon's work: a disk that fails, a bug. */
  readonly onFailure: (error: unknown) => void;
  /** Reads the configuration anew, for `reload`; without it there is none. */
  readonly load?: () => Promise<Config>;
  /** Takes up what is its own of a new configuration. */
  readonly onReload?: (config: Config) => void;
  /**
   * Learns that the daemon is ready, how it stands, and that its loops go on; without it nobody
   * watches them.
   */
  readonly notifier?: Notifier;
}

/** What all parts of one daemon share. */
export interface OpenDeps extends DaemonOptions {
  readonly log: DaemonLog;
  readonly current: CurrentConfig;
  readonly shutdown: Shutdown;
}

/** What a daemon is made of. */
export type Parts = Awaited<ReturnType<typeof openParts>>;

/**
 * Takes the lock, reads the state, brings up the peer and makes everything between folders and
 * peer; nothing runs yet.
 */
export async function openParts(deps: OpenDeps) {
  const { current, clock, log, shutdown, onFailure } = deps;
  const { config } = current;
  const lock = await lockState(config.state.dir, { clock });
  shutdown.add('lock', () => lock.release());
  const waitsUntil = deps.waitWhileDiskFull ? shutdown.signal : undefined;
  const state = await State.open(config.state.dir, { clock, log, waitsUntil });
  let isLost = false;
  shutdown.add('state', () => (isLost ? closeLost(state, config.state.dir, deps) : state.close()));
  lock.onHeartbeat = (isOwn) => {
    if (isOwn) void state.checkJournal().catch(onFailure);
    if (isOwn || isLost) return;
    isLost = true;
    const lost = new StateError('STATE_LOST', config.state.dir, 'its lock is not there any more');
    state.lose(lost);
    onFailure(lost);
  };
  const housekeeping = new Housekeeping({
    state,
    clock,
    log,
    isEmbedded: () => knownEmbedded(config.peer, state),
  });
  shutdown.add('housekeeping', () => housekeeping.stop());
  await housekeeping.keep(config);
  const { client, url: peerUrl, linkTo } = await openPeer(state, deps);
  shutdown.add('peer', () => client.close());
  const queue = new RequestQueue({
    ...queueLimits(config),
    classify,
    clock,
    log,
    peerName: 'The peer',
  });
  shutdown.add('queue', () => queue.stop(STOP_GRACE_MS));
  restorePause({ state, queue, clock, log });
  const shared = { state, queue, peer: client, clock, log };
  const onChange = () => void watcher.rescan().catch(onFailure);
  const dialect = new PeerDialect({
    configured: config.peer.dialect,
    url: peerUrl,
    client,
    queue,
    state,
    clock,
    log,
    onChange,
  });
  const kind = new PeerKind({
    url: config.peer.url,
    client,
    dialect,
    queue,
    state,
    clock,
    onEmbedded: onChange,
    onFailure,
    signal: shutdown.signal,
  });
  const onBreakdown = (error: Error) =>
    log.error({ err: error }, `a thread broke down: ${messageOf(error)}; it starts anew`);
  const makeThread = () =>
    new WorkThread(new URL('../file-thread.js', import.meta.url), onBreakdown);
  const fileThread = makeThread();
  const listThreads = [makeThread(), makeThread()] as const;
  shutdown.add('threads', async () => {
    for (const thread of [fileThread, ...listThreads]) await thread.close();
  });
  const documents = new DocumentProcesses(
    new URL('../document-process.js', import.meta.url),
    clock,
    log,
  );
  // What is still to be read would keep the uplink from stopping.
  shutdown.signal.addEventListener('abort', () => void documents.close(), { once: true });
  const files = new HealthCheck('file thread', 'the thread that reads files gives no answer', {
    limitMs: LONGEST_ORDER_MS,
  });
  const ask: WorkThread['ask'] = (...order) => files.during(() => fileThread.ask(...order));
  const watcher: Watcher = new Watcher({
    state,
    clock,
    log,
    folders: config.folders,
    rescanMs: config.watch.rescan,
    accepts: (encoding) => cannotTravel(encoding, dialect.current?.content),
    readGroup: (orders) => ask('read', orders),
    list: listIn(listThreads),
    isEmbedded: () => kind.get(),
    hints: deps.follow && config.watch.hints,
    onFolderStateChange: () => uplink.foldersChanged(),
  });
  const folderNamed = (folder: string) =>
    current.config.folders.find(({ name }) => name === folder);
  const uplinkDeps: UplinkDeps = {
    ...shared,
    dialect,
    pack: (order) => ask('pack', order),
    packDocument: (...order) => documents.read(...order),
    readersFailure: () => documents.failure,
    extracts: (folder) => folderNamed(folder)?.extract === 'always',
    get settings() {
      return current.config;
    },
    pathOf: (item) =>
      watcher.isUnmounted(item)
        ? undefined
        : pathOf(item, current.config.folders, watcher.rootOf(item.folder)),
    linksWithin: (folder) =>
      folderNamed(folder)?.followSymlinks ? watcher.rootOf(folder) : undefined,
    folderState: (folder) => watcher.folderState(folder),
    recheck: (place) => watcher.lookSoon(place),
    embeddedPeer: config.peer.url === 'embedded' ? client : undefined,
  };
  const uplink = new Uplink(uplinkDeps);
  const mirrors = await Mirrors.open({
    ...shared,
    settings: config.mirror,
    stateDir: config.state.dir,
  });
  shutdown.add('mirrors', () => mirrors.stop());
  const audit = new Audit(uplinkDeps);
  const statistics = new Statistics({ state, clock, log, settings: () => current.config });
  /** Of every loop; asked anew each time, for a reload brings others. */
  const health = (): readonly HealthCheck[] => [
    ...watcher.health,
    files,
    ...uplink.health,
    ...queue.health,
    ...mirrors.health,
    state.health,
  ];
  const rest = {
    housekeeping,
    client,
    peerUrl,
    linkTo,
    queue,
    dialect,
    kind,
    audit,
    mirrors,
    statistics,
  };
  return { ...rest, state, watcher, uplink, health };
}

/**
 * Closes a state whose directory is gone: what is known is written anew where it can be, so that
 * the next start goes on from there.
 */
async function closeLost(state: State, dir: string, { clock, log }: OpenDeps): Promise<void> {
  try {
    const lock = await lockState(dir, { clock });
    try {
      const { journal, snapshot } = await listStateFiles(dir);
      const other = 'there is another state in it by now';
      if (journal.length + snapshot.length > 0) throw new StateError('STATE_LOST', dir, other);
      await state.writeAnew();
      await state.close();
    } finally {
      await lock.release();
    }
    log.warn(
      { event: 'state-anew' },
      `What is known was written anew into ${dir}: the next start goes on from there.`,
    );
  } catch (error) {
    await state.close().catch(() => undefined);
    const words = `What is known could not be written anew into ${dir}, and the next start reads what is there: ${messageOf(error)}`;
    log.error({ event: 'state-lost' }, words);
  }
}

/**
 * A client for the configured peer, and its address; brings up the embedded one where that is the
 * peer.
 */
async function openPeer(state: State, { current, clock, log, shutdown, onFailure }: OpenDeps) {
  const { peer, state: place } = current.config;
  if (peer.url !== 'embedded') {
    const dialect = knownDialect(peer, state) ?? 'auto';
    const client = await configuredPeer(
      { peer: { ...peer, dialect }, state: place },
      { clock, log },
    );
    return { url: peer.url, client, linkTo: undefined };
  }
  const { dir, port, requireAuth } = peer.embedded;
  const embedded = await startEmbeddedPeer({ dir, port, requireAuthEverywhere: requireAuth, log });
  shutdown.add('embedded peer', () => embedded.close());
  void embedded.exited.then((error) => error && onFailure(error));
  const { linkTo, url } = embedded;
  return { url, linkTo, client: await configuredPeer(current.config, { clock, log }, embedded) };
}

/** How many requests of a lane may be under way that is not configured. */
const SPARE_CONCURRENCY = 2;
/** So many items a second are looked up once more at most. */
const AUDIT_REQUESTS_PER_SECOND = 10;
/** A task in the queue may ask again, with other credentials or for another page. */
const REQUESTS_A_TASK = 3;
/**
 * Shorter time-outs make no shorter tasks: one that writes a table asks once for each of a thousand
 * rows. In ms.
 */
const SHORTEST_TOTAL_MS = 5 * 60_000;

/** What a configuration lets pass through the queue. */
export function queueLimits({ confirm, peer, push, mirror }: Config): QueueLimits {
  // Rates protect other people's peers; the schema says these to the user.
  const usually = (rate: number) => (peer.url === 'embedded' ? Number.POSITIVE_INFINITY : rate);
  const { requestsPerSecond = usually(200) } = confirm;
  const { requestsPerSecond: pushes = usually(20) } = push;
  const { requestsPerSecond: downloads = usually(20) } = mirror;
  return {
    longestMs: REQUESTS_A_TASK * Math.max(peer.timeouts.total, SHORTEST_TOTAL_MS),
    lanes: {
      interactive: { requestsPerSecond, concurrency: SPARE_CONCURRENCY },
      confirm: { ...confirm, requestsPerSecond },
      push: { ...push, requestsPerSecond: pushes },
      removal: { ...push, requestsPerSecond: pushes },
      mirror: { requestsPerSecond: downloads, concurrency: SPARE_CONCURRENCY },
      audit: {
        requestsPerSecond: Math.min(AUDIT_REQUESTS_PER_SECOND, requestsPerSecond),
        concurrency: 1,
      },
    },
  };
}

/**
 * Absolute path of the file that is to become this document; undefined where its folder is not
 * configured any more, or gives the file another address now, which the item has not got yet.
 *
 * @param root of the folder, links resolved, where it is known
 */
export function pathOf(
  { folder, path, url }: Pick<Item, 'folder' | 'path' | 'url'>,
  folders: readonly Pick<FolderConfig, 'name' | 'path' | 'url'>[],
  root?: string,
): string | undefined {
  const found = folders.find(({ name }) => name === folder);
  if (found === undefined || documentUrl(found.url, path) !== url) return undefined;
  return join(root ?? found.path, path);
}

/** How long a stop may take in all, in ms: requests under way have 8 s of it. */
const GRACE_MS = 20_000;
/** The same where a disk is known to hang, in ms. */
const SHORT_GRACE_MS = 3_000;

/** The steps of a stop: what was begun last is ended first. */
export class Shutdown {
  readonly #stopping = new AbortController();
  /** Aborts when the daemon stops. */
  readonly signal: AbortSignal = this.#stopping.signal;
  readonly #steps: { readonly what: string; readonly end: () => Promise<void> | void }[] = [];

  constructor(
    readonly clock: Clock,
    readonly log: Logger,
  ) {}

  add(what: string, end: () => Promise<void> | void): void {
    this.#steps.push({ what, end });
  }

  /**
   * Takes all steps, also where some fail.
   *
   * @throws what failed, an AggregateError when that was more than one thing; STOP_GAVE_UP when the
   *   grace was over first, and then the rest is left as it is
   */
  async all(isDiskSilent = false): Promise<void> {
    this.#stopping.abort();
    const failures: unknown[] = [];
    const grace = new AbortController();
    let isOver = false;
    const over = this.clock
      .sleep(isDiskSilent ? SHORT_GRACE_MS : GRACE_MS, grace.signal)
      .then(() => {
        isOver = true;
      });
    for (const { what, end } of this.#steps.splice(0).reverse()) {
      const ended = Promise.resolve()
        .then(end)
        .catch((error: unknown) => {
          this.log.error({ what }, `stopping the ${what} failed: ${messageOf(error)}`);
          failures.push(error);
        });
      await Promise.race([ended, over]);
      if (isOver)
        throw new PeersyncError({
          code: 'STOP_GAVE_UP',
          message: `Stopped without waiting any longer for the ${what}.`,
          hint: 'Nothing is lost: the next start looks up what was under way. See whether a disk hangs.',
        });
    }
    grace.abort();
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1) throw new AggregateError(failures, 'the daemon did not stop cleanly');
  }
}
