import { parseDuration, parseSize } from '../lib/units.js';
import { UsageError } from './context.js';

// What stands behind an option, read from its text; each throws UsageError with what was received.

export function wholeNumber(option: string, text: string): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (value < 1) throw new UsageError(`${option}: received "${text}".`, 'Give a whole number from 1 on.');
  return value;
}

export function duration(option: string, text: string): number {
  const value = parseDuration(text);
  if (value === undefined)
    throw new UsageError(`${option}: received "${text}".`, 'Give a duration such as "30s" or "10m".');
  return value;
}

export function size(option: string, text: string): number {
  const value = parseSize(text);
  if (value === undefined)
    throw new UsageError(`${option}: received "${text}".`, 'Give a size such as "64 KiB" or "1 GiB".');
  return value;
}

const LONGEST_NAME = 500;

/** The name of a table or column, or the key of a row. */
export function name(of: string, text: string): string {
  if (text !== '' && text.length <= LONGEST_NAME) return text;
  const received = text === '' ? 'an empty text' : `${text.length} characters`;
  throw new UsageError(`${of}: received ${received}.`, `Give 1 to ${LONGEST_NAME} characters.`);
}
