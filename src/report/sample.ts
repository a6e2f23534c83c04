import type { ConfirmedItem } from '../state/entry.js';
import type { StateView } from '../state/state.js';

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
  for (const entry of state.entries.all(undefined, 'confirmed'))
    if (entry.status === 'confirmed') yield entry;
}
