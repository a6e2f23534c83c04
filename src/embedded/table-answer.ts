import { type Answer, type AnswerForm, answer } from './answer.js';
import { escapeMarkup } from './markup.js';
import { tablePage } from './table-page.js';
import type { RowChoice, StoredRow, StoredTable } from './table-store.js';
import { base64, fitsMarkup, gathered } from './table-text.js';

/** Rows of a table on their way out. */
export interface TableView {
  readonly table: StoredTable;
  readonly columns: readonly string[];
  readonly choice: RowChoice;
  /** In groups, each made in a slice of time. */
  readonly groups: () => Iterable<readonly StoredRow[]>;
  /** Keys of the rows that this request deleted. */
  readonly deleted?: readonly string[];
  /** What the page for people says of what was done. */
  readonly notice?: string;
}

/** Answers with rows, which are read while they are sent. */
export function tableAnswer(as: AnswerForm, view: TableView): Answer {
  return answer(as, { chunks: () => gathered(WRITERS[as](view)) });
}

const WRITERS: Readonly<Record<AnswerForm, (view: TableView) => Iterable<string>>> = {
  json: tableJson,
  xml: tableXml,
  html: tablePage,
};

/** One row a line. */
function* tableJson({ table, columns, groups, deleted }: TableView): Generator<string> {
  const gone = deleted ? `"deleted":${JSON.stringify(deleted)},` : '';
  yield `{"table":${JSON.stringify(table.name)},"columns":${JSON.stringify(columns)},${gone}"rows":[`;
  const names = new Map(columns.map((column) => [column, `${JSON.stringify(column)}:`]));
  let separator = '\n';
  for (const group of groups()) {
    for (const { pk, cells } of group) {
      let pairs = '';
      for (const [column, value] of cells) {
        const name = names.get(column) ?? `${JSON.stringify(column)}:`;
        pairs += (pairs === '' ? name : `,${name}`) + JSON.stringify(value);
      }
      yield `${separator}{"pk":${JSON.stringify(pk)},"cells":{${pairs}}}`;
      separator = ',\n';
    }
    yield '';
  }
  yield '\n]}\n';
}

/** YaCy's shape: every column in every row. What XML cannot hold stands there in base64, and says so. */
function* tableXml({ table, columns, groups }: TableView): Generator<string> {
  yield `<?xml version="1.0" encoding="UTF-8"?>\n<tables>\n<table ${attribute('name', table.name)}>\n`;
  const names = new Map(columns.map((column) => [column, attribute('col', column)]));
  let count = 0;
  for (const group of groups()) {
    for (const { pk, cells } of group) {
      const values = new Map(cells);
      const lines = [...names].map(([column, name]) => cellXml(name, values.get(column) ?? ''));
      for (const [column, value] of cells)
        if (!names.has(column)) lines.push(cellXml(attribute('col', column), value));
      yield `<row count="${count}" ${attribute('pk', pk)}>\n${lines.join('')}</row>\n`;
      count += 1;
    }
    yield '';
  }
  yield '</table>\n</tables>\n';
}

function attribute(name: string, value: string): string {
  if (!fitsMarkup(value)) return `${name}-base64="${base64(value)}"`;
  // A reader of XML would turn them into blanks.
  const spaced = escapeMarkup(value).replace(/[\t\n\r]/g, (c) => `&#${c.charCodeAt(0)};`);
  return `${name}="${spaced}"`;
}

function cellXml(name: string, value: string): string {
  if (!fitsMarkup(value)) return `<cell ${name} encoding="base64">${base64(value)}</cell>\n`;
  // A reader of XML would turn a carriage return into a new line.
  return `<cell ${name}>${escapeMarkup(value).replaceAll('\r', '&#13;')}</cell>\n`;
}

/** The names of all tables. */
export function listJson(tables: readonly StoredTable[]): string {
  return `${JSON.stringify({ tables: tables.map(({ name }) => name) })}\n`;
}

export function listXml(tables: readonly StoredTable[]): string {
  const lines = tables.map(({ name }) => `<table ${attribute('name', name)}></table>\n`);
  return `<?xml version="1.0" encoding="UTF-8"?>\n<tables>\n${lines.join('')}</tables>\n`;
}
