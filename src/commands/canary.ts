import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../config/config.js';
import { normaliseBase } from '../config/url.js';
import { type Clock, systemClock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { DIALECTS, type PeerClient } from '../peer/client.js';
import { type Canary, type CanaryReport, canaryPlan, type Probed, reportOf } from './canary-report.js';
import { isThere, UsageError } from './context.js';
import { withPeer } from './peer.js';
import { readyFiles } from './push.js';
import { pushFile, untilShown } from './push-and-wait.js';
import { type Asked, consent } from './terminal.js';
import { counted, safe } from './text.js';

/**
 * Pushes canaries to the configured peer, once somebody agreed: the peer keeps them.
 *
 * @throws UsageError for a URL that is none, or that is the document of a file of a folder
 * @throws PeersyncError NOT_CONFIRMED, STOPPED, and what finding out the dialect throws
 */
export async function checkCanary(
  config: Config,
  {
    timeoutMs,
    url,
    yes,
  }: { readonly url: string | undefined; readonly yes: boolean; readonly timeoutMs: number },
  log: Logger,
  asked: Asked,
): Promise<CanaryReport> {
  const { confirm, folders } = config;
  const base = url === undefined ? `${folders[0]?.url ?? ''}peersync-canary/` : normaliseBase(url);
  if (base === undefined)
    throw new UsageError(
      `--url: received "${url}".`,
      'Give an http, https, ftp or file URL without credentials, query and fragment, such as https://files.example.org/canary/.',
    );
  const plan = canaryPlan(base, folders, systemClock.now());
  for (const canary of plan) {
    const folder = folders.find((each) => canary.url.startsWith(each.url));
    if (folder === undefined) continue;
    const file = join(folder.path, decodeURIComponent(canary.url.slice(folder.url.length)));
    if (await isThere(file))
      throw new UsageError(
        `The canary ${canary.url} would replace the document of ${file}.`,
        'Give another --url.',
      );
  }
  return withPeer(config, log, async (client, signal) => {
    if (!yes) {
      const urls = plan.map((canary) => `  ${safe(canary.url)}\n`).join('');
      if (asked.isTerminal)
        asked.output.write(
          `${counted(plan.length, 'tiny document')} will stay in the index, for a peer's interface cannot remove any:\n${urls}`,
        );
      await consent('Push them? Type "yes": ', 'yes', asked, signal, 'Nothing was pushed');
    }
    const { hold, maxInterval } = confirm;
    return pushCanaries(client, plan, { timeoutMs, hold, maxInterval }, { clock: systemClock, signal });
  });
}

/** What a canary asks of the peer; `PeerClient` is one. */
export type CanaryPeer = Pick<PeerClient, 'dialect' | 'detect' | 'push' | 'peerdoc' | 'citation'>;

/** So long ago was a canary changed last, so that this is no moment of its push, in ms. */
const AGE_MS = 3_600_000;
/** A dialect that drops documents without a word is given so many times its hold to show one, as the daemon does. */
const GATE_HOLDS = 3;
const SHORTEST_GATE_MS = 5_000;
/** For the look-ups that are under way when the time is over, in ms. */
const LAST_LOOKS_MS = 5_000;

/**
 * Pushes canaries, each by itself so that none suffers from another, waits until the peer shows them as the daemon would, and
 * looks at what it shows.
 *
 * @param patience.hold `confirm.hold`; that of the dialect unless given, in ms
 * @throws PeersyncError when the peer's dialect cannot be found out, or `signal` aborted
 */
export async function pushCanaries(
  client: CanaryPeer,
  plan: readonly Canary[],
  patience: {
    readonly timeoutMs: number;
    readonly hold: number | undefined;
    readonly maxInterval: number;
  },
  { clock, signal: stopped }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<CanaryReport> {
  const over = new AbortController();
  const end = clock.after(patience.timeoutMs + LAST_LOOKS_MS, () => over.abort());
  const signal = AbortSignal.any([stopped, over.signal]);
  const directory = await mkdtemp(join(tmpdir(), 'peersync-canary-'));
  try {
    const deadline = clock.now() + patience.timeoutMs;
    const dialect = DIALECTS[client.dialect ?? (await client.detect({ signal }))];
    const hold = patience.hold ?? dialect.holdMs;
    const gateMs = dialect.hasDomainGate ? Math.max(GATE_HOLDS * hold, SHORTEST_GATE_MS) : patience.timeoutMs;

    /** @returns what follows the push: to wait until the peer shows the document for good, and to look at what it shows */
    const push = async (canary: Canary): Promise<() => Promise<Omit<Probed, keyof Canary>>> => {
      const file = join(directory, canary.name);
      await writeFile(file, canary.bytes);
      const modified = Math.floor((clock.now() - AGE_MS) / 1000);
      await utimes(file, modified, modified);
      const [ready] = await readyFiles([{ file, url: canary.url }], dialect.content).catch((error) => {
        if (error instanceof PeersyncError && error.code === 'NOT_TEXT') return [];
        throw error;
      });
      if (ready === undefined) return async () => ({ outcome: undefined });
      const how = { collection: 'peersync-canary' };
      const sent = await pushFile(client, ready, how, { clock, deadline, signal });
      if ('refused' in sent) return async () => ({ outcome: { status: 'refused', message: sent.refused } });
      const isAddress = canary.kind === 'address';
      const ownDeadline = isAddress ? Math.min(deadline, clock.now() + gateMs) : deadline;
      return async () => {
        let visibleMs: number | undefined;
        const onShown = (at: number) => {
          visibleMs = at - sent.at;
        };
        const wait = { deadline: ownDeadline, hold, maxInterval: patience.maxInterval };
        const outcome = await untilShown(client, sent, isAddress ? wait : { ...wait, onShown }, {
          clock,
          signal,
        });
        if (isAddress || outcome.status !== 'confirmed') return { outcome, sent };
        const doc = await client.peerdoc({ url: canary.url }, { signal });
        const citation = await client.citation({ url: canary.url }, { signal }).catch(failure);
        return { outcome, sent, doc, citation, visibleMs };
      };
    };
    const probes: Promise<Probed>[] = [];
    for (const canary of plan) {
      const look = await push(canary).catch((error) => async () => ({ outcome: failure(error) }));
      probes.push(
        look().then(
          (probed) => ({ ...canary, ...probed }),
          (error) => ({ ...canary, outcome: failure(error) }),
        ),
      );
    }
    const probed = await Promise.all(probes);
    stopped.throwIfAborted();
    return reportOf(probed, dialect, hold);
  } finally {
    end.cancel();
    await rm(directory, { recursive: true });
  }
}

/** @throws the error where it is none that a person may read */
function failure(error: unknown): { readonly status: 'failed'; readonly error: PeersyncError } {
  if (!(error instanceof PeersyncError)) throw error;
  return { status: 'failed', error };
}
