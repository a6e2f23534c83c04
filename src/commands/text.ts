import { durationText } from '../lib/units.js';

export { counted, numberText } from '../lib/text.js';

/** A time for a person: the date and time here, and how long ago or ahead that is. */
export function timeText(at: number, now: number): string {
  const date = new Date(at);
  const two = (n: number) => String(n).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const away = at > now ? `in ${durationText(at - now)}` : `${durationText(now - at)} ago`;
  return `${day} ${time} (${away})`;
}

/** When something is due, for a person: "now" from that moment on, for a time that is over is no answer to "when". */
export function dueText(at: number, now: number): string {
  return at <= now ? 'now' : timeText(at, now);
}

/** The time of day here. */
export function clockText(at: number): string {
  const date = new Date(at);
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':');
}

/** A path or name for a terminal: control characters, which could write anything there, are shown as escapes. */
export function safe(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (c) => {
    const code = c.charCodeAt(0);
    return code < 256
      ? `\\x${code.toString(16).padStart(2, '0')}`
      : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

/** Rows under each other, each column as wide as its widest cell; numbers to the right. */
export function columns(rows: readonly (readonly (string | number)[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows)
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, String(cell).length);
    });
  return rows.map((row) =>
    row
      .map((cell, i) => {
        const width = widths[i] ?? 0;
        return typeof cell === 'number' ? String(cell).padStart(width) : cell.padEnd(width);
      })
      .join('  ')
      .trimEnd(),
  );
}

/** A line for each value that is there, behind its name; values are made safe. */
export function named(rows: readonly (readonly [name: string, value: string | undefined])[]): string[] {
  const shown = rows.filter(([, value]) => value !== undefined && value !== '');
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown.map(([name, value = '']) => `${name.padEnd(width)}  ${safe(value)}`);
}
