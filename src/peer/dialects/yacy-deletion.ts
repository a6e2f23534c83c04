import { type HttpAnswer, succeeded, unusable } from '../answer.js';
import { fieldsOf } from '../form.js';
import { type EndpointRequest, formRequest, type Http } from '../http.js';

const CONTROL_PATH = '/IndexControlURLs_p.html';
const TOKEN_HEADER = 'x-yacy-transaction-token';

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
    const answer = succeeded(await this.#ask({ method: 'GET', path: CONTROL_PATH }, signal));
    const token = answer.headers[TOKEN_HEADER];
    if (typeof token !== 'string')
      throw unusable(answer, 'gives no token for the deletion of documents');
    this.#token = token;
    return token;
  }

  async #post(url: string, token: string, signal: AbortSignal | undefined): Promise<HttpAnswer> {
    const fields = fieldsOf({ transactionToken: token, urlstring: url, urldelete: 'Delete URL' });
    return await this.#ask(
      await formRequest(CONTROL_PATH, fields, (path) => this.http.url(path)),
      signal,
    );
  }

  async #ask(request: EndpointRequest, signal: AbortSignal | undefined): Promise<HttpAnswer> {
    return await this.http.ask({ ...request, counted: 'other', isProtected: true, signal });
  }
}
