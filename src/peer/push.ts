import {
  type AnswerRecord,
  allRecords,
  fieldNumber,
  fieldValue,
  fieldValues,
  type HttpAnswer,
  isSameUrl,
  readAnswer,
  unusable,
} from './answer.js';
import type { Text } from './form.js';

/** One document for the index. */
export interface PushItem {
  readonly url: string;
  readonly collection: string;
  readonly data: Text;
  /** Media type, where the dialect sends one. @default text/plain; charset=UTF-8 */
  readonly contentType?: string | undefined;
  /**
   * When the content was changed last, in ms since the epoch, for a YaCy and an embedded peer:
   * others may not take it.
   */
  readonly lastModified?: number | undefined;
}

export interface PushOptions {
  /** Ask the peer to index before it answers. */
  readonly synchronous?: boolean;
  /** Ask the peer to make it searchable at once. */
  readonly commit?: boolean;
  readonly signal?: AbortSignal;
}

/**
 * What the peer said of one item: accepted (which proves nothing about search), or not, in its own
 * words.
 */
export type PushResult = { readonly ok: true } | { readonly ok: false; readonly message: string };

export interface PushAnswer {
  /**
   * When the request began, by the peer's clock, in whole seconds (as ms since the epoch); never
   * later than it was.
   */
  readonly peerTime?: number;
  /** One for each item, in their order. */
  readonly results: readonly PushResult[];
}

type IsSame = (shown: string, sent: string) => boolean;

/** YaCy's pages say `ok` and `fail`. */
const POSITIVE = /^(true|ok)$/i;
const NEGATIVE = /^(false|fail)$/i;

/**
 * What became of each item.
 *
 * Success needs a word that says so: for the item (found by its number, and about no other URL),
 * or, where the answer has nothing about single items, for all of them. Items that an answer leaves
 * out are not accepted. What the answer counts must be what was sent, and fit what it says of the
 * items.
 *
 * @param isSame whether the URL shown is the one that was pushed
 * @throws PeerError PEER_ANSWER for anything else
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
  if (results !== undefined && fits(outermost, results)) return results;
  throw unusable(answer, 'does not say whether it accepted what was pushed');
}

/** Undefined where the answer has nothing about single items, or nothing that can be told apart. */
function resultsOfItems(
  record: AnswerRecord,
  urls: readonly string[],
  isSame: IsSame,
): readonly PushResult[] | undefined {
  const spoken = allRecords(record).filter(({ fields }) =>
    fields.some(({ key }) => key === 'success'),
  );
  if (spoken.length === 0) return undefined;
  const results = new Array<PushResult | undefined>(urls.length).fill(undefined);
  for (const item of spoken) {
    // Plain lines about several items are one record: they do not tell which word is about which
    // item.
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

/** Whether what the answer counts is what was sent, and what it says of the items. */
function fits(record: AnswerRecord, results: readonly PushResult[]): boolean {
  const succeeded = results.filter(({ ok }) => ok).length;
  const said = {
    count: results.length,
    countsuccess: succeeded,
    countfail: results.length - succeeded,
  };
  const isCounted = Object.entries(said).every(
    ([name, n]) => (fieldNumber(record, name) ?? n) === n,
  );
  const isAll = succeeded === results.length;
  return isCounted && (verdict(record, 'successall') ?? isAll) === isAll;
}

/** True or false; undefined for nothing, other words and contradictions. */
function verdict(record: AnswerRecord, name: string): boolean | undefined {
  const words = fieldValues(record, name).filter((word) => word !== '');
  if (words.length === 0) return undefined;
  if (words.every((word) => POSITIVE.test(word))) return true;
  return words.every((word) => NEGATIVE.test(word)) ? false : undefined;
}
