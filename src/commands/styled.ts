import { displayWidth, fitted } from './display-width.js';

export type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red';

/** A piece of a line, of one look. */
export type Span = string | { readonly text: string; readonly style: Style };

/** A line of a screen, before it is cut to its width. */
export type StyledLine = readonly Span[];

const CODES: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 };

export function styled(style: Style, text: string): Span {
  return { text, style };
}

/** The line as a terminal takes it, in at most so many columns. */
export function rendered(line: StyledLine, columns: number): string {
  let left = columns;
  let result = '';
  for (const span of line) {
    if (left <= 0) break;
    const text = typeof span === 'string' ? span : span.text;
    const width = displayWidth(text);
    const shown = width <= left ? text : fitted(text, left);
    left -= Math.min(width, left);
    result += typeof span === 'string' ? shown : `\x1b[${CODES[span.style]}m${shown}\x1b[0m`;
  }
  return result;
}

/** The line without its looks. */
export function plain(line: StyledLine): string {
  return line.map((span) => (typeof span === 'string' ? span : span.text)).join('');
}
