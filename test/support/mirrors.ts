import { join } from 'node:path';
import type {
  MirrorConfig,
  ShareMirrorConfig,
  TableMirrorConfig,
} from '../../src/config/config.js';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { Mirrors } from '../../src/mirror/mirrors.js';
import { PeerClient } from '../../src/peer/client.js';
import type { Timeouts } from '../../src/peer/exchange-options.js';
import { RequestQueue } from '../../src/queue/request-queue.js';
import { State } from '../../src/state/state.js';
import { classify } from '../../src/uplink/batch-sender.js';

export interface MirrorsSetting {
  readonly baseUrl: string;
  /** Holds `mirror` and `state`. */
  readonly directory: string;
  readonly tables?: readonly (Partial<TableMirrorConfig> & { readonly table: string })[];
  readonly shares?: readonly (Partial<ShareMirrorConfig> & { readonly data: string })[];
  readonly timeouts?: Partial<Timeouts>;
  readonly clock?: Clock;
}

/**
 * The mirrors of a daemon without the rest of it, asking a real server, at no rate that a test
 * would feel.
 */
export async function openMirrors(setting: MirrorsSetting): Promise<{
  readonly mirrors: Mirrors;
  readonly root: string;
  close(): Promise<void>;
}> {
  const {
    baseUrl,
    directory,
    tables = [],
    shares = [],
    timeouts = {},
    clock = systemClock,
  } = setting;
  const log = silentLogger;
  const usual = { every: 3_600_000, maxSize: 64 * 1024 * 1024, versions: 0 };
  const csv = { format: 'csv', newline: 'lf', neutralise: false } as const;
  const oneWay = { ...csv, edit: false, deletes: false, maxDeletes: 10 };
  const settings: MirrorConfig = {
    root: join(directory, 'mirror'),
    requestsPerSecond: 10_000,
    tables: tables.map((each) => ({
      ...usual,
      ...oneWay,
      name: each.table,
      path: 'tables/{table}.csv',
      ...each,
    })),
    shares: shares.map((each) => ({
      ...usual,
      name: each.data,
      path: `shares/${each.data}`,
      ...each,
    })),
    citations: [],
  };
  const stateDir = join(directory, 'state');
  const state = await State.open(stateDir, { clock, log });
  const lane = { requestsPerSecond: 10_000, concurrency: 4 };
  const queue = new RequestQueue({
    lanes: {
      interactive: lane,
      confirm: lane,
      push: lane,
      removal: lane,
      mirror: lane,
      audit: lane,
    },
    classify,
    clock,
    log,
    peerName: 'the peer',
  });
  const peer = new PeerClient({ dialect: 'standard', timeouts, baseUrl, clock, log });
  const mirrors = await Mirrors.open({ settings, stateDir, state, queue, peer, clock, log });
  const close = async (): Promise<void> => {
    await mirrors.stop();
    await queue.stop(0);
    await peer.close();
    await state.close();
  };
  return { mirrors, root: settings.root, close };
}
