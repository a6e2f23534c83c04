import type { Config } from '../config/config.js';
import type { Duty } from '../lib/pulse.js';
import type { Lane } from '../queue/options.js';
import type { Disk } from './disks.js';
import type { Parts } from './parts.js';

/** One task in the queue may ask again, with other credentials or for another page. */
const REQUESTS_IN_ONE = 3;
/** Shared objects and tables stream, and may take so many times as long as anything else. */
const STREAMING = 12;
/** Shorter time-outs make no shorter tasks: one that writes a table asks once for each of a thousand rows. In ms. */
const SHORTEST_TOTAL_MS = 5 * 60_000;
/** A commit waits for the one before it, and for a disk that has much to write. In ms. */
const LONGEST_COMMIT_MS = 5 * 60_000;

/** It may have several large batches to read from a disk that is far away; one file or batch is read in seconds. In ms. */
const LONGEST_ORDER_MS = 15 * 60_000;

export type DutifulParts = Pick<Parts, 'queue' | 'commits'> & {
  readonly fileThread: Pick<Parts['fileThread'], 'waiting' | 'answered'>;
} & {
  readonly [part in 'uplink' | 'watcher' | 'mirrors']: Pick<Parts[part], 'duties'>;
};

/** Everything that must not stand still in a daemon. */
export function dutiesOf(
  { queue, uplink, watcher, fileThread, mirrors, commits }: DutifulParts,
  { peer }: Config,
): readonly Duty[] {
  const longestTaskMs = (lane: Lane): number =>
    Math.max(peer.timeouts.total, SHORTEST_TOTAL_MS) * REQUESTS_IN_ONE * (lane === 'mirror' ? STREAMING : 1);
  return [
    ...watcher.duties,
    {
      name: 'file thread',
      moves: () => fileThread.answered,
      neglects: () => (fileThread.waiting > 0 ? 'the thread that reads files gives no answer' : undefined),
      limitMs: LONGEST_ORDER_MS,
    },
    ...uplink.duties,
    ...queue.duties(longestTaskMs),
    ...mirrors.duties,
    {
      name: 'state',
      moves: () => commits.oldest,
      neglects: () => (commits.size > 0 ? 'what is known is not brought to the disk' : undefined),
      limitMs: LONGEST_COMMIT_MS,
    },
  ];
}

/** The directories that the work waits for when their disk does. */
export function disksOf({ state, folders, mirror }: Config): readonly Disk[] {
  const hasMirrors = mirror.shares.length + mirror.tables.length + mirror.citations.length > 0;
  return [
    { path: state.dir, isOwn: true },
    ...folders.map(({ path }) => ({ path, isOwn: false })),
    ...(hasMirrors ? [{ path: mirror.root, isOwn: true }] : []),
  ];
}
