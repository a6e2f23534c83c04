import { Refusal } from './answer.js';
import type { RequestForm } from './form.js';
import { LONGEST_NAME, type RowChoice } from './table-store.js';

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
