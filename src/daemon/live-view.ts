import { type Clock, wallAheadMs } from '../lib/clock.js';
import type { Live } from '../report/live.js';
import type { Current } from './current.js';
import type { Parts } from './parts.js';

/** What only a running daemon can tell, for who inspects it. */
export function liveView(
  parts: Parts,
  current: Current,
  clock: Clock,
  { startedAt, silentDisk, stuck, page }: Pick<Live, 'startedAt' | 'silentDisk' | 'stuck' | 'page'>,
): Live {
  const { client, door, uplink, watcher, mirrors, statistics, peerUrl } = parts;
  return {
    pid: process.pid,
    startedAt,
    wallAheadMs: () => wallAheadMs(clock),
    peerUrl,
    page,
    dialect: () => client.dialect,
    door: () => door.status(),
    uplink: () => uplink.status(),
    folders: () => watcher.status(),
    problems: () => watcher.problems(),
    figures: () => statistics.report(),
    mirrors: () => mirrors.status(),
    isInFlight: (place) => uplink.isInFlight(place),
    nextLook: (place) => uplink.nextLook(place),
    restart: () => current.restart,
    configuration: () => {
      const { takenUpAt = startedAt, refused } = current;
      return { takenUpAt, ...(refused === undefined ? {} : { refused }) };
    },
    silentDisk,
    stuck,
  };
}
