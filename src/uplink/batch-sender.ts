import { PeersyncError, systemCode } from '../lib/errors.js';
import type { Dialect } from '../peer/dialects/dialect.js';
import { PeerError } from '../peer/errors.js';
import { type Failure, isAwayStatus, type PendingItem, type Sent } from '../state/entry.js';
import type { UplinkDeps } from './deps.js';
import type { PackedBatch, PackedContent } from './packed-batch.js';

/** Assumed maximum difference between our clock and the peer's, in ms. */
const MAX_CLOCK_SKEW_MS = 60_000;

/** An item with the content to send. */
export interface PreparedDocument {
  readonly item: PendingItem;
  /** Its number in the batch that was read. */
  readonly n: number;
  readonly content: PackedContent;
  readonly sent: Sent;
}

/**
 * Completes the record of a push with its time by both clocks. Adds the last modification, in whole
 * seconds, if the peer will keep it: peers replace a date in the future by their own time, and a
 * date before 1970 by 1970 (measured with YaCy 1.92).
 */
export function dated(
  { item, content, sent }: PreparedDocument,
  at: number,
  peerAt?: number,
): Sent {
  const lastModified = Math.floor(item.version.mtimeMs / 1000) * 1000;
  const isKept =
    content.type !== '' && lastModified > 0 && lastModified <= (peerAt ?? at - MAX_CLOCK_SKEW_MS);
  return {
    ...sent,
    at,
    ...(peerAt === undefined ? {} : { peerAt }),
    ...(isKept ? { lastModified } : {}),
  };
}

/** The result for one item of a batch. */
export type ItemOutcome =
  /**
   * The peer accepted it. `at`: the start of the request by our clock; `peerAt`: the same by the
   * peer's clock, if its answer has a date.
   */
  | { readonly kind: 'accepted'; readonly at: number; readonly peerAt: number | undefined }
  /** The peer answered, and refused this item with this message. */
  | { readonly kind: 'refused'; readonly words: string }
  /** The request with this item alone failed. */
  | { readonly kind: 'failed'; readonly failure: Failure }
  /**
   * The peer accepted nothing, for a reason that is not the item: prepare it again. With a failure:
   * push it when the peer is back.
   */
  | { readonly kind: 'returned'; readonly failure?: Failure }
  /** Its file changed or could not be read during the request, which was not completed. */
  | { readonly kind: 'stale' }
  /** No answer came: the peer may have accepted it. */
  | { readonly kind: 'unanswered' };

const RETURNED: ItemOutcome = { kind: 'returned' };

/**
 * Sends one batch to the peer. If the request fails as a whole, the batch is split into halves,
 * down to single items. Both halves are sent before either is split further: the peer accepts good
 * items in between, so one bad item does not open the circuit breaker. The state is not changed:
 * the caller applies the results.
 *
 * @param packed the batch to which the documents belong
 * @param dialect the dialect for which the batch was prepared
 * @param synchronous whether the peer is to answer only when it has indexed the batch
 * @returns the results in the order of the documents
 */
export async function sendBatch(
  deps: UplinkDeps,
  documents: readonly PreparedDocument[],
  packed: PackedBatch,
  dialect: Dialect,
  synchronous = false,
): Promise<readonly ItemOutcome[]> {
  const send = (batch: readonly PreparedDocument[]) =>
    request(deps, batch, packed, dialect, synchronous);
  const settle = async (
    batch: readonly PreparedDocument[],
    outcome: readonly ItemOutcome[] | PeersyncError,
  ): Promise<readonly ItemOutcome[]> => {
    if (!(outcome instanceof PeersyncError)) return outcome;
    if (batch.length === 1) return [{ kind: 'failed', failure: failureOf(outcome) }];
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
 * Sends one request.
 * @returns the result of each item, or the error if one of the items may have caused it
 */
async function request(
  { clock, dialect: active, log, queue, settings, state }: UplinkDeps,
  documents: readonly PreparedDocument[],
  packed: PackedBatch,
  dialect: Dialect,
  synchronous: boolean,
): Promise<readonly ItemOutcome[] | PeersyncError> {
  const { commit } = settings.push;
  const targets = documents.map(({ item: { url, collection }, n }) => ({ n, url, collection }));
  const isGone = ({ item: { folder, path } }: PreparedDocument) =>
    isAwayStatus(state.entries.statusOf(folder, path) ?? 'gone');
  let began: number | undefined;
  try {
    const answer = await queue.run('push', async (signal) => {
      began = clock.now();
      // The request may have waited long: the dialect may have changed, and files or a whole folder
      // may be gone.
      if (active.current !== dialect || documents.some(isGone)) return undefined;
      return await packed.push(targets, { synchronous, commit, signal });
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
    if (WRONG_DIALECT_CODES.has(error.code) && (await active.redetect()))
      return documents.map(() => RETURNED);
    return kind === 'failed' ? error : documents.map(() => ({ kind, failure: failureOf(error) }));
  }
}

export function failureOf({ code, message, hint }: PeersyncError): Failure {
  return { code, message, hint };
}

/**
 * Returns what a failed push means for its items:
 *
 * - `stale`: a file changed or could not be read during the request, which was not completed;
 * - `returned`: the peer certainly accepted nothing (it could not be reached, refused to talk, or
 *   has no such page): push again;
 * - `unanswered`: the peer may have accepted them: look up before pushing again;
 * - `failed`: the peer answered with an error, or broke the connection before it had the whole
 *   request. One of the items may be the cause: split the batch.
 *
 * @param begun whether the request had left the queue; a queue that stops may abort it halfway
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
      // A proxy in front of the peer may forbid (403) a single document because of its content.
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
 * Errors of a connection that was open and broke before the request was complete. Peers that find a
 * request too large do that.
 */
const CUT = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'UND_ERR_SOCKET']);

/** Statuses of a page that is not the API: the address is wrong, or a gateway's peer is away. */
const ANOTHER_PAGE = /^(3..|404|405|410)$/;

/** Codes of errors that a peer of another dialect would cause. */
export const WRONG_DIALECT_CODES: ReadonlySet<string> = new Set([
  'PEER_ANSWER',
  'PEER_REFUSED',
  'PEER_FAILED',
]);
