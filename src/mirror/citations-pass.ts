import type { Clock } from '../lib/clock.js';
import type { ConfirmedItem, Entry, GoneItem } from '../state/entry.js';
import type { State } from '../state/state.js';

/** Where a pass over the items of a folder stands, as it is kept in state. */
export interface Pass {
  /** In ms since the epoch. */
  readonly beganAt: number;
  /** The path of the last item that was looked at; undefined once the pass is over. */
  readonly after?: string;
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

/**
 * The confirmed and the gone items of a folder behind the path `after`, in the order of their paths. In bounded memory, at
 * the price of looking at all records of the folder once a page.
 */
export async function* itemsBehind(
  state: Pick<State, 'entries' | 'get'>,
  folder: string,
  after: string | undefined,
  clock: Clock,
): AsyncGenerator<Looked> {
  for (let last = after; ; ) {
    const page = await nextPaths(state, folder, last, clock);
    for (const path of page) {
      const entry = state.get(folder, path);
      if (entry !== undefined && isLooked(entry)) yield entry;
    }
    if (page.length < PAGE) return;
    last = page.at(-1);
  }
}

async function nextPaths(
  state: Pick<State, 'entries'>,
  folder: string,
  after: string | undefined,
  clock: Clock,
): Promise<string[]> {
  let paths: string[] = [];
  let seen = 0;
  let limit: string | undefined;
  for (const entry of state.entries.all(folder)) {
    seen += 1;
    if (seen % SLICE === 0) await clock.sleep(0);
    const { path } = entry;
    if (!isLooked(entry) || (after !== undefined && path <= after)) continue;
    if (limit !== undefined && path >= limit) continue;
    paths.push(path);
    if (paths.length < 2 * PAGE) continue;
    paths = firstOf(paths);
    limit = paths.at(-1);
  }
  return firstOf(paths);
}

function firstOf(paths: string[]): string[] {
  return paths.sort().slice(0, PAGE);
}

function isLooked(entry: Entry): entry is Looked {
  return entry.status === 'confirmed' || entry.status === 'gone';
}
