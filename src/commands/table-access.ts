import { PeersyncError } from '../lib/errors.js';
import { nearest } from '../lib/text.js';
import type { PeerClient } from '../peer/client.js';
import { PeerError } from '../peer/errors.js';

/** The peer has no such table; names the one that was probably meant. */
export async function noTable(
  client: PeerClient,
  table: string,
  signal: AbortSignal,
): Promise<PeersyncError> {
  const meant = nearest(table, await tablesOf(client, signal));
  return new PeersyncError({
    code: 'NOT_FOUND',
    message: `The peer has no table "${table}".`,
    hint:
      meant === undefined
        ? '`peersync table list` names the tables that it has.'
        : `Did you mean "${meant}"?`,
    details: { table },
  });
}

/** None where the peer tells no list: it only serves a suggestion. */
async function tablesOf(client: PeerClient, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return await client.tables.list({ signal });
  } catch (error) {
    if (error instanceof PeerError) return [];
    throw error;
  }
}
