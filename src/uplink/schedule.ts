interface Slot<T> {
  readonly due: number;
  readonly order: number;
  readonly value: T;
}

/** Values by the time they fall due; those due at the same time leave in the order they came. A binary heap. */
export class Schedule<T> {
  readonly #heap: Slot<T>[] = [];
  #order = 0;

  get size(): number {
    return this.#heap.length;
  }

  /** When the first value falls due, or undefined when there is none. */
  get nextDue(): number | undefined {
    return this.#heap[0]?.due;
  }

  /** Whether its first value comes before that of another one, of which the orders were given, too. */
  isBefore(other: Schedule<T> | undefined): boolean {
    const own = this.#heap[0];
    const others = other === undefined ? undefined : other.#heap[0];
    return own !== undefined && (others === undefined || before(own, others));
  }

  /** @param order which of those due at the same time comes first; by default the one that was added first */
  add(value: T, due: number, order = this.#order++): void {
    const slot = { due, order, value };
    const heap = this.#heap;
    let i = heap.length;
    heap.push(slot);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !before(slot, above)) break;
      heap[i] = above;
      i = parent;
    }
    heap[i] = slot;
  }

  /** Takes the first value out if it is due at `now`. */
  take(now: number): T | undefined {
    const heap = this.#heap;
    const first = heap[0];
    if (first === undefined || first.due > now) return undefined;
    const last = heap.pop();
    if (last !== undefined && last !== first) this.#sink(last);
    return first.value;
  }

  /** Drops every value that `isWanted` says no to; the others keep their turns. */
  keep(isWanted: (value: T) => boolean): void {
    const wanted = this.#heap.filter(({ value }) => isWanted(value)).sort((a, b) => (before(a, b) ? -1 : 1));
    // What is in order is a heap.
    this.#heap.length = 0;
    for (const slot of wanted) this.#heap.push(slot);
  }

  #sink(slot: Slot<T>): void {
    const heap = this.#heap;
    let i = 0;
    for (;;) {
      const left = heap[2 * i + 1];
      const right = heap[2 * i + 2];
      const below = right !== undefined && left !== undefined && before(right, left) ? right : left;
      if (below === undefined || !before(below, slot)) break;
      heap[i] = below;
      i = below === right ? 2 * i + 2 : 2 * i + 1;
    }
    heap[i] = slot;
  }
}

function before<T>(a: Slot<T>, b: Slot<T>): boolean {
  return a.due < b.due || (a.due === b.due && a.order < b.order);
}
