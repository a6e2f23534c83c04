import { randomBytes } from 'node:crypto';
import { type Answer, type Asked, emptyPage, escapedXml, page, refused } from './answer.js';
import type { DocumentIndex } from './document-index.js';
import { type Form, first, type ReadForm } from './form.js';
import { hashAsked } from './yacydoc.js';

/**
 * `IndexControlURLs_p`, by which an administrator deletes documents, one a request (section 9). Its
 * answer proves nothing: it is the same for a URL that is not in the index.
 */
export class Deletion {
  /** From the source (TransactionManager) [S]: good until the process ends. */
  readonly #token = randomBytes(20).toString('hex');
  readonly #index: DocumentIndex;

  constructor(index: DocumentIndex) {
    this.#index = index;
  }

  serve({ method, path }: Asked, form: ReadForm): Answer {
    const asked: Form = typeof form === 'string' ? new Map() : form;
    const isDeletion = asked.has('urldelete') || asked.has('urlhashdelete');
    if (isDeletion) {
      if (method !== 'POST')
        return refused(405, 'HTTP POST method is the only one authorized.', path);
      const token = first(asked, 'transactionToken');
      if (token === undefined) return refused(400, 'Missing transaction token.', path);
      if (token !== this.#token) return refused(400, 'Invalid transaction token.', path);
    }
    const result = isDeletion ? this.#delete(asked) : '';
    if (!path.endsWith('.html')) return emptyPage();
    const answer = page('text/html', html(result));
    return { ...answer, headers: { ...answer.headers, 'X-YaCy-Transaction-Token': this.#token } };
  }

  #delete(form: Form): string {
    if (form.has('urldelete')) {
      const url = first(form, 'urlstring') ?? '';
      const hash = hashAsked(url, undefined);
      if (hash === undefined) return 'No input given; nothing deleted.';
      this.#index.delete(hash);
      return `Removed URL ${url}`;
    }
    const hash = first(form, 'urlhash') ?? '';
    const document = this.#index.find(hash);
    if (document === undefined) return `No Entry for URL hash ${hash}; nothing deleted.`;
    this.#index.delete(hash);
    return `Removed URL ${document.url}`;
  }
}

function html(result: string): string {
  return `<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml">
  <head>
    <title>YaCy 'model': URL Database Administration</title>
  </head>
  <body id="IndexControl">
    <p>${escapedXml(result)}</p>
  </body>
</html>
`;
}
