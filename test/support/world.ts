import type { MirrorPeer } from '../../src/mirror/mirror.js';
import type { FakePeer } from './fake-peer.js';
import { MirrorWorld, type MirrorWorldOptions } from './mirror-world.js';
import { UplinkWorld, type UplinkWorldOptions } from './uplink-world.js';

/**
 * Opens a world: a state, a clock, a queue and a log in a temporary directory, and in it the
 * mirrors of a peer, or else an uplink to it that has started. The peer is a fake one unless a test
 * has another. The end of the test stops it all.
 *
 * @example const w = await world({ clock: new FakeClock(), push: { maxItems: 1 } });
 * @example const w = await world({ mirrors: { tables: [{ table: 'prices' }] } });
 */
export function world<P extends MirrorPeer = FakePeer>(
  options: MirrorWorldOptions<P>,
): Promise<MirrorWorld<P>>;
export function world(options?: UplinkWorldOptions): Promise<UplinkWorld>;
export async function world(
  options: MirrorWorldOptions<MirrorPeer> | UplinkWorldOptions = {},
): Promise<MirrorWorld<MirrorPeer> | UplinkWorld> {
  if ('mirrors' in options) return await new MirrorWorld(options).open(options.mirrors);
  const w = new UplinkWorld(options);
  await w.start(options.fill);
  return w;
}
