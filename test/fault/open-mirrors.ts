import { type Clock, systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { Mirrors } from '../../src/mirror/mirrors.js';
import { PeerClient } from '../../src/peer/client.js';
import type { Timeouts } from '../../src/peer/exchange-options.js';
import { type MirrorSettings, MirrorWorld } from '../support/mirror-world.js';

export interface ServerSetting extends Pick<MirrorSettings, 'tables' | 'shares'> {
  readonly baseUrl: string;
  /** The directory of `mirror` and `state`. */
  readonly directory: string;
  readonly timeouts?: Partial<Timeouts>;
  readonly clock?: Clock;
}

/** Opens the mirrors of a real server. */
export async function openMirrors({
  baseUrl,
  directory,
  timeouts = {},
  clock = systemClock,
  ...mirrors
}: ServerSetting): Promise<{
  readonly mirrors: Mirrors;
  readonly root: string;
  close(): Promise<void>;
}> {
  const log = silentLogger;
  const peer = new PeerClient({ dialect: 'standard', timeouts, baseUrl, clock, log });
  // `world` would bring the uplink with all readers of documents into the programs of the tests.
  const w = await new MirrorWorld({ peer, clock, directory }).open(mirrors);
  const close = async (): Promise<void> => {
    await w.stop();
    await peer.close();
  };
  return { mirrors: w.mirrors, root: w.root, close };
}
