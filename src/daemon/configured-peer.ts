import { join } from 'node:path';
import { readCa } from '../config/ca.js';
import type { Config } from '../config/config.js';
import { resolveSecret } from '../config/secret.js';
import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import type { Credentials } from '../peer/auth.js';
import { PeerClient } from '../peer/client.js';
import type { Dialect, DialectName } from '../peer/dialects/dialect.js';
import { dialectNamed } from '../peer/dialects/dialects.js';
import { rememberedDialect, rememberedEmbedded } from '../peer/remembered.js';
import type { RequestQueue } from '../queue/request-queue.js';
import { EMBEDDED_META } from '../report/status.js';
import type { State } from '../state/state.js';
import type { DialectSource } from '../uplink/deps.js';

/** The access to the embedded peer: by its socket if this process runs it, else by its URL. */
export interface EmbeddedAccess {
  readonly url: string;
  readonly socketPath?: string | undefined;
  readonly credentials: Credentials;
}

/** The file in the state directory that records how each peer asked for the password. */
const ACCESS_FILE = 'peer-access.json';

/**
 * Returns a client for the configured peer.
 *
 * @param embedded the access to the embedded peer, if that is the configured one
 * @throws PeersyncError if the password or the CA file cannot be read
 */
export async function configuredPeer(
  { peer, state }: Pick<Config, 'peer' | 'state'>,
  parts: { readonly clock: Clock; readonly log: Logger },
  embedded?: EmbeddedAccess,
): Promise<PeerClient> {
  const { url, dialect, auth, tls, timeouts, maxAnswer } = peer;
  const common = { ...parts, timeouts, maxAnswer };
  if (embedded !== undefined) {
    const { credentials, socketPath, url: baseUrl } = embedded;
    return new PeerClient({ ...common, dialect: 'standard', baseUrl, socketPath, credentials });
  }
  return new PeerClient({
    ...common,
    dialect,
    baseUrl: url,
    accessFile: join(state.dir, ACCESS_FILE),
    allowBasic: auth?.allowBasic ?? false,
    ...(auth === undefined ? {} : { credentials: await configuredCredentials(auth, parts.log) }),
    ...(tls.ca === undefined ? {} : { tls: { ca: await readCa(tls.ca, 'peer.tls.ca') } }),
  });
}

/** @throws ConfigError if the password cannot be read */
export async function configuredCredentials(
  { username, password }: NonNullable<Config['peer']['auth']>,
  log: Logger,
): Promise<Credentials> {
  return { username, password: await resolveSecret(password, process.env, log) };
}

/** The key of the state value that keeps the detected dialect. */
const DIALECT_META = 'dialect';

export interface PeerDialectDeps {
  readonly configured: DialectName | 'auto';
  /** The URL of the peer. A remembered dialect is that of one URL. */
  readonly url: string;
  readonly client: Pick<PeerClient, 'dialect' | 'detect'>;
  readonly queue: Pick<RequestQueue, 'run'>;
  readonly state: Pick<State, 'meta' | 'setMeta' | 'commit'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when the peer speaks another dialect than before: skipped files may be pushed now. */
  readonly onChange: () => void;
}

/** Shortest interval between two detections because of answers that do not fit, in ms. */
const ASK_AGAIN_MS = 60_000;
/** Interval between two detections while the dialect is unknown, in ms. */
const PAUSE_MS = 2_000;

/**
 * Holds the dialect of the peer: the configured one, or the detected one.
 *
 * A dialect that is not configured is *unknown* until the peer answers a detection, which waits in
 * the queue for a peer that is away. Then it is *known*, and remembered with the URL of the peer; a
 * later run begins with it. Answers that do not fit cause another detection, at most once a minute,
 * because another peer may be at that URL by now.
 */
export class PeerDialect implements DialectSource {
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<boolean> | undefined;

  constructor(private readonly deps: PeerDialectDeps) {}

  get current(): Dialect | undefined {
    const { dialect } = this.deps.client;
    return dialect === undefined ? undefined : dialectNamed(dialect);
  }

  async known(signal: AbortSignal): Promise<boolean> {
    const { client, clock, queue } = this.deps;
    while (client.dialect === undefined) {
      if (signal.aborted) return false;
      try {
        await queue.run('confirm', (stop) => client.detect({ signal: stop }), { signal });
      } catch (error) {
        if (!signal.aborted && !(error instanceof PeersyncError)) throw error;
        await clock.sleep(PAUSE_MS, signal);
      }
    }
    await this.#remember();
    return !signal.aborted;
  }

  async redetect(): Promise<boolean> {
    const { configured, clock } = this.deps;
    if (configured !== 'auto') return false;
    if (this.#asking === undefined && clock.now() - this.#askedAt >= ASK_AGAIN_MS) {
      this.#askedAt = clock.now();
      this.#asking = this.#askAnew().finally(() => {
        this.#asking = undefined;
      });
    }
    return (await this.#asking) ?? false;
  }

  async #askAnew(): Promise<boolean> {
    const { client, log, onChange, queue } = this.deps;
    const before = client.dialect;
    try {
      // In the lane `interactive`, this request does not show whether pushes succeed again.
      await queue.run('interactive', (signal) => client.detect({ signal }));
    } catch (error) {
      if (error instanceof PeersyncError) return false;
      throw error;
    }
    const { dialect } = client;
    if (before === undefined || dialect === before) return false;
    log.warn(
      { event: 'dialect', before, dialect },
      `the peer speaks ${dialect} now, no longer ${before}: another one must stand at its address`,
    );
    await this.#remember();
    onChange();
    return true;
  }

  async #remember(): Promise<void> {
    const { client, configured, url, state, log } = this.deps;
    const { dialect } = client;
    if (configured !== 'auto' || dialect === undefined) return;
    if (rememberedDialect(state.meta(DIALECT_META), url) === dialect) return;
    state.setMeta(DIALECT_META, { url, dialect });
    await state.commit();
    log.debug({ event: 'dialect', dialect }, `the peer speaks ${dialect}`);
  }
}

export interface PeerKindDeps extends Pick<PeerDialectDeps, 'url' | 'queue' | 'state' | 'clock'> {
  readonly client: Pick<PeerClient, 'isEmbedded' | 'ping'>;
  readonly dialect: Pick<DialectSource, 'known'>;
  /** Called when the peer is an embedded one: removed files that waited can be decided about. */
  readonly onEmbedded: () => void;
  /** Called with a bug, or with the error of a state that cannot be written. */
  readonly onFailure: (error: unknown) => void;
  /** Ends the requests. */
  readonly signal: AbortSignal;
}

/**
 * Finds out whether the peer is an embedded one, which another process may run. Unless `onDelete`
 * says otherwise, documents are removed from such a peer only.
 *
 * This is *unknown* until the peer has answered in this run, even if an earlier run found it out,
 * because another peer may be at that URL by now. Then it is *known*, and each answer renews it. No
 * request is sent before a document depends on it. It is remembered for reports while no daemon
 * runs.
 */
export class PeerKind {
  #asked: Promise<void> | undefined;

  constructor(private readonly deps: PeerKindDeps) {}

  get isEmbedded(): boolean | undefined {
    return this.deps.url === 'embedded' || this.deps.client.isEmbedded;
  }

  /** Resolves when the peer has answered; undefined if no request was needed. */
  get asked(): Promise<void> | undefined {
    return this.#asked;
  }

  /** Returns what is known. If that is nothing, asks the peer until it has answered. */
  get(): boolean | undefined {
    if (this.isEmbedded === undefined) this.#asked ??= this.#ask().catch(this.deps.onFailure);
    return this.isEmbedded;
  }

  async #ask(): Promise<void> {
    const { client, clock, dialect, onEmbedded, queue, signal } = this.deps;
    if (!(await dialect.known(signal))) return;
    let pauseMs = PAUSE_MS;
    while (this.isEmbedded === undefined) {
      if (signal.aborted) return;
      try {
        await queue.run('confirm', (stop) => client.ping({ signal: stop }), { signal });
      } catch (error) {
        if (!signal.aborted && !(error instanceof PeersyncError)) throw error;
        await clock.sleep(pauseMs, signal);
        pauseMs = Math.min(ASK_AGAIN_MS, 2 * pauseMs);
      }
    }
    if (signal.aborted) return;
    await this.#remember();
    if (this.isEmbedded) onEmbedded();
  }

  async #remember(): Promise<void> {
    const { state, url } = this.deps;
    const { isEmbedded } = this;
    if (isEmbedded === undefined) return;
    if (rememberedEmbedded(state.meta(EMBEDDED_META), url) === isEmbedded) return;
    state.setMeta(EMBEDDED_META, { url, isEmbedded });
    await state.commit();
  }
}
