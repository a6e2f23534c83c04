import type { Clock } from '../lib/clock.js';
import { PeerError, type PeerErrorCode } from '../peer/errors.js';
import {
  type EvidenceKind,
  evidenceOf,
  type Peerdoc,
  type PeerdocOptions,
  type PeerdocQuery,
  type SentVersion,
} from '../peer/peerdoc.js';
import type { PushAnswer, PushItem, PushOptions, PushResult } from '../peer/push.js';
import type { ReadyFile } from './push-files.js';

/** What became of a file that was pushed. */
export type Outcome =
  | { readonly status: 'accepted' }
  | {
      readonly status: 'confirmed';
      readonly evidence: { readonly kind: EvidenceKind; readonly shown: string };
    }
  /** The peer took it, and did not show it in time. */
  | { readonly status: 'unseen'; readonly message: string }
  | { readonly status: 'refused'; readonly message: string };

export interface PushPatience {
  /** In ms since the epoch. */
  readonly deadline: number;
  /** Longest pause between two look-ups of one document, in ms. */
  readonly maxInterval: number;
  /** So long after a push the peer may take back what it shows, in ms. A later first sight must hold as long. */
  readonly hold: number;
}

/** What pushing asks of the peer; `PeerClient` is one. */
export interface PushPeer {
  push(items: readonly PushItem[], options: PushOptions): Promise<PushAnswer>;
  peerdoc(query: PeerdocQuery, options: PeerdocOptions): Promise<Peerdoc | undefined>;
}

const FIRST_PAUSE_MS = 200;
const PAUSE_GROWTH = 1.5;
/** A trouble of the peer that may pass by itself while there is time. */
const PASSING = new Set<PeerErrorCode>(['PEER_BUSY', 'PEER_TIMEOUT', 'PEER_UNREACHABLE', 'PEER_FAILED']);

/** Files that travel in one request: not more than `maxItems`, nor more bytes than `maxBytes` unless one alone has more. */
export function* batchesOf(
  files: readonly ReadyFile[],
  { maxItems, maxBytes }: { readonly maxItems: number; readonly maxBytes: number },
): Generator<readonly ReadyFile[]> {
  let batch: ReadyFile[] = [];
  let bytes = 0;
  for (const file of files) {
    if (batch.length === maxItems || (batch.length > 0 && bytes + file.size > maxBytes)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(file);
    bytes += file.size;
  }
  if (batch.length > 0) yield batch;
}

/**
 * Pushes files in one request; while the peer asks to wait, again.
 *
 * @returns for each file what the peer said, and what has to be shown by it
 */
export async function pushBatch(
  peer: PushPeer,
  files: readonly ReadyFile[],
  {
    collection,
    synchronous,
    commit,
  }: { readonly collection: string; readonly synchronous: boolean; readonly commit: boolean },
  parts: { readonly clock: Clock; readonly deadline: number; readonly signal: AbortSignal },
): Promise<readonly { readonly file: ReadyFile; readonly result: PushResult; readonly sent: SentVersion }[]> {
  const { clock, deadline, signal } = parts;
  const items = files.map(({ url, text, type, mtimeMs }) => ({
    ...{ url, collection, data: text },
    ...(type === '' ? {} : { contentType: type, lastModified: mtimeMs }),
  }));
  for (;;) {
    const at = clock.now();
    try {
      const { results, peerTime } = await peer.push(items, {
        ...(synchronous ? { synchronous } : {}),
        ...(commit ? { commit } : {}),
        signal,
      });
      return files.map((file, i) => ({
        file,
        result: results[i] ?? { ok: false, message: 'the peer did not answer for this item' },
        sent: {
          size: file.size,
          digest: file.digest,
          url: file.url,
          collection,
          at,
          ...(peerTime === undefined ? {} : { peerAt: peerTime }),
          ...dated(file, peerTime),
        },
      }));
    } catch (error) {
      const waitMs =
        error instanceof PeerError && error.code === 'PEER_BUSY' ? (error.retryAfterMs ?? 1_000) : undefined;
      if (waitMs === undefined || clock.now() + waitMs >= deadline) throw error;
      await clock.sleep(waitMs, signal);
    }
  }
}

/** The last modification, where it was told to the peer and will be kept: a time that is still to come is not. */
function dated({ type, mtimeMs }: ReadyFile, peerTime: number | undefined): { lastModified?: number } {
  const seconds = Math.floor(mtimeMs / 1000) * 1000;
  return type !== '' && peerTime !== undefined && seconds > 0 && seconds <= peerTime
    ? { lastModified: seconds }
    : {};
}

/**
 * Looks a document up until the peer shows the version that was pushed, or the time is over.
 *
 * @throws PeerError when the last look-up before the end of the time failed, or one fails in a way that does not pass
 */
export async function untilShown(
  peer: PushPeer,
  sent: SentVersion,
  { deadline, maxInterval, hold }: PushPatience,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Outcome> {
  let firstShown: number | undefined;
  let wasMissed = false;
  const heldUntil = sent.at + hold;
  const wait = Math.min(heldUntil, deadline) - clock.now();
  if (wait > 0) await clock.sleep(wait, signal);
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * PAUSE_GROWTH, maxInterval)) {
    let trouble: PeerError | undefined;
    let message = 'the peer does not know the document';
    try {
      const doc = await peer.peerdoc({ url: sent.url }, { signal });
      const seen = doc === undefined ? undefined : evidenceOf(doc, sent);
      if (seen?.shown) {
        firstShown ??= clock.now();
        if ((!wasMissed && clock.now() >= heldUntil) || clock.now() - firstShown >= hold)
          return { status: 'confirmed', evidence: { kind: seen.kind, shown: seen.text } };
        message = 'the peer shows the document, but not yet for long enough (confirm.hold)';
      } else {
        firstShown = undefined;
        wasMissed = true;
        message = seen?.why ?? message;
      }
    } catch (error) {
      if (!(error instanceof PeerError) || !PASSING.has(error.code)) throw error;
      trouble = error;
    }
    const left = deadline - clock.now();
    if (left <= 0) {
      if (trouble !== undefined) throw trouble;
      return { status: 'unseen', message };
    }
    await clock.sleep(Math.min(Math.max(pause, trouble?.retryAfterMs ?? 0), left), signal);
  }
}
