import { succeeded } from './answer.js';
import { readCitation } from './citation.js';
import type { Dialect, TableDialect } from './dialect.js';
import { type FormField, fieldsOf, formBody } from './form.js';
import { readPeerdoc } from './peerdoc.js';
import { readPushResults } from './push.js';
import { listRecords } from './share.js';

/**
 * The specification, and for what it leaves unsaid (keys, cells, which rows) the parameters of YaCy. What an action is
 * sent with is the label of its button, as `edittable` shows.
 */
const tables: TableDialect = {
  readPath: '/api/table_p.html',
  pagePath: '/Tables_p.html',
  changePath: '/Tables_p.html',
  readsOneRow: true,
  actions: { commitrow: 'Commit', deleterows: 'Delete Selected Rows', deletetable: 'Delete Table' },
  changeBody: formBody,
};

const SHARE_PATH = '/api/share.html';

/** The specification to the letter: form-encoded, exact names, no parameter that is not needed. */
export const standard: Dialect = {
  name: 'standard',
  content: { encoding: 'form', takesBinary: false, showsWords: false },
  holdMs: 0,
  losesUpdates: false,
  hasDomainGate: false,
  pushPath: '/api/push_p.html',
  peerdocPath: '/api/peerdoc.html',
  citationPath: '/api/citation.html',
  tables,
  sentUrl: (url) => url,

  pushBody(items, { synchronous, commit }, url) {
    const flags = { synchronous: synchronous || undefined, commit: commit || undefined };
    const fields: FormField[] = fieldsOf({ ...flags, count: items.length });
    items.forEach(({ data, url: address, collection }, n) => {
      fields.push({ name: `data-${n}`, value: data, item: n });
      fields.push({ name: `url-${n}`, value: address });
      fields.push({ name: `collection-${n}`, value: collection });
    });
    return formBody(fields, url);
  },

  pushResults: readPushResults,
  peerdocOf: (answer, query) => (answer.status === 404 ? undefined : readPeerdoc(succeeded(answer), query)),
  citationOf: (answer, query) => (answer.status === 404 ? undefined : readCitation(succeeded(answer), query)),

  async shareRequest({ data, c }, urlOf) {
    const body = await formBody(fieldsOf({ data, c }), urlOf(SHARE_PATH));
    return { method: 'POST', path: SHARE_PATH, body };
  },

  listShares: (http, signal) => listRecords(http, SHARE_PATH, signal),
};
