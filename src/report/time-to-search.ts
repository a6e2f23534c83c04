/** How long it took; undefined while nothing was confirmed in that time. In ms. */
export interface Percentiles {
  /** Of how many confirmations. */
  readonly count: number;
  readonly p50Ms?: number;
  readonly p95Ms?: number;
  readonly p99Ms?: number;
}

/** The time from *at rest* to *confirmed* of the files of one collection. Times are ms since the epoch. */
export interface TimeToSearch {
  readonly collection: string;
  readonly hour: Percentiles;
  readonly day: Percentiles;
  /** Pending and accepted items. */
  readonly waiting: number;
  /** About when the one that has waited longest was at rest. */
  readonly oldestSince?: number;
}

/** Something that a person should hear of, raised by `alerts`; it stays while it is so. */
export interface Alert {
  readonly code: 'TIME_TO_SEARCH';
  readonly collection: string;
  readonly message: string;
  readonly hint: string;
  /** In ms since the epoch. */
  readonly since: number;
}

/** What happened in one slot of `SAMPLE_MS`. */
export interface Sample {
  /** The end of the slot, in ms since the epoch. */
  readonly at: number;
  /** Items confirmed in it. */
  readonly confirmed: number;
  /** Items that the peer accepted in it. */
  readonly accepted: number;
  /** Pending and accepted items at its end. */
  readonly waiting: number;
  /** Of what was confirmed in it, at rest to confirmed, in ms. */
  readonly p50Ms?: number;
  readonly p95Ms?: number;
}

export const SAMPLE_MS = 10_000;

export interface FiguresReport {
  readonly timeToSearch: readonly TimeToSearch[];
  /** Documents confirmed a second, over the last minute. */
  readonly confirmedPerSecond: number;
  /** When an item was last confirmed, in ms since the epoch; also by an earlier run. */
  readonly lastConfirmedAt?: number;
  readonly alerts: readonly Alert[];
}
