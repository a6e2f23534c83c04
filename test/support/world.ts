import { createHash } from 'node:crypto';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { Dialect } from '../../src/peer/dialects/dialect.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import { PeerError, type PeerErrorCode } from '../../src/peer/errors.js';
import type { EncodedText } from '../../src/peer/form.js';
import type { Peerdoc } from '../../src/peer/peerdoc.js';
import type { PushAnswer, PushItem, PushResult } from '../../src/peer/push.js';
import { RequestQueue } from '../../src/queue/request-queue.js';
import type { ItemKey } from '../../src/state/entries.js';
import type { Destination, Failure, Item, PendingItem, Version } from '../../src/state/entry.js';
import { isAway } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { gone, read } from '../../src/state/transitions.js';
import { classify } from '../../src/uplink/batch-sender.js';
import type {
  DialectSource,
  FolderState,
  Readers,
  UplinkDeps,
  UplinkPeer,
  UplinkSettings,
} from '../../src/uplink/deps.js';
import { packDocument } from '../../src/uplink/document-text.js';
import { type Packed, pack } from '../../src/uplink/documents.js';
import { Uplink } from '../../src/uplink/uplink.js';
import { waitMs } from '../queue/queue-setup.js';
import { FakeClock } from './fake-clock.js';
import { temporaryDirectory } from './temp.js';
import { until } from './wait.js';

export const QUICK: UplinkSettings = {
  push: {
    requestsPerSecond: 100_000,
    maxItems: 10,
    maxBytes: 1024 * 1024,
    linger: 5,
    concurrency: 4,
    attempts: 3,
    synchronous: false,
    commit: false,
    backoff: { min: 5, max: 20 },
  },
  confirm: { requestsPerSecond: 100_000, concurrency: 4, timeout: 300, maxInterval: 50, hold: 0 },
};

/** A peer in memory, with every behaviour open to a test. */
export class FakePeer implements UplinkPeer {
  readonly documents = new Map<string, { text: string; collection: string; loadDate: number }>();
  /** The last pushed items, by URL. */
  readonly items = new Map<string, PushItem & { readonly bytes: Buffer }>();
  /** False for a peer that shows no digest, but the last modification it was told. */
  showsDigest = true;
  /** The URLs of each push that came, in order. */
  readonly pushes: string[][] = [];
  lookups = 0;
  /** Called before a push is taken; may throw, or answer in its own way. */
  onPush: (urls: string[]) => PushAnswer | undefined | Promise<PushAnswer | undefined> = () =>
    undefined;
  onLookup: (url: string) => void = () => {};
  /** Documents are shown from this long after their push, in ms. */
  visibleAfter = 0;
  clock: Clock = systemClock;

  /** Pushes fail with this error that have such a URL in them. */
  failsFor(part: string, error: () => Error): void {
    this.onPush = (urls) => {
      if (urls.some((url) => url.includes(part))) throw error();
      return undefined;
    };
  }

  /** Holds pushes back until `release`, and then takes them. */
  hold(): { readonly release: () => void } {
    const held: (() => void)[] = [];
    this.onPush = () => new Promise((resolve) => held.push(() => resolve(undefined)));
    const release = () => {
      this.onPush = () => undefined;
      for (const go of held) go();
    };
    return { release };
  }

  /** Shows this text at a URL from now on. */
  show(url: string, text: string): void {
    this.documents.set(url, { text, collection: 'c', loadDate: this.clock.now() });
  }

  async push(
    items: readonly PushItem[],
    { signal }: { readonly signal?: AbortSignal },
  ): Promise<PushAnswer> {
    const urls = items.map((item) => item.url);
    this.pushes.push(urls);
    const peerTime = Math.floor(this.clock.now() / 1000) * 1000;
    const own = await Promise.race([this.onPush(urls), aborted(signal)]);
    if (own !== undefined) return own;
    for (const item of items) {
      const chunks: Uint8Array[] = [];
      if (item.data instanceof Uint8Array) chunks.push(item.data);
      else if ('encoded' in item.data) chunks.push(decoded(item.data));
      else for await (const chunk of item.data.chunks()) chunks.push(Buffer.from(chunk));
      const bytes = Buffer.concat(chunks);
      const text = bytes.toString();
      this.items.set(item.url, { ...item, bytes });
      this.documents.set(item.url, {
        text,
        collection: item.collection,
        loadDate: this.clock.now(),
      });
    }
    return { peerTime, results: items.map(() => ({ ok: true })) };
  }

  async commitIndex(): Promise<void> {}

  /** The URLs of each removal that came, in order. */
  readonly removals: string[][] = [];
  /** Called before a removal is done; may throw. @returns whether it is done */
  onRemove: (urls: readonly string[]) => boolean | Promise<boolean> = () => true;

  async remove(urls: readonly string[]): Promise<PushResult[]> {
    this.removals.push([...urls]);
    if (await this.onRemove(urls)) for (const url of urls) this.documents.delete(url);
    return urls.map(() => ({ ok: true }));
  }

  async peerdoc({ url }: { readonly url: string }): Promise<Peerdoc | undefined> {
    this.lookups += 1;
    this.onLookup(url);
    const doc = this.documents.get(url);
    if (doc === undefined || this.clock.now() - doc.loadDate < this.visibleAfter) return undefined;
    const { bytes, lastModified } = this.items.get(url) ?? {};
    const content = bytes?.toString() === doc.text ? bytes : doc.text;
    return {
      url,
      size: Buffer.byteLength(content),
      ...(this.showsDigest
        ? { digest: createHash('sha256').update(content).digest('hex') }
        : { lastModified: Math.floor((lastModified ?? 0) / 1000) * 1000 }),
      loadDate: doc.loadDate,
      at: this.clock.now(),
      collections: [doc.collection],
      fields: {},
    };
  }
}

function decoded({ encoded, encoding }: EncodedText): Uint8Array {
  if (encoding === 'base64') return Buffer.from(Buffer.from(encoded).toString('latin1'), 'base64');
  return Buffer.from(
    new URLSearchParams(`x=${Buffer.from(encoded).toString('latin1')}`).get('x') ?? '',
  );
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => {
      reject(
        new PeerError('PEER_ABORTED', {
          url: 'http://127.0.0.1:1/',
          what: 'was called off',
          delivered: 'maybe',
        }),
      );
    });
  });
}

/** A peer that is away. */
export function unreachable(delivered: 'no' | 'maybe', code = 'ECONNREFUSED'): PeerError {
  return new PeerError('PEER_UNREACHABLE', {
    url: 'http://127.0.0.1:1/api/push_p.html',
    what: 'refused the connection',
    delivered,
    cause: Object.assign(new Error(code), { code }),
  });
}

export function failing(code: PeerErrorCode = 'PEER_FAILED', status = 500): PeerError {
  return new PeerError(code, {
    url: 'http://127.0.0.1:1/api/push_p.html',
    what: 'answered with an error',
    delivered: 'yes',
    status,
  });
}

/**
 * A folder on disk, a state, a queue and an uplink to a fake peer: the way of an item without the
 * watcher.
 */
export class World {
  readonly root = temporaryDirectory();
  readonly stateDir = temporaryDirectory();
  readonly peer = new FakePeer();
  readonly looked: string[] = [];
  /**
   * A test may let the configuration have another address for an item than the one that it still
   * has.
   */
  isAt: (item: Pick<Item, 'folder' | 'path' | 'url'>) => boolean = () => true;
  /** A test may hold folders; the uplink is to be told of each change. */
  folderState: (folder: string) => FolderState | undefined = () => 'there';
  /** Logged warnings. */
  readonly warnings: string[] = [];
  /** Logged information. */
  readonly news: string[] = [];
  state!: State;
  uplink!: Uplink;
  /** A test may let the uplink see another queue. */
  seenQueue = (queue: RequestQueue): UplinkDeps['queue'] => queue;
  /** A test may hold up the reading of batches. */
  packs: () => Promise<unknown> = async () => {};
  /** A test may hold up the reading of documents. */
  packDocument: Readers['packDocument'] = packDocument;
  /** A test may say why no document can be read at present. */
  readersFailure: (() => Readers['failure']) | undefined;
  /** Whether documents travel as text to every peer. */
  extracts = false;
  /** A test may say what came of reading a batch. */
  packed: readonly Packed[] | undefined;
  /** The time to visible that the first run learned, in ms. */
  timeToVisibleMs: number | undefined = 50;
  /** A test may give it one of its own. */
  clock: Clock = systemClock;
  /** By how much a fake clock goes on between two looks, in ms. */
  tickMs = 100;
  /** Maximum number of items in memory; see UplinkDeps. */
  maxInMemory: number | undefined;
  /**
   * A test may let the peer take look-ups of several; called with their URLs before each, and may
   * throw.
   */
  onLookups: ((urls: readonly string[]) => Promise<void>) | undefined;
  #queue!: RequestQueue;
  failure: unknown;
  /** The dialect of the peer. A test may change it before the start. */
  dialect: DialectSource & { current: Dialect | undefined } = {
    current: DIALECTS.standard,
    known: async () => true,
    redetect: async () => false,
  };

  async start(settings: UplinkSettings = QUICK): Promise<void> {
    const { clock, maxInMemory, onLookups, peer } = this;
    const peerdocs = async (urls: readonly string[]) => {
      await onLookups?.(urls);
      return await Promise.all(urls.map((url) => peer.peerdoc({ url })));
    };
    this.peer.clock = clock;
    this.state = await State.open(this.stateDir, { clock, log: silentLogger });
    if (this.state.meta('timeToVisibleMs') === undefined)
      this.state.setMeta('timeToVisibleMs', this.timeToVisibleMs);
    const lane = { requestsPerSecond: 100_000, concurrency: 4 };
    this.#queue = new RequestQueue({
      lanes: {
        interactive: lane,
        confirm: lane,
        push: lane,
        removal: lane,
        mirror: lane,
        audit: lane,
      },
      classify,
      clock,
      log: silentLogger,
      peerName: 'the peer',
      policy: { waitMs: waitMs(20, 50) },
    });
    this.uplink = new Uplink({
      state: this.state,
      queue: this.seenQueue(this.#queue),
      peer,
      embeddedPeer: onLookups && { peerdocs },
      dialect: this.dialect,
      readers: this.#readers(),
      clock,
      log: {
        ...silentLogger,
        info: (_, message) => void this.news.push(message),
        warn: (_, message) => void this.warnings.push(message),
      },
      settings,
      ...(maxInMemory === undefined ? {} : { maxInMemory }),
      folders: {
        stateOf: (folder) => this.folderState(folder),
        pathOf: (item) => (this.isAt(item) ? this.fileOf(item) : undefined),
        linksWithin: () => undefined,
        extracts: () => this.extracts,
        recheck: ({ path }) => void this.looked.push(path),
      },
    });
    this.uplink.start((error) => {
      this.failure = error;
    });
  }

  #readers(): Readers {
    const failure = () => this.readersFailure?.();
    return {
      pack: async (order) => {
        await this.packs();
        return this.packed ?? pack(order);
      },
      packDocument: (...order) => this.packDocument(...order),
      get failure() {
        return failure();
      },
    };
  }

  async stop(): Promise<void> {
    const stopped = Promise.all([this.uplink.stop(), this.#queue.stop(100)]);
    if (this.clock instanceof FakeClock) await this.clock.advance(100);
    await stopped;
    await this.state.close();
    if (this.failure !== undefined) throw this.failure;
  }

  /** Writes a file and tells the state of it, as the watcher would. */
  write(
    path: string,
    content: string | Uint8Array,
    encoding: Version['encoding'] = 'utf-8',
    url = this.url(path),
  ): Item {
    const file = join(this.root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    return this.known(path, content, encoding, url);
  }

  /** Tells the state of a file that is there. */
  known(
    path: string,
    content: string | Uint8Array,
    encoding: Version['encoding'] = 'utf-8',
    url = this.url(path),
  ): Item {
    const file = join(this.root, path);
    const { size, mtimeMs, ctimeMs, ino } = statSync(file);
    const sha256 = createHash('sha256').update(content).digest('hex');
    const item = read(
      this.state.get('inbox', path),
      { ...this.destination(path), url },
      { size, mtimeMs, ctimeMs, ino, sha256, encoding },
      this.clock.now(),
    );
    this.state.put(item);
    return item;
  }

  /**
   * Returns the path of a file: `inbox` is the root itself, other folders are directories in it.
   */
  fileOf({ folder, path }: ItemKey): string {
    return join(this.root, folder === 'inbox' ? '' : folder, path);
  }

  destination(path: string): Destination {
    return { folder: 'inbox', path, url: this.url(path), collection: 'c' };
  }

  url(path: string): string {
    return `https://x.example/${path}`;
  }

  /** Files with the content `content N`. */
  writeMany(count: number, prefix = 'f'): void {
    for (let i = 0; i < count; i += 1) this.write(`${prefix}${i}`, `content ${i}`);
  }

  /** The record of a file that is still to be pushed. */
  pending(path: string): PendingItem {
    const entry = this.state.get('inbox', path);
    if (entry?.status !== 'pending') throw new Error(`${path} is not pending`);
    return entry;
  }

  /** The file was removed, as the watcher would tell. */
  remove(path: string): void {
    const entry = this.state.get('inbox', path);
    if (entry === undefined || isAway(entry) || entry.status === 'skipped')
      throw new Error(`${path} is not there`);
    this.state.put(gone(entry, this.clock.now()));
  }

  /** Waits for a condition, and lets time pass meanwhile where that stands still otherwise. */
  until(condition: () => boolean, what: string): Promise<void> {
    const { clock } = this;
    const isSo = async () => {
      if (clock instanceof FakeClock) await clock.advance(this.tickMs);
      return condition();
    };
    return until(isSo, what);
  }

  confirmed(...paths: readonly string[]): Promise<void> {
    return this.until(
      () => paths.every((path) => this.statusOf(path) === 'confirmed'),
      `${paths} confirmed`,
    );
  }

  allConfirmed(count: number): Promise<void> {
    return this.until(() => this.state.counts().confirmed === count, `${count} confirmed`);
  }

  /** @returns what it is in quarantine for */
  async quarantined(path: string): Promise<Failure | undefined> {
    await this.until(() => this.statusOf(path) === 'quarantined', `${path} quarantined`);
    const entry = this.state.get('inbox', path);
    return entry?.status === 'quarantined' ? entry.failure : undefined;
  }

  get circuit(): string {
    return this.#queue.status().circuit.state;
  }

  statusOf(path: string): string | undefined {
    return this.state.get('inbox', path)?.status;
  }
}

/**
 * A world that has started, and is stopped when the test is over. @param prepare is called before
 * the start
 */
export async function world(
  settings = QUICK,
  prepare: (w: World) => unknown = () => {},
): Promise<World> {
  const w = new World();
  await prepare(w);
  await w.start(settings);
  onTestFinished(() => w.stop());
  return w;
}

/**
 * Prepares a world whose time passes only while something is waited for, and then faster than ours.
 */
export function withFakeClock(w: World): void {
  w.clock = new FakeClock();
  w.peer.clock = w.clock;
}
