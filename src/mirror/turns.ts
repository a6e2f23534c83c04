import { setImmediate as nextTurn } from 'node:timers/promises';

/** Items that are looked at without giving way to other work. */
const ITEMS_A_TURN = 1_000;

/** The same items in groups, with a pause behind each so that other work can go on. */
export async function* inGroups<T>(
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

/** The same items, with a pause now and then. */
export async function* inTurns<T>(
  items: Iterable<T>,
  each = ITEMS_A_TURN,
): AsyncGenerator<T, void> {
  for await (const group of inGroups(items, each)) yield* group;
}
