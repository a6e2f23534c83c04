import { messageOf } from '../lib/errors.js';
import type { Body } from './body.js';
import { PeerError } from './errors.js';
import type { TextSource } from './text.js';

/** Longer texts in memory are encoded piece by piece while they are sent, as those of a source are. */
export const HELD_BYTES = 1024 * 1024;
const PIECE_BYTES = 64 * 1024;

/** Encodes one text that comes in pieces. */
export interface PieceEncoder {
  take(piece: Uint8Array): Buffer;
  /** What is left after the last piece. */
  end(): Buffer;
}

/** A text in a body, that is read and encoded while it is sent. */
export interface StreamedText {
  readonly source: TextSource;
  /** Bytes once encoded. */
  readonly length: number;
  /** The number of the item that it belongs to, named in errors. */
  readonly item: number | undefined;
  encoder(): PieceEncoder;
}

/** A body of parts that are ready, and of texts between them that are read while they are sent. */
export class StreamedBody implements Body {
  readonly type: string;
  readonly length: number;
  readonly bytes?: Buffer;
  readonly #parts: readonly (Buffer | StreamedText)[];
  readonly #url: string;

  constructor(type: string, parts: readonly (Buffer | StreamedText)[], url: string) {
    this.type = type;
    this.#parts = parts;
    this.#url = url;
    this.length = parts.reduce((sum, part) => sum + part.length, 0);
    const [only] = parts;
    if (parts.length === 1 && only !== undefined && !('source' in only) && only.length <= HELD_BYTES) {
      this.bytes = only;
    }
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    for (const part of this.#parts) {
      if ('source' in part) yield* encodedChunks(part, this.#url);
      else yield* slices(part);
    }
  }
}

/** The last chunk is held back until the source has ended, so that one that grew never completes a request. */
async function* encodedChunks(text: StreamedText, url: string): AsyncGenerator<Buffer> {
  const { source, length, item } = text;
  const encoder = text.encoder();
  let read = 0;
  let given = 0;
  let last: Buffer | undefined;
  const chunks = source.chunks()[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await chunks.next().catch((cause: unknown) => {
        throw unreadable(cause, item, url);
      });
      const encoded = next.done ? encoder.end() : encoder.take(next.value);
      given += encoded.length;
      if (given > length) throw changed('it is longer than when it was measured', item, url);
      if (next.done) {
        if (given < length) throw changed('it is shorter than when it was measured', item, url);
        if (read !== source.size) throw otherSize(read, text, url);
        if (last !== undefined) yield last;
        last = encoded;
        break;
      }
      read += next.value.length;
      if (encoded.length === 0) continue;
      if (last !== undefined) yield last;
      last = encoded;
    }
  } finally {
    await chunks.return?.();
  }
  if (last.length > 0) yield last;
}

export function unreadable(cause: unknown, item: number | undefined, url: string): PeerError {
  return sourceError(`could not be read: ${messageOf(cause)}`, item, url, cause);
}

/** The error for a text that is not as long as it said. */
export function otherSize(
  bytes: number,
  { source, item }: Pick<StreamedText, 'source' | 'item'>,
  url: string,
): PeerError {
  return changed(`${bytes} bytes came instead of ${source.size}`, item, url);
}

function changed(how: string, item: number | undefined, url: string): PeerError {
  return sourceError(`changed while it was sent: ${how}`, item, url);
}

function sourceError(what: string, item: number | undefined, url: string, cause?: unknown): PeerError {
  const which = item === undefined ? 'a text of the request' : `the text of item ${item}`;
  return new PeerError('PEER_SOURCE', {
    url,
    what: `was not sent: ${which} ${what}`,
    delivered: 'no',
    item,
    cause,
  });
}

/** A text in memory as one that is read piece by piece. */
export function inPieces(bytes: Uint8Array): TextSource {
  return {
    size: bytes.length,
    async *chunks() {
      yield* slices(bytes);
    },
  };
}

function* slices(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}
