import type { LaneStatus } from '../../queue/lane-queue.js';
import { type Metric, type Observed, oneOf, type Value, yesOrNo } from './metric.js';

const CIRCUIT_STATES = ['closed', 'open', 'half-open'];

/** The way to the peer. */
export const PEER_METRICS: readonly Metric[] = [
  {
    name: 'peersync_peer_up',
    type: 'gauge',
    help: 'Whether the peer is known and answers: 1, or 0 while its trouble is waited out.',
    read: ({ status }) =>
      yesOrNo(status.peer.dialect !== undefined && status.peer.queue?.circuit.state === 'closed'),
  },
  {
    name: 'peersync_circuit_state',
    type: 'gauge',
    help: 'Which state the circuit breaker is in: 1 for that one, 0 for the others.',
    labels: ['state'],
    read: ({ status }) => oneOf('state', CIRCUIT_STATES, status.peer.queue?.circuit.state ?? 'closed'),
  },
  {
    name: 'peersync_paused',
    type: 'gauge',
    help: 'Whether a person paused the work with the peer.',
    read: ({ status }) => yesOrNo(status.peer.queue?.paused !== undefined),
  },
  {
    name: 'peersync_peer_asked_to_wait',
    type: 'gauge',
    help: 'Whether the peer asked to be left alone for a while (429, or 503 with Retry-After).',
    read: ({ status, now }) => yesOrNo((status.peer.queue?.pausedUntil ?? 0) > now),
  },
  {
    name: 'peersync_pushes_total',
    type: 'counter',
    help: 'Push requests that were sent, those sent again included.',
    read: ({ requests }) => requests.push,
  },
  {
    name: 'peersync_push_bytes_total',
    type: 'counter',
    help: 'Bytes of the bodies of push requests that began to be sent.',
    read: ({ pushedBytes }) => pushedBytes,
  },
  {
    name: 'peersync_lookups_total',
    type: 'counter',
    help: 'Requests that looked up what the peer shows of a document.',
    read: ({ requests }) => requests.peerdoc,
  },
  {
    name: 'peersync_requests_total',
    type: 'counter',
    help: 'Tasks for the peer that were started, by lane; one may take more than one request.',
    labels: ['lane'],
    read: (observed) => byLane(observed, ({ started }) => started),
  },
  {
    name: 'peersync_requests_failed_total',
    type: 'counter',
    help: 'Tasks for the peer that failed, by lane.',
    labels: ['lane'],
    read: (observed) => byLane(observed, ({ failed }) => failed),
  },
  {
    name: 'peersync_requests_running',
    type: 'gauge',
    help: 'Tasks for the peer that are under way, by lane.',
    labels: ['lane'],
    read: (observed) => byLane(observed, ({ running }) => running),
  },
  {
    name: 'peersync_requests_waiting',
    type: 'gauge',
    help: 'Tasks for the peer that wait for their turn, by lane; the backlog itself waits on disk, see peersync_items.',
    labels: ['lane'],
    read: (observed) => byLane(observed, ({ waiting }) => waiting),
  },
  {
    name: 'peersync_request_latency_median_seconds',
    type: 'gauge',
    help: 'Median time of the last hundred tasks that the peer answered, by lane.',
    labels: ['lane'],
    read: (observed) =>
      byLane(observed, ({ p50LatencyMs }) => (p50LatencyMs === undefined ? undefined : p50LatencyMs / 1000)),
  },
  {
    name: 'peersync_concurrency_running',
    type: 'gauge',
    help: 'Requests that are under way in the slots that pushes and look-ups share.',
    read: ({ status }) => status.peer.queue?.concurrency.running,
  },
  {
    name: 'peersync_concurrency_limit',
    type: 'gauge',
    help: 'How many requests at a time the peer bears, as peersync has learned it.',
    read: ({ status }) => status.peer.queue?.concurrency.limit,
  },
  {
    name: 'peersync_concurrency_max',
    type: 'gauge',
    help: 'How many requests at a time are configured at most.',
    read: ({ status }) => status.peer.queue?.concurrency.max,
  },
];

function* byLane({ status }: Observed, of: (lane: LaneStatus) => number | undefined): Generator<Value> {
  for (const [lane, figures] of Object.entries(status.peer.queue?.lanes ?? {})) {
    const value = of(figures);
    if (value !== undefined) yield { labels: { lane }, value };
  }
}
