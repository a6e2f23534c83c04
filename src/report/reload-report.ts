import type { Trouble } from '../state/entry.js';

/** What a reload of the configuration did. */
export interface ReloadReport {
  /** What takes effect from now on, a line each. */
  readonly changes: readonly string[];
  /** The keys whose new values wait for a restart. */
  readonly restart: readonly string[];
}

/** What is wrong with a changed configuration, of which nothing was taken; when that was, in ms since the epoch. */
export type Refused = Trouble & { readonly at: number };

/** How a running daemon stands to the file of its configuration. */
export interface ConfigurationReport {
  /** When the file was last taken up, by a start or a reload, in ms since the epoch. */
  readonly takenUpAt: number;
  /** Why the last reload took nothing of it; only where that is so. */
  readonly refused?: Refused;
}
