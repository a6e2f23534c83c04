import type { AddressPolicy, Reach } from '../peer/dialects/dialect.js';
import { PeerError } from '../peer/errors.js';
import type { PushItem } from '../peer/push.js';
import type { UplinkPeer } from '../uplink/deps.js';

/**
 * Finds out which addresses the peer drops because of the reach of its network. It compares
 * documents of the two reaches: an origin is dropped if its document is refused while one of the
 * other reach is accepted. If no document has the other reach, one more is pushed at `probeUrl`.
 *
 * A YaCy answers a synchronous push after it has indexed the document, and with an error (500) if
 * its network does not take it (measured, 1.92). Only that answer counts: a look-up may come too
 * late for the moment in which a new document is shown.
 *
 * @returns the origins that are dropped; undecidable ones are not among them
 */
export async function droppedOrigins(
  peer: UplinkPeer,
  addresses: AddressPolicy,
  documents: readonly PushItem[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const [sample] = documents;
  const refused: string[] = [];
  const taken = new Set<Reach>();
  for (const document of firstOfEach(documents)) {
    if (await isTaken(peer, document, signal)) taken.add(addresses.reachOf(document.url));
    else refused.push(document.url);
  }
  const dropped = new Set<string>();
  for (const url of refused) {
    const other = addresses.reachOf(url) === 'local' ? 'global' : 'local';
    const probe = sample && { ...sample, url: addresses.probeUrl(other) };
    if (!taken.has(other) && probe && (await isTaken(peer, probe, signal))) taken.add(other);
    if (taken.has(other) && !taken.has(addresses.reachOf(url))) dropped.add(originOf(url));
  }
  return dropped;
}

/** Scheme and host of an address. */
export function originOf(url: string): string {
  return /^[a-z][a-z0-9+.-]*:\/\/[^/]*/i.exec(url)?.[0] ?? url;
}

function firstOfEach(documents: readonly PushItem[]): Iterable<PushItem> {
  const first = new Map<string, PushItem>();
  for (const document of documents) {
    const origin = originOf(document.url);
    if (!first.has(origin)) first.set(origin, document);
  }
  return first.values();
}

async function isTaken(
  peer: UplinkPeer,
  document: PushItem,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const { results } = await peer.push([document], { synchronous: true, signal });
    return results.every(({ ok }) => ok);
  } catch (error) {
    if (signal.aborted || !(error instanceof PeerError)) throw error;
    return false;
  }
}
