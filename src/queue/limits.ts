import { queueError } from './errors.js';
import { LANES, type Lane } from './lanes.js';

export interface LaneLimits {
  /** Starts in any second, at most; more than 0, may be a fraction. From 100,000 on there is no difference. */
  readonly requestsPerSecond: number;
  /** Tasks of this lane at a time, at most; 1 or more. */
  readonly concurrency: number;
}

/** What may pass the door. */
export interface DoorLimits {
  readonly lanes: Readonly<Record<Lane, LaneLimits>>;
  /** Most tasks at a time, over the lanes that share their slots; 1 or more. */
  readonly maxConcurrency: number;
}

/** @throws QueueError QUEUE_OPTION for a rate or concurrency that is none */
export function checkLimits({ lanes, maxConcurrency }: DoorLimits): void {
  for (const name of LANES) {
    const { requestsPerSecond, concurrency } = lanes[name];
    if (!(requestsPerSecond > 0)) {
      throw queueError('QUEUE_OPTION', `${name}.requestsPerSecond`, 'a number above 0', requestsPerSecond);
    }
    if (!(Number.isInteger(concurrency) && concurrency >= 1)) {
      throw queueError('QUEUE_OPTION', `${name}.concurrency`, 'a whole number from 1 up', concurrency);
    }
  }
  if (!(Number.isInteger(maxConcurrency) && maxConcurrency >= 1)) {
    throw queueError('QUEUE_OPTION', 'maxConcurrency', 'a whole number from 1 up', maxConcurrency);
  }
}
