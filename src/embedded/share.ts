import type { IncomingMessage } from 'node:http';
import { type Answer, answer, Refusal } from './answer.js';
import { type FormLimits, type RequestForm, readBody } from './form.js';
import { type Listing, SHARE_WRITERS } from './share-answer.js';
import { shareFile } from './share-file.js';
import { shareGroup, shareName } from './share-name.js';
import type { Share, ShareStore } from './share-store.js';
import { receiveShare } from './share-upload.js';
import type { Visit } from './visit.js';

/** Bodies that only ask for something. */
const SMALL: FormLimits = { body: 65_536, fields: 20 };
/** Bytes of an upload; it goes to disk as it comes, so memory sets no limit. */
export const MOST_UPLOAD = 64 * 1_073_741_824;

/**
 * The endpoint of shared objects. With `data` (and its group `c`) it answers the object itself; without, it lists the objects of
 * `c`, or all. A multipart body with a file part `data` puts an object there, which only the administrator may.
 */
export class ShareEndpoint {
  readonly #store: ShareStore;
  readonly #uploaded = new WeakMap<RequestForm, Share>();

  constructor(store: ShareStore) {
    this.#store = store;
  }

  async receive(request: IncomingMessage, form: RequestForm, visit: Visit): Promise<void> {
    if (!/^multipart\/form-data\s*;/i.test(request.headers['content-type'] ?? ''))
      return readBody(request, form, SMALL);
    if (request.headers['content-encoding'] !== undefined)
      throw new Refusal(415, 'The body has to come without Content-Encoding.');
    visit.requireAdministrator();
    visit.requireChange();
    this.#uploaded.set(form, await receiveShare(request, form, this.#store, MOST_UPLOAD));
  }

  async handle(form: RequestForm, visit: Visit): Promise<Answer> {
    const uploaded = this.#uploaded.get(form);
    if (uploaded) return listing(only(uploaded), uploaded.c, visit);
    const c = form.text('c') ?? '';
    const data = form.text('data') ?? '';
    if (data !== '') {
      const share = await this.#store.get(shareName(c, data));
      if (!share) throw new Refusal(404, 'There is no such shared object.');
      return shareFile(share, visit);
    }
    const folder = shareGroup(c);
    if (!(await this.#store.has(folder))) throw new Refusal(404, 'There is no such group of shared objects.');
    return listing(this.#store.list(folder), c, visit);
  }
}

function listing(shares: Listing, c: string, { as }: Visit): Answer {
  return answer(as, { chunks: () => SHARE_WRITERS[as](shares, c) });
}

async function* only(share: Share): Listing {
  yield share;
  return false;
}
