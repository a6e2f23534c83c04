import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PeerClient } from '../../src/peer/client.js';
import type { Ended } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { remotePeer } from '../support/site.js';
import { temporaryDirectory } from '../support/temp.js';
import { peersync } from '../support/warm-cli.js';

export { remotePeer };

/** Sets rows without the command line, which the tests are about. */
export async function fill(
  table: string,
  rows: Readonly<Record<string, Readonly<Record<string, string>>>>,
): Promise<void> {
  const { url, data } = await remotePeer();
  const password = readFileSync(join(data, 'admin-password'), 'utf8').trim();
  const timeouts = { connect: 5_000, headers: 20_000, body: 20_000, total: 30_000 };
  const credentials = { username: 'admin', password };
  const client = new PeerClient({
    dialect: 'standard',
    baseUrl: url,
    credentials,
    timeouts,
    maxAnswer: 2 ** 20,
  });
  const all = Object.entries(rows).map(([pk, cells]) => ({
    pk,
    cells: new Map(Object.entries(cells)),
  }));
  await client.tables.set(table, all).finally(() => client.close());
}

type Run = (...args: string[]) => Promise<Ended>;

/** Commands with a configuration that goes to the one peer, run in a directory of their own. */
export async function atRemotePeer(): Promise<{
  readonly run: Run;
  readonly config: string;
  readonly cwd: string;
}> {
  const cwd = temporaryDirectory();
  const config = writeConfig(cwd, { peer: (await remotePeer()).section() });
  return {
    cwd,
    config,
    run: (...args) => peersync(args, { cwd, env: { PEERSYNC_CONFIG: config } }),
  };
}
