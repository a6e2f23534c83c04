import type { MirrorReport } from '../../mirror/record.js';
import { type Metric, type Observed, type Value, yesOrNo } from './metric.js';

/** So many mirrors have series of their own; patterns may bring thousands. */
export const MIRRORS_NAMED = 200;

type MirrorState = 'good' | 'waiting' | 'failing' | 'alarm';

/** What comes from the peer. */
export const MIRROR_METRICS: readonly Metric[] = [
  {
    name: 'peersync_mirrors',
    type: 'gauge',
    help: 'All mirrors, by how they are: good, failing, alarm (a person has to look), or waiting for the first try.',
    labels: ['state'],
    *read({ status }) {
      const counts: Record<MirrorState, number> = { good: 0, waiting: 0, failing: 0, alarm: 0 };
      for (const mirror of status.mirrors) counts[stateOf(mirror)] += 1;
      for (const [state, value] of Object.entries(counts)) yield { labels: { state }, value };
    },
  },
  {
    name: 'peersync_mirror_conflicts',
    type: 'gauge',
    help: 'Cells of two-way tables that were changed on both sides, over all mirrors.',
    read: ({ status }) => status.mirrors.reduce((sum, { conflicts = [] }) => sum + conflicts.length, 0),
  },
  {
    name: 'peersync_mirrors_oldest_success_seconds',
    type: 'gauge',
    help: 'The greatest age that peersync_mirror_age_seconds has, over all mirrors.',
    read: ({ status, now }) => {
      const oldest = status.mirrors.reduce(
        (first, { succeededAt }) => Math.min(first, succeededAt ?? now),
        Number.POSITIVE_INFINITY,
      );
      return oldest === Number.POSITIVE_INFINITY ? undefined : Math.max(0, now - oldest) / 1000;
    },
  },
  {
    name: 'peersync_mirror_age_seconds',
    type: 'gauge',
    help: `How long ago a mirrored file was last known to be what the peer has, once it was; for the first ${MIRRORS_NAMED} mirrors.`,
    labels: ['mirror'],
    read: (observed) =>
      byMirror(observed, ({ succeededAt }) =>
        succeededAt === undefined ? undefined : Math.max(0, observed.now - succeededAt) / 1000,
      ),
  },
  {
    name: 'peersync_mirror_alarm',
    type: 'gauge',
    help: `Whether a mirror keeps its file from what the peer says, until a person accepts it; for the first ${MIRRORS_NAMED} mirrors.`,
    labels: ['mirror'],
    read: (observed) => byMirror(observed, ({ alarm }) => yesOrNo(alarm !== undefined)),
  },
  {
    name: 'peersync_mirror_failures',
    type: 'gauge',
    help: `Tries of a mirror that failed one after the other; for the first ${MIRRORS_NAMED} mirrors.`,
    labels: ['mirror'],
    read: (observed) => byMirror(observed, ({ failures = 0 }) => failures),
  },
  {
    name: 'peersync_mirrors_unnamed',
    type: 'gauge',
    help: 'Mirrors that have no series of their own because there are too many; they count in the sums.',
    read: ({ status }) => Math.max(0, status.mirrors.length - MIRRORS_NAMED),
  },
];

function stateOf({ alarm, failure, succeededAt }: MirrorReport): MirrorState {
  if (alarm !== undefined) return 'alarm';
  if (failure !== undefined) return 'failing';
  return succeededAt === undefined ? 'waiting' : 'good';
}

function* byMirror({ status }: Observed, of: (mirror: MirrorReport) => number | undefined): Generator<Value> {
  for (const mirror of status.mirrors.slice(0, MIRRORS_NAMED)) {
    const value = of(mirror);
    if (value !== undefined) yield { labels: { mirror: mirror.name }, value };
  }
}
