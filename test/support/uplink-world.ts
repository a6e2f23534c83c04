import { createHash } from 'node:crypto';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ExtractCache } from '../../src/content/extracts.js';
import { NO_PROGRAMS, type Programs } from '../../src/content/helpers/programs.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import type { ItemKey } from '../../src/state/entries.js';
import type { Destination, Failure, Item, PendingItem, Version } from '../../src/state/entry.js';
import { isAway } from '../../src/state/entry.js';
import { gone, read } from '../../src/state/transitions.js';
import type {
  DialectSource,
  FolderState,
  Readers,
  UplinkDeps,
  UplinkPeer,
  UplinkSettings,
} from '../../src/uplink/deps.js';
import { extractDocument } from '../../src/uplink/document-text.js';
import { type Packed, pack } from '../../src/uplink/documents.js';
import { Uplink } from '../../src/uplink/uplink.js';
import { type BaseOptions, BaseWorld } from './base-world.js';
import { FakePeer } from './fake-peer.js';

/** Settings with which no test waits for long. */
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
  documents: { concurrency: 1, cacheSize: 1024 ** 3 },
};

/** The fields of a world that a test may give it from the beginning. */
type Fields = Pick<
  UplinkWorld,
  | 'beforePack'
  | 'extracts'
  | 'folderState'
  | 'maxInMemory'
  | 'onLookUps'
  | 'sharing'
  | 'tickMs'
  | 'timeToVisibleMs'
  | 'uplinkPeer'
  | 'uplinkQueue'
>;

export interface UplinkWorldOptions extends BaseOptions, Partial<Fields> {
  readonly peer?: FakePeer;
  /** Settings that are not those of QUICK. */
  readonly push?: Partial<UplinkSettings['push']>;
  readonly confirm?: Partial<UplinkSettings['confirm']>;
  readonly documents?: Partial<UplinkSettings['documents']>;
  /** @default a known one, the standard */
  readonly dialect?: Partial<DialectSource>;
  /** Fills the state before the first start of the uplink. */
  readonly fill?: (world: UplinkWorld) => void;
}

/** A folder on disk, and an uplink to a fake peer: the way of an item without the watcher. */
export class UplinkWorld extends BaseWorld<FakePeer> {
  readonly root: string;
  readonly settings: UplinkSettings;
  /** The paths of files that the uplink wants to be looked at again. */
  readonly rechecked: string[] = [];
  /** Whether the configuration has this address for an item. */
  isConfigured: (item: Pick<Item, 'folder' | 'path' | 'url'>) => boolean = () => true;
  /** `uplink.foldersChanged` must be called after each change. */
  folderState: (folder: string) => FolderState | undefined = () => 'there';
  /** Returns the queue as the uplink has it. */
  uplinkQueue: (world: UplinkWorld) => UplinkDeps['queue'] = ({ queue }) => queue;
  /** Returns the peer as the uplink has it. */
  uplinkPeer: (peer: FakePeer) => UplinkPeer = (peer) => peer;
  /** Other machines that push. */
  sharing: UplinkDeps['sharing'];
  /** Called before a batch is read, and waited for. */
  beforePack: () => unknown = () => {};
  /** The result of reading a batch; undefined for the real one. */
  packResult: readonly Packed[] | undefined;
  extractDocument: Readers['extractDocument'] = extractDocument;
  programs: Programs = NO_PROGRAMS;
  readersFailure: (() => Readers['failure']) | undefined;
  /** Whether documents travel as text to every peer. */
  extracts = false;
  /** The time to visible that an earlier run learned, in ms. */
  timeToVisibleMs: number | undefined = 50;
  /** Maximum number of items in memory; see UplinkDeps. */
  maxInMemory: number | undefined;
  /** Called with the URLs of look-ups that travel in one request, for a peer that takes those. */
  onLookUps: ((urls: readonly string[]) => Promise<void>) | undefined;
  readonly dialect: { -readonly [Name in keyof DialectSource]: DialectSource[Name] };
  uplink!: Uplink;

  constructor({
    peer = new FakePeer(),
    clock,
    directory,
    push,
    confirm,
    documents,
    dialect,
    fill: _,
    ...fields
  }: UplinkWorldOptions) {
    super(peer, { clock, ...(directory === undefined ? {} : { directory }) });
    this.root = join(this.directory, 'files');
    mkdirSync(this.root);
    this.settings = {
      push: { ...QUICK.push, ...push },
      confirm: { ...QUICK.confirm, ...confirm },
      documents: { ...QUICK.documents, ...documents },
    };
    this.dialect = {
      current: DIALECTS.standard,
      known: async () => true,
      redetect: async () => false,
      ...dialect,
    };
    Object.assign(this, fields);
  }

  /** Starts the uplink, for the first time or after `stop`. */
  async start(fill: (world: UplinkWorld) => void = () => {}): Promise<void> {
    await this.openState();
    const { clock, log, maxInMemory, onLookUps, peer, settings, state } = this;
    if (state.meta('timeToVisibleMs') === undefined)
      state.setMeta('timeToVisibleMs', this.timeToVisibleMs);
    fill(this);
    const peerdocs = async (urls: readonly string[]) => {
      await onLookUps?.(urls);
      return await Promise.all(urls.map((url) => peer.peerdoc({ url })));
    };
    this.uplink = new Uplink({
      state,
      queue: this.uplinkQueue(this),
      peer: this.uplinkPeer(peer),
      sharing: this.sharing,
      embeddedPeer: onLookUps && { peerdocs },
      dialect: this.dialect,
      readers: this.#readers(),
      programs: this.#programs(),
      extracts: new ExtractCache(
        join(this.stateDir, 'extracts'),
        clock,
        () => settings.documents.cacheSize,
      ),
      clock,
      log,
      settings,
      ...(maxInMemory === undefined ? {} : { maxInMemory }),
      folders: {
        stateOf: (folder) => this.folderState(folder),
        pathOf: (item) => (this.isConfigured(item) ? this.fileOf(item) : undefined),
        linksWithin: () => undefined,
        extracts: () => this.extracts,
        recheck: ({ path }) => void this.rechecked.push(path),
      },
    });
    this.uplink.start((error) => {
      this.failure = error;
    });
  }

  #programs(): UplinkDeps['programs'] {
    const current = () => this.programs;
    return {
      get current() {
        return current();
      },
    };
  }

  #readers(): Readers {
    const failure = () => this.readersFailure?.();
    return {
      pack: async (order) => {
        await this.beforePack();
        return this.packResult ?? pack(order);
      },
      extractDocument: (order, onProgress) => this.extractDocument(order, onProgress),
      get failure() {
        return failure();
      },
    };
  }

  protected override stopPart(): Promise<void> {
    return this.uplink.stop();
  }

  get warnings(): string[] {
    return this.logged.filter((line) => line.startsWith('warn: '));
  }

  /** Writes a file and puts it into the state, as the watcher would. */
  write(
    path: string,
    content: string | Uint8Array,
    encoding: Version['encoding'] = 'utf-8',
    url = this.url(path),
  ): Item {
    const file = join(this.root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    return this.record(path, content, encoding, url);
  }

  /** Puts a file that is there into the state, as the watcher would. */
  record(
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

  /** Writes files with the content `content N`. */
  writeMany(count: number, prefix = 'f'): void {
    for (let i = 0; i < count; i += 1) this.write(`${prefix}${i}`, `content ${i}`);
  }

  /** Returns the record of a file that is still to be pushed. */
  pending(path: string): PendingItem {
    const entry = this.state.get('inbox', path);
    if (entry?.status !== 'pending') throw new Error(`${path} is not pending`);
    return entry;
  }

  /** Records in the state that a file was removed, as the watcher would. */
  remove(path: string): void {
    const entry = this.state.get('inbox', path);
    if (entry === undefined || isAway(entry) || entry.status === 'skipped')
      throw new Error(`${path} is not there`);
    this.state.put(gone(entry, this.clock.now()));
  }

  statusOf(path: string): string | undefined {
    return this.state.get('inbox', path)?.status;
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

  /** Waits until a file is quarantined, and returns the reason. */
  async quarantined(path: string): Promise<Failure | undefined> {
    await this.until(() => this.statusOf(path) === 'quarantined', `${path} quarantined`);
    const entry = this.state.get('inbox', path);
    return entry?.status === 'quarantined' ? entry.failure : undefined;
  }
}
