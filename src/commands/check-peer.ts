import { counted } from '../cli/text.js';
import type { Config, MirrorConfig } from '../config/config.js';
import { EXIT } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { isWildcard, wildcard } from '../lib/text.js';
import { howToPut } from '../mirror/errors.js';
import type { PeerClient } from '../peer/client.js';
import { PeerError } from '../peer/errors.js';
import type { Finding } from './finding.js';
import { find, Wrong } from './finding.js';
import { nameMaxSize, runningPeer } from './peer.js';
import { readState } from './without-daemon.js';

/**
 * Reports documents that the peer accepted and may never show; nothing if the state has none.
 */
export async function* checkAddresses(config: Config): AsyncGenerator<Finding> {
  // Another finding reports a state that cannot be read.
  const state = await readState(config).catch(() => undefined);
  if (state === undefined) return;
  const { statusReport } = await import('../report/status.js');
  for (const { code, hint, message } of statusReport(config, state, undefined).conditions)
    if (code === 'ADDRESSES_UNSEEN') yield { check: 'addresses', ok: false, message, hint };
}

/**
 * Checks whether the peer is reachable, admits us, and answers as a search peer does. It ends with
 * the first failure. Then it checks whether the peer has what is mirrored.
 *
 * @returns whether the peer accepts pushes, regardless of what is mirrored
 */
export async function checkPeer(
  config: Config,
  log: Logger,
  report: (finding: Finding) => void,
): Promise<boolean> {
  let client: PeerClient | undefined;
  const peer = await find('peer', async () => {
    client = await runningPeer(config, log);
    if (client === undefined) return 'the embedded peer starts with the daemon';
    const { ms, server } = await client.ping();
    return `it answers in ${Math.round(ms)} ms${server === undefined ? '' : ` (${server})`}`;
  });
  report(peer);
  const known = client;
  if (known === undefined) return peer.ok;
  try {
    let isUsable = peer.ok;
    for (const [check, look] of [['dialect', dialectOf] as const, ['access', tryPush] as const]) {
      if (!isUsable) return false;
      const finding = await find(check, () => look(known));
      report(finding);
      isUsable = finding.ok;
    }
    if (isUsable) for await (const finding of checkMirrored(config.mirror, known)) report(finding);
    return isUsable;
  } finally {
    await known.close();
  }
}

/** Checks whether the configured dialect is that of the peer; without one, reports the dialect. */
async function dialectOf(client: PeerClient): Promise<string> {
  const configured = client.dialect;
  const dialect = await client.detect().catch((error: unknown) => {
    if (error instanceof PeerError && error.code === 'PEER_ANSWER' && configured !== undefined)
      return undefined;
    throw error;
  });
  if (dialect === undefined)
    return `${configured}, as configured; what the peer answers does not tell`;
  if (configured === undefined || configured === dialect) return `the peer speaks ${dialect}`;
  throw new Wrong(
    `the peer speaks ${dialect}, and is configured as ${configured}`,
    'Leave `peer.dialect` out: it is found out.',
  );
}

/**
 * Pushes nothing, which changes nothing. A peer that does not take that (400 and the like) let us
 * in all the same.
 */
async function tryPush(client: PeerClient): Promise<string> {
  try {
    await client.push([]);
    return 'the peer lets us in and takes pushes';
  } catch (error) {
    if (error instanceof PeerError && error.code === 'PEER_REFUSED' && error.status !== 404)
      return 'the peer lets us in';
    throw error;
  }
}

/**
 * Checks whether the peer has the mirrored objects, one after the other, without reading them. It
 * ends if the peer does not answer.
 */
export async function* checkMirrored(
  { shares, tables }: Pick<MirrorConfig, 'shares' | 'tables'>,
  client: Pick<PeerClient, 'share' | 'shares' | 'tables'>,
): AsyncGenerator<Finding> {
  const there = (isThere: boolean, kind: 'table' | 'share', name: string) => {
    const what = kind === 'table' ? 'table' : 'shared object';
    if (isThere) return `the peer has the ${what}`;
    const hint = `Mend its name in \`mirror\` (upper and lower case count), or put it there: ${howToPut(kind, name)}.`;
    throw new Wrong(`the peer has no ${what} "${name}"`, hint);
  };
  const matching = (pattern: string, listed: readonly string[], what: string) => {
    const count = listed.filter((each) => wildcard(pattern).test(each)).length;
    return `matches ${counted(count, what)} of the peer`;
  };
  let listed: readonly string[] = [];
  if (tables.length > 0) {
    const listing = await find('mirrored tables', async () => {
      listed = await client.tables.list();
      return '';
    });
    if (!listing.ok) yield listing;
    if (listing.exitCode === EXIT.unreachable) return;
    for (const { name, table } of listing.ok ? tables : [])
      yield await find(`mirror ${name}`, () =>
        isWildcard(table)
          ? matching(table, listed, 'table')
          : there(listed.includes(table), 'table', table),
      );
  }
  for (const { name, data, c, maxSize } of shares) {
    const finding = await find(`mirror ${name}`, async () => {
      if (!isWildcard(data)) {
        const query = c === undefined ? { data } : { data, c };
        const isThere = await client
          .share(query, async () => true, { maxBytes: maxSize })
          .catch((error) => nameMaxSize(error, 'Raise its `maxSize`.'));
        return there(isThere === true, 'share', data);
      }
      const group = c === undefined ? '' : `${c}/`;
      const names = (await client.shares())?.filter((each) => each.startsWith(group));
      if (names === undefined)
        throw new Wrong('this peer does not list its shared objects', 'Name each of them.');
      return matching(`${group}${data}`, names, 'shared object');
    });
    yield finding;
    if (finding.exitCode === EXIT.unreachable) return;
  }
}
