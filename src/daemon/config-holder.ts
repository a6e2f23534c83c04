import type { Config } from '../config/config.js';
import type { Refused } from '../report/live.js';

/**
 * The configuration that holds now. Whoever runs longer than a moment keeps this and not a `Config`: a reload replaces
 * what is in it.
 */
export class ConfigHolder {
  #config: Config;
  #restart: readonly string[] = [];
  #takenUpAt: number | undefined;
  #refused: Refused | undefined;
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

  /** When the file was last read and taken up, in ms since the epoch; undefined before the first reload that did. */
  get takenUpAt(): number | undefined {
    return this.#takenUpAt;
  }

  /** Why the file as it was at the last reload is not what holds; undefined where it is. */
  get refused(): Refused | undefined {
    return this.#refused;
  }

  /** The file was read, and all that it says holds, but for what waits for a restart. */
  takenUp(at: number): void {
    this.#takenUpAt = at;
    this.#refused = undefined;
  }

  /** The file was read, and nothing of it taken. */
  refuse(refused: Refused): void {
    this.#refused = refused;
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
