import type { Programs } from '../content/helpers/programs.js';
import type { FleetOwner } from '../fleet/owner.js';
import type { SharedReaders } from '../fleet/shared-readers.js';
import type { SharedSender, SharedSenderDeps } from '../fleet/shared-sender.js';
import { usualConcurrency } from '../uplink/document-processes.js';
import type { Packers } from '../uplink/documents.js';
import { pushRate } from './open-queue.js';
import type { OpenDeps } from './options.js';

/** The parts of the owner's side of the fleet. */
export interface Fleet {
  readonly owner: FleetOwner;
  /** Undefined if the reading of documents is not shared. */
  readonly readers: SharedReaders | undefined;
  /** Undefined if pushes are not shared. */
  readonly sender: SharedSender | undefined;
}

interface FleetDeps {
  readonly programs: { readonly current: Programs };
  /** Reads a document on this machine. */
  readonly here: Packers['extractDocument'];
  /** Called when the number of jobs that workers can do has changed. */
  readonly onChange: () => void;
  /** Called when a push of a worker was completed that had been given up. */
  readonly onLate: SharedSenderDeps['onLate'];
}

/**
 * Opens the owner's side of the fleet; undefined if the configuration has no `fleet`. Nothing of it
 * is loaded then. The owner must be started.
 */
export async function openFleet(
  deps: OpenDeps,
  { here, onChange, onLate, programs }: FleetDeps,
): Promise<Fleet | undefined> {
  const { clock, current, log, shutdown } = deps;
  const { fleet, state } = current.config;
  if (fleet === undefined) return undefined;
  const { FleetOwner } = await import('../fleet/owner.js');
  const { SharedReaders } = await import('../fleet/shared-readers.js');
  const usual = usualConcurrency();
  const slotsHere = () => current.config.documents.concurrency ?? usual;
  const slotsElsewhere = () => owner.slots;
  const owner = await FleetOwner.open(fleet, state.dir, {
    clock,
    log,
    folders: () => current.config.folders,
    programs,
    peerUrl: current.config.peer.url,
    onChange: () => {
      readers?.startWaiting();
      onChange();
    },
  });
  const { extract: jobs } = owner;
  const readers = jobs && new SharedReaders({ owner, jobs, log, here, slotsHere, slotsElsewhere });
  shutdown.add('fleet', () => owner.close());
  // A document that a worker reads would delay the stop of the uplink.
  shutdown.signal.addEventListener('abort', () => owner.stop(), { once: true });
  const sender = owner.push && (await openSender(owner, owner.push, deps, onLate));
  return { owner, readers, sender };
}

async function openSender(
  owner: FleetOwner,
  { jobs, waiting }: NonNullable<FleetOwner['push']>,
  { clock, current, log, shutdown }: OpenDeps,
  onLate: SharedSenderDeps['onLate'],
): Promise<SharedSender> {
  const { SharedSender } = await import('../fleet/shared-sender.js');
  const { epoch, keys, redis } = owner;
  const sender = new SharedSender({
    redis,
    waiting,
    keys,
    epoch,
    jobs,
    clock,
    log,
    onLate,
    peerUrl: current.config.peer.url,
    requestsPerSecond: () => pushRate(current.config),
    slots: () => owner.pushSlots,
  });
  owner.onBeat = (workers) => sender.beat(workers);
  owner.afterBeat = () => sender.check();
  shutdown.add('fleet pushes', async () => sender.close());
  return sender;
}
