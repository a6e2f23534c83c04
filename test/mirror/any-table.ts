import fc from 'fast-check';
import type { TableRow } from '../../src/peer/table.js';

/** Texts that are difficult for formats. */
const AWKWARD = [
  ...'"\',;\n\r\t \0\u0001\u001f\u007f\u0085<&>=+-@\\/{}[]\u2028\ufeff\ufffe\uffff\ufffd\u{1f389}\u202e_7a',
  '\r\n',
  ']]>',
  '&amp;',
  '<!--',
  'null',
  '\ud800',
  '\udc00',
  'שלום',
  'e\u0301',
  'pk',
  '__proto__',
];

const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.array(fc.constantFrom(...AWKWARD), { maxLength: 6 }).map((parts) => parts.join('')),
  fc.array(fc.nat(0xffff), { maxLength: 6 }).map((units) => String.fromCharCode(...units)),
);

/** Returns the text as it comes back: a lone surrogate is no text. */
export function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}

const NAMES = 'pk pk_ pk__ __proto__ constructor 7 10 9 toString encoding col'.split(' ');
export const anyName: fc.Arbitrary<string> = fc.oneof(anyText, fc.constantFrom(...NAMES));

export interface SomeTable {
  readonly columns: readonly string[];
  readonly rows: readonly TableRow[];
}

export const anyTable: fc.Arbitrary<SomeTable> = fc
  .uniqueArray(anyName.map(wellFormed), { maxLength: 6 })
  .chain((columns) =>
    fc.record({
      columns: fc.constant(columns),
      rows: fc.uniqueArray(rowOf(columns), { maxLength: 8, selector: ({ pk }) => wellFormed(pk) }),
    }),
  );

function rowOf(columns: readonly string[]): fc.Arbitrary<TableRow> {
  const cell = (column: string) =>
    fc.option(
      anyText.map((text) => [column, text] as const),
      { nil: undefined },
    );
  const cells = fc
    .tuple(...columns.map(cell))
    .map((all) => new Map(all.filter((each) => each !== undefined)));
  return fc.record({ pk: anyText, cells });
}

/** The rows in groups of a size, as a peer tells them. */
export async function* groups(
  rows: Iterable<TableRow>,
  size = 3,
): AsyncGenerator<readonly TableRow[], void> {
  const all = [...rows];
  for (let at = 0; at < all.length; at += size) yield all.slice(at, at + size);
}

export async function textOf(pieces: AsyncIterable<string>): Promise<string> {
  const texts: string[] = [];
  for await (const piece of pieces) texts.push(piece);
  // The text as it is on disk: lone surrogates are replaced.
  return Buffer.from(texts.join('')).toString();
}

export async function allRows(rows: AsyncIterable<readonly TableRow[]>): Promise<TableRow[]> {
  const all: TableRow[] = [];
  for await (const group of rows) all.push(...group);
  return all;
}

/** Rows as plain lists, for comparison: the key, then each cell of the columns, absent as empty. */
export function plain({ columns, rows }: SomeTable): string[][] {
  return rows.map(({ pk, cells }) =>
    [pk, ...columns.map((column) => cells.get(column) ?? '')].map(wellFormed),
  );
}
