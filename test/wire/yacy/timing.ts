/** Durations in a YaCy peer, in ms. The values are recorded ones. */
export interface Timing {
  /** From an asynchronous push to the document in the buffer. */
  readonly indexed: number;
  /** Time that a document is readable in the buffer, before it is handed to the index. */
  readonly buffered: number;
  /** From the first document handed over to the commit that shows it. */
  readonly commit: number;
  /** A commit that is asked for sooner after the last one is skipped. */
  readonly commitPause: number;
  /** A connection that is silent for so long is closed. */
  readonly idle: number;
  /** Time that a starting peer refuses connections. */
  readonly start: number;
  /** Lifetime of a nonce. */
  readonly nonce: number;
  /** Processor time of each document of a push, before the push is answered. @default 0 */
  readonly perDocument?: number;
  /**
   * Time to read and answer each push, during which the processor does other work.
   * @default 0
   */
  readonly perPush?: number;
  /** Processor time of a `yacydoc`. @default 0 */
  readonly perLookUp?: number;
}

export const RECORDED: Timing = {
  indexed: 50,
  buffered: 1_240,
  commit: 15_000,
  commitPause: 10_000,
  idle: 9_000,
  start: 8_000,
  nonce: 60_000,
};

/**
 * The recorded times, `speed` times as fast, but for those that a test needs otherwise. What the
 * peer gives others time for stays as it was: whoever talks to it is not faster for that.
 */
export function timing(speed: number, others: Partial<Timing> = {}): Timing {
  const scaled = Object.entries(RECORDED).map(([name, ms]) => [name, ms / speed]);
  const { idle, nonce } = RECORDED;
  return { ...(Object.fromEntries(scaled) as unknown as Timing), idle, nonce, ...others };
}
