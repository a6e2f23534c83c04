import { PeersyncError, systemCode } from '../lib/errors.js';
import type { Dialect } from '../peer/dialect.js';
import { PeerError, type PeerErrorCode } from '../peer/errors.js';
import type { Outcome } from '../queue/options.js';
import { isAwayStatus, type PendingItem, type Sent, type Trouble } from '../state/entry.js';
import type { UplinkDeps } from './deps.js';
import type { Packed } from './documents.js';

/** An item with the content that is about to travel. */
export interface PreparedDocument {
  readonly item: PendingItem;
  readonly content: Extract<Packed, { kind: 'content' }>;
  readonly sent: Sent;
}

/** What became of one item of a batch. */
export type PushResult =
  /**
   * The peer took it. `at`: when the request began, by our clock; `peerAt`: the same by the peer's,
   * where its answer has a date.
   */
  | { readonly kind: 'accepted'; readonly at: number; readonly peerAt: number | undefined }
  /** The peer answered, and refused this item in these words. */
  | { readonly kind: 'refused'; readonly words: string }
  /** The peer answered badly to a request with this item alone. */
  | { readonly kind: 'failed'; readonly trouble: Trouble }
  /**
   * Nothing was taken, and not because of the item: to be made ready anew, or, with a trouble,
   * pushed once the peer is back.
   */
  | { readonly kind: 'returned'; readonly trouble?: Trouble }
  /** Its file changed, or could not be read, under the body, which was not completed. */
  | { readonly kind: 'stale' }
  /** No answer came: the peer may have taken it. */
  | { readonly kind: 'unanswered' };

const RETURNED: PushResult = { kind: 'returned' };

/**
 * Brings one batch to the peer; where that fails as a whole in halves, down to single items. Both
 * halves go before either is split further, so that the peer takes good ones in between, and one
 * bad item is no trouble of the peer. It changes nothing in the state: whoever sends applies the
 * results.
 *
 * @param dialect the one that it was made ready for
 * @param synchronous whether the peer is to answer only when it has indexed them
 * @returns the results in the order of the documents
 */
export async function sendBatch(
  deps: UplinkDeps,
  documents: readonly PreparedDocument[],
  dialect: Dialect,
  synchronous = false,
): Promise<readonly PushResult[]> {
  const send = (batch: readonly PreparedDocument[]) => request(deps, batch, dialect, synchronous);
  const settle = async (
    batch: readonly PreparedDocument[],
    outcome: readonly PushResult[] | PeersyncError,
  ): Promise<readonly PushResult[]> => {
    if (!(outcome instanceof PeersyncError)) return outcome;
    if (batch.length === 1) return [{ kind: 'failed', trouble: troubleOf(outcome) }];
    const { code, message } = outcome;
    deps.log.debug(
      { event: 'split', items: batch.length, code },
      `a batch of ${batch.length} failed and is split: ${message}`,
    );
    const middle = Math.ceil(batch.length / 2);
    const [first, second] = [batch.slice(0, middle), batch.slice(middle)];
    const [firstOutcome, secondOutcome] = [await send(first), await send(second)];
    return [...(await settle(first, firstOutcome)), ...(await settle(second, secondOutcome))];
  };
  return documents.length === 0 ? [] : settle(documents, await send(documents));
}

/**
 * Sends one request. @returns the result of each item, or the error where one of them may be the
 * reason
 */
async function request(
  { clock, dialect: spoken, log, embeddedPeer, peer, queue, settings, state }: UplinkDeps,
  documents: readonly PreparedDocument[],
  dialect: Dialect,
  synchronous: boolean,
): Promise<readonly PushResult[] | PeersyncError> {
  const { commit } = settings.push;
  const items = documents.map(
    ({ item: { url, collection, version }, content: { text, type } }) => ({
      url,
      collection,
      data: text,
      ...(type === '' ? {} : { contentType: type }),
      ...(type === '' && embeddedPeer === undefined ? {} : { lastModified: version.mtimeMs }),
    }),
  );
  const isGone = ({ item: { folder, path } }: PreparedDocument) =>
    isAwayStatus(state.get(folder, path)?.status ?? 'gone');
  let began: number | undefined;
  try {
    const answer = await queue.run('push', async (signal) => {
      began = clock.now();
      // It may have waited long: the dialect was found out to be another, or a file, or its whole
      // folder, is gone.
      if (spoken.current !== dialect || documents.some(isGone)) return undefined;
      return await peer.push(items, { synchronous, commit, signal });
    });
    if (answer === undefined) return documents.map(() => RETURNED);
    log.debug({ event: 'pushed', items: documents.length }, `pushed ${documents.length} items`);
    const taken = { kind: 'accepted', at: began ?? clock.now(), peerAt: answer.peerTime } as const;
    return documents.map((_, i) => {
      const result = answer.results[i];
      const words = result?.ok === false ? result.message : 'the peer did not answer for this item';
      return result?.ok ? taken : { kind: 'refused', words };
    });
  } catch (error) {
    const kind = pushFailure(error, began !== undefined);
    if (kind === 'stale') {
      const stale = error instanceof PeerError ? error.item : 0;
      return documents.map((_, i) => (i === stale ? { kind } : RETURNED));
    }
    if (!(error instanceof PeersyncError)) throw error;
    if (MISFITS.has(error.code) && (await spoken.misfits())) return documents.map(() => RETURNED);
    return kind === 'failed' ? error : documents.map(() => ({ kind, trouble: troubleOf(error) }));
  }
}

export function troubleOf({ code, message, hint }: PeersyncError): Trouble {
  return { code, message, hint };
}

/**
 * What a failed push says about the items in it.
 *
 * - `stale`: a file could not be read, or changed, under the body, which was not completed;
 * - `returned`: the peer certainly took nothing (it could not be reached, it refused to talk, or
 *   there is no such page): push again;
 * - `unanswered`: the peer may have taken them: look up before pushing again;
 * - `failed`: the peer answered badly, or broke the connection before it had the whole; one of the
 *   items may be the reason: split.
 *
 * @param begun whether the request had left the queue; a queue that stops may give it up halfway
 */
export function pushFailure(
  error: unknown,
  begun: boolean,
): 'stale' | 'returned' | 'unanswered' | 'failed' {
  if (!(error instanceof PeersyncError)) throw error;
  if (!(error instanceof PeerError)) return begun ? 'unanswered' : 'returned';
  const { cause, code, delivered, status = 0 } = error;
  switch (code) {
    case 'PEER_SOURCE':
      return 'stale';
    case 'PEER_AUTH':
      // What stands before a peer may forbid (403) a single document for what is in it.
      return status === 403 ? 'failed' : 'returned';
    case 'PEER_AUTH_WEAK':
    case 'PEER_BUSY':
      return 'returned';
    case 'PEER_UNREACHABLE':
    case 'PEER_TIMEOUT':
    case 'PEER_ABORTED':
      if (delivered !== 'no') return 'unanswered';
      return CUT.has(systemCode(cause) ?? '') ? 'failed' : 'returned';
    default:
      return ANOTHER_PAGE.test(String(status)) ? 'returned' : 'failed';
  }
}

/**
 * The connection stood and broke before the request was whole: so do peers that find it too large.
 */
const CUT = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'UND_ERR_SOCKET']);

/**
 * Whatever answered, it is not the page that was asked for: a wrong address, or a gateway whose
 * peer is away.
 */
const ANOTHER_PAGE = /^(3..|404|405|410)$/;

/** How another kind of peer could have answered. */
export const MISFITS: ReadonlySet<string> = new Set(['PEER_ANSWER', 'PEER_REFUSED', 'PEER_FAILED']);

/** What the errors of the peer client say about the peer; of the others, that it answered. */
const OUTCOMES: Readonly<Partial<Record<PeerErrorCode, Exclude<Outcome['kind'], 'busy'>>>> = {
  PEER_UNREACHABLE: 'unreachable',
  PEER_TIMEOUT: 'unreachable',
  PEER_AUTH: 'denied',
  PEER_AUTH_WEAK: 'weak',
  PEER_FAILED: 'failing',
  PEER_REFUSED: 'failing',
  PEER_ANSWER: 'failing',
  PEER_ANSWER_TOO_LARGE: 'failing',
  PEER_SOURCE: 'aborted',
  PEER_ABORTED: 'aborted',
};

/** What an error says about the peer, for the queue. */
export function classify(error: unknown): Outcome {
  if (!(error instanceof PeerError)) return { kind: 'aborted' };
  const { code, retryAfterMs } = error;
  if (code === 'PEER_BUSY')
    return { kind: 'busy', ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  return { kind: OUTCOMES[code] ?? 'answered' };
}
