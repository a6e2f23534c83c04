import type { Clock } from '../lib/clock.js';
import type { PeerClient } from '../peer/client.js';
import { PeerError, type PeerErrorCode } from '../peer/errors.js';
import type { Text } from '../peer/form.js';
import { type EvidenceKind, evidenceOf, type SentVersion } from '../peer/peerdoc.js';

/** A file that can go to the peer. */
export interface ReadyFile {
  /** As it was given. */
  readonly file: string;
  /** Of the document that it is to become. */
  readonly url: string;
  readonly text: Text;
  /** Bytes of what travels. */
  readonly size: number;
  /** sha256 of what travels. */
  readonly digest: string;
  /** Media type, where files travel with one; '' otherwise. */
  readonly type: string;
  /** ms since the epoch. */
  readonly mtimeMs: number;
}

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
  /** Called when the peer begins to show the document. Where it is given, look-ups begin at once and stay frequent. */
  readonly onShown?: (at: number) => void;
}

/** What pushing asks of the peer. */
export type PushPeer = Pick<PeerClient, 'push' | 'peerdoc'>;

const FIRST_PAUSE_MS = 200;
const PAUSE_GROWTH = 1.5;
/** Between two looks at a document of which it is measured when it is shown, in ms. */
const LONGEST_WATCHED_PAUSE_MS = 500;
/** A trouble of the peer that may pass by itself while there is time. */
const PASSING = new Set<PeerErrorCode>(['PEER_BUSY', 'PEER_TIMEOUT', 'PEER_UNREACHABLE', 'PEER_FAILED']);

/**
 * Pushes a file by itself; while the peer asks to wait, again.
 *
 * @returns what has to be shown by the peer, or why it refused the file
 */
export async function pushFile(
  peer: PushPeer,
  file: ReadyFile,
  how: { readonly collection: string; readonly synchronous?: boolean; readonly commit?: boolean },
  {
    clock,
    deadline,
    signal,
  }: { readonly clock: Clock; readonly deadline: number; readonly signal: AbortSignal },
): Promise<SentVersion | { readonly refused: string }> {
  const { collection, synchronous = false, commit = false } = how;
  const { digest, mtimeMs, size, text, type, url } = file;
  const dated = type === '' ? {} : { contentType: type, lastModified: mtimeMs };
  for (;;) {
    const at = clock.now();
    try {
      const { results, peerTime } = await peer.push([{ url, collection, data: text, ...dated }], {
        ...(synchronous ? { synchronous } : {}),
        ...(commit ? { commit } : {}),
        signal,
      });
      const [result] = results;
      if (result?.ok !== true) return { refused: result?.message ?? 'the peer did not answer for this item' };
      const sent = { size, digest, url, collection, at };
      if (peerTime === undefined) return sent;
      // Where the last modification was told it will be kept, unless it is a time that is still to come.
      const seconds = Math.floor(mtimeMs / 1000) * 1000;
      const isKept = type !== '' && seconds > 0 && seconds <= peerTime;
      return { ...sent, peerAt: peerTime, ...(isKept ? { lastModified: seconds } : {}) };
    } catch (error) {
      const waitMs =
        error instanceof PeerError && error.code === 'PEER_BUSY' ? (error.retryAfterMs ?? 1_000) : undefined;
      if (waitMs === undefined || clock.now() + waitMs >= deadline) throw error;
      await clock.sleep(waitMs, signal);
    }
  }
}

/**
 * Looks a document up until the peer shows the version that was pushed, or the time is over.
 *
 * @throws PeerError when the last look-up before the end of the time failed, or one fails in a way that does not pass
 */
export async function untilShown(
  peer: PushPeer,
  sent: SentVersion,
  { deadline, maxInterval, hold, onShown }: PushPatience,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Outcome> {
  let firstShown: number | undefined;
  let wasMissed = false;
  const heldUntil = sent.at + hold;
  const wait = Math.min(heldUntil, deadline) - clock.now();
  if (wait > 0 && onShown === undefined) await clock.sleep(wait, signal);
  const longest = onShown === undefined ? maxInterval : LONGEST_WATCHED_PAUSE_MS;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * PAUSE_GROWTH, longest)) {
    let trouble: PeerError | undefined;
    let message = '';
    try {
      const doc = await peer.peerdoc({ url: sent.url }, { signal });
      const seen = evidenceOf(doc, sent);
      if (seen.shown) {
        if (firstShown === undefined) onShown?.(clock.now());
        firstShown ??= clock.now();
        if ((!wasMissed && clock.now() >= heldUntil) || clock.now() - firstShown >= hold)
          return { status: 'confirmed', evidence: { kind: seen.kind, shown: seen.text } };
        message = 'the peer shows the document, but not yet for long enough (confirm.hold)';
      } else {
        firstShown = undefined;
        wasMissed ||= clock.now() >= heldUntil;
        message = seen.why;
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
