import { messageOf } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { counted } from '../lib/text.js';
import { escapeMarkup, nameMarkup } from '../web/markup.js';
import { type Form, type FormLimits, Refusal } from './form.js';
import type { Site } from './markup.js';
import type { Body, Context } from './server.js';
import {
  MAX_COLUMNS,
  MAX_NAME_CHARS,
  type RowChoice,
  type StoredRow,
  type StoredTable,
  type TableStore,
} from './table-store.js';

/** The rows of a table for an answer. */
interface View {
  readonly table: StoredTable;
  readonly columns: readonly string[];
  readonly choice: RowChoice;
  /** The rows in groups. Each group is made in one slice of time. */
  readonly groups: Iterable<readonly StoredRow[]>;
  /** The selected row, for the form that edits it. */
  readonly row: StoredRow | undefined;
  /** The keys of the rows that this request deleted. */
  readonly deleted?: readonly string[] | undefined;
}

/** The most keys that one request may delete. */
const MAX_KEYS = 10_000;
/** The rows on the editor's page if the request gives no number. */
const PAGE_ROWS = 100;
const MAX_ROWS = 999_999_999_999_999;
const COLUMN = 'col_';
const ITEM = /^item_\d{1,9}$/;
const ACTIONS = ['commitrow', 'deleterows', 'deletetable', 'addrow'] as const;

/**
 * Answers `/api/table_p.*` and `/Tables_p.*`, which are alike: the list of tables, rows, the form
 * that edits one, and the result of a change. The parameters are those of the specification, with
 * YaCy's `pk`, `col_COLUMN` and `item_N=pk_KEY`.
 *
 * An action is requested by its parameter with any value. An empty value requests nothing, so a
 * form that sends all its fields deletes nothing. A table that does not exist is refused with 404.
 * Only a committed row creates one.
 *
 * @param path `editor` shows 100 rows by default, for people
 */
export async function tablePages(context: Context, path: 'api' | 'editor'): Promise<Body> {
  const { tables, log, maxBody } = context.deps;
  const limits: FormLimits = {
    body: maxBody,
    fields: MAX_KEYS + MAX_COLUMNS + 20,
    name: COLUMN.length + MAX_NAME_CHARS,
  };
  const form = await context.form(limits);
  const asked = ACTIONS.filter((name) => form.text(name) !== undefined);
  const [action] = asked;
  if (asked.length > 1) throw new Refusal(400, `One at a time: ${asked.join(', ')}.`);
  if (action !== undefined && action !== 'addrow') context.requireChange();
  const name = readName(form, 'table');
  const pk = readName(form, 'pk');
  if (name === undefined) {
    if (action !== undefined) throw new Refusal(400, `${action} needs the parameter table.`);
    return listAnswer(context);
  }
  if (action === 'commitrow') {
    const committed = tables.commit(name, pk, readCells(form, name, pk, tables));
    return rowsAnswer(context, found(name, tables), { pk: committed.pk });
  }
  const table = found(name, tables);
  if (action === 'deletetable') {
    tables.drop(table);
    clearDropped(tables, log);
    log.info({ table: name, rows: table.rows }, `The table ${name} was deleted`);
    return listAnswer(context);
  }
  if (action === 'addrow') return rowsAnswer(context, table, { count: 0 });
  const isScreen = path === 'editor' && context.as === 'html' && form.text('count') === undefined;
  const count = form.text('count') === 'all' ? MAX_ROWS : form.number('count', MAX_ROWS, MAX_ROWS);
  const choice = {
    pk,
    after: readName(form, 'after'),
    search: form.text('search'),
    count: isScreen ? PAGE_ROWS : count,
  };
  if (action === undefined) return rowsAnswer(context, table, choice);
  const deleted = await tables.deleteRows(name, readKeys(form));
  return rowsAnswer(context, found(name, tables), choice, deleted);
}

function found(name: string, tables: TableStore): StoredTable {
  const table = tables.find(name);
  if (!table) throw new Refusal(404, `There is no table ${JSON.stringify(name)}.`);
  return table;
}

function listAnswer({ as, deps }: Context): string {
  const list = deps.tables.list();
  return as === 'json'
    ? `${JSON.stringify({ tables: list.map(({ name }) => name) })}\n`
    : listPage(list, deps.site);
}

function rowsAnswer(
  { as, deps: { site, tables } }: Context,
  table: StoredTable,
  choice: RowChoice,
  deleted?: readonly string[],
): Iterable<string> {
  const columns = [...tables.columns(table).values()];
  const row = choice.pk === undefined ? undefined : tables.row(table, choice.pk);
  const view = { table, columns, choice, row, groups: tables.read(table, choice), deleted };
  return as === 'json' ? tableJson(view) : tablePage(view, site);
}

/** Deletes the rows of dropped tables in the background. */
export function clearDropped(tables: TableStore, log: Logger): void {
  tables.clearDropped().catch((error: unknown) => {
    const why = messageOf(error);
    log.error({ err: why }, `The rows of a deleted table cannot be cleared away now: ${why}`);
  });
}

function readName(form: Form, name: string): string | undefined {
  const value = form.text(name);
  if (value !== undefined) checkName(value, `The parameter ${name}`);
  return value;
}

function checkName(value: string, what: string): void {
  if (value === '' || value.length > MAX_NAME_CHARS)
    throw new Refusal(400, `${what} has to have 1 to ${MAX_NAME_CHARS} characters.`);
}

/**
 * Returns the cells to commit. `newcolumn` and `newvalue` are the fields of our page for a new
 * column. A browser sends every line end as CR LF. In a form of our page (`page`) they become LF,
 * and a cell that differs in nothing else is left out.
 */
function readCells(
  form: Form,
  name: string,
  pk: string | undefined,
  tables: TableStore,
): ReadonlyMap<string, string> {
  // Peers of this family pad keys with NUL, so that readers would take it for the key without.
  if (pk?.endsWith('\0')) throw new Refusal(400, 'A key cannot end with NUL.');
  const cells = new Map<string, string>();
  for (const field of form.names())
    if (field.startsWith(COLUMN)) cells.set(field.slice(COLUMN.length), form.text(field) ?? '');
  const added = form.text('newcolumn');
  if (added !== undefined) {
    if (cells.has(added)) throw new Refusal(400, `The column ${added} is there already.`);
    cells.set(added, form.text('newvalue') ?? '');
  }
  for (const column of cells.keys()) checkName(column, 'The name of a column');
  if (!form.isTrue('page')) return cells;
  const plain = (text: string): string => text.replace(/\r\n?/g, '\n');
  const table = tables.find(name);
  const stored = new Map(table && pk !== undefined ? tables.row(table, pk)?.cells : undefined);
  for (const [column, value] of cells) {
    const before = stored.get(column);
    if (before !== undefined && plain(before) === plain(value)) cells.delete(column);
    else cells.set(column, plain(value));
  }
  return cells;
}

function readKeys(form: Form): string[] {
  const keys = new Set<string>();
  for (const name of form.names()) {
    if (!ITEM.test(name)) continue;
    const [, key] = /^pk_(.+)$/s.exec(form.text(name) ?? '') ?? [];
    if (key === undefined)
      throw new Refusal(400, `The parameter ${name} has to be pk_ and the key of a row.`);
    checkName(key, `The key in ${name}`);
    keys.add(key);
  }
  if (keys.size === 0)
    throw new Refusal(
      400,
      'Nothing was deleted: name each row by a parameter item_N with the value pk_KEY.',
    );
  return [...keys];
}

/** Yields a table as JSON, one row a line. */
function* tableJson({ table, columns, groups, deleted }: View): Generator<string> {
  const gone = deleted ? `"deleted":${JSON.stringify(deleted)},` : '';
  yield `{"table":${JSON.stringify(table.name)},"columns":${JSON.stringify(columns)},${gone}"rows":[`;
  let separator = '\n';
  for (const group of groups) {
    for (const { pk, cells } of group) {
      const pairs = cells.map(
        ([column, value]) => `${JSON.stringify(column)}:${JSON.stringify(value)}`,
      );
      yield `${separator}{"pk":${JSON.stringify(pk)},"cells":{${pairs.join(',')}}}`;
      separator = ',\n';
    }
    yield '';
  }
  yield '\n]}\n';
}

const PATH = '/Tables_p.html';

/** Yields the rows of a table as a page, with the forms that change them. */
function* tablePage(
  { table: { name, rows }, columns, choice, groups, row }: View,
  site: Site,
): Generator<string> {
  const top = `<h1 dir="auto">${nameMarkup(name)}</h1>\n<p class="hint">${counted(rows, 'row')}, ${counted(columns.length, 'column')}</p>`;
  const { begin, end } = site.around({ title: `${name} – tables`, section: 'tables', top });
  const self = link({ table: name });
  yield `${begin}<form method="post" action="${self}">\n<div class="scroll"><table class="rows">
<thead><tr><th></th><th>Key</th>${columns.map((column) => `<th>${nameMarkup(column)}</th>`).join('')}</tr></thead>\n<tbody>\n`;
  let count = 0;
  let last = '';
  for (const group of groups) {
    for (const each of group) {
      yield rowLine(each, name, columns, count);
      count += 1;
      last = each.pk;
    }
    yield '';
  }
  const next = link({
    table: name,
    search: choice.search,
    count: String(choice.count),
    after: last,
  });
  const isPart = choice.pk === undefined && count > 0 && count === choice.count;
  const isAll = count === rows;
  yield `</tbody></table></div>
<p class="below-table wrapped"><button class="danger" type="submit" name="deleterows" value="Delete Rows">Delete the marked rows</button>
${isPart && !isAll ? `<a rel="next" href="${next}">Next rows →</a>` : ''}${isAll ? '' : `<a href="${self}">All rows</a>`}</p></form>
<h2>${row === undefined ? 'New row' : `Row ${nameMarkup(row.pk)}`}</h2>
${rowForm(name, columns, row)}
<details><summary>Delete this table…</summary>
<form method="post" action="${self}">
<button class="danger" type="submit" name="deletetable" value="Delete Table">Delete ${nameMarkup(name)} with ${counted(rows, 'row')}</button>
</form></details>${end}`;
}

/** Returns all tables as a page. */
function listPage(tables: readonly StoredTable[], site: Site): string {
  const line = ({ name, rows }: StoredTable) =>
    `<tr><td><a href="${link({ table: name })}">${nameMarkup(name)}</a></td><td>${counted(rows, 'row')}</td></tr>\n`;
  const list =
    tables.length === 0
      ? '<p class="empty">No tables yet.</p>'
      : `<table>\n${tables.map(line).join('')}</table>`;
  const body = `${list}\n<h2>New table</h2>\n${rowForm()}`;
  return site.page({ title: 'Tables', section: 'tables', top: '<h1>Tables</h1>', body });
}

/**
 * Returns the form that edits a row. Without `row` it creates one, without `table` the table too. A
 * cell that a browser would not send back unchanged is not part of the form.
 */
function rowForm(table?: string, columns: readonly string[] = [], row?: StoredRow): string {
  const values = new Map(row?.cells);
  const input = (label: string, name: string) =>
    `<label>${label}<input name="${name}" maxlength="500" autocomplete="off"></label>\n`;
  // The first line end in a text area is not part of it.
  const area = (label: string, name: string, value = '') =>
    `<label>${label}<textarea name="${name}" dir="auto" rows="${Math.min(12, value.split('\n').length)}">\n${shown(value)}</textarea></label>\n`;
  const fields = columns
    .filter(
      (column) => survivesBrowser(column) && !shown(values.get(column) ?? '').includes('\ufffd'),
    )
    .map((column) => area(nameMarkup(column), `col_${escapeMarkup(column)}`, values.get(column)));
  return `<form class="fields" method="post" action="${link({ table, pk: row?.pk })}">
<input type="hidden" name="page" value="true">
${table === undefined ? input('Table', 'table') : ''}${row === undefined ? input('Key (left empty: a new one)', 'pk') : ''}
${fields.join('')}${input('New column', 'newcolumn')}${area('Its value', 'newvalue')}
<button class="primary" type="submit" name="commitrow" value="Commit">Save</button>
</form>`;
}

function rowLine(
  { pk, cells }: StoredRow,
  table: string,
  columns: readonly string[],
  place: number,
): string {
  const values = new Map(cells);
  const shownCells = columns.map(
    (column) => `<td><div dir="auto">${shown(values.get(column) ?? '')}</div></td>`,
  );
  const mark = `<input type="checkbox" name="item_${place}" value="pk_${escapeMarkup(pk)}" aria-label="Mark ${shown(pk)}">`;
  const edit = link({ table, edittable: 'Edit Table', pk });
  return `<tr><td>${survivesBrowser(pk) ? mark : ''}</td><td><a href="${edit}">${nameMarkup(pk)}</a></td>${shownCells.join('')}</tr>\n`;
}

/**
 * Whether a browser sends back a text unchanged. A page cannot contain some characters, and the
 * name of a field no line ends.
 */
function survivesBrowser(text: string): boolean {
  return !/[\r\n\ufffd]/.test(escapeMarkup(text));
}

/** Returns the address of a page about a table, for an attribute. */
function link(parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined) as [
    string,
    string,
  ][];
  return escapeMarkup(`${PATH}?${new URLSearchParams(given)}`);
}

/** Returns text for a page. */
function shown(text: string): string {
  return escapeMarkup(text).replaceAll('\r', '&#13;');
}
