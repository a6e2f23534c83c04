import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config/config.js';
import { documentUrl } from '../config/url.js';
import type { Clock } from '../lib/clock.js';
import { dialectNamed, isDialect } from '../peer/dialects/dialects.js';
import type { UplinkPeer } from '../uplink/deps.js';
import type { Packers, PackFile } from '../uplink/documents.js';
import { PackedHere } from '../uplink/packed-batch.js';
import { statOf } from './extraction-work.js';
import type { ReadJob, ReadResult } from './protocol.js';

/** The number of batches that a worker reads and pushes at a time. */
export const PUSH_SLOTS = 4;
/** The most batches that wait for orders. Contents of small files are in memory. */
const MAX_HELD = 4 * PUSH_SLOTS;
/** How long a batch waits for an order, in ms. */
const HELD_MS = 10 * 60_000;
/**
 * Time after which a batch that is not read yet shows that a folder hangs, in ms. Small files are
 * read in seconds. The owner gives the batch up after twice this time.
 */
const HUNG_MS = 60_000;

/** A batch without the run of the owner. */
export type Batch = Omit<ReadJob, 'epoch'>;

/** A batch that was read, and waits for orders. */
export interface HeldBatch {
  /** The URLs of the documents by the configuration of this machine, in the order of the files. */
  readonly urls: readonly string[];
  readonly packed: PackedHere;
}

export interface WorkerBatchesDeps {
  readonly config: Pick<Config, 'folders'>;
  readonly clock: Clock;
  /** The id of the worker. */
  readonly id: string;
  /** Reads and encodes small files. */
  readonly pack: Packers['pack'];
  /** Returns a client of the peer that speaks this dialect. The peer gets nothing before that. */
  readonly peerOf: (dialect: string) => Promise<Pick<UplinkPeer, 'push'>>;
}

/**
 * The batches of a worker that pushes: reads their files, and keeps the contents until the owner
 * releases them, another run of the owner begins, or they were kept for 10 minutes.
 */
export class WorkerBatches {
  readonly #held = new Map<string, HeldBatch & { readonly since: number }>();
  /** The batches that are being read: since when, and the folders of their files. */
  readonly #reading = new Map<string, { readonly since: number; readonly folders: Set<string> }>();

  constructor(private readonly deps: WorkerBatchesDeps) {}

  /** The folders of batches that are being read for so long that the disk seems to hang. */
  get hungFolders(): readonly string[] {
    const now = this.deps.clock.now();
    const hung = [...this.#reading.values()].filter(({ since }) => now - since > HUNG_MS);
    return hung.flatMap(({ folders }) => [...folders]);
  }

  held(name: string): HeldBatch | undefined {
    return this.#held.get(name);
  }

  release(name: string): void {
    this.#held.delete(name);
  }

  releaseAll(): void {
    this.#held.clear();
  }

  /** Forgets the batches that have waited for too long. */
  releaseOld(): void {
    const now = this.deps.clock.now();
    for (const [name, { since }] of this.#held) if (now - since > HELD_MS) this.#held.delete(name);
  }

  /** Reads the files of a batch, and keeps them under this name if all could be read. */
  async read(name: string, batch: Batch): Promise<ReadResult> {
    const folders = new Set(batch.files.map(({ folder }) => folder));
    this.#reading.set(name, { since: this.deps.clock.now(), folders });
    try {
      return await this.#read(name, batch);
    } finally {
      this.#reading.delete(name);
    }
  }

  async #read(name: string, { dialect, files }: Batch): Promise<ReadResult> {
    const { clock, config, id, pack, peerOf } = this.deps;
    if (!isDialect(dialect)) return notHere('dialect');
    if (this.#held.size >= MAX_HELD) return notHere('full');
    const roots = new Map<string, { root: string; linksWithin: string | undefined }>();
    for (const { folder } of files) {
      if (roots.has(folder)) continue;
      const found = config.folders.find(({ name }) => name === folder);
      const root = found && (await realpath(found.path).catch(() => undefined));
      if (found === undefined || root === undefined) return notHere('folder');
      roots.set(folder, { root, linksWithin: found.followSymlinks ? root : undefined });
    }
    const order = {
      rules: dialectNamed(dialect).content,
      files: await Promise.all(
        files.map(({ folder, path, version }) => {
          const { root = '', linksWithin } = roots.get(folder) ?? {};
          return seenHere({ file: join(root, path), linksWithin, version });
        }),
      ),
    };
    const packed = await PackedHere.read(order, pack, await peerOf(dialect), false);
    const read: Extract<ReadResult, { kind: 'read' }>['files'] = [];
    for (const file of packed.files) {
      // The owner looks itself: this view of a network file system may be older than its own.
      if (file.kind === 'content') {
        const { digest, size, type, words } = file;
        read.push({ kind: 'content', digest, size, type, words });
      } else if (file.kind === 'wordless' || file.kind === 'tooLarge')
        read.push({ kind: file.kind });
      else return notHere('version');
    }
    const urls = files.map(({ folder, path }) => {
      const base = config.folders.find(({ name }) => name === folder)?.url ?? '';
      return documentUrl(base, path);
    });
    this.#held.set(name, { packed, urls, since: clock.now() });
    return { kind: 'read', worker: id, batch: name, files: read };
  }
}

/**
 * Returns a file with its times and its inode as this machine sees them: they are others on another
 * kind of mount, so that its size and its sha256 decide.
 */
async function seenHere(file: PackFile): Promise<PackFile> {
  const { version } = file;
  const stat = await statOf(file);
  if (stat === undefined) return file;
  // The owner knows the document by its own time.
  return { ...file, version: { ...version, ...stat }, lastModified: version.mtimeMs };
}

/** The worker cannot read a batch: the owner does it itself. */
export function notHere(why: Extract<ReadResult, { kind: 'notHere' }>['why']): ReadResult {
  return { kind: 'notHere', why };
}
