import { counted } from '../lib/text.js';
import { type Answer, type AnswerForm, answer } from './answer.js';
import { escapeMarkup, page, pageAround } from './markup.js';
import type { RowChoice, StoredRow, StoredTable } from './table-store.js';

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

/** The names of all tables. */
export function listJson(tables: readonly StoredTable[]): string {
  return `${JSON.stringify({ tables: tables.map(({ name }) => name) })}\n`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that XML 1.0 cannot hold.
const UNFIT = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/;

/** Whether a text can stand in XML and in a page as it is. */
export function fitsMarkup(text: string): boolean {
  return !UNFIT.test(text);
}

/** Whether a browser sends a text back as it got it; ends of lines it changes. */
export function survivesBrowser(text: string): boolean {
  return fitsMarkup(text) && !/[\r\n]/.test(text);
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

const CHUNK = 65_536;

/** Gathers pieces into chunks of about 64 KB; an empty piece goes out as a chunk with what there is, for others to have a turn. */
export function* gathered(pieces: Iterable<string>): Generator<string> {
  let held: string[] = [];
  let size = 0;
  for (const piece of pieces) {
    held.push(piece);
    size += piece.length;
    if (piece !== '' && size < CHUNK) continue;
    yield held.join('');
    held = [];
    size = 0;
  }
  yield held.join('');
}

const PATH = '/Tables_p.html';
/** Counts that the page offers, as YaCy's does. */
const COUNTS = ['10', '100', '1000', 'all'];

/** Rows of a table as a page, with what edits them; it is made while it is sent. */
export function* tablePage(view: TableView): Generator<string> {
  const { table, columns, choice, groups, notice } = view;
  const { begin, end } = pageAround(`${table.name} – tables`, 'wide');
  yield `${begin}${heading()}\n<main>\n<h2${coded(table.name)}>${shown(table.name)}</h2>\n`;
  if (notice !== undefined) yield `<p class="notice" role="status">${escapeMarkup(notice)}</p>\n`;
  yield `<p class="dim">${counted(table.rows, 'row')}, ${counted(columns.length, 'column')}</p>\n${choiceForm(view)}\n`;
  yield `<form method="post" action="${link({ table: table.name })}">\n<div class="scroll"><table class="rows">\n`;
  yield `<thead><tr><th></th><th>Key</th>${columns.map((column) => `<th${coded(column)}>${shown(column)}</th>`).join('')}<th></th></tr></thead>\n<tbody>\n`;
  let count = 0;
  let last: string | undefined;
  for (const group of groups()) {
    for (const row of group) {
      yield rowLine(row, table, columns, count);
      count += 1;
      last = row.pk;
    }
    yield '';
  }
  yield `</tbody></table></div>\n`;
  if (count === 0) yield `<p>No rows${choice.search === undefined ? '' : ' with these words'}.</p>\n`;
  yield `<p class="actions"><a href="${link({ table: table.name, addrow: 'Add Row' })}">Add a row</a>`;
  if (count > 0)
    yield `<button class="quiet" type="submit" name="deleterows" value="Delete Rows">Delete the marked rows</button>`;
  if (last !== undefined && choice.pk === undefined && count === choice.count)
    yield `<a rel="next" href="${link({ table: table.name, search: choice.search, count: String(choice.count), after: last })}">Next rows →</a>`;
  if (choice.pk !== undefined) yield `<a href="${link({ table: table.name })}">All rows</a>`;
  yield `</p>\n</form>\n${dropForm(table)}\n</main>${end}`;
}

/** All tables as a page. */
export function listPage(tables: readonly StoredTable[], notice?: string): string {
  const options = tables
    .filter(({ name }) => survivesBrowser(name))
    .map(({ name }) => `<option value="${escapeMarkup(name)}">${escapeMarkup(name)}</option>`);
  const lines = tables.map(
    (table) =>
      `<tr><td${coded(table.name)}><a href="${link({ table: table.name })}">${shown(table.name)}</a></td><td>${counted(table.rows, 'row')}</td></tr>`,
  );
  const choose =
    options.length === 0
      ? ''
      : `<form class="search" method="get" action="${PATH}">
<label class="query">Table<select name="table">
${options.join('\n')}
</select></label>
${countSelect('100')}
<button type="submit">Show</button>
</form>
`;
  const list = lines.length === 0 ? '<p>No tables yet.</p>' : `<table>\n${lines.join('\n')}\n</table>`;
  const said = notice === undefined ? '' : `<p class="notice" role="status">${escapeMarkup(notice)}</p>\n`;
  return page('Tables', `${heading()}\n<main>\n${said}${choose}${list}\n${newTableForm()}\n</main>`);
}

/** What a row is edited with; without `row` it makes a new one, of the key `pk` where that is given. */
export function rowPage(
  table: StoredTable,
  columns: readonly string[],
  row: StoredRow | undefined,
  pk: string | undefined,
): string {
  const values = new Map(row?.cells);
  const fields = columns.map((column) => cellField(column, values.get(column) ?? ''));
  const key =
    pk === undefined
      ? '<label>Key (left empty: the next free number)<input name="pk" maxlength="500" autocomplete="off"></label>\n'
      : '';
  const title = pk === undefined ? 'New row' : row ? `Row ${pk}` : `New row ${pk}`;
  return page(
    `${title} – ${table.name}`,
    `${heading()}
<main>
<h2>${shown(title)} · <a href="${link({ table: table.name })}">${shown(table.name)}</a></h2>
<form class="fields" method="post" action="${link({ table: table.name, pk })}">
<input type="hidden" name="page" value="true">
${key}${fields.join('\n')}
<fieldset><legend>One more column</legend>
<label>Name<input name="newcolumn" maxlength="500" autocomplete="off"></label>
<label>Value<textarea name="newvalue" rows="1"></textarea></label>
</fieldset>
<p class="actions"><button type="submit" name="commitrow" value="Commit">Save</button>
<a href="${link({ table: table.name })}">Cancel</a></p>
</form>
</main>`,
  );
}

function rowLine(row: StoredRow, table: StoredTable, columns: readonly string[], place: number): string {
  const values = new Map(row.cells);
  const cells = columns.map((column) => {
    const value = values.get(column) ?? '';
    return value === '' ? '<td></td>' : `<td${coded(value)}><div dir="auto">${shown(value)}</div></td>`;
  });
  const key = survivesBrowser(row.pk) ? `pk_${escapeMarkup(row.pk)}` : `pk-base64_${base64(row.pk)}`;
  const edit = link({ table: table.name, edittable: 'Edit Table', pk: row.pk });
  return `<tr><td><input type="checkbox" name="item_${place}" value="${key}" aria-label="Mark ${shown(row.pk)}"></td><td${coded(row.pk)}><div dir="auto">${shown(row.pk)}</div></td>${cells.join('')}<td><a href="${edit}">Edit</a></td></tr>\n`;
}

/** A browser gives back neither what markup cannot hold nor, in the name of a field, ends of lines. */
function cellField(column: string, value: string): string {
  if (!survivesBrowser(column) || !fitsMarkup(value))
    return `<p class="dim">${shown(column)}: cannot be edited in a browser and stays as it is</p>`;
  const rows = Math.min(12, Math.max(1, value.split(/\r\n|\r|\n/).length, Math.ceil(value.length / 80)));
  // The first line end in a text area is not part of it.
  return `<label>${shown(column)}<textarea name="col_${escapeMarkup(column)}" dir="auto" rows="${rows}">\n${shown(value)}</textarea></label>`;
}

function choiceForm({ table, choice }: TableView): string {
  // The table's name cannot stand in a form that is sent by GET where a browser would change it.
  if (!survivesBrowser(table.name)) return '';
  const count = choice.count === Number.POSITIVE_INFINITY ? 'all' : String(choice.count ?? 'all');
  return `<form class="search" role="search" method="get" action="${PATH}">
<input type="hidden" name="table" value="${escapeMarkup(table.name)}">
<label class="query">Rows with<input type="search" name="search" value="${escapeMarkup(choice.search ?? '')}" autocomplete="off"></label>
${countSelect(count)}
<button type="submit">Show</button>
</form>`;
}

function countSelect(chosen: string): string {
  const counts = COUNTS.includes(chosen) ? COUNTS : [chosen, ...COUNTS];
  const options = counts.map(
    (count) => `<option value="${count}"${count === chosen ? ' selected' : ''}>${count}</option>`,
  );
  return `<label class="count">At most<select name="count">\n${options.join('\n')}\n</select></label>`;
}

function newTableForm(): string {
  return `<details><summary>New table</summary>
<form class="fields" method="post" action="${PATH}">
<label>Table<input name="table" maxlength="500" required autocomplete="off"></label>
<label>First column<input name="newcolumn" maxlength="500" required autocomplete="off"></label>
<label>Its value in the first row<textarea name="newvalue" rows="1"></textarea></label>
<input type="hidden" name="page" value="true">
<button type="submit" name="commitrow" value="Commit">Create</button>
</form></details>`;
}

function dropForm(table: StoredTable): string {
  return `<details><summary>Delete this table…</summary>
<form method="post" action="${link({ table: table.name })}">
<button class="quiet" type="submit" name="deletetable" value="Delete Table">Delete ${shown(table.name)} with ${counted(table.rows, 'row')}</button>
</form></details>`;
}

function heading(): string {
  return `<header><h1><a href="/">peersync search</a> · <a href="${PATH}">tables</a></h1></header>`;
}

/** The address of a page about a table, for an attribute. */
function link(parameters: Readonly<Record<string, string | undefined>>): string {
  const pairs = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  return escapeMarkup(`${PATH}?${pairs.join('&')}`);
}

/** Text as it is read in a page. */
function shown(text: string): string {
  return escapeMarkup(text).replaceAll('\r', '&#13;');
}

/** What a page cannot show stands beside it in base64, for programs. */
function coded(text: string): string {
  return fitsMarkup(text) ? '' : ` data-base64="${base64(text)}"`;
}
