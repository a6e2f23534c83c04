import displayWidth from 'string-width';
import { counted, numberText, escapeInvisible as safe } from '../lib/text.js';
import { durationText, wallClockText } from '../lib/units.js';
import type { TableRow } from '../peer/table.js';

export { counted, displayWidth, numberText, safe };

const FEW = 3;

/** The first few of some names, made safe. */
export function fewOf(names: readonly string[]): string {
  return [...names.slice(0, FEW).map(safe), ...(names.length > FEW ? ['…'] : [])].join(', ');
}

/** A time for a person: the date and time here, and how long ago or ahead that is. */
export function timeText(at: number, now: number): string {
  const away = at > now ? `in ${durationText(at - now)}` : `${durationText(now - at)} ago`;
  return `${wallClockText(at)} (${away})`;
}

/**
 * When something is due, for a person: "now" from that moment on, for a time that is over is no
 * answer to "when".
 */
export function dueText(at: number, now: number): string {
  return at <= now ? 'now' : timeText(at, now);
}

/** The time of day here. */
export function clockText(at: number): string {
  return wallClockText(at).slice(-8);
}

/**
 * Rows under each other, each column as wide as its widest cell; numbers to the right.
 *
 * @param room in columns of the terminal: the widest cells are cut until all fits
 */
export function columns(
  rows: readonly (readonly (string | number)[])[],
  room = Number.POSITIVE_INFINITY,
): string[] {
  const texts = rows.map((row) =>
    row.map((cell) => (typeof cell === 'number' ? numberText(cell) : cell)),
  );
  const widths = (texts[0] ?? []).map((_, i) =>
    Math.max(...texts.map((row) => displayWidth(row[i] ?? ''))),
  );
  const gaps = GAP.length * (widths.length - 1);
  for (let over = widths.reduce((sum, width) => sum + width, gaps) - room; over > 0; over -= 1) {
    const widest = widths.indexOf(Math.max(...widths));
    if ((widths[widest] ?? 0) <= NARROWEST) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return rows.map((row, at) =>
    widths
      .map((width, i) =>
        fitted(texts[at]?.[i] ?? '', width, typeof row[i] === 'number' ? 'right' : 'left'),
      )
      .join(GAP)
      .trimEnd(),
  );
}

/**
 * Breaks lines that are longer than `width` at blanks. The continuation is indented to the text of
 * its line, or less if there is little room. A terminal of a few columns breaks lines itself.
 */
export function wrapped(lines: string[], width = Number.POSITIVE_INFINITY): string[] {
  if (width < NARROWEST) return lines;
  return lines.flatMap((line) => {
    const before = /^(?:\S+ {2,}| *)/.exec(line)?.[0] ?? '';
    const indent = ' '.repeat(Math.min(before.length, Math.floor(width / 2)));
    const broken: string[] = [];
    let rest = line;
    while (displayWidth(rest) > width) {
      const begin = beginOf(rest, width);
      const blank = begin.lastIndexOf(' ');
      const at = blank > indent.length ? blank : begin.length;
      broken.push(rest.slice(0, at).trimEnd());
      rest = indent + rest.slice(at).trimStart();
    }
    return [...broken, rest];
  });
}

/** A line for each value that is there, behind its name; values are made safe. */
export function named(
  rows: readonly (readonly [name: string, value: string | undefined])[],
): string[] {
  const shown = rows.filter(([, value]) => value !== undefined && value !== '');
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown.map(([name, value = '']) => `${name.padEnd(width)}  ${safe(value)}`);
}

const PLAIN = /^[\x20-\x7e]*$/;
/**
 * The text in `width` columns: cut with an ellipsis, never within a character, and filled up with
 * blanks.
 */
export function fitted(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const cut = displayWidth(text) <= width ? text : `${beginOf(text, width - 1)}…`;
  const blanks = ' '.repeat(Math.max(0, width - displayWidth(cut)));
  return align === 'left' ? cut + blanks : blanks + cut;
}

function beginOf(text: string, width: number): string {
  if (PLAIN.test(text)) return text.slice(0, width);
  let begin = '';
  let left = width;
  // Made where it is needed: its tables take 3 MB and 8 ms.
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    left -= displayWidth(segment);
    if (left < 0) break;
    begin += segment;
  }
  return begin;
}

const KEY = 'pk';
const GAP = '  ';
/** No column needs more to be recognised; `--format csv` has the rest. */
const WIDEST = 48;
const NARROWEST = 6;
/** More of a cell is never shown, so no more of it is looked at. */
const LOOKED_AT = 200;

/** Returns the width of a terminal. Some terminals do not know theirs and report 0. */
export function columnsOf(stream: { readonly columns?: number | undefined }): number {
  return stream.columns || 80;
}

/** Returns the width of a stream for `tableText`; undefined (unlimited) if it is no terminal. */
export function terminalWidth(out: NodeJS.WriteStream): number | undefined {
  return out.isTTY ? columnsOf(out) : undefined;
}

interface Column {
  readonly name: string;
  readonly width: number;
  readonly align: 'left' | 'right';
  readonly of: (row: TableRow) => string;
}

/**
 * A table for a person, piece by piece: columns under each other, each as wide as its cells in the
 * first group of rows and the terminal allow, longer cells cut, keys never. Columns that have no
 * room are named at the end.
 *
 * @param width of the terminal, in columns; unlimited where it is undefined
 */
export async function* tableText(
  names: readonly string[],
  rows: AsyncIterable<readonly TableRow[]> | Iterable<readonly TableRow[]>,
  width = Number.POSITIVE_INFINITY,
): AsyncGenerator<string> {
  let shown: readonly Column[] | undefined;
  let count = 0;
  for await (const group of rows) {
    if (shown === undefined) {
      shown = layoutOf(names, group, width);
      yield head(shown);
    }
    const columns = shown;
    count += group.length;
    yield group.map((row) => lineOf(columns, (column) => column.of(row))).join('');
  }
  if (shown === undefined) {
    shown = layoutOf(names, [], width);
    yield head(shown);
  }
  const hidden = names.slice(shown.length - 1).map(shownText);
  const more = `; no room for ${counted(hidden.length, 'column')}: ${hidden.join(', ')} (\`--format json\` has all)`;
  yield `${count === 0 ? 'no rows' : counted(count, 'row')}${hidden.length === 0 ? '' : more}\n`;
}

/** The columns that have room, the key first. */
function layoutOf(names: readonly string[], sample: readonly TableRow[], width: number): Column[] {
  const natural = [KEY, ...names].map((name, i): Column => {
    const of = ({ cells, pk }: TableRow) => shownText(i === 0 ? pk : (cells.get(name) ?? ''));
    const cells = sample.map(of).filter((cell) => cell !== '');
    const isNumeric =
      cells.length > 0 && cells.every((cell) => /^[-+]?\d+(?:[.,]\d+)*$/.test(cell));
    const widest = [shownText(name), ...cells].reduce(
      (most, text) => Math.max(most, displayWidth(text)),
      1,
    );
    return { name, width: Math.min(WIDEST, widest), align: isNumeric ? 'right' : 'left', of };
  });
  const total = (columns: readonly Column[]) =>
    columns.reduce((sum, column) => sum + column.width + GAP.length, -GAP.length);
  let shown = natural;
  for (let most = WIDEST; most >= NARROWEST && total(shown) > width; most -= 1)
    shown = natural.map((column, i) =>
      i === 0 ? column : { ...column, width: Math.min(most, column.width) },
    );
  while (shown.length > 1 && total(shown) > width) shown = shown.slice(0, -1);
  return shown;
}

function head(columns: readonly Column[]): string {
  const rule = columns.map(({ width }) => '─'.repeat(width)).join(GAP);
  return `${lineOf(columns, ({ name }) => shownText(name))}${rule}\n`;
}

function lineOf(columns: readonly Column[], textOf: (column: Column) => string): string {
  const cells = columns.map((column, i) => {
    const text = textOf(column);
    // A key that is cut could not be named to another command.
    return fitted(
      text,
      i === 0 ? Math.max(column.width, displayWidth(text)) : column.width,
      column.align,
    );
  });
  return `${cells.join(GAP).trimEnd()}\n`;
}

/** The beginning of a text in one line, without anything that a terminal would act on. */
function shownText(text: string): string {
  const begin = text.length > LOOKED_AT ? `${text.slice(0, LOOKED_AT)}…` : text;
  return safe(begin.toWellFormed().replace(/\r?\n/g, '\\n').replaceAll('\t', '\\t'));
}
