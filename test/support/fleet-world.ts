import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NO_PROGRAMS } from '../../src/content/helpers/programs.js';
import { FleetOwner } from '../../src/fleet/owner.js';
import { Keys } from '../../src/fleet/protocol.js';
import { EARLIER_LEASE_MS, SharedSender } from '../../src/fleet/shared-sender.js';
import { FleetWorker, type FleetWorkerDeps } from '../../src/fleet/worker.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { PeerError } from '../../src/peer/errors.js';
import type { PushItem, PushOptions } from '../../src/peer/push.js';
import { extractDocument } from '../../src/uplink/document-text.js';
import { pack } from '../../src/uplink/documents.js';
import type { UnansweredPush } from '../../src/uplink/unanswered-pushes.js';
import { afterwards } from './afterwards.js';
import { FakePeer } from './fake-peer.js';
import { RedisServer } from './redis-server.js';
import { temporaryDirectory } from './temp.js';
import type { UplinkWorld } from './uplink-world.js';
import { deferred, until } from './wait.js';
import { world } from './world.js';

const clock = systemClock;
const log = silentLogger;
const PREFIX = 'p';
const PEER_URL = 'http://127.0.0.1:1/';

/** The way from one machine to the peer. */
export class Way {
  /** The URLs of the pushes that went this way. */
  readonly pushes: string[][] = [];
  /** The number of those that were not completed. */
  aborted = 0;
  /** The number of those that were broken off while the peer had them. */
  brokenOff = 0;
  /** Called with each push, before it leaves. */
  onPush: (urls: readonly string[]) => unknown = () => {};
  /** Called in the middle of its body. */
  onPiece: () => unknown = () => {};

  constructor(private readonly peer: FakePeer) {}

  async push(items: readonly PushItem[], options: PushOptions = {}) {
    const urls = items.map(({ url }) => url);
    try {
      await this.onPush(urls);
      await options.admit?.(0);
      await this.onPiece();
      await options.admit?.(1);
    } catch (cause) {
      if (cause instanceof PeerError) throw cause;
      this.aborted += 1;
      const url = 'http://127.0.0.1:1/';
      throw new PeerError('PEER_ABORTED', { url, what: 'was not sent', delivered: 'no', cause });
    }
    this.pushes.push(urls);
    options.signal?.addEventListener('abort', () => {
      this.brokenOff += 1;
    });
    return await this.peer.push(items, options.signal === undefined ? {} : options);
  }
}

interface FleetWorldOptions {
  /** The folder as the worker has it. @default that of the owner */
  readonly workerRoot?: string;
  /** The URL of the folder as the worker has it. @default that of the owner */
  readonly workerUrl?: string;
  /** The peer of the worker. @default that of the owner */
  readonly peerUrl?: string;
  /** Whether the owner does not wait for orders of an earlier run. @default true */
  readonly skipsStart?: boolean;
}

/** An uplink whose batches go to one worker, which reads files below another root if it is told. */
export async function fleetWorld({
  peerUrl = PEER_URL,
  skipsStart = true,
  workerRoot,
  workerUrl,
}: FleetWorldOptions = {}) {
  const server = new RedisServer(temporaryDirectory());
  afterwards('test', () => server.kill());
  await server.start();
  const fleet = { redis: server.url, prefix: PREFIX, share: ['push' as const] };
  const owner = await FleetOwner.open(fleet, '/state', {
    clock,
    log,
    folders: () => [],
    programs: { current: NO_PROGRAMS },
    peerUrl: PEER_URL,
    onChange: () => {},
  });
  afterwards('test', () => owner.close());
  if (owner.push === undefined) throw new Error('pushes are not shared');
  let skippedMs = 0;
  const late: UnansweredPush[][] = [];
  const peer = new FakePeer();
  const own = new Way(peer);
  const there = new Way(peer);
  const { jobs, waiting } = owner.push;
  const sender = new SharedSender({
    redis: owner.redis,
    waiting,
    jobs,
    clock: { ...clock, now: () => clock.now() + skippedMs },
    log,
    keys: new Keys(PREFIX),
    epoch: owner.epoch,
    peerUrl: PEER_URL,
    requestsPerSecond: () => 1_000,
    slots: () => owner.pushSlots,
    onLate: (pushes) => {
      late.push([...pushes]);
      void w.uplink.repairLate(pushes);
    },
  });
  owner.onBeat = async (workers) => {
    await sender.beat(workers);
    if (!skipsStart || skippedMs > 0) return;
    skippedMs = EARLIER_LEASE_MS;
    await sender.beat(workers);
  };
  owner.afterBeat = () => sender.check();
  afterwards('test', async () => sender.close());
  const refused = { count: 0 };
  const w: UplinkWorld = await world({
    peer,
    sharing: {
      get slots() {
        return sender.slots;
      },
      latestArrival: (sentAt) => sender.latestArrival(sentAt),
      read: async (batch) => {
        const packed = await sender.read(batch);
        if (packed === undefined) refused.count += 1;
        return packed;
      },
    },
    uplinkPeer: () =>
      sender.limited({
        push: (items, options) => own.push(items, options),
        peerdoc: (query) => peer.peerdoc('url' in query ? query : { url: '' }),
        commitIndex: () => peer.commitIndex(),
        remove: (urls) => peer.remove(urls),
      }),
  });
  owner.start();
  const root = workerRoot ?? w.root;
  writeFileSync(join(root, '.there'), '');
  const folder = { name: 'inbox', path: root, url: workerUrl ?? w.url(''), followSymlinks: false };
  const worker = await FleetWorker.open({
    config: {
      fleet,
      folders: [folder],
      peer: { url: peerUrl },
      push: {},
    } as unknown as FleetWorkerDeps['config'],
    clock,
    log,
    programs: { current: NO_PROGRAMS, refresh: async () => {}, isCurrent: async () => true },
    readers: { extractDocument, restart: async () => {}, close: async () => {} },
    pack: async (order) => pack(order),
    peerOf: async () => there,
    slots: 1,
  });
  afterwards('test', () => worker.stop());
  worker.start();
  if (peerUrl === PEER_URL) await until(() => sender.slots > 0, 'a worker takes batches');
  return { late, own, owner, peer, refused, sender, server, there, w, worker };
}

export type FleetWorld = Awaited<ReturnType<typeof fleetWorld>>;

/** Has the owner read a file that takes long, so that all other batches go to the worker. */
export async function occupyOwner({ w }: FleetWorld): Promise<() => void> {
  const { promise: isOver, resolve: release } = deferred();
  afterwards('test', release);
  let isOccupied = false;
  w.beforePack = async () => {
    isOccupied = true;
    await isOver;
  };
  w.write('first.txt', 'the owner reads it');
  await until(() => isOccupied, 'the owner reads');
  return release;
}
