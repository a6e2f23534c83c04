import { type Access, unlessAborted } from './access.js';
import { detectDialect } from './detect.js';
import type { Dialect, DialectName } from './dialect.js';
import { DIALECTS } from './dialects.js';

/**
 * How one peer speaks the API.
 *
 * - *Unknown*: the first who asks has it found out, and all who ask meanwhile wait for that.
 * - *Known*, because it was told or found out: it stays so, until it is found out anew.
 */
export class SpokenDialect {
  readonly #access: Access;
  #known: Dialect | undefined;
  #detection: Promise<DialectName> | undefined;

  constructor(access: Access, told: DialectName | 'auto') {
    this.#access = access;
    if (told !== 'auto') this.#known = DIALECTS[told];
  }

  get known(): Dialect | undefined {
    return this.#known;
  }

  /** Found out where it is not known. The signal ends only the waiting. */
  async get(signal: AbortSignal | undefined): Promise<Dialect> {
    return this.#known ?? (await this.detect(signal));
  }

  /** Found out, also where it seemed known. The signal ends only the waiting. */
  async detect(signal: AbortSignal | undefined): Promise<Dialect> {
    this.#detection ??= detectDialect(this.#access).finally(() => {
      this.#detection = undefined;
    });
    const name = await unlessAborted(this.#detection, signal, this.#access.url('/'));
    this.#known = DIALECTS[name];
    return this.#known;
  }
}
