import { type HttpAnswer, unusable } from './answer.js';
import type { Admit } from './exchange-options.js';
import type { Text } from './form.js';
import {
  type AnswerRecord,
  allRecords,
  fieldNumber,
  fieldValue,
  fieldValues,
  readAnswer,
} from './records.js';
import { isSameUrl } from './url.js';

/** One document for the index. */
export interface PushItem {
  readonly url: string;
  readonly collection: string;
  readonly data: Text;
  /** The media type, if the dialect sends one. @default text/plain; charset=UTF-8 */
  readonly contentType?: string | undefined;
  /**
   * The last modification of the content, in ms since the epoch. Only YaCy and embedded peers are
   * known to take it.
   */
  readonly lastModified?: number | undefined;
}

export interface PushOptions {
  /** Asks the peer to index the documents before it answers. */
  readonly synchronous?: boolean;
  /** Asks the peer to make the documents searchable at once. */
  readonly commit?: boolean;
  /** See `ExchangeRequest`. */
  readonly admit?: Admit | undefined;
  readonly signal?: AbortSignal;
}

/**
 * The peer's answer for one item: accepted, or refused with the peer's message. Acceptance does not
 * mean that the item is searchable.
 */
export type PushResult = { readonly ok: true } | { readonly ok: false; readonly message: string };

export interface PushAnswer {
  /**
   * A lower bound for the start of the request, by the peer's clock, in ms since the epoch (whole
   * seconds).
   */
  readonly peerTime?: number;
  /** One result for each item, in order. */
  readonly results: readonly PushResult[];
}

type IsSame = (shown: string, sent: string) => boolean;

/** YaCy's pages say `ok` and `fail`; JSON says `true` and `false`. */
const POSITIVE = /^(true|ok)$/i;
const NEGATIVE = /^(false|fail)$/i;

/**
 * Returns the result of each item.
 *
 * An item is accepted only if the answer says so: in the result with its number and no other URL,
 * or for all items together if there are no single results. An item that the answer leaves out is
 * not accepted. The counts in the answer must match the items that were sent, and the results.
 *
 * @param isSame whether the shown URL is the one that was pushed
 * @throws PeerError PEER_ANSWER for any other answer
 */
export function readPushResults(
  answer: HttpAnswer,
  items: readonly Pick<PushItem, 'url'>[],
  isSame: IsSame = isSameUrl,
): readonly PushResult[] {
  const urls = items.map(({ url }) => url);
  const { record } = readAnswer(answer);
  const outermost =
    record.fields.length === 0 && record.records.length === 1
      ? (record.records[0] ?? record)
      : record;
  const results = resultsOfItems(record, urls, isSame) ?? resultsOfAll(outermost, items.length);
  if (results !== undefined && isConsistent(outermost, results)) return results;
  throw unusable(answer, 'does not say whether it accepted what was pushed');
}

/**
 * Returns the results of single items; undefined if there are none, or if they cannot be matched to
 * items.
 */
function resultsOfItems(
  record: AnswerRecord,
  urls: readonly string[],
  isSame: IsSame,
): readonly PushResult[] | undefined {
  const verdicts = allRecords(record).filter(({ fields }) =>
    fields.some(({ key }) => key === 'success'),
  );
  if (verdicts.length === 0) return undefined;
  const results = new Array<PushResult | undefined>(urls.length).fill(undefined);
  for (const item of verdicts) {
    // Plain text about several items becomes one record, which does not show which result belongs
    // to which item.
    const n = fieldValues(item, 'item').length > 1 ? undefined : fieldNumber(item, 'item');
    const result = resultOf(item, n === undefined ? undefined : urls[n], isSame);
    if (n === undefined || n >= urls.length || result === undefined) return undefined;
    if (results[n]?.ok !== false) results[n] = result;
  }
  return results.map(
    (result) => result ?? { ok: false, message: 'the peer did not answer for this item' },
  );
}

function resultOf(
  item: AnswerRecord,
  sent: string | undefined,
  isSame: IsSame,
): PushResult | undefined {
  const isAccepted = verdict(item, 'success');
  const url = fieldValue(item, 'url');
  if (isAccepted === undefined) return undefined;
  if (url !== undefined && sent !== undefined && !isSame(url, sent))
    return { ok: false, message: `the peer answered for another URL: ${url}` };
  const message = fieldValue(item, 'message') ?? 'the peer refused it without a reason';
  return isAccepted ? { ok: true } : { ok: false, message };
}

function resultsOfAll(record: AnswerRecord, count: number): readonly PushResult[] | undefined {
  return verdict(record, 'successall') ? new Array(count).fill({ ok: true }) : undefined;
}

/** Whether the counts in the answer match the items that were sent, and the results. */
function isConsistent(record: AnswerRecord, results: readonly PushResult[]): boolean {
  const succeeded = results.filter(({ ok }) => ok).length;
  const expected = {
    count: results.length,
    countsuccess: succeeded,
    countfail: results.length - succeeded,
  };
  const isCounted = Object.entries(expected).every(
    ([name, n]) => (fieldNumber(record, name) ?? n) === n,
  );
  const isAll = succeeded === results.length;
  return isCounted && (verdict(record, 'successall') ?? isAll) === isAll;
}

/** Returns the verdict of a field; undefined if it is missing, unknown or contradictory. */
function verdict(record: AnswerRecord, name: string): boolean | undefined {
  const words = fieldValues(record, name).filter((word) => word !== '');
  if (words.length === 0) return undefined;
  if (words.every((word) => POSITIVE.test(word))) return true;
  return words.every((word) => NEGATIVE.test(word)) ? false : undefined;
}
