import type { AlarmCode } from './alarms.js';
import { errorWords, likenessOf, likenessOfName, likenessOfType, SMALL_BYTES, typeFor } from './likeness.js';
import type { MirrorRecord } from './record.js';

/** What is known of an object before it comes. */
export interface Expected {
  /** Its name in the peer, which tells what it is where nothing was here before. */
  readonly data: string;
  readonly before: Pick<MirrorRecord, 'type' | 'bytes'> | undefined;
  /** The alarms that a person accepts. */
  readonly accepted: readonly string[];
}

/** An object may be taken, and is remembered by this media type; or it may not. */
export type Impression = { readonly type: string } | { readonly alarm: AlarmCode; readonly detail?: string };

/**
 * Whether a shared object is what it was, as far as its first bytes tell: not where nothing comes at all, a page of HTML where
 * there was none, a short text about an error, or XML or JSON where there was something else.
 *
 * @param head as `withHead` gives it
 * @param said the media type that the peer gave
 */
export function impressionOf(
  head: Uint8Array,
  said: string | undefined,
  { data, before, accepted }: Expected,
): Impression {
  const likeness = likenessOf(said, head);
  const was = before?.type === undefined ? likenessOfName(data) : likenessOfType(before.type);
  if (head.length === 0 && before?.bytes !== 0 && !accepted.includes('SHARE_EMPTY'))
    return { alarm: 'SHARE_EMPTY' };
  if (likeness === 'html' && was !== 'html' && !accepted.includes('SHARE_HTML'))
    return { alarm: 'SHARE_HTML' };
  const isSmall = head.length < SMALL_BYTES;
  if (isSmall && likeness !== was && likeness !== 'other' && !accepted.includes('SHARE_ERROR_PAGE')) {
    const detail = errorWords(head);
    if (detail !== undefined) return { alarm: 'SHARE_ERROR_PAGE', detail };
  }
  const type = typeFor(likeness, said);
  const isOther =
    before?.type !== undefined &&
    before.bytes !== 0 &&
    likeness !== was &&
    (likeness === 'xml' || likeness === 'json');
  const isTaken = accepted.includes('SHARE_TYPE') || accepted.includes('SHARE_ERROR_PAGE');
  if (isOther && !isTaken) return { alarm: 'SHARE_TYPE', detail: `${before.type} before, ${type} now` };
  // An empty answer tells nothing of what the object is.
  return { type: head.length === 0 && before?.type !== undefined ? before.type : type };
}

/** The first SMALL_BYTES of a stream, fewer only where it is shorter, and the whole of it. */
export async function withHead(
  chunks: AsyncIterable<Uint8Array>,
): Promise<{ readonly head: Uint8Array; readonly all: AsyncIterable<Uint8Array> }> {
  const iterator = chunks[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  let size = 0;
  while (size < SMALL_BYTES) {
    const next = await iterator.next();
    if (next.done) break;
    first.push(next.value);
    size += next.value.length;
  }
  async function* all(): AsyncGenerator<Uint8Array> {
    try {
      yield* first;
      for (;;) {
        const next = await iterator.next();
        if (next.done) return;
        yield next.value;
      }
    } finally {
      await iterator.return?.();
    }
  }
  return { head: Buffer.concat(first).subarray(0, SMALL_BYTES), all: all() };
}
