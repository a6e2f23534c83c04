/** What a YaCy peer takes its time for, in ms; the values are those that were recorded. */
export interface Timing {
  /** From an asynchronous push to the document in the buffer. */
  readonly indexed: number;
  /** How long a document is readable in the buffer, before it is handed to the index. */
  readonly buffered: number;
  /** From the first document handed over to the commit that shows it. */
  readonly commit: number;
  /** A commit that is asked for sooner after the last one is skipped. */
  readonly commitPause: number;
  /** A connection that is silent for so long is closed. */
  readonly idle: number;
  /** How long a starting peer refuses connections. */
  readonly start: number;
  /** How long a nonce is good from its issue. */
  readonly nonce: number;
  /**
   * What each document of a push costs the one processor, before the push is answered. Default 0.
   */
  readonly perDocument?: number;
  /**
   * What each push takes besides, while the processor does other work: it is read and answered.
   * Default 0.
   */
  readonly perPush?: number;
  /** What a `yacydoc` costs the one processor. Default 0. */
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
