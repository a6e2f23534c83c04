/**
 * A cell that a spreadsheet takes for a formula, or one that was made not to be: different cells stay different. The
 * full-width signs are taken for plain ones by some.
 */
const FORMULA = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** Puts a ' before what a spreadsheet would take for a formula, so that it shows the text instead. */
export function neutralised(cell: string): string {
  return FORMULA.test(cell) ? `'${cell}` : cell;
}
