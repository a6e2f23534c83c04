import type { CircuitState } from './breaker.js';
import type { Lane } from './lanes.js';
import type { Trouble } from './outcome.js';
import type { Paused } from './recess.js';

/** All times are in ms since the epoch, by our clock. */
export interface DoorStatus {
  readonly circuit: CircuitStatus;
  /** Nothing but `interactive` starts before this: the peer asked to wait. */
  readonly pausedUntil?: number;
  /** A person paused the work with the peer: nothing but `interactive` starts, until then or until it is resumed. */
  readonly paused?: Paused;
  /** Shared slots: those in use, those the peer seems to bear, those configured. */
  readonly concurrency: { readonly running: number; readonly limit: number; readonly max: number };
  readonly lanes: Readonly<Record<Lane, LaneStatus>>;
}

export interface CircuitStatus {
  readonly state: CircuitState;
  /** Closed: since when the peer answers (or the door was made). Else: since when it is in this kind of trouble. */
  readonly since: number;
  /** Since when it is in trouble of any kind; only while not closed. */
  readonly downSince?: number;
  readonly reason?: Trouble;
  /** The lanes that the trouble keeps back; empty while closed. */
  readonly held: readonly Lane[];
  /** When one task may try again; only while open. */
  readonly nextProbeAt?: number;
  /** Requests that failed since this kind of trouble began; 0 while closed. */
  readonly tries: number;
}

export interface LaneStatus {
  readonly started: number;
  /** Ended with an error; called off ones are not counted. */
  readonly failed: number;
  readonly running: number;
  readonly waiting: number;
  /** Median of the last hundred answers, in ms. */
  readonly p50LatencyMs?: number;
}
