import { formBody } from './form.js';
import { multipartBody } from './multipart.js';
import type { TableDialect } from './table-requests.js';

/** YaCy refuses forms of more than 200,000 bytes or about 1,000 fields; a multipart body has neither limit. */
const FORM_BYTES = 100_000;
const FORM_FIELDS = 500;

/**
 * Tables as YaCy has them: read as XML, changed where an absent table is created and not an error, listed among the
 * choices of a page. Keys have 12 bytes: longer ones are cut without a word, and are then other rows.
 */
export const yacyTables: TableDialect = {
  readPath: '/Tables_p.xml',
  pagePath: '/Tables_p.html',
  changePath: '/api/table_p.html',
  maxKeyBytes: 12,
  hasRawKeys: true,
  // `search` looks into cells, and nothing into keys.
  readsOneRow: false,

  readFields: ({ table, count, search }) => [
    { name: 'table', value: table },
    { name: 'count', value: count === undefined ? 'all' : String(count) },
    ...(search === undefined ? [] : [{ name: 'search', value: search }]),
  ],

  listFields: () => [],

  // The editor is shown for a new row that is in the table from then on.
  formFields: () => undefined,

  // The answer shows the whole table, unless `count` keeps it small.
  commitFields: (table, { pk, cells }) => [
    { name: 'table', value: table },
    { name: 'commitrow', value: '1' },
    { name: 'count', value: '1' },
    { name: 'pk', value: pk },
    ...[...cells].map(([column, value]) => ({ name: `col_${column}`, value })),
  ],

  deleteRowsFields: (table, keys) => [
    { name: 'table', value: table },
    { name: 'deleterows', value: '1' },
    { name: 'count', value: '1' },
    ...keys.map((pk, n) => ({ name: `item_${n}`, value: `pk_${pk}` })),
  ],

  dropFields: (table) => [
    { name: 'table', value: table },
    { name: 'deletetable', value: '1' },
    { name: 'count', value: '1' },
  ],

  async changeBody(fields, url) {
    const form = await formBody(fields, url);
    return form.length <= FORM_BYTES && fields.length <= FORM_FIELDS ? form : multipartBody(fields, url);
  },
};
