import type { Config } from '../config/config.js';
import type { QueueLimits } from '../queue/options.js';

/** How many requests may be under way beside pushes and look-ups. */
const SPARE_CONCURRENCY = 2;
/** So many items a second are looked up once more at most. */
const AUDIT_REQUESTS_PER_SECOND = 10;

/** What a configuration lets pass through the queue. */
export function queueLimits({ confirm, push, mirror }: Config): QueueLimits {
  return {
    lanes: {
      interactive: { requestsPerSecond: confirm.requestsPerSecond, concurrency: SPARE_CONCURRENCY },
      confirm,
      push,
      mirror: { requestsPerSecond: mirror.requestsPerSecond, concurrency: SPARE_CONCURRENCY },
      audit: {
        requestsPerSecond: Math.min(AUDIT_REQUESTS_PER_SECOND, confirm.requestsPerSecond),
        concurrency: 1,
      },
    },
    maxConcurrency: push.concurrency + confirm.concurrency + SPARE_CONCURRENCY,
  };
}
