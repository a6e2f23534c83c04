import type { Dialect } from './dialect.js';
import { type FormField, formBody } from './form.js';
import { readPeerdoc } from './peerdoc.js';
import { readPushResults } from './push.js';
import { readCitation } from './read-citation.js';
import { standardTables } from './table-requests.js';

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
  tables: standardTables,

  pushBody(items, { synchronous, commit }, url) {
    const fields: FormField[] = [];
    if (synchronous) fields.push({ name: 'synchronous', value: 'true' });
    if (commit) fields.push({ name: 'commit', value: 'true' });
    fields.push({ name: 'count', value: String(items.length) });
    items.forEach(({ data, url: address, collection }, n) => {
      fields.push({ name: `data-${n}`, value: data, item: n });
      fields.push({ name: `url-${n}`, value: address });
      fields.push({ name: `collection-${n}`, value: collection });
    });
    return formBody(fields, url);
  },

  pushResults(answer, items) {
    return readPushResults(
      answer,
      items.map(({ url }) => url),
    );
  },

  peerdocBody(query, { html }, url) {
    const fields: FormField[] = Object.entries(query).map(([name, value]) => ({ name, value }));
    if (html !== undefined) fields.push({ name: 'html', value: html });
    return formBody(fields, url);
  },

  peerdocOf: readPeerdoc,

  citationBody(query, { filter, ch }, url) {
    const fields: FormField[] = [];
    if ('url' in query) fields.push({ name: 'url', value: query.url });
    if (filter !== undefined) fields.push({ name: 'filter', value: String(filter) });
    if (ch !== undefined) fields.push({ name: 'ch', value: String(ch) });
    if ('hash' in query) fields.push({ name: 'hash', value: query.hash });
    return formBody(fields, url);
  },

  hasNoCitation: ({ status }) => status === 404,

  citationOf: readCitation,

  async shareRequest({ data, c }, urlOf) {
    const fields: FormField[] = [{ name: 'data', value: data }];
    if (c !== undefined) fields.push({ name: 'c', value: c });
    return { method: 'POST', path: SHARE_PATH, body: await formBody(fields, urlOf(SHARE_PATH)) };
  },
};
