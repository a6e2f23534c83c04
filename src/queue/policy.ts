/** Every number the queue decides by; the unit stands in the name. */
export interface QueuePolicy {
  /**
   * Troubles that no answer took back (see Breaker), counted over all lanes, that open the circuit when the last one is of
   * this kind. One reset connection happens to every peer, so `unreachable` waits for the second; a refused
   * password is no accident.
   *
   * @default { unreachable: 2, failing: 5, denied: 1 }
   */
  readonly openAfter: { readonly unreachable: number; readonly failing: number; readonly denied: number };
  /** First wait before a probe, doubled by each that fails. @default 1000 */
  readonly probeMs: number;
  /** Longest wait before a probe. @default 60_000 */
  readonly probeMaxMs: number;
  /** First wait before a probe with refused credentials: peers lock out those who insist. @default 5000 */
  readonly deniedProbeMs: number;
  /** Longest wait before a probe with refused credentials. @default 300_000 */
  readonly deniedProbeMaxMs: number;
  /** Trouble that lasts is said again after this long. @default 3_600_000 */
  readonly sayAgainMs: number;
  /** First wait after `busy` without Retry-After, doubled by each that follows. @default 1000 */
  readonly busyMs: number;
  /** Being busy is trouble, and said as such, once it has lasted this long. @default 60_000 */
  readonly busySayMs: number;
  /** Longest wait after `busy` without Retry-After. @default 60_000 */
  readonly busyMaxMs: number;
  /** Longest Retry-After that is believed. @default 3_600_000 */
  readonly retryAfterMaxMs: number;
  /** A lane that could have started something for this long goes next, whatever its priority. @default 10_000 */
  readonly patienceMs: number;
  /** How long a task may take to end once it was told to abort; then it is given up. @default 5000 */
  readonly abortMs: number;
  /** Latency counts as slow above this multiple of its smoothed minimum … @default 3 */
  readonly slowFactor: number;
  /** … and this much over it, so that noise of a near peer is none. @default 100 */
  readonly slowSlackMs: number;
}

export const DEFAULT_POLICY: QueuePolicy = Object.freeze({
  openAfter: Object.freeze({ unreachable: 2, failing: 5, denied: 1 }),
  probeMs: 1000,
  probeMaxMs: 60_000,
  deniedProbeMs: 5000,
  deniedProbeMaxMs: 300_000,
  sayAgainMs: 3_600_000,
  busyMs: 1000,
  busySayMs: 60_000,
  busyMaxMs: 60_000,
  retryAfterMaxMs: 3_600_000,
  patienceMs: 10_000,
  abortMs: 5000,
  slowFactor: 3,
  slowSlackMs: 100,
});
