import { type Clock, systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { Peerdoc } from '../../src/peer/peerdoc.js';
import type { Deps } from '../../src/uplink/deps.js';
import type { UplinkWorld } from '../support/uplink-world.js';

export type LookUpFunction = (url: string) => Promise<Peerdoc | undefined>;

/** A clock whose waits end with the next turn of the event loop. */
export const impatient: Clock = Object.assign(Object.create(systemClock), {
  sleep: () => new Promise<void>((resolve) => setImmediate(resolve)),
});

/**
 * Returns the dependencies of `verify` and of an audit in a world. Their requests do not wait for
 * the queue, so that its circuit stays closed while look-ups fail.
 */
export function verifyDeps(
  w: UplinkWorld,
  lookUp: LookUpFunction = (url) => w.peer.peerdoc({ url }),
  clock = impatient,
): Deps {
  return {
    state: w.state,
    queue: {
      run: (_: string, work: (signal: AbortSignal) => unknown) =>
        work(new AbortController().signal),
    },
    peer: { peerdoc: ({ url }: { url: string }) => lookUp(url) },
    dialect: w.dialect,
    settings: w.settings,
    clock,
    log: silentLogger,
  } as unknown as Deps;
}
