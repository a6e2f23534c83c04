import { join } from 'node:path';
import { restorePause } from '../api/pause.js';
import type { FolderConfig } from '../config/config.js';
import { documentUrl } from '../config/url.js';
import { ExtractCache } from '../content/extracts.js';
import { ProgramFinder } from '../content/helpers/finder.js';
import { type EmbeddedPeer, startEmbeddedPeer } from '../embedded/embedded-peer.js';
import type { Clock } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import { HealthCheck } from '../lib/health.js';
import type { Logger } from '../lib/logger.js';
import { WorkThread } from '../lib/work-thread.js';
import { Mirrors } from '../mirror/mirrors.js';
import { isDialect } from '../peer/dialects/dialects.js';
import { Statistics } from '../report/statistics.js';
import { knownDialect, knownEmbedded } from '../report/status.js';
import type { Item } from '../state/entry.js';
import { REPAIRED_META } from '../state/rows.js';
import type { State } from '../state/state.js';
import { Audit } from '../uplink/audit.js';
import type { UplinkDeps } from '../uplink/deps.js';
import { DocumentProcesses } from '../uplink/document-processes.js';
import { cannotTravel, type Packers } from '../uplink/documents.js';
import { Uplink } from '../uplink/uplink.js';
import { listIn } from '../watch/lister.js';
import { Watcher } from '../watch/watcher.js';
import { configuredPeer, PeerDialect, PeerKind } from './configured-peer.js';
import { openFleet } from './fleet.js';
import { Housekeeping } from './housekeeping.js';
import { NotIndexedNames } from './not-indexed.js';
import { openQueue } from './open-queue.js';
import type { OpenDeps } from './options.js';
import { Originals } from './originals.js';
import { DaemonPrograms } from './programs.js';
import { STOP_GRACE_MS } from './shutdown.js';
import { openState } from './state-access.js';

/**
 * Longest time of one order to the file thread, in ms. An order may be several large batches on a
 * remote disk.
 */
const MAX_ORDER_MS = 15 * 60_000;

/** The parts of a daemon. */
export type Parts = Awaited<ReturnType<typeof openParts>>;

/**
 * Locks and reads the state, starts the embedded peer if it is the configured one, and creates all
 * parts between the folders and the peer. No loop runs yet.
 */
export async function openParts(deps: OpenDeps) {
  const { current, clock, log, shutdown, onFailure } = deps;
  const { config } = current;

  const state = await openState(deps);
  const housekeeping = new Housekeeping({
    state,
    clock,
    log,
    isEmbedded: () => knownEmbedded(config.peer, state),
  });
  shutdown.add('housekeeping', () => housekeeping.stop());
  await housekeeping.configure(config);

  const { client, url: peerUrl, linkTo, connect } = await openPeer(state, deps);
  shutdown.add('peer', () => client.close());
  const queue = openQueue(config, clock, log);
  shutdown.add('queue', () => queue.stop(STOP_GRACE_MS));
  restorePause({ state, queue, clock, log });
  const shared = { state, queue, peer: client, clock, log };

  // Rules depend on the dialect and on the kind of peer.
  const onChange = () => void watcher.scanAll().catch(onFailure);
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
  const programs = await DaemonPrograms.open({
    finder: new ProgramFinder(() => current.config.documents),
    clock,
    log,
    onChange,
  });

  const { ask, fileHealth, listThreads } = openThreads(deps);
  const extracts = join(config.state.dir, 'extracts');
  const documents = new DocumentProcesses(
    new URL('../document-process.js', import.meta.url),
    join(config.state.dir, 'reading'),
    extracts,
    clock,
    log,
  );
  await documents.removeLeftovers();
  // Documents that wait to be read would delay the stop of the uplink.
  shutdown.signal.addEventListener('abort', () => void documents.close(), { once: true });

  const watcher: Watcher = new Watcher({
    state,
    clock,
    log,
    folders: config.folders,
    rescanMs: config.watch.rescan,
    peer: {
      refusalOf: (encoding, typeName) => cannotTravel(encoding, dialect.current?.content, typeName),
      isEmbedded: () => kind.get(),
    },
    programs,
    readGroup: (orders) => ask('read', orders),
    list: listIn(listThreads),
    hints: deps.follow && config.watch.hints,
    onFolderStateChange: () => uplink.foldersChanged(),
  });
  if (connect !== undefined) connectPeer(connect, { state, watcher }, deps);
  const readHere: Packers['extractDocument'] = (order, onProgress) =>
    documents.read(order, onProgress);
  const fleet = await openFleet(deps, {
    programs,
    here: readHere,
    onChange: () => uplink.configured(),
    onLate: (pushes) => void uplink.repairLate(pushes).catch(onFailure),
  });
  const folderNamed = (folder: string) =>
    current.config.folders.find(({ name }) => name === folder);
  const uplinkDeps: UplinkDeps = {
    ...shared,
    dialect,
    get settings() {
      return current.config;
    },
    readers: {
      pack: (order) => ask('pack', order),
      extractDocument: fleet?.readers?.extractDocument ?? readHere,
      get elsewhere() {
        return fleet?.readers?.elsewhere ?? 0;
      },
      get failure() {
        return documents.failure;
      },
    },
    programs,
    folders: {
      stateOf: (folder) => watcher.folderState(folder),
      pathOf: (item) =>
        watcher.isUnmounted(item)
          ? undefined
          : pathOf(item, current.config.folders, watcher.rootOf(item.folder)),
      linksWithin: (folder) =>
        folderNamed(folder)?.followSymlinks ? watcher.rootOf(folder) : undefined,
      extracts: (folder) => folderNamed(folder)?.extract === 'always',
      recheck: (item) => watcher.lookSoon(item),
    },
    extracts: new ExtractCache(extracts, clock, () => current.config.documents.cacheSize),
    peer: fleet?.sender?.limited(client) ?? client,
    sharing: fleet?.sender,
    embeddedPeer: config.peer.url === 'embedded' ? client : undefined,
  };
  const uplink: Uplink = new Uplink(uplinkDeps);
  const audit = new Audit(uplinkDeps);
  fleet?.owner.start();

  const mirrors = await Mirrors.open({
    ...shared,
    settings: config.mirror,
    stateDir: config.state.dir,
  });
  shutdown.add('mirrors', () => mirrors.stop());
  const statistics = new Statistics({ state, clock, log, settings: () => current.config });

  /** Returns the health checks of all loops, which a reload may replace. */
  const health = (): readonly HealthCheck[] => [
    ...watcher.health,
    fileHealth,
    ...uplink.health,
    ...queue.health,
    ...mirrors.health,
    state.health,
  ];
  return {
    state,
    housekeeping,
    client,
    peerUrl,
    linkTo,
    queue,
    dialect,
    kind,
    programs,
    watcher,
    uplink,
    audit,
    fleet,
    mirrors,
    statistics,
    health,
  };
}

/**
 * Returns a client of the configured peer, and the address of the peer. Starts the embedded peer if
 * it is the configured one.
 */
async function openPeer(state: State, { current, clock, log, shutdown, onFailure }: OpenDeps) {
  const { peer, state: stateConfig } = current.config;
  if (peer.url !== 'embedded') {
    const known = knownDialect(peer, state);
    const dialect = known !== undefined && isDialect(known) ? known : 'auto';
    const client = await configuredPeer(
      { peer: { ...peer, dialect }, state: stateConfig },
      { clock, log },
    );
    return { url: peer.url, client, linkTo: undefined, connect: undefined };
  }
  const { dir, port, requireAuth } = peer.embedded;
  const embedded = await startEmbeddedPeer({ dir, port, requireAuthEverywhere: requireAuth, log });
  shutdown.add('embedded peer', () => embedded.close());
  void embedded.exited.then((error) => error && onFailure(error));
  const { connect, database, linkTo, url } = embedded;
  await recordDatabase(database, state, clock, log);
  const client = await configuredPeer(current.config, { clock, log }, embedded);
  return { url, linkTo, connect, client };
}

/** The key of the state value with the identity of the embedded peer's database. */
const DATABASE_META = 'embeddedDatabase';

/**
 * Records the database of the embedded peer. If it is another one than before, the peer was
 * restored or lost its database: all documents are compared with it. A state of an earlier release
 * does not know the one before; then a database with too few documents is another one.
 */
async function recordDatabase(
  { documents, identity }: EmbeddedPeer['database'],
  state: State,
  clock: Clock,
  log: Logger,
): Promise<void> {
  const before = state.meta(DATABASE_META);
  if (before === identity) return;
  if (before !== undefined || documents < state.counts().confirmed) {
    state.setMeta(REPAIRED_META, clock.now());
    log.warn(
      { event: 'other-database' },
      'the peer has another database than before: everything in it is compared with the state',
    );
  }
  state.setMeta(DATABASE_META, identity);
  await state.commit();
}

/** Makes the pages of the embedded peer show the files that the daemon knows. */
function connectPeer(
  connect: EmbeddedPeer['connect'],
  { state, watcher }: { readonly state: State; readonly watcher: Watcher },
  { clock, configFile, current, onFailure, shutdown }: OpenDeps,
): void {
  const names = new NotIndexedNames({ state, current, clock, configFile });
  shutdown.add('names of files that are not indexed', () => names.stop());
  names.start().catch(onFailure);
  const originals = new Originals({ state, watcher, current, clock, configFile });
  connect({
    openOriginal: (url) => originals.open(url),
    aboutResults: async ({ urls, words }) => ({
      originals: urls.map((url) => originals.has(url)),
      notIndexed: words && (await names.find(words)),
    }),
  });
}

/**
 * Starts the threads: one that reads files for the watcher and the uplink, and two that list
 * directories.
 */
function openThreads({ log, shutdown }: OpenDeps) {
  const onBreakdown = (error: Error) =>
    log.error({ err: error }, `a thread broke down: ${messageOf(error)}; it starts anew`);
  const open = () => new WorkThread(new URL('../file-thread.js', import.meta.url), onBreakdown);
  const fileThread = open();
  const listThreads = [open(), open()] as const;
  shutdown.add('threads', async () => {
    for (const thread of [fileThread, ...listThreads]) await thread.close();
  });
  const fileHealth = new HealthCheck('file thread', 'the thread that reads files gives no answer', {
    limitMs: MAX_ORDER_MS,
  });
  const ask: WorkThread['ask'] = (...order) => fileHealth.during(() => fileThread.ask(...order));
  return { ask, fileHealth, listThreads };
}

/**
 * Returns the absolute path of the file of a document. Undefined if the folder is not configured
 * any more, or has another URL base now that the item does not have yet.
 *
 * @param root the root of the folder with links resolved, if it is known
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
