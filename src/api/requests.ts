import { approveDeletes } from './approve-deletes.js';
import { forget } from './forget.js';
import { items } from './items.js';
import { list } from './list.js';
import { live } from './live.js';
import { mirror } from './mirror.js';
import { mirrorAccept } from './mirror-accept.js';
import { pause } from './pause.js';
import { reload } from './reload.js';
import type { AnyRequest, Lot, Needs } from './request.js';
import { rescan } from './rescan.js';
import { resume } from './resume.js';
import { retry } from './retry.js';
import { status } from './status.js';
import { tryNow } from './try-now.js';
import { verifyItems } from './verify.js';
import { why } from './why.js';
// The daemon loads this code with its own. Loaded at the first request, it could come from another
// version, if peersync was updated meanwhile.
import '../report/why.js';
import '../uplink/verify.js';

/** Everything that can be asked of a running daemon. */
export const REQUESTS = [
  status,
  list,
  items,
  why,
  live,
  retry,
  tryNow,
  rescan,
  verifyItems,
  pause,
  resume,
  approveDeletes,
  forget,
  reload,
  mirror,
  mirrorAccept,
] as const;

/** Answers a request in lots of lines. @throws PeersyncError */
export type Answerer = (
  request: AnyRequest<unknown, unknown>,
  question: unknown,
) => AsyncIterable<Lot<unknown>>;

/** Returns what answers requests for a running daemon, to commands and to the page alike. */
export function answererOf(daemon: Needs['daemon']): Answerer {
  const { feed, live } = daemon;
  const { clock, current, log, parts } = live;
  const { state } = parts;
  return (request, question) => {
    const { config } = current;
    const deps = { clock, config, feed, live, log, state, view: state.committed };
    return request.run(deps, question);
  };
}
