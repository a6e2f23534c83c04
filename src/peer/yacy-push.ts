import { decoded, unusable } from './answer.js';
import type { Body } from './body.js';
import type { HttpAnswer } from './http.js';
import { type MultipartField, multipartBody } from './multipart.js';
import { type PushItem, type PushOptions, type PushResult, readPushResults } from './push.js';
import { sentUrl } from './yacy-url.js';

/** YaCy tells the type by the extension of the URL where none is given, and takes no text from what it cannot tell. */
const TEXT = 'text/plain; charset=UTF-8';

/**
 * A push that YaCy stores byte for byte: text fields of a multipart body, the content as `data-N$file` in base64. A plain
 * `data-N` would store an empty document, and a file part a corrupted one, both with an answer of success; without
 * `responseHeader-N` the whole request fails.
 */
export function pushBody(
  items: readonly PushItem[],
  { synchronous, commit }: PushOptions,
  url: string,
): Body {
  const fields: MultipartField[] = [{ name: 'count', value: String(items.length) }];
  if (synchronous) fields.push({ name: 'synchronous', value: 'true' });
  if (commit) fields.push({ name: 'commit', value: 'true' });
  items.forEach((item, n) => {
    fields.push({ name: `url-${n}`, value: sentUrl(item.url) });
    fields.push({ name: `collection-${n}`, value: item.collection });
    fields.push({ name: `responseHeader-${n}`, value: '' });
    fields.push({ name: `contentType-${n}`, value: item.contentType ?? TEXT });
    if (item.lastModified !== undefined)
      fields.push({ name: `lastModified-${n}`, value: new Date(item.lastModified).toUTCString() });
    fields.push({ name: `data-${n}$file`, content: item.data, item: n });
  });
  return multipartBody(fields, url);
}

/**
 * What became of each item. The numbers decide: YaCy echoes URLs and messages without escaping them, so that the JSON
 * may be broken. What it counts must be what was sent, and fit what it says of the single items.
 *
 * @throws PeerError PEER_ANSWER where it does not; `{}` is the answer to a request that could not be read
 */
export function pushResults(answer: HttpAnswer, items: readonly PushItem[]): readonly PushResult[] {
  const text = decoded(answer.body);
  const counts = countsIn(text);
  if (counts === undefined) throw unusable(answer, 'does not say whether it accepted what was pushed');
  if (counts.count !== items.length)
    throw unusable(answer, `answered for ${counts.count} items, and ${items.length} were pushed`);
  const results =
    itemsIn(text, items.length) ??
    readPushResults(
      answer,
      items.map(({ url }) => url),
    );
  const succeeded = results.filter(({ ok }) => ok).length;
  const isAll = succeeded === items.length;
  if (counts.succeeded !== succeeded || counts.failed !== items.length - succeeded || counts.all !== isAll)
    throw unusable(answer, 'contradicts itself about what it accepted');
  return results;
}

interface Counts {
  readonly count: number;
  readonly all: boolean;
  readonly succeeded: number;
  readonly failed: number;
}

/** The members around the items, which hold nothing of what was sent. */
function countsIn(text: string): Counts | undefined {
  const [, count, all] =
    /^\s*\{\s*"count"\s*:\s*"?(\d{1,9})"?\s*,\s*"successall"\s*:\s*"?(true|false)\b/.exec(text) ?? [];
  const [, succeeded, failed] =
    /"countsuccess"\s*:\s*"?(\d{1,9})"?\s*,\s*"countfail"\s*:\s*"?(\d{1,9})"?\s*\}\s*$/.exec(text) ?? [];
  if (count === undefined || succeeded === undefined) return undefined;
  return {
    count: Number(count),
    all: all === 'true',
    succeeded: Number(succeeded),
    failed: Number(failed),
  };
}

const ITEM = /"item-(\d{1,9})"\s*:\s*\{\s*"item"\s*:\s*"?\d{1,9}"?\s*,\s*"url"\s*:\s*"/g;
const VERDICT = /"\s*,\s*"success"\s*:\s*"(true|false)"\s*,\s*"message"\s*:\s*"/;

/** The items as YaCy's template writes them; undefined where one is not there, or not so. */
function itemsIn(text: string, count: number): readonly PushResult[] | undefined {
  const begins = [...text.matchAll(ITEM)];
  if (begins.length !== count) return undefined;
  const results: PushResult[] = [];
  for (const [n, begin] of begins.entries()) {
    const said = text.slice(begin.index + begin[0].length, begins[n + 1]?.index);
    const verdict = VERDICT.exec(said);
    if (Number(begin[1]) !== n || verdict === null) return undefined;
    const message = said.slice(verdict.index + verdict[0].length).split(/"\s*\}/, 1)[0] ?? '';
    results.push(verdict[1] === 'true' ? { ok: true } : { ok: false, message });
  }
  return results;
}
