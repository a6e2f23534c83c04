import type { Place } from '../state/entries.js';
import { PlaceMap } from './place-map.js';

interface Suspect {
  readonly failures: number;
  /** How many pushes had succeeded when it failed last. */
  readonly successes: number;
}

/**
 * Tells a bad item from a peer in trouble. An item whose push failed by itself, or was never answered, is a *suspect* and
 * travels alone from then on, until it is accepted. It is to blame only when other pushes went through between two of
 * its failures, or between the beginning of the push that failed first and its failing by itself.
 */
export class Suspects {
  readonly #suspects = new PlaceMap<Suspect>();
  #successes = 0;

  /** How many pushes went through so far. */
  get successes(): number {
    return this.#successes;
  }

  /** A push of other items went through. */
  succeeded(places: readonly Place[]): void {
    this.#successes += 1;
    for (const place of places) this.#suspects.delete(place);
  }

  has(place: Place): boolean {
    return this.#suspects.size > 0 && this.#suspects.has(place);
  }

  /**
   * The push of an item failed, or was never answered.
   *
   * @param before how many pushes had gone through when it began
   */
  failed(place: Place, before: number): { readonly failures: number; readonly othersWentThrough: boolean } {
    const { failures, successes } = this.#suspects.get(place) ?? { failures: 0, successes: before };
    this.#suspects.set(place, { failures: failures + 1, successes: this.#successes });
    return { failures: failures + 1, othersWentThrough: this.#successes > successes };
  }

  forget(place: Place): void {
    this.#suspects.delete(place);
  }
}
