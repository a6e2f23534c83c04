import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../lib/errors.js';

/** How the lines of a file are framed. */
export const FORMAT_VERSION = 1;
/** What the lines mean; raised whenever a line of before would be misread. */
export const SCHEMA_VERSION = 2;

/** Opens every file: what it is, and how to read the rest. */
export interface Header {
  readonly peersync: 'journal' | 'snapshot';
  readonly format: number;
  readonly schema: number;
  readonly generation: number;
  /** In ms since the epoch. */
  readonly created: number;
}

/** Closes a snapshot: without it, or with another count or sum, the snapshot is damaged. */
export interface Footer {
  /** Lines between the header and this. */
  readonly records: number;
  /** Of the checksums of all lines before, in order. */
  readonly sum: number;
}

export function newHeader(kind: Header['peersync'], generation: number, created: number): Header {
  return { peersync: kind, format: FORMAT_VERSION, schema: SCHEMA_VERSION, generation, created };
}

/**
 * The files of a state directory. Generation n is the changes in `journal-n`, which follow on those of the generation
 * before or, where there is one, on `snapshot-n`. Generation 1 follows on nothing.
 */
export interface StateFiles {
  /** Generations that have a journal, oldest first. */
  readonly journals: readonly number[];
  /** Generations that have a snapshot, oldest first. */
  readonly snapshots: readonly number[];
  /** Names of snapshots that were never finished. */
  readonly unfinished: readonly string[];
}

export function journalPath(dir: string, generation: number): string {
  return join(dir, `journal-${generation}`);
}

export function snapshotPath(dir: string, generation: number): string {
  return join(dir, `snapshot-${generation}`);
}

/** Lists them; a directory that does not exist has none. */
export async function listStateFiles(dir: string): Promise<StateFiles> {
  const names = await readdir(dir).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  return {
    journals: generations(names, /^journal-([1-9]\d*)$/),
    snapshots: generations(names, /^snapshot-([1-9]\d*)$/),
    unfinished: names.filter((name) => /^(journal|snapshot)-\d+\..*tmp$/.test(name)),
  };
}

function generations(names: readonly string[], pattern: RegExp): readonly number[] {
  return names
    .flatMap((name) => pattern.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

/** How files are opened; a parameter so that a test can let a disk fail. */
export type OpenFile = typeof open;
export const openFile: OpenFile = open;
