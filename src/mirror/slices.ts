import { setImmediate as nextTurn } from 'node:timers/promises';

/** The items that are processed between two pauses. */
const ITEMS_PER_SLICE = 1_000;

/** Yields the items in groups of `size`, and lets other work run after each group. */
export async function* inSlices<T>(
  items: Iterable<T>,
  size: number,
): AsyncGenerator<readonly T[], void> {
  let group: T[] = [];
  for (const item of items) {
    if (group.push(item) < size) continue;
    yield group;
    group = [];
    await nextTurn();
  }
  if (group.length > 0) yield group;
}

/** Yields the items one by one, and lets other work run after every `size` of them. */
export async function* withPauses<T>(
  items: Iterable<T>,
  size = ITEMS_PER_SLICE,
): AsyncGenerator<T, void> {
  for await (const group of inSlices(items, size)) yield* group;
}
