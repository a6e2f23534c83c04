import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { type Answer, answer, Refusal } from './answer.js';
import type { Database } from './database.js';
import type { RequestForm } from './form.js';
import { listJson, listXml, tableAnswer } from './table-answer.js';
import { listPage, rowPage } from './table-page.js';
import type { TableRefuse } from './table-refuse.js';
import { readTableRequest, type TableRequest } from './table-request.js';
import type { RowChoice, StoredTable, TableStore } from './table-store.js';
import type { Visit } from './visit.js';

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
  if (as === 'html') return answer(as, listPage(list, notice));
  return answer(as, as === 'json' ? listJson(list) : listXml(list));
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
