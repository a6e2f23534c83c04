import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Peerdoc } from '../peer/peerdoc.js';
import type { PushAnswer, PushItem } from '../peer/push.js';
import type { RequestQueue } from '../queue/request-queue.js';
import type { Place } from '../state/entries.js';
import type { Entry, Item } from '../state/entry.js';
import type { State } from '../state/state.js';
import type { Packer } from './packer.js';
import type { DialectSource } from './peer-dialect.js';

/** What the uplink asks of a peer; `PeerClient` is one. */
export interface UplinkPeer {
  push(
    items: readonly PushItem[],
    options: { readonly synchronous?: boolean; readonly commit?: boolean; readonly signal?: AbortSignal },
  ): Promise<PushAnswer>;
  peerdoc(
    target: { readonly url: string },
    options: { readonly signal?: AbortSignal },
  ): Promise<Peerdoc | undefined>;
  /** Has the peer show at once what it has indexed, where there is a way. */
  commitIndex?(options: { readonly signal?: AbortSignal }): Promise<void>;
}

/** What the uplink asks of the state. */
export type UplinkState = Pick<
  State,
  'get' | 'put' | 'isCurrent' | 'onChange' | 'entries' | 'counts' | 'meta' | 'setMeta'
>;

export interface UplinkSettings {
  readonly push: {
    readonly maxItems: number;
    /** Bytes of files in one batch; a larger file travels alone. */
    readonly maxBytes: number;
    /** How long a batch waits to become full, in ms. */
    readonly linger: number;
    /** Batches under way at a time. */
    readonly concurrency: number;
    readonly attempts: number;
    readonly synchronous: boolean;
    readonly commit: boolean;
    /** Wait between two attempts of one item: doubles from `min` to `max`, in ms. */
    readonly backoff: { readonly min: number; readonly max: number };
  };
  readonly confirm: {
    /** How long an accepted item may take to be shown, in ms. */
    readonly timeout: number;
    /** Longest wait between two look-ups of one item, in ms. */
    readonly maxInterval: number;
    /** How long a positive has to hold before it counts, in ms; the dialect's where it is not given. */
    readonly hold?: number | undefined;
  };
}

/**
 * How the root of a folder stands. `doubtful`: it may be another one, and that a file is not there says nothing; `missing`: no
 * file of it can be looked at, as also before the root was looked at for the first time.
 */
export type Standing = 'there' | 'doubtful' | 'missing';

export interface UplinkParts {
  readonly state: UplinkState;
  /** Brings all changes of the state so far to the disk. */
  readonly commit: () => Promise<void>;
  readonly queue: Pick<RequestQueue, 'run' | 'ready' | 'hasRoom' | 'isBusy' | 'answeringForMs'>;
  readonly peer: UplinkPeer;
  readonly dialect: DialectSource;
  readonly packer: Packer;
  readonly clock: Clock;
  readonly log: Logger;
  readonly settings: UplinkSettings;
  /** Absolute path of an item's file, or undefined when the configuration has none for that address any more. */
  readonly pathOf: (item: Pick<Item, 'folder' | 'path' | 'url'>) => string | undefined;
  /** How a folder stands, undefined for one that left the configuration; see `Uplink.foldersChanged`. */
  readonly standing: (folder: string) => Standing | undefined;
  /** Asks for another look at a file that is not what it was. */
  readonly look: (place: Place) => void;
}

export function placeName(place: Place): string {
  return `${place.folder}/${place.path}`;
}

export function placeOf(entry: Entry): Place {
  return { folder: entry.folder, path: entry.path };
}

/** Waits until the queue has room in a lane; false when it was time to stop first. */
export async function roomFor(
  queue: Pick<RequestQueue, 'ready'>,
  lane: 'push' | 'confirm',
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await queue.ready(lane, signal);
    return !signal.aborted;
  } catch (error) {
    if (signal.aborted || (error instanceof PeersyncError && error.code === 'QUEUE_STOPPED')) return false;
    throw error;
  }
}
