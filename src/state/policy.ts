/** The numbers of the state. */
export interface StatePolicy {
  /** The journals since the last snapshot are compacted only when they are larger than this, in bytes. */
  readonly compactMinBytes: number;
  /** And larger than this many times that snapshot. */
  readonly compactRatio: number;
  /** How much is encoded without a pause, in bytes (a megabyte costs about 10 ms of the event loop). */
  readonly writeBytes: number;
  /** How much is read and parsed without a pause, in bytes. */
  readonly readBytes: number;
}

export const STATE_POLICY: StatePolicy = {
  compactMinBytes: 16 * 1024 * 1024,
  compactRatio: 2,
  writeBytes: 256 * 1024,
  readBytes: 256 * 1024,
};
