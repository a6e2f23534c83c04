import { ENCODINGS } from '../lib/encodings.js';
import type { WorkThread } from '../lib/work-thread.js';
import type { ContentRules } from '../peer/dialect.js';
import type { Text } from '../peer/form.js';
import type { Version } from '../state/entry.js';
import { DELIVERED, type Delivery, type Order, pack, WORDLESS } from './packing.js';

/** A file that is to be read whole. */
export interface PackRequest {
  /** Absolute. */
  readonly path: string;
  readonly version: Version;
}

export type Packed =
  | {
      readonly kind: 'content';
      readonly text: Text;
      /** Bytes of what travels, before it is encoded. */
      readonly size: number;
      /** sha256 of what travels, before it is encoded. */
      readonly digest: string;
      /** Media type, where files travel with one; '' otherwise. */
      readonly type: string;
      /** How many words it has, counted up to 100; undefined for what is no text. */
      readonly words: number | undefined;
    }
  /** A text in which there is no word. */
  | { readonly kind: 'wordless' }
  /** The file is not the version it was: somebody should look at it again. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'unreadable'; readonly code: string };

/** Reads small files and makes them ready for their way, many at once. */
export interface Packer {
  pack(requests: readonly PackRequest[], rules: ContentRules): Promise<readonly Packed[]>;
}

/** Packs where it is called: it blocks while it reads. For tests, and for little work. */
export const inlinePacker: Packer = {
  pack: async (requests, rules) => opened(requests, rules, pack(orderOf(requests, rules))),
};

/**
 * Packs in a thread, which serves `pack` by `pack`: a slow disk does not stop the daemon, and reading, hashing and encoding take
 * another core than the rest.
 */
export class ThreadPacker implements Packer {
  readonly #thread: Pick<WorkThread, 'ask'>;

  constructor(thread: Pick<WorkThread, 'ask'>) {
    this.#thread = thread;
  }

  async pack(requests: readonly PackRequest[], rules: ContentRules): Promise<readonly Packed[]> {
    const order = orderOf(requests, rules);
    const delivery = await this.#thread.ask<Delivery>('pack', order, [order.figures.buffer]);
    return opened(requests, rules, delivery);
  }
}

function orderOf(requests: readonly PackRequest[], rules: ContentRules): Order {
  const figures = new Float64Array(requests.length * 5);
  const paths: string[] = [];
  let sha256 = '';
  requests.forEach(({ path, version }, i) => {
    paths.push(path);
    sha256 += version.sha256;
    figures[5 * i] = version.size;
    figures[5 * i + 1] = version.mtimeMs;
    figures[5 * i + 2] = version.ctimeMs;
    figures[5 * i + 3] = version.ino;
    figures[5 * i + 4] = ENCODINGS.indexOf(version.encoding);
  });
  const { encoding, takesBinary } = rules;
  return { encoding, asFiles: takesBinary, paths: paths.join('\0'), sha256, figures };
}

function opened(requests: readonly PackRequest[], { encoding }: ContentRules, delivery: Delivery): Packed[] {
  const types = delivery.types.split('\0');
  let start = 0;
  return requests.map(({ version }, i) => {
    const [size = -1, end = start, words = -1] = delivery.figures.subarray(
      DELIVERED * i,
      DELIVERED * (i + 1),
    );
    const bytes = delivery.bytes.subarray(start, end);
    start = end;
    const code = delivery.errors.get(i);
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP') return { kind: 'stale' };
    if (code !== undefined) return { kind: 'unreadable', code };
    if (size === WORDLESS) return { kind: 'wordless' };
    if (size < 0) return { kind: 'stale' };
    return {
      kind: 'content',
      text: { encoding, encoded: bytes, size },
      size,
      digest: delivery.digests.get(i) ?? version.sha256,
      type: types[i] ?? '',
      words: words < 0 ? undefined : words,
    };
  });
}
