import type { Body } from './body.js';
import { formBody } from './form.js';
import type { TableQuery, TableRow } from './table.js';

/** One parameter of a request about tables. */
export interface TableField {
  readonly name: string;
  readonly value: string;
}

/** How one kind of peer is asked about its tables. */
export interface TableDialect {
  /** Where rows are read; below the base URL. */
  readonly readPath: string;
  /** Where tables are listed, and what their editor asks for; below the base URL. */
  readonly pagePath: string;
  /** Where tables are changed; below the base URL. */
  readonly changePath: string;
  /** Bytes of a key in UTF-8, beyond which the peer would cut it. @default no limit */
  readonly maxKeyBytes?: number;
  /** Whether keys stand in XML as they are, padded to 12 bytes, and not escaped. */
  readonly hasRawKeys: boolean;
  /** Whether a single row can be asked for; otherwise all are read to see one. */
  readonly readsOneRow: boolean;
  /** @param pk only the row with this key; a peer may give others too */
  readFields(query: TableQuery, pk: string | undefined): readonly TableField[];
  listFields(): readonly TableField[];
  /** Undefined where asking for the editor would change the table: then a row shows which columns there are. */
  formFields(table: string): readonly TableField[] | undefined;
  commitFields(table: string, row: TableRow): readonly TableField[];
  deleteRowsFields(table: string, keys: readonly string[]): readonly TableField[];
  dropFields(table: string): readonly TableField[];
  /** How a change travels. */
  changeBody(fields: readonly TableField[], url: string): Promise<Body>;
}

/**
 * The specification, and for what it leaves unsaid (keys, cells, which rows) the parameters of YaCy. What an action is
 * sent with is the label of its button, as `edittable` shows.
 */
export const standardTables: TableDialect = {
  readPath: '/api/table_p.html',
  pagePath: '/Tables_p.html',
  changePath: '/Tables_p.html',
  hasRawKeys: false,
  readsOneRow: true,

  readFields({ table, count, search }, pk) {
    const fields: TableField[] = [{ name: 'table', value: table }];
    if (pk !== undefined) fields.push({ name: 'pk', value: pk });
    if (count !== undefined) fields.push({ name: 'count', value: String(count) });
    if (search !== undefined) fields.push({ name: 'search', value: search });
    return fields;
  },

  listFields: () => [],

  formFields: (table) => [
    { name: 'table', value: table },
    { name: 'edittable', value: 'Edit Table' },
    { name: 'addrow', value: 'Add a new Row' },
  ],

  // The answer may show the table, however large: `count` keeps it small.
  commitFields: (table, { pk, cells }) => [
    { name: 'table', value: table },
    { name: 'commitrow', value: 'Commit' },
    { name: 'count', value: '1' },
    { name: 'pk', value: pk },
    ...[...cells].map(([column, value]) => ({ name: `col_${column}`, value })),
  ],

  deleteRowsFields: (table, keys) => [
    { name: 'table', value: table },
    { name: 'count', value: '1' },
    { name: 'deleterows', value: 'Delete Selected Rows' },
    ...keys.map((pk, n) => ({ name: `item_${n}`, value: `pk_${pk}` })),
  ],

  dropFields: (table) => [
    { name: 'table', value: table },
    { name: 'deletetable', value: 'Delete Table' },
  ],

  changeBody: formBody,
};
