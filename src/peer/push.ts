import { isFailurePage, readAnswer, unusable } from './answer.js';
import type { HttpAnswer } from './http.js';
import {
  type Answer,
  type AnswerRecord,
  allRecords,
  fieldNumber,
  fieldValue,
  fieldValues,
} from './record.js';
import type { Text } from './text.js';
import { isSameUrl } from './url.js';

/** One document for the index. */
export interface PushItem {
  readonly url: string;
  readonly collection: string;
  readonly data: Text;
  /** Media type, where the dialect sends one. @default text/plain; charset=UTF-8 */
  readonly contentType?: string | undefined;
  /** When the content was changed last, in ms since the epoch; sent in whole seconds where the dialect sends it. */
  readonly lastModified?: number | undefined;
}

export interface PushOptions {
  /** Ask the peer to index before it answers. */
  readonly synchronous?: boolean;
  /** Ask the peer to make it searchable at once. */
  readonly commit?: boolean;
  readonly signal?: AbortSignal;
}

/** What the peer said of one item: accepted (which proves nothing about search), or not, in its own words. */
export type PushResult = { readonly ok: true } | { readonly ok: false; readonly message: string };

export interface PushAnswer {
  /** When the request began, by the peer's clock, in whole seconds (as ms since the epoch); never later than it was. */
  readonly peerTime?: number;
  /** One for each item, in their order. */
  readonly results: readonly PushResult[];
}

const POSITIVE = new Set(['true', 'ok', 'yes', '1', 'success', 'accepted', 'queued', 'indexed']);
const NEGATIVE = new Set(['false', 'no', '0', 'fail', 'failed', 'failure', 'error', 'rejected', 'refused']);
const VERDICTS = ['success', 'ok', 'status', 'result', 'accepted'];
const NUMBERS = ['item', 'number', 'index'];
const MESSAGES = ['message', 'error', 'reason', 'detail'];

/**
 * What became of each item.
 *
 * Success needs a word that says so: for the item (found by its number or its URL, and about no other URL), or, where
 * the answer has nothing about single items, for all of them. Items that an answer leaves out are not accepted.
 *
 * @param urls of the items, in their order
 * @throws PeerError PEER_ANSWER for anything else
 */
export function readPushResults(answer: HttpAnswer, urls: readonly string[]): readonly PushResult[] {
  const read = readAnswer(answer);
  if (isFailurePage(read)) throw unusable(answer, 'answered a push with an error page');
  const results = resultsOfItems(read.record, urls) ?? resultsOfAll(read, urls.length);
  if (results === undefined) throw unusable(answer, 'does not say whether it accepted what was pushed');
  return results;
}

/** Undefined where the answer has nothing about single items, or nothing that can be told apart. */
function resultsOfItems(record: AnswerRecord, urls: readonly string[]): readonly PushResult[] | undefined {
  const spoken = [...allRecords(record)].filter((r) => isAboutItem(r)).concat(numberedFields(record));
  if (spoken.length === 0) return undefined;
  const results = new Array<PushResult | undefined>(urls.length);
  for (const [position, itemRecord] of spoken.entries()) {
    const n = itemNumber(itemRecord, urls) ?? (spoken.length === urls.length ? position : undefined);
    const result = resultOf(itemRecord);
    if (n === undefined || result === undefined) return undefined;
    const before = results[n];
    if (n < urls.length && (before === undefined || before.ok))
      results[n] = aboutUrl(itemRecord, urls[n]) ?? result;
  }
  return Array.from(
    results,
    (result) => result ?? { ok: false, message: 'the peer did not answer for this item' },
  );
}

function isAboutItem(record: AnswerRecord): boolean {
  const isNamed = /^(items?|row|results?)(-?\d+)?$/i.test(record.name);
  return (
    fieldValues(record, ...VERDICTS).length > 0 &&
    (isNamed || fieldValues(record, 'url', ...NUMBERS).length > 0)
  );
}

/** `success-0`, `url-0`, `message-0`: names as those of the request. */
function numberedFields(record: AnswerRecord): AnswerRecord[] {
  const items = new Map<string, { name: string; value: string }[]>();
  for (const { name, value } of record.fields) {
    const [, base, n] = /^([a-z]+)-(\d{1,9})$/i.exec(name) ?? [];
    if (base === undefined || n === undefined) continue;
    const fields = items.get(n) ?? [];
    fields.push({ name: base, value });
    items.set(n, fields);
  }
  return [...items]
    .map(([n, fields]) => ({ name: `item-${n}`, fields, records: [] }))
    .filter((item) => fieldValues(item, ...VERDICTS).length > 0);
}

function itemNumber(record: AnswerRecord, urls: readonly string[]): number | undefined {
  const [, inName] = /^item-?(\d{1,9})$/i.exec(record.name) ?? [];
  const n = fieldNumber(record, ...NUMBERS) ?? (inName === undefined ? undefined : Number(inName));
  if (n !== undefined) return n;
  const url = fieldValue(record, 'url');
  const found = url === undefined ? -1 : urls.findIndex((sent) => isSameUrl(sent, url));
  return found === -1 ? undefined : found;
}

function aboutUrl(record: AnswerRecord, sent: string | undefined): PushResult | undefined {
  const url = fieldValue(record, 'url');
  if (url === undefined || sent === undefined || isSameUrl(url, sent)) return undefined;
  return { ok: false, message: `the peer answered for another URL: ${url}` };
}

function resultOf(record: AnswerRecord): PushResult | undefined {
  const accepted = verdict(record, ...VERDICTS);
  if (accepted === undefined) return undefined;
  return accepted ? { ok: true } : { ok: false, message: messageIn(record) };
}

function resultsOfAll({ record, prose }: Answer, count: number): readonly PushResult[] | undefined {
  const outermost = record.fields.length === 0 && record.records.length === 1 ? record.records[0] : record;
  if (outermost === undefined) return undefined;
  const said = verdict(outermost, 'successall', ...VERDICTS);
  const counted = fieldNumber(outermost, 'count');
  const succeeded = fieldNumber(outermost, 'countsuccess');
  const failed = fieldNumber(outermost, 'countfail');
  if (said === false || (failed ?? 0) > 0) {
    const allFailed = count === 1 || failed === count;
    return allFailed ? new Array(count).fill({ ok: false, message: messageIn(outermost) }) : undefined;
  }
  if ((counted ?? count) !== count || (succeeded ?? count) !== count) return undefined;
  const allSucceeded = said === true || succeeded === count || isWordOfSuccess(prose);
  return allSucceeded ? new Array(count).fill({ ok: true }) : undefined;
}

/** By the first of the names that has a value: true or false, undefined for other words and for contradictions. */
function verdict(record: AnswerRecord, ...names: readonly string[]): boolean | undefined {
  const words = names
    .map((name) => fieldValues(record, name).filter((word) => word !== ''))
    .find((values) => values.length > 0);
  if (words === undefined) return undefined;
  const said = new Set(
    words.map((word) => {
      const lower = word.toLowerCase();
      return POSITIVE.has(lower) ? true : NEGATIVE.has(lower) ? false : undefined;
    }),
  );
  const [only] = said;
  return said.size === 1 ? only : undefined;
}

function messageIn(record: AnswerRecord): string {
  return fieldValue(record, ...MESSAGES) ?? 'the peer refused it without a reason';
}

function isWordOfSuccess(prose: string): boolean {
  return /^\s*(ok|success|accepted)[.!]?\s*$/i.test(prose.slice(0, 64)) && prose.trim().length < 16;
}
