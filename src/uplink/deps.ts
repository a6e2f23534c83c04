import type { Config } from '../config/config.js';
import type { ExtractCache } from '../content/extracts.js';
import type { Programs } from '../content/helpers/programs.js';
import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { nextTurn } from '../lib/slices.js';
import type { PeerClient } from '../peer/client.js';
import type { Dialect, IsolationPolicy } from '../peer/dialects/dialect.js';
import { PeerError, type PeerErrorCode } from '../peer/errors.js';
import type { Outcome } from '../queue/options.js';
import type { RequestQueue } from '../queue/request-queue.js';
import type { ItemKey } from '../state/entries.js';
import { type Entry, type Item, type PendingItem, recordKey } from '../state/entry.js';
import type { State } from '../state/state.js';
import type { ReadersFailure } from './document-processes.js';
import type { Packers } from './documents.js';
import type { BatchSharing } from './packed-batch.js';

/** The requests that the uplink sends to a peer. */
export type UplinkPeer = Pick<PeerClient, 'push' | 'peerdoc' | 'commitIndex' | 'remove'>;

export interface DialectSource {
  readonly current: Dialect | undefined;
  /** Resolves to true when the dialect is known, or to false on abort. */
  known(signal: AbortSignal): Promise<boolean>;
  /**
   * Detects the dialect again after an answer that does not fit it.
   * @returns whether the dialect changed; `current` is the new one then
   */
  redetect(): Promise<boolean>;
}

/**
 * State of a folder's root. `missing`: its files cannot be read now. It is `missing` until the root
 * was checked for the first time.
 */
export type FolderState = 'there' | 'missing';

/** The part of the configuration that the uplink reads. The queue enforces the rates. */
export type UplinkSettings = LookUpSettings & {
  readonly documents: Pick<Config['documents'], 'cacheSize' | 'concurrency'>;
};

/** The part that look-ups read. */
type LookUpSettings = Pick<Config, 'push' | 'confirm'>;

/** The folders of the configuration, and their files as the watcher sees them. */
interface Folders {
  /**
   * Returns the state of a folder's root; undefined if the configuration does not have the folder.
   * `Uplink.foldersChanged` must be called after each change.
   */
  stateOf(folder: string): FolderState | undefined;
  /**
   * Returns the absolute path of an item's file. Undefined if the configuration has no file for
   * that URL any more, or the file system of the file is not mounted.
   */
  pathOf(item: Pick<Item, 'folder' | 'path' | 'url'>): string | undefined;
  /**
   * Returns the directory within which links of a folder are followed, as in `ReadOrder`; undefined
   * if they are not followed.
   */
  linksWithin(folder: string): string | undefined;
  /**
   * Whether the text of a folder's documents is sent even to a peer that accepts the documents
   * themselves.
   */
  extracts(folder: string): boolean;
  /** Has a file looked at again that is not in the expected version. */
  recheck(item: ItemKey): void;
}

/** The thread and the processes that read files. */
export interface Readers extends Packers {
  /** The reason why no document can be read at present. */
  readonly failure: ReadersFailure | undefined;
  /** The number of documents that other machines can read at the same time. @default 0 */
  readonly elsewhere?: number;
}

/** The parts that look-ups need: `verify` works with these alone. */
export interface Deps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly state: State;
  readonly queue: Pick<RequestQueue, 'run' | 'ready' | 'hasRoom' | 'isBusy' | 'answeringForMs'>;
  readonly peer: UplinkPeer;
  readonly dialect: DialectSource;
  readonly settings: LookUpSettings;
}

export interface UplinkDeps extends Deps {
  readonly settings: UplinkSettings;
  readonly folders: Folders;
  readonly readers: Readers;
  /** The programs that read documents. `current` is another object after each change. */
  readonly programs: { readonly current: Programs };
  /** The texts of documents that were read. */
  readonly extracts: Pick<ExtractCache, 'find' | 'store' | 'storeRefusal'>;
  /**
   * Maximum number of due pending items in memory, and of later ones; twice as many accepted items.
   * @default 10,000
   */
  readonly maxInMemory?: number;
  /** Other machines that read batches and push them. @default none */
  readonly sharing?: BatchSharing | undefined;
  /** The peer again, if it is the embedded one: that answers many look-ups in one request. */
  readonly embeddedPeer?: Pick<PeerClient, 'peerdocs'> | undefined;
}

export function itemKeyText({ folder, path }: ItemKey): string {
  return recordKey(folder, path);
}

/** Returns how long after a push the peer may still take back what it shows, in ms. */
export function holdMs({ settings, dialect }: Deps): number {
  return settings.confirm.hold ?? dialect.current?.holdMs ?? 0;
}

/** Returns how long a peer with a hold takes to index so many bytes, in ms. */
export function indexingMs({ dialect }: Deps, bytes: number): number {
  return dialect.current?.indexingMs(bytes) ?? 0;
}

/**
 * Returns how documents that the peer loses together are pushed again (see Isolation); undefined if
 * it loses none together.
 */
export function isolationPolicy(deps: Deps): IsolationPolicy | undefined {
  return holdMs(deps) > 0 ? deps.dialect.current?.isolation : undefined;
}

/**
 * Returns the present record if it is still pending, in the same version and for the same document.
 */
export function stillPending(now: Entry | undefined, taken: PendingItem): PendingItem | undefined {
  return now?.status === 'pending' &&
    now.version.sha256 === taken.version.sha256 &&
    now.url === taken.url &&
    now.collection === taken.collection
    ? now
    : undefined;
}

/**
 * Whether a request succeeds.
 * @throws errors that do not come from the peer
 */
export async function succeeds(request: Promise<unknown>): Promise<boolean> {
  try {
    await request;
    return true;
  } catch (error) {
    if (!(error instanceof PeersyncError)) throw error;
    return false;
  }
}

/** Maximum length of a timer, in ms: timers stand still while the machine is suspended. */
export const LONGEST_WAIT_MS = 30_000;

/**
 * The tasks that a loop runs in the background, and its waiting. A wait ends with a notification,
 * the end of a task, its time, or the stop. The first failure of a task ends the loop.
 */
export class Background {
  readonly #clock: Clock;
  readonly #running = new Set<Promise<void>>();
  readonly #failures: unknown[] = [];
  /** Ends the wait that is under way. */
  #wake: (() => void) | undefined;
  #isNotified = false;

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

  /** Wakes the waiting loop, or the next call to `wait`. */
  notify(): void {
    this.#isNotified = true;
    this.#wake?.();
  }

  /**
   * Waits for `ms`, or for less: see above. An AbortSignal each time would take 4 % of the time of
   * a first sync.
   */
  async wait(ms: number): Promise<void> {
    // A loop that is notified by its own step gives way to others.
    if (this.#isNotified) await nextTurn();
    else if (ms > 0)
      await new Promise<void>((resolve) => {
        const timer = this.#clock.after(Math.min(ms, LONGEST_WAIT_MS), resolve);
        this.#wake = () => {
          timer.cancel();
          resolve();
        };
      });
    this.#wake = undefined;
    this.#isNotified = false;
  }

  /** Resolves when no task runs. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  /**
   * Runs steps until the stop, then waits for the tasks.
   * @throws the first failure
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

/**
 * The outcome of a request that failed with this error. Other codes of PeerError mean that the peer
 * answered. PEER_BUSY is not here, because its outcome has the Retry-After of the peer.
 */
const OUTCOMES: Readonly<Partial<Record<PeerErrorCode, Exclude<Outcome['kind'], 'busy'>>>> = {
  PEER_UNREACHABLE: 'unreachable',
  PEER_TIMEOUT: 'unreachable',
  PEER_AUTH: 'denied',
  PEER_AUTH_WEAK: 'weak',
  PEER_FAILED: 'failing',
  PEER_REFUSED: 'failing',
  PEER_ANSWER: 'failing',
  PEER_ANSWER_TOO_LARGE: 'failing',
  PEER_SOURCE: 'aborted',
  PEER_ABORTED: 'aborted',
};

/**
 * Returns what the error of a request says about the peer. The queue decides from it whether the
 * circuit opens; neither the queue nor the peer's client imports the other. An error of another
 * class than PeerError says nothing about the peer.
 */
export function classify(error: unknown): Outcome {
  if (!(error instanceof PeerError)) return { kind: 'aborted' };
  const { code, retryAfterMs } = error;
  if (code === 'PEER_BUSY')
    return { kind: 'busy', ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  return { kind: OUTCOMES[code] ?? 'answered' };
}
