import { wellFormed } from '../lib/text.js';
import type { TableRow } from '../peer/table.js';
import { counted, displayWidth, fitted, safe } from './text.js';

const KEY = 'pk';
const GAP = '  ';
/** No column needs more to be recognised; `--format csv` has the rest. */
const WIDEST = 48;
const NARROWEST = 6;
/** More of a cell is never shown, so no more of it is looked at. */
const LOOKED_AT = 200;
/** Rows that decide how wide the columns are. */
const SAMPLE_ROWS = 200;

/** Of a terminal that does not tell its width. */
const USUAL_WIDTH = 80;

/** The width for `tableText` of a stream; what is no terminal has as much room as one likes. */
export function terminalWidth(out: NodeJS.WriteStream): number | undefined {
  return out.isTTY ? out.columns || USUAL_WIDTH : undefined;
}

interface Column {
  readonly name: string;
  readonly width: number;
  readonly align: 'left' | 'right';
  readonly of: (row: TableRow) => string;
}

/**
 * A table for a person, piece by piece: columns under each other, each as wide as its cells among the first rows and the terminal
 * allow, longer cells cut, keys never. Columns that have no room are named at the end.
 *
 * @param width of the terminal, in columns; unlimited where it is undefined
 */
export async function* tableText(
  columns: readonly string[],
  rows: AsyncIterable<readonly TableRow[]> | Iterable<readonly TableRow[]>,
  width = Number.POSITIVE_INFINITY,
): AsyncGenerator<string> {
  let layout: Layout | undefined;
  let group: TableRow[] = [];
  let count = 0;
  const text = () => {
    const isFirst = layout === undefined;
    layout ??= layoutOf(columns, group, width);
    const shown = lines(layout, group);
    group = [];
    return isFirst ? head(layout) + shown : shown;
  };
  for await (const next of rows) {
    count += next.length;
    group.push(...next);
    if (layout !== undefined || group.length >= SAMPLE_ROWS) yield text();
  }
  yield text();
  if (layout !== undefined) yield foot(layout, count);
}

interface Layout {
  /** The key first. */
  readonly shown: readonly Column[];
  readonly hidden: readonly string[];
}

function layoutOf(names: readonly string[], sample: readonly TableRow[], width: number): Layout {
  const natural = [KEY, ...names].map((name, i): Column => {
    const of = ({ cells, pk }: TableRow) => shownText(i === 0 ? pk : (cells.get(name) ?? ''));
    const cells = sample.map(of).filter((cell) => cell !== '');
    const isNumeric = cells.length > 0 && cells.every((cell) => /^[-+]?\d+(?:[.,]\d+)*$/.test(cell));
    const widest = [shownText(name), ...cells].map(displayWidth).reduce((a, b) => Math.max(a, b), 1);
    return { name, width: Math.min(WIDEST, widest), align: isNumeric ? 'right' : 'left', of };
  });
  let shown = natural;
  for (let most = WIDEST; most >= NARROWEST && total(shown) > width; most -= 1)
    shown = natural.map((column, i) =>
      i === 0 ? column : { ...column, width: Math.min(most, column.width) },
    );
  while (shown.length > 1 && total(shown) > width) shown = shown.slice(0, -1);
  return { shown, hidden: names.slice(shown.length - 1) };
}

function total(columns: readonly Column[]): number {
  return columns.reduce((sum, column) => sum + column.width + GAP.length, -GAP.length);
}

function head({ shown }: Layout): string {
  const names = shown.map(({ name, width, align }) => fitted(shownText(name), width, align));
  const rules = shown.map(({ width }) => '─'.repeat(width));
  return `${names.join(GAP).trimEnd()}\n${rules.join(GAP)}\n`;
}

function lines({ shown }: Layout, rows: readonly TableRow[]): string {
  const line = (row: TableRow) =>
    shown.map(({ align, of, width }, i) => {
      const text = of(row);
      // A key that is cut could not be named to another command.
      return fitted(text, i === 0 ? Math.max(width, displayWidth(text)) : width, align);
    });
  return rows.map((row) => `${line(row).join(GAP).trimEnd()}\n`).join('');
}

function foot({ hidden }: Layout, count: number): string {
  const more =
    hidden.length === 0
      ? ''
      : `; no room for ${counted(hidden.length, 'column')}: ${hidden.map((name) => shownText(name)).join(', ')} (\`table get --format json\` has all)`;
  return `${count === 0 ? 'no rows' : counted(count, 'row')}${more}\n`;
}

/** The beginning of a text in one line, without anything that a terminal would act on. */
function shownText(text: string): string {
  const begin = text.length > LOOKED_AT ? `${text.slice(0, LOOKED_AT)}…` : text;
  return safe(wellFormed(begin).replace(/\r?\n/g, '\\n').replaceAll('\t', '\\t'));
}
