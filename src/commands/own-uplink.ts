import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../config/config.js';
import { ExtractCache } from '../content/extracts.js';
import { ProgramFinder } from '../content/helpers/finder.js';
import type { Programs } from '../content/helpers/programs.js';
import { openQueue } from '../daemon/open-queue.js';
import { systemClock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import { type Logger, silentLogger } from '../lib/logger.js';
import type { Dialect } from '../peer/dialects/dialect.js';
import { REMOVED_COLLECTION } from '../peer/dialects/standard.js';
import type { QueueStatus, RequestQueue } from '../queue/request-queue.js';
import { type Entry, type Evidence, type Failure, isAway, type Version } from '../state/entry.js';
import { State } from '../state/state.js';
import { gone, read, removing } from '../state/transitions.js';
import type { UplinkPeer } from '../uplink/deps.js';
import { DocumentProcesses } from '../uplink/document-processes.js';
import { type Packers, pack } from '../uplink/documents.js';
import { Uplink } from '../uplink/uplink.js';
import { lastingFailure, peerFailed } from './patience.js';

/** The outcome of a push. */
export type Outcome =
  | { readonly status: 'accepted' }
  | { readonly status: 'confirmed'; readonly evidence: Pick<Evidence, 'kind' | 'shown'> }
  /** The peer took it, and did not show it in time. */
  | { readonly status: 'unseen'; readonly message: string }
  | { readonly status: 'failed'; readonly error: PeersyncError };

/** The outcome of a removal. */
export type RemovalOutcome =
  /** A look-up did not show it any more. */
  | { readonly status: 'removed' }
  /** The peer has no way to remove it: an empty document stands in its place. */
  | { readonly status: 'emptied' }
  /** The peer took the request, and did not show in time that the document is gone. */
  | { readonly status: 'remains'; readonly message: string }
  | { readonly status: 'failed'; readonly error: PeersyncError };

/** A file that can go to the peer. */
export interface OutgoingFile {
  /** Absolute, behind all links. */
  readonly path: string;
  readonly url: string;
  readonly version: Version;
}

export interface OwnUplinkOptions {
  readonly config: Config;
  /** The longest time until the peer accepts, shows or removes another document, in ms. */
  readonly timeoutMs: number;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Reads documents. @default in a process of its own */
  readonly extractDocument?: Packers['extractDocument'];
  /** The program that reads documents in a process of its own. @default the shipped program */
  readonly documentProgram?: URL;
}

export interface PushSettings {
  readonly collection: string;
  /** Whether to wait until the peer shows a file. @default true */
  readonly wait?: boolean;
}

/** The folder of the items in the state that is gone afterwards; its paths are numbers. */
const FOLDER = 'pushed';
const POLL_MS = 50;

/** The failure of the peer if it is no longer waited for. */
type Lasting = QueueStatus['circuit']['reason'];

const NOT_SENT: Failure = {
  code: 'TIMEOUT',
  message: 'It could not be sent in time.',
  hint: 'A longer --timeout waits longer.',
};

export const CHANGING: Failure = {
  code: 'FILE_CHANGING',
  message: 'The file is being changed at this moment.',
  hint: 'Push it again when it is at rest.',
};

/** Stands for the content of a document that another run pushed. */
const UNKNOWN_VERSION: Version = {
  size: 0,
  mtimeMs: 0,
  ctimeMs: 0,
  ino: 0,
  sha256: '',
  encoding: 'utf-8',
};

/**
 * The uplink of the daemon for the documents of one command, on a temporary state. A document is
 * confirmed or removed by the same code as in the daemon. There is one attempt.
 *
 * Life: `open`, then any number of `push` and `remove` one after the other, then `close`.
 */
export class OwnUplink {
  readonly #clock = systemClock;
  readonly #documents: DocumentProcesses;
  readonly #ending = new AbortController();
  readonly #files = new Map<string, OutgoingFile>();
  /** The paths in the state, by URL. */
  readonly #paths = new Map<string, string>();
  readonly #changed = new Set<string>();
  readonly #over: AbortSignal;
  readonly #queue: RequestQueue;
  readonly #uplink: Uplink;
  #isStarted = false;
  #movedAt = this.#clock.now();

  private constructor(
    private readonly peer: UplinkPeer,
    dialect: Dialect,
    private readonly options: OwnUplinkOptions,
    private readonly directory: string,
    private readonly state: State,
    private readonly finder: ProgramFinder,
  ) {
    const { config, extractDocument, log, signal } = options;
    const { documentProgram = new URL('../document-process.js', import.meta.url) } = options;
    const clock = this.#clock;
    this.#over = AbortSignal.any([signal, this.#ending.signal]);
    const queue = openQueue(config, clock, log);
    // A failure is reported with the file, so the log stays silent.
    const reading = join(directory, 'reading');
    const extracts = join(directory, 'extracts');
    const documents = new DocumentProcesses(
      documentProgram,
      reading,
      extracts,
      clock,
      silentLogger,
    );
    this.#queue = queue;
    this.#documents = documents;
    this.#uplink = new Uplink({
      state,
      queue,
      peer,
      clock,
      log,
      readers: {
        pack: async (order) => pack(order),
        extractDocument:
          extractDocument ?? ((order, onProgress) => documents.read(order, onProgress)),
        failure: undefined,
      },
      programs: finder,
      extracts: new ExtractCache(extracts, clock, () => config.documents.cacheSize),
      dialect: { current: dialect, known: async () => true, redetect: async () => false },
      settings: { ...config, push: { ...config.push, attempts: 1, maxItems: 1, linger: 0 } },
      folders: {
        stateOf: () => 'there',
        pathOf: ({ path }) => this.#files.get(path)?.path,
        linksWithin: () => undefined,
        extracts: () => false,
        recheck: ({ path }) => void this.#changed.add(path),
      },
    });
  }

  static async open(
    peer: UplinkPeer,
    dialect: Dialect,
    options: OwnUplinkOptions,
  ): Promise<OwnUplink> {
    const directory = await mkdtemp(join(tmpdir(), 'peersync-push-'));
    const state = await State.open(directory, { clock: systemClock, log: options.log });
    const programs = new ProgramFinder(() => options.config.documents);
    await programs.refresh();
    return new OwnUplink(peer, dialect, options, directory, state, programs);
  }

  /** The programs that read documents. */
  get programs(): Programs {
    return this.finder.current;
  }

  /**
   * Pushes files one by one, and waits until the peer shows them.
   *
   * @param onOutcome called with the outcome of each file as soon as it is known
   * @throws the reason of the signal
   */
  async push<File extends OutgoingFile>(
    files: readonly File[],
    { collection, wait = true }: PushSettings,
    onOutcome: (file: File, outcome: Outcome, entry: Entry | undefined) => void,
  ): Promise<void> {
    const open = new Map<string, File>();
    for (const file of files) {
      const { url, version } = file;
      const path = this.#pathOf(url);
      const to = { folder: FOLDER, path, url, collection };
      this.#files.set(path, file);
      this.state.put(read(undefined, to, version, this.#clock.now()));
      open.set(path, file);
    }
    await this.#settle(open, (entry, failure) => this.#pushed(entry, failure, wait), onOutcome);
  }

  /**
   * Removes documents from the peer, and waits until a look-up no longer shows them.
   *
   * @param onOutcome called with the outcome of each document as soon as it is known
   * @throws the reason of the signal
   */
  async remove(
    urls: readonly string[],
    onOutcome: (url: string, outcome: RemovalOutcome) => void,
  ): Promise<void> {
    const open = new Map<string, string>();
    for (const url of urls) {
      const path = this.#pathOf(url);
      const now = this.#clock.now();
      // A file that is there would keep its document.
      this.#files.delete(path);
      const to = { folder: FOLDER, path, url, collection: REMOVED_COLLECTION };
      const entry = this.state.get(FOLDER, path) ?? read(undefined, to, UNKNOWN_VERSION, now);
      if (isAway(entry) || entry.status === 'skipped') continue;
      this.state.put(removing(gone(entry, now), now));
      open.set(path, url);
    }
    const removed: string[] = [];
    await this.#settle(
      open,
      (entry, failure) => this.#left(entry, failure),
      (url, outcome) => {
        if (outcome.status === 'removed') removed.push(url);
        else onOutcome(url, outcome);
      },
    );
    for (const url of removed) onOutcome(url, { status: await this.#howRemoved(url) });
  }

  async close(): Promise<void> {
    // Documents that wait to be read would keep the uplink from stopping.
    await this.#documents.close();
    const stopped = this.#uplink.stop();
    await this.#queue.stop(0);
    await stopped;
    await this.state.close().finally(() => rm(this.directory, { recursive: true }));
  }

  #start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#uplink.start((error) => this.#ending.abort(error));
  }

  #pathOf(url: string): string {
    const path = this.#paths.get(url) ?? `${this.#paths.size}`;
    this.#paths.set(url, path);
    return path;
  }

  /** Waits until there is an outcome for each. */
  async #settle<Each, Result>(
    open: Map<string, Each>,
    outcomeOf: (entry: Entry, lasting: Lasting) => Result | undefined,
    onOutcome: (each: Each, outcome: Result, entry: Entry) => void,
  ): Promise<void> {
    this.#start();
    this.#movedAt = this.#clock.now();
    while (open.size > 0) {
      this.#over.throwIfAborted();
      const lasting = lastingFailure(this.#queue.status().circuit, this.#clock.now());
      for (const [path, each] of open) {
        const entry = this.state.get(FOLDER, path);
        if (entry === undefined) continue;
        const outcome = outcomeOf(entry, lasting);
        if (outcome !== undefined && open.delete(path)) onOutcome(each, outcome, entry);
      }
      if (open.size > 0) await this.#clock.sleep(POLL_MS, this.#over);
    }
  }

  #isLate({ since }: Entry): boolean {
    this.#movedAt = Math.max(this.#movedAt, since);
    return this.#clock.now() >= this.#movedAt + this.options.timeoutMs;
  }

  #pushed(entry: Entry, lasting: Lasting, wait: boolean): Outcome | undefined {
    if (isAway(entry)) return undefined;
    const { path, status } = entry;
    const isLate = this.#isLate(entry);
    if (status === 'confirmed') return { status, evidence: entry.evidence };
    if (status === 'quarantined' || status === 'skipped') return failed(entry.failure);
    if (status === 'accepted' && !wait) return { status };
    if (this.#changed.has(path)) return failed(CHANGING);
    if (lasting !== undefined) return { status: 'failed', error: peerFailed(lasting) };
    if (!isLate) return undefined;
    if (status === 'pending' || entry.failure !== undefined)
      return failed(entry.failure ?? this.#documents.failure ?? NOT_SENT);
    const answer =
      this.#uplink.nextLookUp(entry)?.lastAnswer ?? 'the peer could not be asked in time';
    return { status: 'unseen', message: answer };
  }

  #left(entry: Entry, lasting: Lasting): RemovalOutcome | undefined {
    const isLate = this.#isLate(entry);
    if (entry.status === 'removed') return { status: 'removed' };
    if (entry.failure !== undefined) return failed(entry.failure);
    if (lasting !== undefined) return { status: 'failed', error: peerFailed(lasting) };
    return isLate
      ? { status: 'remains', message: 'the peer did not show in time that it is gone' }
      : undefined;
  }

  /** A peer that cannot remove a document shows an empty one, and a look-up reveals that. */
  async #howRemoved(url: string): Promise<'removed' | 'emptied'> {
    const doc = await this.peer.peerdoc({ url }, { signal: this.#over }).catch((error: unknown) => {
      if (error instanceof PeersyncError) return undefined;
      throw error;
    });
    return doc === undefined ? 'removed' : 'emptied';
  }
}

const failed = (why: Failure) => ({ status: 'failed', error: new PeersyncError(why) }) as const;
