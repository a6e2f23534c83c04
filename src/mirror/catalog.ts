/** The kinds of things that a peer lists. */
type Kind = 'table' | 'share';

/** The tables and shared objects that the peer listed last. */
export class Catalog {
  readonly #names: Partial<Record<Kind, Set<string>>> = {};

  /** @param onReplace creates the mirrors of new names */
  constructor(private readonly onReplace: () => Promise<void>) {}

  /** Returns the names of the last list, undefined until there is one. */
  names(kind: Kind): ReadonlySet<string> | undefined {
    return this.#names[kind];
  }

  /** Returns whether the last list has a name. True until there is a list. */
  has(kind: Kind, name: string): boolean {
    return this.#names[kind]?.has(name) ?? true;
  }

  /** Takes a new list. Resolves when every name that a pattern matches has its mirror. */
  async replace(kind: Kind, names: readonly string[]): Promise<void> {
    this.#names[kind] = new Set(names);
    await this.onReplace();
  }

  /** Removes a name until the peer lists it again. */
  remove(kind: Kind, name: string): void {
    this.#names[kind]?.delete(name);
  }
}
