/** A duration in whole milliseconds. */
export type Milliseconds = number & { readonly [unit]: 'ms' };
/** A size in whole bytes. */
export type Bytes = number & { readonly [unit]: 'byte' };
declare const unit: unique symbol;

const DURATION_UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const;

const SIZE_UNITS: Readonly<Record<string, number>> = {
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
};

/** How a duration is written, largest unit first; editors get it through the JSON Schema. */
export const DURATION_PATTERN =
  '^\\s*(?=\\d)(?:(\\d+(?:\\.\\d+)?)\\s*d\\s*)?(?:(\\d+(?:\\.\\d+)?)\\s*h\\s*)?(?:(\\d+(?:\\.\\d+)?)\\s*m\\s*)?' +
  '(?:(\\d+(?:\\.\\d+)?)\\s*s\\s*)?(?:(\\d+(?:\\.\\d+)?)\\s*ms\\s*)?$';
/** How a size is written; editors get it through the JSON Schema. */
export const SIZE_PATTERN = '^\\s*(\\d+(?:\\.\\d+)?)\\s*([KkMmGgTt][Ii]?[Bb]|[Bb])\\s*$';

const durationForm = new RegExp(DURATION_PATTERN);
const sizeForm = new RegExp(SIZE_PATTERN);

/** Marks a number as milliseconds; the caller knows that it is. */
export function milliseconds(value: number): Milliseconds {
  return value as Milliseconds;
}

/** Marks a number as bytes; the caller knows that it is. */
export function bytes(value: number): Bytes {
  return value as Bytes;
}

/**
 * Reads `250ms`, `2s`, `15m`, `1h30m`, `7d`: units fall from days to milliseconds, each at most once. Undefined when
 * the text is no duration; a number without a unit is none.
 */
export function parseDuration(text: string): Milliseconds | undefined {
  const parts = durationForm.exec(text);
  if (!parts) return undefined;
  const total = DURATION_UNITS.reduce((sum, [, factor], i) => sum + Number(parts[i + 1] ?? 0) * factor, 0);
  return safe(Math.round(total)) as Milliseconds | undefined;
}

/** Writes a duration so that `parseDuration` reads it back (in whole milliseconds): `1h30m`, `250ms`, `0s`. */
export function formatDuration(ms: number): string {
  let rest = Math.max(0, Math.round(ms));
  let text = '';
  for (const [name, factor] of DURATION_UNITS) {
    const count = Math.floor(rest / factor);
    if (count === 0) continue;
    text += `${count}${name}`;
    rest -= count * factor;
  }
  return text === '' ? '0s' : text;
}

/**
 * Reads `8 MiB`, `64 KiB`, `20 MB`, `500 B` and whole numbers of bytes. Undefined when it is no size; text needs a
 * unit, because `"8"` may have meant anything.
 */
export function parseSize(value: string | number): Bytes | undefined {
  if (typeof value === 'number') return safe(value) as Bytes | undefined;
  const [, amount, name] = sizeForm.exec(value) ?? [];
  const factor = SIZE_UNITS[name?.toLowerCase() ?? ''];
  return factor === undefined ? undefined : (safe(Math.round(Number(amount) * factor)) as Bytes | undefined);
}

/** Writes a size for a person, to one decimal: `500 B`, `1.5 KiB`, `8 MiB`. */
export function formatBytes(size: number): string {
  let amount = size;
  for (const name of ['B', 'KiB', 'MiB', 'GiB', 'TiB']) {
    // 1023.95 would be shown as 1024.0: the next unit says it better.
    if (amount < 1023.95 || name === 'TiB') return `${Number(amount.toFixed(name === 'B' ? 0 : 1))} ${name}`;
    amount /= 1024;
  }
  return `${size} B`;
}

function safe(value: number): number | undefined {
  return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}
