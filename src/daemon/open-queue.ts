import type { Config } from '../config/config.js';
import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import type { QueueLimits } from '../queue/options.js';
import { RequestQueue } from '../queue/request-queue.js';
import { classify } from '../uplink/deps.js';

/** Concurrency of the lanes that the configuration does not set. */
const DEFAULT_CONCURRENCY = 2;
/** Maximum number of audited items per second. */
const AUDIT_REQUESTS_PER_SECOND = 10;
/** A task in the queue may send up to this many requests, with other credentials for example. */
const REQUESTS_PER_TASK = 3;
/**
 * Lower bound of the time-out of one request when task durations are computed, in ms. A task that
 * writes a table sends one request for each of a thousand rows.
 */
const MIN_TIMEOUT_MS = 5 * 60_000;

/** Opens the request queue to the configured peer. */
export function openQueue(config: Config, clock: Clock, log: Logger): RequestQueue {
  return new RequestQueue({
    ...queueLimits(config),
    classify,
    clock,
    log,
    peerName: 'The peer',
  });
}

/**
 * The share of the rate of pushes at which they begin if workers push, too. The permits of the
 * fleet come a little more often, so that no push waits for its permit and seems to be slow.
 */
const FLEET_SHARE = 0.9;

/** Returns the rate of pushes, in requests per second. */
export function pushRate({ peer, push }: Config): number {
  return push.requestsPerSecond ?? (peer.url === 'embedded' ? Number.POSITIVE_INFINITY : 20);
}

/** Returns the limits of the request queue for a configuration. */
export function queueLimits(config: Config): QueueLimits {
  const { confirm, fleet, mirror, peer, push } = config;
  // Rates protect other people's peers. The schema of the configuration documents these defaults.
  const byDefault = (rate: number) => (peer.url === 'embedded' ? Number.POSITIVE_INFINITY : rate);
  const { requestsPerSecond = byDefault(200) } = confirm;
  const pushes = pushRate(config);
  const share = fleet?.share.includes('push') ? FLEET_SHARE : 1;
  const { requestsPerSecond: downloads = byDefault(20) } = mirror;
  return {
    longestMs: REQUESTS_PER_TASK * Math.max(peer.timeouts.total, MIN_TIMEOUT_MS),
    lanes: {
      interactive: { requestsPerSecond, concurrency: DEFAULT_CONCURRENCY },
      confirm: { ...confirm, requestsPerSecond },
      push: { ...push, requestsPerSecond: share * pushes },
      removal: { ...push, requestsPerSecond: pushes },
      mirror: { requestsPerSecond: downloads, concurrency: DEFAULT_CONCURRENCY },
      audit: {
        requestsPerSecond: Math.min(AUDIT_REQUESTS_PER_SECOND, requestsPerSecond),
        concurrency: 1,
      },
    },
  };
}
