import type { ConfirmedItem, Entry } from '../state/entry.js';
import type { StateView } from '../state/state.js';

export const LISTED_STATUSES = ['pending', 'accepted', 'confirmed', 'quarantined', 'gone', 'passed'] as const;

export interface ListFilter {
  readonly status?: Entry['status'];
  readonly folder?: string;
}

/** One line of `list`. */
export interface ListedEntry {
  readonly folder: string;
  readonly path: string;
  readonly status: Entry['status'];
  /** When the status began, in ms since the epoch. */
  readonly since: number;
  readonly size: number;
  /** Of the bytes that the status is about; absent where they were never read. */
  readonly sha256?: string;
  readonly url?: string;
  readonly code?: string;
  readonly message?: string;
}

/** The lines of `list`, many at a time; the event loop turns between two lots. */
export async function* listEntries(
  state: StateView,
  { folder, status }: ListFilter,
): AsyncGenerator<readonly ListedEntry[]> {
  const chosen = {
    ...(folder === undefined ? {} : { folder }),
    ...(status === undefined ? {} : { status: [status] }),
  };
  for await (const slice of state.entries.slices(chosen)) {
    const lot = Array.from(slice, listed);
    if (lot.length > 0) yield lot;
  }
}

function listed(entry: Entry): ListedEntry {
  const trouble = 'trouble' in entry ? entry.trouble : undefined;
  return {
    folder: entry.folder,
    path: entry.path,
    status: entry.status,
    since: entry.since,
    size: entry.version.size,
    ...('sha256' in entry.version ? { sha256: entry.version.sha256 } : {}),
    ...('url' in entry ? { url: entry.url } : {}),
    ...(trouble ? { code: trouble.code, message: trouble.message } : {}),
  };
}

/** All confirmed items, or so many of them by chance. */
export function chosen(state: StateView, count: number | undefined): Iterable<ConfirmedItem> {
  if (count === undefined) return confirmedItems(state);
  const sample: ConfirmedItem[] = [];
  let seen = 0;
  for (const item of confirmedItems(state)) {
    seen += 1;
    const place = seen <= count ? seen - 1 : Math.floor(Math.random() * seen);
    if (place < count) sample[place] = item;
  }
  return sample;
}

/** How many `chosen` chooses. */
export function chosenCount(state: StateView, count = Number.POSITIVE_INFINITY): number {
  return Math.min(count, state.counts().confirmed);
}

function* confirmedItems(state: StateView): Generator<ConfirmedItem> {
  for (const entry of state.entries.all()) if (entry.status === 'confirmed') yield entry;
}
