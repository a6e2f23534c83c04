import type { Dialect } from './dialect.js';
import { standard } from './standard.js';
import { yacy } from './yacy.js';

/**
 * All dialects, by name: one line each. Detection asks for the pages of each, in this order. The
 * specification comes last, because any server can seem to follow it.
 */
export const DIALECTS = {
  yacy,
  standard,
} as const satisfies DialectTable;

/** Dialects by their names. */
export type DialectTable = Readonly<Record<string, Dialect>>;

/** Whether a dialect of this program has this name. A state on disk may have another one. */
export function isDialect(name: string): name is keyof typeof DIALECTS {
  return Object.hasOwn(DIALECTS, name);
}

/** Returns the dialect with this name. @throws TypeError if there is none */
export function dialectNamed(name: string, dialects: DialectTable = DIALECTS): Dialect {
  const dialect = Object.hasOwn(dialects, name) ? dialects[name] : undefined;
  if (dialect !== undefined) return dialect;
  throw new TypeError(`no dialect has the name ${name}: ${Object.keys(dialects).join(', ')} have`);
}
