/** So many collections have figures of their own. */
export const MOST_COLLECTIONS = 100;
/** Stands for all others together; no collection can be called so. */
const OTHERS = '(others)';

/** Which collections have figures of their own: the first that are met. What a name was once put under, it stays under. */
export class CollectionNames {
  readonly #known = new Set<string>();

  of(collection: string): string {
    if (this.#known.has(collection)) return collection;
    if (this.#known.size >= MOST_COLLECTIONS || collection === OTHERS) return OTHERS;
    this.#known.add(collection);
    return collection;
  }
}
