import type { Place } from '../state/entries.js';

/** Values by file. Two levels, so that no key has to be put together for a look-up. */
export class PlaceMap<T> {
  readonly #folders = new Map<string, Map<string, T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(place: Place): T | undefined {
    return this.#folders.get(place.folder)?.get(place.path);
  }

  has(place: Place): boolean {
    return this.#folders.get(place.folder)?.has(place.path) ?? false;
  }

  set(place: Place, value: T): void {
    let paths = this.#folders.get(place.folder);
    if (paths === undefined) {
      paths = new Map();
      this.#folders.set(place.folder, paths);
    }
    const before = paths.size;
    paths.set(place.path, value);
    this.#size += paths.size - before;
  }

  delete(place: Place): void {
    if (this.#folders.get(place.folder)?.delete(place.path)) this.#size -= 1;
  }
}
