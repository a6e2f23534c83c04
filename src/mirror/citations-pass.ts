import type { Clock } from '../lib/clock.js';
import type { ConfirmedItem, Entry, GoneItem } from '../state/entry.js';
import type { State } from '../state/state.js';

/** Where a pass over the items of a folder stands, as it is kept in state. */
export interface Pass {
  /** In ms since the epoch. */
  readonly beganAt: number;
  /** The path of the last item that was looked at; undefined once the pass is over. */
  readonly after?: string;
  /** Where looking at what changed since the pass began stands: the last such item, as `byTime` has it. */
  readonly newAfter?: string;
  /** Items that have a file, so far. */
  readonly files: number;
  readonly changed: boolean;
}

const PREFIX = 'mirror-pass/';
/** How many items are held at a time. */
const PAGE = 2_000;
/** How many records are looked at without a pause. */
const SLICE = 5_000;

type PassState = Pick<State, 'meta' | 'setMeta'>;

export function passOf(state: Pick<PassState, 'meta'>, name: string): Pass | undefined {
  const kept = state.meta(PREFIX + name);
  return isPass(kept) ? kept : undefined;
}

export function keepPass(state: Pick<PassState, 'setMeta'>, name: string, pass: Pass | undefined): void {
  state.setMeta(PREFIX + name, pass && { ...pass });
}

/** The names of all mirrors that have a pass. */
export function passNames(state: Pick<State, 'metaNames'>): readonly string[] {
  return state.metaNames(PREFIX).map((name) => name.slice(PREFIX.length));
}

function isPass(kept: unknown): kept is Pass {
  return typeof kept === 'object' && kept !== null && 'beganAt' in kept && 'files' in kept;
}

/** An item that has, or had, a citation file. */
export type Looked = ConfirmedItem | GoneItem;

/** An order of items: by keys, each of which holds the path of its item. */
export interface ItemOrder {
  keyOf(item: Pick<Looked, 'path' | 'since'>): string;
  pathOf(key: string): string;
}

export const byPath: ItemOrder = { keyOf: ({ path }) => path, pathOf: (key) => key };

const TIME_DIGITS = 15;

/** By when they were confirmed, or were gone. */
export const byTime: ItemOrder = {
  keyOf: ({ path, since }) => String(since).padStart(TIME_DIGITS, '0') + path,
  pathOf: (key) => key.slice(TIME_DIGITS),
};

/**
 * The confirmed and the gone items of a folder behind the key `after`, in their order. In bounded memory, at the price of
 * looking at all records of the folder once a page.
 */
export async function* itemsBehind(
  state: Pick<State, 'entries' | 'get'>,
  folder: string,
  after: string | undefined,
  order: ItemOrder,
  clock: Clock,
): AsyncGenerator<{ readonly key: string; readonly item: Looked }> {
  for (let last = after; ; ) {
    const page = await nextKeys(state, folder, last, order, clock);
    for (const key of page) {
      const item = state.get(folder, order.pathOf(key));
      if (item !== undefined && isLooked(item)) yield { key, item };
    }
    if (page.length < PAGE) return;
    last = page.at(-1);
  }
}

async function nextKeys(
  state: Pick<State, 'entries'>,
  folder: string,
  after: string | undefined,
  order: ItemOrder,
  clock: Clock,
): Promise<string[]> {
  let keys: string[] = [];
  let seen = 0;
  let limit: string | undefined;
  for (const entry of state.entries.all(folder)) {
    seen += 1;
    if (seen % SLICE === 0) await clock.sleep(0);
    if (!isLooked(entry)) continue;
    const key = order.keyOf(entry);
    if ((after !== undefined && key <= after) || (limit !== undefined && key >= limit)) continue;
    keys.push(key);
    if (keys.length < 2 * PAGE) continue;
    keys = firstOf(keys);
    limit = keys.at(-1);
  }
  return firstOf(keys);
}

function firstOf(keys: string[]): string[] {
  return keys.sort().slice(0, PAGE);
}

export function isLooked(entry: Entry): entry is Looked {
  return entry.status === 'confirmed' || entry.status === 'gone';
}
