import type { PeerClient } from '../peer/client.js';
import type { PushAnswer, PushOptions } from '../peer/push.js';
import type { ItemKey } from '../state/entries.js';
import type { Destination } from '../state/entry.js';
import { type Packed, type Packers, type PackFile, type PackOrder, packAll } from './documents.js';

/** The content of a file that was read. Whoever read it has the text. */
export type PackedContent = Omit<Extract<Packed, { kind: 'content' }>, 'text'> & {
  readonly text?: unknown;
};

/** The result of reading one file of a batch. */
export type PackedFile = PackedContent | Exclude<Packed, { kind: 'content' }>;

/** A file of a batch that is to be pushed: its number in the batch, and where its document goes. */
export interface PushTarget extends Pick<Destination, 'url' | 'collection'> {
  readonly n: number;
}

/**
 * A batch whose files were read. It stays with the machine that read it, which also pushes it: this
 * one, or a worker of the fleet.
 */
export interface PackedBatch {
  /** The results, in the order of the files. */
  readonly files: readonly PackedFile[];
  /**
   * Pushes files that have content, in one request.
   *
   * @throws PeersyncError as `PeerClient.push`
   */
  push(targets: readonly PushTarget[], options: PushOptions): Promise<PushAnswer>;
  /** Forgets the contents. No push may follow. */
  release(): void;
}

/** A batch to be read by another machine. */
export interface SharedBatch {
  /** The name of the dialect for which the files are encoded. */
  readonly dialect: string;
  readonly files: readonly (PackFile & { readonly item: ItemKey })[];
}

/** Other machines that read batches and push them. */
export interface BatchSharing {
  /** The number of batches that they can take at the same time. */
  readonly slots: number;
  /** Returns when a push that left at this time, and was not answered, can still reach the peer. */
  latestArrival(sentAt: number): number;
  /** Returns undefined if none of them can read the batch now. Never rejects. */
  read(batch: SharedBatch): Promise<PackedBatch | undefined>;
}

/** A batch that was read on this machine. */
export class PackedHere implements PackedBatch {
  private constructor(
    readonly files: readonly Packed[],
    private readonly order: PackOrder,
    private readonly peer: Pick<PeerClient, 'push'>,
    private readonly isEmbedded: boolean,
    readonly release: () => void,
  ) {}

  /**
   * Reads the files of a batch.
   *
   * @param isEmbedded whether the peer is an embedded one
   * @param onProgress called after each file that takes long
   * @param onRelease called when the contents are not needed any more
   */
  static async read(
    order: PackOrder,
    pack: Packers['pack'],
    peer: Pick<PeerClient, 'push'>,
    isEmbedded: boolean,
    onProgress?: () => void,
    onRelease: () => void = () => {},
  ): Promise<PackedHere> {
    const files = await packAll(pack, order, onProgress);
    return new PackedHere(files, order, peer, isEmbedded, onRelease);
  }

  async push(targets: readonly PushTarget[], options: PushOptions): Promise<PushAnswer> {
    const items = targets.map(({ n, url, collection }) => {
      const content = this.files[n];
      const file = this.order.files[n];
      if (content?.kind !== 'content' || file === undefined)
        throw new Error(`file ${n} of the batch has no content`);
      const { text: data, type } = content;
      const { lastModified = file.version.mtimeMs } = file;
      return {
        url,
        collection,
        data,
        ...(type === '' ? {} : { contentType: type }),
        ...(type === '' && !this.isEmbedded ? {} : { lastModified }),
      };
    });
    return await this.peer.push(items, options);
  }
}
