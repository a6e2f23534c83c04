import type { Clock } from '../lib/clock.js';
import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { UnderWay } from '../lib/pulse.js';
import { WorkThread } from '../lib/work-thread.js';
import { Mirrors } from '../mirror/mirrors.js';
import type { PeerClient } from '../peer/client.js';
import { RequestQueue } from '../queue/request-queue.js';
import { Figures } from '../report/figures.js';
import { Pausing } from '../report/pausing.js';
import { lockState } from '../state/lock.js';
import { patientCommit } from '../state/patient-commit.js';
import { State } from '../state/state.js';
import { Audit } from '../uplink/audit.js';
import { ThreadPacker } from '../uplink/packer.js';
import { PeerDialect } from '../uplink/peer-dialect.js';
import { cannotTravel } from '../uplink/treatment.js';
import { classify } from '../uplink/trouble.js';
import { Uplink } from '../uplink/uplink.js';
import { ThreadLister } from '../watch/lister.js';
import { Watcher } from '../watch/watcher.js';
import type { Current } from './current.js';
import { Housekeeping } from './housekeeping.js';
import { queueLimits } from './lanes.js';
import { openPeer } from './open-peer.js';
import { pathOf } from './path-of.js';
import type { Undoing } from './undoing.js';

/** How long requests that are under way may take to end when the daemon stops, in ms. */
export const STOP_GRACE_MS = 8_000;

export interface OpenOptions {
  readonly current: Current;
  readonly clock: Clock;
  readonly log: Logger;
  /** Watch for changes; without it one scan is all. */
  readonly follow: boolean;
  /** Wait while the disk of the state is full. */
  readonly patient: boolean;
  readonly onFailure: (error: unknown) => void;
  readonly undoing: Undoing;
  /** Aborts when the daemon stops. */
  readonly stopping: AbortSignal;
}

/** What a daemon is made of. */
export interface Parts {
  readonly state: State;
  /** Brings all changes of the state so far to the disk. */
  readonly commit: () => Promise<void>;
  readonly pausing: Pausing;
  readonly housekeeping: Housekeeping;
  readonly client: PeerClient;
  /** The peer's address, also of the embedded one. */
  readonly peerUrl: string;
  readonly queue: RequestQueue;
  readonly dialect: PeerDialect;
  readonly uplink: Uplink;
  readonly audit: Audit;
  readonly watcher: Watcher;
  /** Reads files, for what comes in and what goes out. */
  readonly fileThread: WorkThread;
  readonly mirrors: Mirrors;
  readonly figures: Figures;
  /** What is being brought to the disk. */
  readonly commits: UnderWay;
}

/** Takes the lock, reads the state, brings up the peer and makes everything between folders and peer; nothing runs yet. */
export async function openParts(options: OpenOptions): Promise<Parts> {
  const { current, clock, log, undoing, onFailure } = options;
  const { config } = current;
  const lock = await lockState(config.state.dir, { clock });
  undoing.add('lock', () => lock.release());
  const state = await State.open(config.state.dir, { clock, log });
  undoing.add('state', () => state.close());
  const commits = new UnderWay();
  const commitOnce = () => commits.during(() => state.commit());
  const commit = options.patient
    ? patientCommit(commitOnce, { clock, log, signal: options.stopping })
    : commitOnce;
  const housekeeping = new Housekeeping({
    state,
    commit,
    folders: config.folders.map((folder) => folder.name),
    keepGoneMs: config.state.keepGone,
    clock,
    log,
  });
  undoing.add('housekeeping', () => housekeeping.stop());
  await housekeeping.start();
  const { client, url: peerUrl } = await openPeer(config.peer, { clock, log, state, undoing, onFailure });
  const queue = new RequestQueue({ ...queueLimits(config), classify, clock, log, peerName: 'The peer' });
  undoing.add('queue', () => queue.stop(STOP_GRACE_MS));
  const pausing = new Pausing({ state, commit, queue, clock, log });
  pausing.restore();
  const dialect = new PeerDialect({
    configured: config.peer.dialect,
    url: peerUrl,
    client,
    queue,
    state,
    commit,
    clock,
    log,
    onChange: () => void watcher.rescan(undefined).catch(onFailure),
  });
  const fileThread = new WorkThread(new URL('../file-thread.js', import.meta.url), (error) =>
    log.error({ err: error }, `the thread that reads files broke down: ${messageOf(error)}; it starts anew`),
  );
  undoing.add('file thread', () => fileThread.close());
  const lister = new ThreadLister({
    clock,
    open: () =>
      new WorkThread(new URL('../watch/list-thread.js', import.meta.url), (error) =>
        log.error(
          { err: error },
          `a thread that lists folders broke down: ${messageOf(error)}; it starts anew`,
        ),
      ),
  });
  undoing.add('list threads', () => lister.close());
  const watcher: Watcher = new Watcher({
    folders: config.folders,
    state,
    clock,
    log,
    accepts: (encoding) => cannotTravel(encoding, dialect.current?.content),
    readGroup: (orders) => fileThread.ask('read', orders),
    lister,
    hints: options.follow && config.watch.hints,
    rescanMs: config.watch.rescan,
    onStanding: () => uplink.foldersChanged(),
  });
  const uplink: Uplink = new Uplink({
    dialect,
    packer: new ThreadPacker(fileThread),
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
  undoing.add('mirrors', () => mirrors.stop());
  const figures = new Figures({
    ...{ state, clock, log },
    settings: () => current.config,
    dir: config.state.dir,
    paused: () => queue.status().paused !== undefined,
  });
  current.onChange(() => figures.reconfigured());
  return {
    ...{
      state,
      commit,
      pausing,
      housekeeping,
      client,
      peerUrl,
      queue,
      dialect,
      uplink,
      audit,
      watcher,
      fileThread,
      mirrors,
      figures,
    },
    commits,
  };
}
