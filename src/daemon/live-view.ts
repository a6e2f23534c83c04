import type { Moment } from '../lib/moment.js';
import type { Live } from '../report/live.js';
import type { Current } from './current.js';
import type { Parts } from './parts.js';

/** What only a running daemon can tell, for who inspects it. */
export function liveView(
  parts: Parts,
  current: Current,
  started: Moment,
  { silentDisk, page }: Pick<Live, 'silentDisk' | 'page'>,
): Live {
  const { client, queue, uplink, watcher, mirrors, figures, peerUrl } = parts;
  return {
    pid: process.pid,
    get startedAt() {
      return started.at;
    },
    peerUrl,
    page,
    dialect: () => client.dialect,
    queue: () => queue.status(),
    uplink: () => uplink.status(),
    folders: () => watcher.status(),
    problems: () => watcher.problems(),
    figures: () => figures.report(),
    mirrors: () => mirrors.status(),
    isInFlight: (place) => uplink.isInFlight(place),
    nextLook: (place) => uplink.nextLook(place),
    restart: () => current.restart,
    configuration: () => {
      const { takenUpAt = started.at, refused } = current;
      return { takenUpAt, ...(refused === undefined ? {} : { refused }) };
    },
    silentDisk,
  };
}
