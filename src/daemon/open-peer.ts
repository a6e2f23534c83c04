import type { Config } from '../config/config.js';
import { startEmbeddedPeer } from '../embedded/embedded-peer.js';
import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import type { PeerClient } from '../peer/client.js';
import type { State } from '../state/state.js';
import { configuredPeer } from '../uplink/configured-peer.js';
import { rememberedDialect } from '../uplink/remembered-dialect.js';
import type { Undoing } from './undoing.js';

export interface PeerParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly state: State;
  readonly undoing: Undoing;
  /** Hears of an embedded peer that ended by itself. */
  readonly onFailure: (error: unknown) => void;
}

export interface OpenPeer {
  readonly client: PeerClient;
  /** Its address, also of the embedded one, which only has it now. */
  readonly url: string;
}

/** A client for the configured peer; brings up the embedded one where that is the peer. */
export async function openPeer(config: Config['peer'], parts: PeerParts): Promise<OpenPeer> {
  const { clock, log, state, undoing, onFailure } = parts;
  const client = async (): Promise<OpenPeer> => {
    if (config.url !== 'embedded') {
      const { url, dialect } = config;
      const known = dialect === 'auto' ? rememberedDialect(state, url) : dialect;
      return { url, client: await configuredPeer({ ...config, dialect: known ?? 'auto' }, { clock, log }) };
    }
    const { dir, port, requireAuth } = config.embedded;
    const peer = await startEmbeddedPeer({ dir, port, requireAuthEverywhere: requireAuth, log });
    undoing.add('embedded peer', () => peer.close());
    void peer.exited.then((error) => {
      if (error !== undefined) onFailure(error);
    });
    return { url: peer.url, client: await configuredPeer(config, { clock, log }, peer) };
  };
  const opened = await client();
  undoing.add('peer', () => opened.client.close());
  return opened;
}
