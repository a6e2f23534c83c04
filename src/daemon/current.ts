import type { Config } from '../config/config.js';

/**
 * The configuration that holds now. Whoever runs longer than a moment keeps this and not a `Config`: a reload replaces
 * what is in it.
 */
export class Current {
  #config: Config;
  #restart: readonly string[] = [];
  readonly #listeners = new Set<(before: Config, after: Config) => void>();

  constructor(config: Config) {
    this.#config = config;
  }

  get config(): Config {
    return this.#config;
  }

  /** The keys whose values in the file take effect only by a restart. */
  get restart(): readonly string[] {
    return this.#restart;
  }

  /** Calls `listener` after each reload that changed something. @returns what ends that */
  onChange(listener: (before: Config, after: Config) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** @param restart the keys whose new values are not in it, for they wait for a restart */
  replace(config: Config, restart: readonly string[]): void {
    const before = this.#config;
    this.#config = config;
    this.#restart = restart;
    if (config === before) return;
    for (const listener of this.#listeners) listener(before, config);
  }
}
