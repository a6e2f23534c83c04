const DURATION_UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const;

/** The pattern of a duration, largest unit first. Editors get it through the JSON Schema. */
export const DURATION_PATTERN = `^\\s*(?=\\d)${DURATION_UNITS.map(([unit]) => `(?:(\\d+(?:\\.\\d+)?)\\s*${unit}\\s*)?`).join('')}$`;
/** The pattern of a size. Editors get it through the JSON Schema. */
export const SIZE_PATTERN = '^\\s*(\\d+(?:\\.\\d+)?)\\s*(?:([KkMmGgTt])([Ii]?))?[Bb]\\s*$';

const durationForm = new RegExp(DURATION_PATTERN);
const sizeForm = new RegExp(SIZE_PATTERN);

/**
 * Parses `250ms`, `2s`, `15m`, `1h30m`, `7d`. Units go from days down to milliseconds, each at most
 * once. A number needs a unit.
 *
 * @returns ms; undefined if the text is no duration
 */
export function parseDuration(text: string): number | undefined {
  const parts = durationForm.exec(text);
  if (!parts) return undefined;
  return wholeOrUndefined(
    DURATION_UNITS.reduce((sum, [, factor], i) => sum + Number(parts[i + 1] ?? 0) * factor, 0),
  );
}

/** Formats a duration in ms so that `parseDuration` can read it: `1h30m`, `250ms`, `0s`. */
export function formatDuration(ms: number): string {
  return unitsOf(ms).join('') || '0s';
}

/** Formats a duration in ms for a person, in its two largest units: `2m 10s`, `1d 4h`, `350ms`. */
export function durationText(ms: number): string {
  if (ms < 999.5) return `${Math.max(0, Math.round(ms))}ms`;
  const units = unitsOf(Math.round(ms / 1000) * 1000);
  const first = units.findIndex((unit) => unit !== '');
  return units
    .slice(first, first + 2)
    .join(' ')
    .trim();
}

/**
 * Formats a moment in local time: `2026-11-21 10:04:12`.
 *
 * @param at ms since the epoch, by the wall clock
 */
export function wallClockText(at: number): string {
  const date = new Date(at);
  const text = (parts: number[], between: string) =>
    parts.map((part) => String(part).padStart(2, '0')).join(between);
  const day = text([date.getFullYear(), date.getMonth() + 1, date.getDate()], '-');
  return `${day} ${text([date.getHours(), date.getMinutes(), date.getSeconds()], ':')}`;
}

/**
 * Parses `8 MiB`, `64 KiB`, `20 MB`, `500 B`, and whole numbers of bytes. A text needs a unit,
 * because `"8"` is ambiguous.
 *
 * @returns bytes; undefined if the value is no size
 */
export function parseSize(value: string | number): number | undefined {
  if (typeof value === 'number')
    return Number.isInteger(value) ? wholeOrUndefined(value) : undefined;
  const [found, amount, prefix = '', binary] = sizeForm.exec(value) ?? [];
  if (found === undefined) return undefined;
  const power = ['', 'k', 'm', 'g', 't'].indexOf(prefix.toLowerCase());
  return wholeOrUndefined(Number(amount) * (binary ? 1024 : 1000) ** power);
}

/** Formats a size in bytes for a person, to one decimal: `500 B`, `1.5 KiB`, `8 MiB`. */
export function formatBytes(size: number): string {
  let amount = size;
  for (const name of ['B', 'KiB', 'MiB', 'GiB', 'TiB']) {
    // 1023.95 would become 1024.0, so the next unit is used.
    if (amount < 1023.95 || name === 'TiB')
      return `${Number(amount.toFixed(name === 'B' ? 0 : 1))} ${name}`;
    amount /= 1024;
  }
  return `${size} B`;
}

/** Returns the count of each unit, largest first; empty texts for units with none. */
function unitsOf(ms: number): string[] {
  let rest = Math.max(0, Math.round(ms));
  return DURATION_UNITS.map(([unit, factor]) => {
    const count = Math.floor(rest / factor);
    rest -= count * factor;
    return count === 0 ? '' : `${count}${unit}`;
  });
}

function wholeOrUndefined(value: number): number | undefined {
  const whole = Math.round(value);
  return Number.isSafeInteger(whole) && whole >= 0 ? whole : undefined;
}
