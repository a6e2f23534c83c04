import type { Config } from '../config/config.js';

/**
 * The configuration that holds now. Whoever runs longer than a moment keeps this and not a `Config`: a reload replaces
 * what is in it.
 */
export class Current {
  #config: Config;
  readonly #listeners = new Set<(before: Config, after: Config) => void>();

  constructor(config: Config) {
    this.#config = config;
  }

  get config(): Config {
    return this.#config;
  }

  /** Calls `listener` after each reload that changed something. @returns what ends that */
  onChange(listener: (before: Config, after: Config) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  replace(config: Config): void {
    const before = this.#config;
    this.#config = config;
    for (const listener of this.#listeners) listener(before, config);
  }
}
