import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { type Answer, answer, Refusal, type Visit } from './answer.js';
import type { Database } from './database.js';
import type { RequestForm } from './form.js';
import { listJson, listPage, rowPage, tableAnswer } from './table-answer.js';
import {
  LONGEST_NAME,
  type RowChoice,
  type StoredTable,
  type TableRefuse,
  type TableStore,
} from './table-store.js';

export interface TableParts {
  readonly tables: TableStore;
  readonly refuse: TableRefuse;
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The two pages of tables: `api` shows all rows unless told otherwise, and the editor, read by people, a screenful or two. */
export type TablePath = 'api' | 'editor';

/** Rows that the editor's page shows where it is not told how many. */
const PAGE_ROWS = 100;
/** Rows that are deleted between two turns of the loop. */
const BITE = 100;

/**
 * Answers `/api/table_p.*` and `/Tables_p.*`, which read and write alike: the list of tables, rows, the form that edits one, and
 * after a change what there is now. A table that is not there is refused with 404; only a committed row makes one.
 *
 * @throws Refusal
 */
export async function tablePages(
  form: RequestForm,
  visit: Visit,
  path: TablePath,
  parts: TableParts,
): Promise<Answer> {
  const request = readTableRequest(form);
  switch (request.action) {
    case 'list':
      return listAnswer(visit, parts);
    case 'show': {
      const table = found(request.table, parts);
      const isScreen = path === 'editor' && visit.as === 'html' && request.choice.count === undefined;
      return rowsAnswer(
        visit,
        table,
        isScreen ? { ...request.choice, count: PAGE_ROWS } : request.choice,
        parts,
      );
    }
    case 'edit':
      return editAnswer(visit, request, parts);
    case 'commit':
      visit.requireChange();
      return commitAnswer(visit, request, parts);
    case 'deleteRows':
      visit.requireChange();
      return deleteAnswer(visit, request, path, parts);
    case 'drop': {
      visit.requireChange();
      const table = found(request.table, parts);
      parts.tables.drop(table);
      parts.refuse.notify();
      parts.log.info({ table: table.name, rows: table.rows }, `The table ${table.name} was deleted`);
      return listAnswer(visit, parts, `The table ${table.name} is deleted.`);
    }
  }
}

function found(name: string, { tables }: TableParts): StoredTable {
  const table = tables.find(name);
  if (!table) throw new Refusal(404, `There is no table ${JSON.stringify(name)}.`);
  return table;
}

function listAnswer({ as }: Visit, { tables }: TableParts, notice?: string): Answer {
  const list = tables.list();
  return answer(as, as === 'html' ? listPage(list, notice) : listJson(list));
}

function rowsAnswer(
  { as }: Visit,
  table: StoredTable,
  choice: RowChoice,
  { tables }: TableParts,
  done: { readonly deleted?: readonly string[]; readonly notice?: string } = {},
): Answer {
  const columns = tables.columns(table);
  return tableAnswer(as, { table, columns, choice, groups: () => tables.read(table, choice), ...done });
}

/** For programs the form is the table without its rows, or with the one that is edited. */
function editAnswer(
  visit: Visit,
  { table: name, pk }: Extract<TableRequest, { action: 'edit' }>,
  parts: TableParts,
): Answer {
  const { tables } = parts;
  const table = found(name, parts);
  if (visit.as !== 'html') return rowsAnswer(visit, table, pk === undefined ? { count: 0 } : { pk }, parts);
  const row = pk === undefined ? undefined : tables.row(table, pk);
  return answer('html', rowPage(table, tables.columns(table), row, pk));
}

function commitAnswer(
  visit: Visit,
  request: Extract<TableRequest, { action: 'commit' }>,
  parts: TableParts,
): Answer {
  const { tables } = parts;
  const cells = request.isFromPage ? withOwnLineEnds(request, tables) : request.cells;
  const { pk } = tables.commit(request.table, request.pk, cells);
  const table = found(request.table, parts);
  return rowsAnswer(visit, table, { pk }, parts, { notice: `The row ${pk} is saved.` });
}

/**
 * A browser sends every end of a line as CR LF. A cell that differs in nothing else stays as it is stored; in others the ends
 * of lines become LF.
 */
function withOwnLineEnds(
  { table: name, pk, cells }: Extract<TableRequest, { action: 'commit' }>,
  tables: TableStore,
): Map<string, string> {
  const table = tables.find(name);
  const stored = new Map(table && pk !== undefined ? tables.row(table, pk)?.cells : undefined);
  const plain = (text: string): string => text.replace(/\r\n?/g, '\n');
  return new Map(
    [...cells].map(([column, value]) => {
      const before = stored.get(column);
      return [column, before !== undefined && plain(before) === plain(value) ? before : plain(value)];
    }),
  );
}

async function deleteAnswer(
  visit: Visit,
  { table: name, keys, choice }: Extract<TableRequest, { action: 'deleteRows' }>,
  path: TablePath,
  parts: TableParts,
): Promise<Answer> {
  const { tables, database } = parts;
  const deleted: string[] = [];
  for (let at = 0; at < keys.length; at += BITE) {
    const table = found(name, parts);
    const bite = keys.slice(at, at + BITE);
    database.transaction(() => {
      deleted.push(...bite.filter((key) => tables.deleteRow(table, key)));
    });
    await nextTurn();
  }
  const count = choice.count ?? (path === 'editor' && visit.as === 'html' ? PAGE_ROWS : undefined);
  const rows = `${deleted.length} ${deleted.length === 1 ? 'row is' : 'rows are'}`;
  return rowsAnswer(visit, found(name, parts), { ...choice, count }, parts, {
    deleted,
    notice: `${rows} deleted.`,
  });
}

/** What a request to the pages of tables asks for. */
export type TableRequest =
  | { readonly action: 'list' }
  | { readonly action: 'show'; readonly table: string; readonly choice: RowChoice }
  | { readonly action: 'edit'; readonly table: string; readonly pk: string | undefined }
  | {
      readonly action: 'commit';
      readonly table: string;
      readonly pk: string | undefined;
      readonly cells: ReadonlyMap<string, string>;
      /** The cells come from a page of ours: browsers change the ends of lines. */
      readonly isFromPage: boolean;
    }
  | {
      readonly action: 'deleteRows';
      readonly table: string;
      readonly keys: readonly string[];
      readonly choice: RowChoice;
    }
  | { readonly action: 'drop'; readonly table: string };

/** Keys that one request may delete. */
export const MOST_KEYS = 10_000;
const COLUMN = 'col_';
const ITEM = /^item_\d{1,9}$/;
const ACTIONS = ['commitrow', 'deleterows', 'deletetable', 'addrow'] as const;

/**
 * Reads the parameters, which are the specification's with YaCy's `pk`, `col_COLUMN` and `item_N=pk_KEY`.
 *
 * An action is asked for by its parameter with any value; with an empty one it is not, so that a form that sends all its
 * fields deletes nothing.
 *
 * @throws Refusal 400
 */
export function readTableRequest(form: RequestForm): TableRequest {
  const asked = ACTIONS.filter((name) => given(form, name) !== undefined);
  const [action] = asked;
  if (asked.length > 1) throw new Refusal(400, `One at a time: ${asked.join(', ')}.`);
  const table = readName(form, 'table');
  if (table === undefined) {
    if (action !== undefined) throw new Refusal(400, `${action} needs the parameter table.`);
    return { action: 'list' };
  }
  const pk = readName(form, 'pk');
  switch (action) {
    case 'commitrow':
      // Peers of this family pad keys with NUL, so that readers would take it for the key without.
      if (pk?.endsWith('\0')) throw new Refusal(400, 'A key cannot end with NUL.');
      return { action: 'commit', table, pk, cells: readCells(form), isFromPage: form.isTrue('page') };
    case 'deleterows':
      return { action: 'deleteRows', table, keys: readKeys(form), choice: readChoice(form) };
    case 'deletetable':
      return { action: 'drop', table };
    case 'addrow':
      return { action: 'edit', table, pk: undefined };
    default:
      if (given(form, 'edittable') !== undefined && pk !== undefined) return { action: 'edit', table, pk };
      return { action: 'show', table, choice: readChoice(form) };
  }
}

function given(form: RequestForm, name: string): string | undefined {
  const value = form.text(name);
  return value === '' ? undefined : value;
}

function readName(form: RequestForm, name: string): string | undefined {
  const value = given(form, name);
  if (value !== undefined) checkLength(value, `The parameter ${name}`);
  return value;
}

function checkLength(value: string, what: string): void {
  if (value === '' || value.length > LONGEST_NAME)
    throw new Refusal(400, `${what} has to have 1 to ${LONGEST_NAME} characters.`);
}

function readChoice(form: RequestForm): RowChoice {
  return {
    pk: readName(form, 'pk'),
    after: readName(form, 'after'),
    search: given(form, 'search'),
    count: readCount(form),
  };
}

/** `all` is what YaCy's page offers. */
function readCount(form: RequestForm): number | undefined {
  const count = given(form, 'count');
  if (count === undefined) return undefined;
  if (count === 'all') return Number.POSITIVE_INFINITY;
  if (!/^\d{1,15}$/.test(count))
    throw new Refusal(400, `The parameter count has to be a number or "all", not "${count.slice(0, 40)}".`);
  return Number(count);
}

/** `newcolumn` and `newvalue` are the fields of our page for a column that is not there yet. */
function readCells(form: RequestForm): Map<string, string> {
  const cells = new Map<string, string>();
  for (const name of form.names()) {
    if (!name.startsWith(COLUMN)) continue;
    const column = name.slice(COLUMN.length);
    checkLength(column, 'The name of a column');
    cells.set(column, form.text(name) ?? '');
  }
  const column = given(form, 'newcolumn');
  if (column === undefined) return cells;
  checkLength(column, 'The name of a column');
  if (cells.has(column)) throw new Refusal(400, `The column ${column} is there already.`);
  return cells.set(column, form.text('newvalue') ?? '');
}

/** `pk-base64_` is for keys that a form of a browser would change. */
function readKeys(form: RequestForm): string[] {
  const keys = new Set<string>();
  for (const name of form.names()) {
    if (!ITEM.test(name)) continue;
    const value = form.text(name) ?? '';
    const [, coded, rest = ''] = /^pk(-base64)?_(.*)$/s.exec(value) ?? [];
    const key = coded === undefined ? rest : Buffer.from(rest, 'base64').toString();
    if (key === '') throw new Refusal(400, `The parameter ${name} has to be pk_ and the key of a row.`);
    checkLength(key, `The key in ${name}`);
    keys.add(key);
  }
  if (keys.size === 0)
    throw new Refusal(400, 'Nothing was deleted: name each row by a parameter item_N with the value pk_KEY.');
  if (keys.size > MOST_KEYS) throw new Refusal(400, `At most ${MOST_KEYS} rows are deleted at once.`);
  return [...keys];
}
