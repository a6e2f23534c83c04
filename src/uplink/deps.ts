import type { Config } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { PeerClient } from '../peer/client.js';
import type { Dialect } from '../peer/dialect.js';
import type { RequestQueue } from '../queue/request-queue.js';
import type { Place } from '../state/entries.js';
import type { Entry, Item, PendingItem } from '../state/entry.js';
import type { State } from '../state/state.js';
import type { DocumentsTrouble } from './document-processes.js';
import type { Packers } from './documents.js';

/** What the uplink asks of a peer. */
export type UplinkPeer = Pick<PeerClient, 'push' | 'peerdoc' | 'commitIndex' | 'remove'>;

export interface DialectSource {
  readonly current: Dialect | undefined;
  /** Resolves when the dialect is known: true; or when it is time to stop: false. */
  known(signal: AbortSignal): Promise<boolean>;
  /**
   * The peer's answer did not fit the dialect. @returns whether it speaks another one, which is
   * spoken from now on
   */
  misfits(): Promise<boolean>;
}

/**
 * How the root of a folder stands. `missing`: no file of it can be looked at, as also before the
 * root was looked at for the first time.
 */
export type Standing = 'there' | 'missing';

/** Of the configuration; the rates are kept by the queue. */
export type UplinkSettings = Pick<Config, 'push' | 'confirm'>;

export interface UplinkDeps extends Packers {
  readonly state: State;
  readonly queue: Pick<RequestQueue, 'run' | 'ready' | 'hasRoom' | 'isBusy' | 'answeringForMs'>;
  readonly peer: UplinkPeer;
  readonly dialect: DialectSource;
  readonly clock: Clock;
  readonly log: Logger;
  readonly settings: UplinkSettings;
  /**
   * Absolute path of an item's file, or undefined when the configuration has none for that URL any
   * more, or the file system that it is on is not mounted.
   */
  readonly pathOf: (item: Pick<Item, 'folder' | 'path' | 'url'>) => string | undefined;
  /**
   * The directory in which links of a folder are followed, as in `ReadOrder`; undefined for a
   * folder whose links are not.
   */
  readonly linksWithin: (folder: string) => string | undefined;
  /** Whether documents of a folder travel as text also where the peer takes them as they are. */
  readonly extracts: (folder: string) => boolean;
  /** Why no document can be read at present, where that is so. */
  readonly documentsTrouble?: () => DocumentsTrouble | undefined;
  /**
   * How a folder stands, undefined for one that left the configuration; see
   * `Uplink.foldersChanged`.
   */
  readonly standing: (folder: string) => Standing | undefined;
  /**
   * How many pending items wait in memory at most that are due, and how many that are due later; of
   * accepted ones twice as many. @default 10,000
   */
  readonly held?: number;
  /** The same peer where it is the embedded one, which takes more than others do. */
  readonly embeddedPeer?: Pick<PeerClient, 'peerdocs'> | undefined;
  /** Asks for another look at a file that is not what it was. */
  readonly look: (place: Place) => void;
}

export function keyOf({ folder, path }: Place): string {
  return `${folder}\0${path}`;
}

/** So long after a push the peer may take back what it shows, in ms. */
export function holdMs({ settings, dialect }: Pick<UplinkDeps, 'settings' | 'dialect'>): number {
  return settings.confirm.hold ?? dialect.current?.holdMs ?? 0;
}

/** A YaCy takes 9 s to index 5 MB of text and 57 s for 50 MB; nothing else is indexed meanwhile. */
const INDEXING_MS_PER_BYTE = 2_000 / 1e6;
const LONGEST_INDEXING_MS = 60_000;

/** How long a peer that has a hold takes to index so many bytes, in ms. */
export function indexingMs(bytes: number): number {
  return Math.min(LONGEST_INDEXING_MS, bytes * INDEXING_MS_PER_BYTE);
}

/** The wait after another failure: doubling with each attempt from `min` to `max`, in ms. */
export function backoffMs(
  { push }: UplinkSettings,
  { attempts }: { readonly attempts: number },
): number {
  const { min, max } = push.backoff;
  return Math.min(max, min * 2 ** Math.min(30, attempts));
}

/**
 * What has not failed is put off for a few seconds at most: two pushes are kept apart, a file
 * changed under our hands. In ms.
 */
const LONGEST_OTHER_WAIT_MS = 10_000;

/**
 * How long an item waits at most, in ms: one that is put off for longer is of an earlier run whose
 * clock was wrong.
 */
export function longestPutOffMs({ push }: UplinkSettings): number {
  return Math.max(LONGEST_OTHER_WAIT_MS, push.backoff.max);
}

/**
 * Whether the peer loses documents together, so that what it lost has to be pushed apart (see
 * Isolation).
 */
export function losesUpdates(deps: Pick<UplinkDeps, 'settings' | 'dialect'>): boolean {
  return deps.dialect.current?.losesUpdates === true && holdMs(deps) > 0;
}

/**
 * A record as it stands now, if it is the item that was taken: still pending, in that version and
 * for that document.
 */
export function stillPending(now: Entry | undefined, taken: PendingItem): PendingItem | undefined {
  return now?.status === 'pending' &&
    now.version.sha256 === taken.version.sha256 &&
    now.url === taken.url &&
    now.collection === taken.collection
    ? now
    : undefined;
}

/** Whether the peer does what it is asked. @throws what is no trouble of the peer */
export async function goesThrough(request: Promise<unknown>): Promise<boolean> {
  try {
    await request;
    return true;
  } catch (error) {
    if (!(error instanceof PeersyncError)) throw error;
    return false;
  }
}

/** Timers stand still while the machine is suspended: no wait is longer, in ms. */
export const LONGEST_WAIT_MS = 30_000;

/**
 * What a loop has going on beside itself, and what it waits for: a notification, the end of
 * something that it started, a time, or its stop. The first failure of what it started ends the
 * loop.
 */
export class Background {
  readonly #clock: Clock;
  readonly #running = new Set<Promise<void>>();
  readonly #failures: unknown[] = [];
  #wake = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#running.size;
  }

  start(work: Promise<void>): void {
    const running = work
      .catch((error: unknown) => void this.#failures.push(error))
      .finally(() => {
        this.#running.delete(running);
        this.notify();
      });
    this.#running.add(running);
  }

  /** Ends the present `wait`, or else the next one. */
  notify(): void {
    // Without a reason each call makes an error with its stack, for every change of an item.
    if (!this.#wake.signal.aborted) this.#wake.abort('notified');
  }

  async wait(ms: number): Promise<void> {
    if (ms > 0) await this.#clock.sleep(Math.min(ms, LONGEST_WAIT_MS), this.#wake.signal);
    this.#wake = new AbortController();
  }

  /** Resolves when nothing runs. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  /**
   * Takes one step after the other until it is time to stop, then awaits what was started. @throws
   * the first failure
   */
  async loop(step: () => Promise<void>, signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.notify());
    try {
      while (!signal.aborted && this.#failures.length === 0) await step();
    } catch (error) {
      const isStop =
        signal.aborted || (error instanceof PeersyncError && error.code === 'QUEUE_STOPPED');
      if (!isStop) this.#failures.push(error);
    }
    await this.settled();
    if (this.#failures.length > 0) throw this.#failures[0];
  }
}
