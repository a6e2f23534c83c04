import { parseDuration, parseSize } from '../lib/units.js';
import { UsageError } from './usage.js';

// Declarations of options and arguments, for `define`.

/** An option that is there or not. */
export const flag = (describe: string) => ({ type: 'boolean', default: false, describe }) as const;
/** An option that is set unless `--no-…` is given. */
export const unlessNo = (describe: string) =>
  ({ type: 'boolean', default: true, describe }) as const;
/** An option or argument with a value. */
export const value = (describe: string) =>
  ({ type: 'string', requiresArg: true, describe }) as const;
/** An option with a usual value. */
export const preset = (usual: string, describe: string) =>
  ({ ...value(describe), default: usual }) as const;
/** An option or argument that has to be given. */
export const needed = (describe: string) => ({ ...value(describe), demandOption: true }) as const;
/** An option that takes one of these words. */
export const oneOf = <const T extends string>(choices: readonly T[], describe: string) =>
  ({ choices, requiresArg: true, describe }) as const;
/** Any number of arguments. */
export const several = (describe: string) =>
  ({ type: 'string', array: true, default: [] as readonly string[], describe }) as const;

// Parsers of the values of options. Each throws a UsageError that shows the value.

const parser = (parse: (text: string) => number | undefined, expected: string) => {
  return (option: string, text: string): number => {
    const value = parse(text);
    if (value === undefined)
      throw new UsageError(`${option}: received "${text}".`, `Give ${expected}.`);
    return value;
  };
};
export const wholeNumber = parser(
  (text) => (/^0*[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined),
  'a whole number from 1 on',
);
export const duration = parser(parseDuration, 'a duration such as "30s" or "10m"');
export const size = parser(parseSize, 'a size such as "64 KiB" or "1 GiB"');

const LONGEST_NAME = 500;

/** The name of a table or column, or the key of a row. */
export function name(of: string, text: string): string {
  if (text !== '' && text.length <= LONGEST_NAME) return text;
  const received = text === '' ? 'an empty text' : `${text.length} characters`;
  throw new UsageError(`${of}: received ${received}.`, `Give 1 to ${LONGEST_NAME} characters.`);
}
