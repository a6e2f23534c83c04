import type { Place } from '../state/entries.js';
import { placeKey } from './parts.js';

interface Suspect {
  failures: number;
  /** How many pushes had succeeded when it failed last. */
  successes: number;
}

/**
 * Tells a bad item from a peer in trouble. An item whose push failed by itself, or was never answered, is a *suspect* and
 * travels alone from then on, until it is accepted. It is to blame only when other pushes went through between two of
 * its failures. Where every waiting item is a suspect, nothing can go through that would tell, and an empty push decides:
 * a peer that takes it works.
 */
export class Suspects {
  readonly #suspects = new Map<string, Suspect>();
  #successes = 0;

  /** A push of other items went through. */
  succeeded(places: readonly Place[]): void {
    this.#successes += 1;
    for (const place of places) this.#suspects.delete(placeKey(place));
  }

  has(place: Place): boolean {
    return this.#suspects.size > 0 && this.#suspects.has(placeKey(place));
  }

  /** The push of an item failed, or was never answered. */
  failed(place: Place): { readonly failures: number; readonly othersWentThrough: boolean } {
    const key = placeKey(place);
    const suspect = this.#suspects.get(key);
    if (suspect === undefined) {
      this.#suspects.set(key, { failures: 1, successes: this.#successes });
      return { failures: 1, othersWentThrough: false };
    }
    const othersWentThrough = this.#successes > suspect.successes;
    suspect.failures += 1;
    suspect.successes = this.#successes;
    return { failures: suspect.failures, othersWentThrough };
  }

  forget(place: Place): void {
    this.#suspects.delete(placeKey(place));
  }

  get size(): number {
    return this.#suspects.size;
  }
}
