import { type HttpAnswer, succeeded, unusable } from './answer.js';
import { fieldsOf, formBody } from './form.js';
import type { Http } from './http.js';
import type { Peerdoc } from './peerdoc.js';
import { type PushResult, readPushResults } from './push.js';

/** The collection of documents that stand empty where they cannot be removed. */
export const REMOVED_COLLECTION = 'removed';
/** sha256 of nothing. */
const EMPTY_DIGEST = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

const REMOVE_PATH = '/api/remove_p.html';
/** A peer that is none of ours has no such page. */
const NO_SUCH_PAGE = new Set([404, 405, 410, 501]);

const CONTROL_PATH = '/IndexControlURLs_p.html';
const TOKEN_HEADER = 'x-yacy-transaction-token';

/**
 * Has an embedded peer remove documents; also one of another machine.
 *
 * @returns what it answered for each, in their order; undefined where the peer has no page for that
 */
export async function removeByPage(
  http: Http,
  urls: readonly string[],
  signal: AbortSignal | undefined,
): Promise<readonly PushResult[] | undefined> {
  const fields = urls.map((url, n) => ({ name: `url-${n}`, value: url }));
  const body = await formBody(fields, http.url(REMOVE_PATH));
  const request = {
    counted: 'other',
    method: 'POST',
    path: REMOVE_PATH,
    isProtected: true,
  } as const;
  const answer = await http.ask({ ...request, body, signal });
  if (NO_SUCH_PAGE.has(answer.status)) return undefined;
  return readPushResults(
    succeeded(answer),
    urls.map((url) => ({ url })),
  );
}

/**
 * Deletes documents of a YaCy, as the page for its administrator does. That wants a token, which is
 * good for as long as the peer runs. Its answer proves nothing: it is the same for a document that
 * it never had.
 */
export class YacyDeletion {
  #token: string | undefined;

  constructor(private readonly http: Http) {}

  async delete(url: string, signal: AbortSignal | undefined): Promise<void> {
    const known = this.#token;
    let answer = await this.#post(url, known ?? (await this.#newToken(signal)), signal);
    // The peer was started anew.
    if (answer.status === 400 && known !== undefined)
      answer = await this.#post(url, await this.#newToken(signal), signal);
    if (!succeeded(answer).body.includes('Removed URL'))
      throw unusable(answer, 'does not say that it removed the document');
  }

  async #newToken(signal: AbortSignal | undefined): Promise<string> {
    const request = {
      counted: 'other',
      method: 'GET',
      path: CONTROL_PATH,
      isProtected: true,
    } as const;
    const answer = succeeded(await this.http.ask({ ...request, signal }));
    const token = answer.headers[TOKEN_HEADER];
    if (typeof token !== 'string')
      throw unusable(answer, 'gives no token for the deletion of documents');
    this.#token = token;
    return token;
  }

  async #post(url: string, token: string, signal: AbortSignal | undefined): Promise<HttpAnswer> {
    const fields = fieldsOf({ transactionToken: token, urlstring: url, urldelete: 'Delete URL' });
    const body = await formBody(fields, this.http.url(CONTROL_PATH));
    const request = {
      counted: 'other',
      method: 'POST',
      path: CONTROL_PATH,
      isProtected: true,
    } as const;
    return await this.http.ask({ ...request, body, signal });
  }
}

/** Whether a document is the empty one that stands in the place of one that was removed. */
export function isEmptied({ collections, digest, size, words }: Peerdoc): boolean {
  if (collections !== undefined && !collections.includes(REMOVED_COLLECTION)) return false;
  if (digest !== undefined) return digest === EMPTY_DIGEST;
  if (size !== undefined) return size === 0;
  return words === undefined ? collections !== undefined : words === 0;
}
