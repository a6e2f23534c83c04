import type { Dialect, DialectName } from './dialect.js';
import { standard } from './standard.js';
import { yacy } from './yacy.js';

/** All dialects that are spoken, by name. */
export const DIALECTS: Readonly<Record<DialectName, Dialect>> = { standard, yacy };
