import type { Row } from './row.js';

/** How the lines of a file are framed. */
export const FORMAT_VERSION = 1;
/** What the rows mean; raised whenever a row of before would be misread. */
export const SCHEMA_VERSION = 1;

/** Turns a row of one schema version into rows of the next. */
export type Migration = (row: Row) => Row;

/** `MIGRATIONS[0]` leads from version 1 to 2, and so on. */
const MIGRATIONS: readonly Migration[] = [];

/** A function that brings rows written in schema version `from` up to the present one. */
export function migrationFrom(from: number, migrations: readonly Migration[] = MIGRATIONS): Migration {
  const steps = migrations.slice(from - 1);
  return (row) => steps.reduce((before, step) => step(before), row);
}

/** Opens every file: what it is, and how to read the rest. */
export interface Header {
  readonly peersync: 'journal' | 'snapshot';
  readonly format: number;
  readonly schema: number;
  readonly generation: number;
  /** In ms since the epoch. */
  readonly created: number;
}

export function newHeader(kind: Header['peersync'], generation: number, created: number): Header {
  return { peersync: kind, format: FORMAT_VERSION, schema: SCHEMA_VERSION, generation, created };
}

/** Closes a snapshot: without it, or with another count or sum, the snapshot is damaged. */
export interface Footer {
  readonly records: number;
  /** Of the checksums of all lines before, in order. */
  readonly sum: number;
}

export function isHeader(frame: unknown): frame is Header {
  return typeof frame === 'object' && frame !== null && 'peersync' in frame;
}

export function isFooter(frame: unknown): frame is Footer {
  return typeof frame === 'object' && frame !== null && 'sum' in frame;
}
