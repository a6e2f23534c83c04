import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../lib/atomic.js';
import type { Clock } from '../lib/clock.js';
import { messageOf, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { KeptDurations } from './durations.js';
import type { KeptSlot } from './recent-spread.js';
import type { Sample } from './time-to-search.js';
import type { KeptWatches } from './watches.js';

/** What outlives a restart. Nothing depends on it but figures. */
export interface Kept {
  readonly watches: KeptWatches;
  readonly samples: readonly Sample[];
  readonly collections: Readonly<Record<string, KeptDurations>>;
  /** In ms since the epoch; undefined where nothing ever was. */
  readonly lastConfirmedAt?: number | undefined;
}

const NAME = 'figures.json';
const VERSION = 1;

/** Reads what an earlier run kept; undefined when there is nothing, or nothing that can be used. */
export async function readKept(dir: string, log: Logger): Promise<Kept | undefined> {
  try {
    await sweep(dir);
    const kept: unknown = JSON.parse(await readFile(join(dir, NAME), 'utf8'));
    if (isKept(kept)) return kept;
    log.debug({ dir }, 'the figures that were kept are damaged or of another version, and begin anew');
  } catch (error) {
    if (systemCode(error) !== 'ENOENT')
      log.debug({ dir }, `the figures that were kept cannot be read and begin anew: ${messageOf(error)}`);
  }
  return undefined;
}

/** Keeps it, whole or not at all. Collection by collection, for of many it is some megabytes. */
export async function writeKept(
  dir: string,
  { watches, samples, collections, lastConfirmedAt }: Kept,
  clock: Clock,
): Promise<void> {
  const parts: string[] = [];
  for (const [collection, durations] of Object.entries(collections)) {
    parts.push(`${JSON.stringify(collection)}:${JSON.stringify(durations)}`);
    await clock.sleep(0);
  }
  const small = JSON.stringify({ version: VERSION, lastConfirmedAt, watches, samples });
  const text = `${small.slice(0, -1)},"collections":{${parts.join(',\n')}}}\n`;
  await writeFileAtomic(join(dir, NAME), text);
}

/** A kill in the middle leaves an unfinished one. */
async function sweep(dir: string): Promise<void> {
  for (const name of await readdir(dir))
    if (name.startsWith(`${NAME}.`) && name.endsWith('.tmp')) await rm(join(dir, name), { force: true });
}

function isKept(value: unknown): value is Kept & { readonly version: number } {
  if (!isRecord(value) || value.version !== VERSION) return false;
  const { watches, samples, collections, lastConfirmedAt = 0 } = value;
  return (
    isNumber(lastConfirmedAt) &&
    isRecord(watches) &&
    Object.values(watches).every((terms) => isList(terms, (term) => isList(term, isNumber))) &&
    isList(samples, isSample) &&
    isRecord(collections) &&
    Object.values(collections).every(
      (kept) => isRecord(kept) && isList(kept.hour, isSlot) && isList(kept.day, isSlot),
    )
  );
}

function isSlot(value: unknown): value is KeptSlot {
  return Array.isArray(value) && value.length === 2 && isNumber(value[0]) && isList(value[1], isCount);
}

function isSample(value: unknown): value is Sample {
  if (!isRecord(value)) return false;
  const { p50Ms = 0, p95Ms = 0 } = value;
  return [value.at, value.confirmed, value.accepted, value.waiting, p50Ms, p95Ms].every(isNumber);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isList(value: unknown, isOne: (one: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isOne);
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

function isCount(value: unknown): boolean {
  return isNumber(value) && Number.isInteger(value) && value >= 0 && value < 2 ** 32;
}
