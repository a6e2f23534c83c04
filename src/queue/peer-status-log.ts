import type { Logger } from '../lib/logger.js';
import { sentence } from '../lib/text.js';
import { durationText } from '../lib/units.js';
import { type Change, TROUBLE_WORDS } from './breaker.js';
import type { QueuePolicy } from './options.js';

/**
 * Logs trouble with the peer once: when it begins, when it turns into another kind, again after every
 * `logAgainMs` that it lasts, and when it is over. What comes in between is counted in `tries`. That the peer asks
 * to wait is logged as information, and as trouble once it has lasted for `busyLogMs`.
 */
export class PeerStatusLog {
  readonly #log: Logger;
  readonly #peerName: string;
  readonly #policy: QueuePolicy;
  /** How long the trouble had lasted when it was last logged. */
  #loggedAtMs = 0;
  /** How long the peer had been busy when that was last logged as trouble. */
  #busyLoggedAtMs: number | undefined;

  constructor(log: Logger, peerName: string, policy: QueuePolicy) {
    this.#log = log;
    this.#peerName = peerName;
    this.#policy = policy;
  }

  changed(change: Change): void {
    if (change.kind === 'none') return;
    if (change.kind === 'closed') {
      const { downMs, tries } = change;
      const counted = `${tries} ${tries === 1 ? 'try' : 'tries'}`;
      this.#info(
        { downMs: Math.round(downMs), tries },
        `answers again after ${durationText(downMs)}; ${counted}.`,
      );
      return;
    }
    const { kind, troubleMs, trouble, tries, nextProbeMs } = change;
    const what = TROUBLE_WORDS[trouble.kind];
    const isStill = kind === 'still';
    if (isStill && troubleMs - this.#loggedAtMs < this.#policy.logAgainMs) return;
    this.#loggedAtMs = troubleMs;
    const hint = trouble.hint === undefined ? '' : ` ${sentence(trouble.hint)}`;
    const { code } = trouble;
    this.#warn(
      {
        kind: trouble.kind,
        ...(code === undefined ? {} : { code }),
        tries,
        nextProbeMs: Math.round(nextProbeMs),
      },
      `${isStill ? `still ${what} after ${durationText(troubleMs)}` : what}: ${sentence(trouble.message)}${hint}`,
      nextProbeMs,
    );
  }

  /**
   * The peer asked to wait.
   *
   * @param lastedMs how long it has been doing so; undefined for the first time since it answered
   */
  busy(message: string, waitMs: number, lastedMs: number | undefined): void {
    const fields = { kind: 'busy', waitMs: Math.round(waitMs) };
    if (lastedMs === undefined) {
      this.#busyLoggedAtMs = undefined;
      this.#info(fields, `asks to wait: ${sentence(message)} Going on in ${durationText(waitMs)}.`);
      return;
    }
    const { busyLogMs, logAgainMs } = this.#policy;
    const dueAtMs = this.#busyLoggedAtMs === undefined ? busyLogMs : this.#busyLoggedAtMs + logAgainMs;
    if (lastedMs < dueAtMs) return;
    this.#busyLoggedAtMs = lastedMs;
    this.#warn(fields, `still asks to wait after ${durationText(lastedMs)}: ${sentence(message)}`, waitMs);
  }

  /** The peer takes requests again after it asked to wait for `lastedMs`. */
  busyEnded(lastedMs: number): void {
    if (this.#busyLoggedAtMs === undefined) return;
    this.#busyLoggedAtMs = undefined;
    this.#info({ busyMs: Math.round(lastedMs) }, `takes requests again after ${durationText(lastedMs)}.`);
  }

  #info(fields: object, text: string): void {
    this.#log.info(fields, `${this.#peerName} ${text}`);
  }

  #warn(fields: object, text: string, nextMs: number): void {
    const next = `Work waits and nothing is lost; next try in ${durationText(nextMs)}.`;
    this.#log.warn(fields, `${this.#peerName} ${text} ${next}`);
  }
}
