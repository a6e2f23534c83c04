import type { Clock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { DIALECTS, type PeerClient } from '../peer/client.js';
import { type DialectName, rememberedDialect } from '../peer/dialect.js';
import type { RequestQueue } from '../queue/request-queue.js';
import type { State } from '../state/state.js';
import type { DialectSource, Spoken } from '../uplink/deps.js';

/** Under this name the state keeps what was found out. */
export const DIALECT_META = 'dialect';

export interface PeerDialectParts {
  readonly configured: DialectName | 'auto';
  /** The peer's address, to which the memory belongs. */
  readonly url: string;
  readonly client: Pick<PeerClient, 'dialect' | 'detect'>;
  readonly queue: Pick<RequestQueue, 'run'>;
  readonly state: Pick<State, 'meta' | 'setMeta'>;
  readonly commit: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
  /** The peer speaks another dialect than before: what was passed over may travel now. */
  readonly onChange: () => void;
}

/** Between two questions because of answers that do not fit, in ms. */
const ASK_AGAIN_MS = 60_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 60_000;

/**
 * Which dialect the peer speaks: the configured one, or what it turned out to be.
 *
 * Not configured, it is *unknown* until the peer was asked (through the queue, so that a peer that is away is waited for),
 * then *known* and remembered with the peer's address; a later run begins with it. Answers that do not fit make it ask
 * again, at most once a minute: another peer may stand at that address by now.
 */
export class PeerDialect implements DialectSource {
  readonly #parts: PeerDialectParts;
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<boolean> | undefined;

  constructor(parts: PeerDialectParts) {
    this.#parts = parts;
  }

  get current(): Spoken | undefined {
    const { dialect } = this.#parts.client;
    return dialect === undefined ? undefined : DIALECTS[dialect];
  }

  async known(signal: AbortSignal): Promise<boolean> {
    const { client, clock } = this.#parts;
    for (
      let pause = FIRST_PAUSE_MS;
      client.dialect === undefined;
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS)
    ) {
      if (signal.aborted) return false;
      try {
        await this.#ask('confirm', signal);
      } catch (error) {
        if (signal.aborted) return false;
        if (!(error instanceof PeersyncError)) throw error;
        if (error.code === 'QUEUE_STOPPED') return false;
        // The queue says what is wrong with the peer, and waits for one that is away.
        await clock.sleep(pause, signal);
      }
    }
    await this.#remember();
    return !signal.aborted;
  }

  misfits(): Promise<boolean> {
    const { configured, clock } = this.#parts;
    if (configured !== 'auto' || clock.now() - this.#askedAt < ASK_AGAIN_MS)
      return this.#asking ?? Promise.resolve(false);
    this.#askedAt = clock.now();
    this.#asking = this.#askAnew().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #askAnew(): Promise<boolean> {
    const { client, log, onChange } = this.#parts;
    const before = client.dialect;
    try {
      // What this asks says nothing of whether the trouble of the pushes is over.
      await this.#ask('interactive', undefined);
    } catch (error) {
      if (error instanceof PeersyncError) return false;
      throw error;
    }
    if (before === undefined || client.dialect === before) return false;
    log.warn(
      { event: 'dialect', before, dialect: client.dialect },
      `the peer speaks ${client.dialect} now, no longer ${before}: another one must stand at its address`,
    );
    await this.#remember();
    onChange();
    return true;
  }

  async #ask(lane: 'confirm' | 'interactive', signal: AbortSignal | undefined): Promise<void> {
    const { client, queue } = this.#parts;
    await queue.run(lane, (s) => client.detect({ signal: s }), signal === undefined ? {} : { signal });
  }

  async #remember(): Promise<void> {
    const { client, configured, url, state, commit, log } = this.#parts;
    const { dialect } = client;
    if (
      configured !== 'auto' ||
      dialect === undefined ||
      rememberedDialect(state.meta(DIALECT_META), url) === dialect
    )
      return;
    state.setMeta(DIALECT_META, { url, dialect });
    await commit();
    log.debug({ event: 'dialect', dialect }, `the peer speaks ${dialect}`);
  }
}
