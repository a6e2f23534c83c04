import { type HttpAnswer, succeeded, unusable } from './answer.js';
import { fieldsOf, formBody } from './form.js';
import type { Http } from './http.js';
import type { Peerdoc } from './peerdoc.js';
import { type PushResult, readPushResults } from './push.js';

/**
 * The collection of the empty documents that replace removed ones, for peers that cannot remove.
 */
export const REMOVED_COLLECTION = 'removed';
/** sha256 of an empty text. */
const EMPTY_DIGEST = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

const REMOVE_PATH = '/api/remove_p.html';
/** The statuses of a peer that has no such page, because it is not an embedded peer. */
const NO_SUCH_PAGE = new Set([404, 405, 410, 501]);

const CONTROL_PATH = '/IndexControlURLs_p.html';
const TOKEN_HEADER = 'x-yacy-transaction-token';

/**
 * Removes documents from an embedded peer, which may run on another machine.
 *
 * @returns the answer for each URL, in order; undefined if the peer has no removal page
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
 * Deletes documents of a YaCy, with the page for its administrator. The page needs a token, which
 * is valid as long as the peer runs. The answer proves nothing: it is the same for a document that
 * YaCy never had.
 */
export class YacyDeletion {
  #token: string | undefined;

  constructor(private readonly http: Http) {}

  async delete(url: string, signal: AbortSignal | undefined): Promise<void> {
    const known = this.#token;
    let answer = await this.#post(url, known ?? (await this.#newToken(signal)), signal);
    // The peer was restarted, so the token is no longer valid.
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

/** Whether a document is the empty one that replaced a removed one. */
export function isEmptied({ collections, digest, size, words }: Peerdoc): boolean {
  if (collections !== undefined && !collections.includes(REMOVED_COLLECTION)) return false;
  if (digest !== undefined) return digest === EMPTY_DIGEST;
  if (size !== undefined) return size === 0;
  return words === undefined ? collections !== undefined : words === 0;
}
