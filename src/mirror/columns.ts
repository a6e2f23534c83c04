import { compareByCodePoint } from '../lib/text.js';

/** Which columns a table is written with, in this order and without the key, and what became of those it had. */
export interface Columns {
  readonly written: readonly string[];
  /** To be remembered: those of the peer. A column that is only configured cannot be lost. */
  readonly remembered: readonly string[];
  /** Remembered, and wanted, but not shown any more. */
  readonly lost: readonly string[];
  /** Configured, and never shown. */
  readonly missing: readonly string[];
}

export interface ColumnFacts {
  readonly configured: readonly string[] | undefined;
  readonly remembered: readonly string[] | undefined;
  readonly shown: readonly string[];
  /** A table without rows may show no columns, and has lost none. */
  readonly isEmpty: boolean;
}

/** Columns stand as configured; else as they always did, with new ones behind them by code point. */
export function columnsOf({ configured, remembered = [], shown, isEmpty }: ColumnFacts): Columns {
  const isWanted = (column: string): boolean => configured === undefined || configured.includes(column);
  const before = remembered.filter(isWanted);
  const present = new Set(isEmpty ? [...before, ...shown] : shown);
  const known = new Set(before);
  const added = [...present]
    .filter((column) => isWanted(column) && !known.has(column))
    .sort(compareByCodePoint);
  const kept = [...before.filter((column) => present.has(column)), ...added];
  return {
    written: configured ?? kept,
    remembered: kept,
    lost: before.filter((column) => !present.has(column)),
    missing: (configured ?? []).filter((column) => !present.has(column) && !known.has(column)),
  };
}
