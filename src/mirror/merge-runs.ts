/** Most items in one group. */
const GROUP = 500;

/** Items in order, a group at a time; no group is empty. */
export type Run<T> = AsyncIterator<readonly T[], void>;

/**
 * Merges runs that are each in order into one. What compares as equal stays in the order of the runs. Of each run one group is
 * in memory at a time.
 */
export async function* mergeRuns<T>(
  runs: readonly Run<T>[],
  compare: (a: T, b: T) => number,
): AsyncGenerator<readonly T[], void> {
  const cursors: Cursor<T>[] = [];
  for (const [place, run] of runs.entries()) {
    const { value } = await run.next();
    if (value) cursors.push({ run, place, group: value, at: 0 });
  }
  const before = (a: Cursor<T>, b: Cursor<T>): boolean =>
    (compare(a.group[a.at] as T, b.group[b.at] as T) || a.place - b.place) < 0;
  const heap = new Heap(cursors, before);
  let merged: T[] = [];
  for (let first = heap.first; first !== undefined; first = heap.first) {
    merged.push(first.group[first.at] as T);
    first.at += 1;
    const inMemory = first.at < first.group.length;
    // What was taken is handed on before more is read: memory holds one group of each run and no more.
    if (!inMemory || merged.length === GROUP) {
      yield merged;
      merged = [];
    }
    if (inMemory || (await refill(first))) heap.settle();
    else heap.removeFirst();
  }
}

/** Where the merge stands in one run: at an item of the group that was read last. */
interface Cursor<T> {
  readonly run: Run<T>;
  readonly place: number;
  group: readonly T[];
  at: number;
}

/** @returns whether there was another group */
async function refill<T>(cursor: Cursor<T>): Promise<boolean> {
  const { value } = await cursor.run.next();
  cursor.group = value ?? [];
  cursor.at = 0;
  return value !== undefined;
}

/** A binary heap: the first is before all others. */
class Heap<T> {
  readonly #items: T[];
  readonly #before: (a: T, b: T) => boolean;

  constructor(items: T[], before: (a: T, b: T) => boolean) {
    this.#items = items.sort((a, b) => (before(a, b) ? -1 : 1));
    this.#before = before;
  }

  get first(): T | undefined {
    return this.#items[0];
  }

  removeFirst(): void {
    const last = this.#items.pop();
    if (last === undefined || this.#items.length === 0) return;
    this.#items[0] = last;
    this.settle();
  }

  /** Finds the place of the first after it changed. */
  settle(): void {
    const items = this.#items;
    const moving = items[0];
    if (moving === undefined) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      let smaller = items[child];
      if (smaller === undefined) break;
      const right = items[child + 1];
      if (right !== undefined && this.#before(right, smaller)) {
        child += 1;
        smaller = right;
      }
      if (!this.#before(smaller, moving)) break;
      items[at] = smaller;
      at = child;
    }
    items[at] = moving;
  }
}
