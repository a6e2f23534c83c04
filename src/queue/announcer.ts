import { durationText } from '../lib/duration-text.js';
import type { Logger } from '../lib/logger.js';
import { sentence } from '../lib/sentence.js';
import type { Change, TroubleChange } from './breaker.js';
import type { QueuePolicy } from './policy.js';
import { TROUBLE_WORDS } from './words.js';

/**
 * Says trouble with the peer once: when it begins, when it turns into another kind, again after every
 * `sayAgainMs` that it lasts, and once when it is over. What comes in between is counted in `tries`. That the peer asks
 * to wait is said in passing, and is trouble once it has lasted for `busySayMs`.
 */
export class Announcer {
  readonly #log: Logger;
  readonly #peerName: string;
  readonly #policy: Pick<QueuePolicy, 'sayAgainMs' | 'busySayMs'>;
  /** How long the trouble had lasted when it was last said. */
  #saidAtMs = 0;
  /** How long the peer had been busy when that was last said as trouble. */
  #busySaidAtMs: number | undefined;

  constructor(log: Logger, peerName: string, policy: Pick<QueuePolicy, 'sayAgainMs' | 'busySayMs'>) {
    this.#log = log;
    this.#peerName = peerName;
    this.#policy = policy;
  }

  changed(change: Change): void {
    switch (change.kind) {
      case 'none':
        return;
      case 'closed': {
        const { downMs, tries } = change;
        this.#log.info(
          { downMs: Math.round(downMs), tries },
          `${this.#peerName} answers again after ${durationText(downMs)}; ${tries} ${tries === 1 ? 'try' : 'tries'}.`,
        );
        return;
      }
      case 'still': {
        const { troubleMs, trouble } = change;
        if (troubleMs - this.#saidAtMs < this.#policy.sayAgainMs) return;
        this.#say(
          change,
          `${this.#peerName} still ${TROUBLE_WORDS[trouble.kind]} after ${durationText(troubleMs)}`,
        );
        return;
      }
      default:
        this.#say(change, `${this.#peerName} ${TROUBLE_WORDS[change.trouble.kind]}`);
    }
  }

  /** The peer asked to be left alone for `ms`. */
  paused(words: string, ms: number): void {
    this.#busySaidAtMs = undefined;
    const next = `Going on in ${durationText(ms)}.`;
    this.#log.info(
      { kind: 'busy', waitMs: Math.round(ms) },
      `${this.#peerName} asks to wait: ${sentence(words)} ${next}`,
    );
  }

  /** It asked again, as it has been doing for `lastedMs`. */
  stillPaused(words: string, ms: number, lastedMs: number): void {
    const { busySayMs, sayAgainMs } = this.#policy;
    const saidAtMs = this.#busySaidAtMs;
    if (saidAtMs === undefined ? lastedMs < busySayMs : lastedMs - saidAtMs < sayAgainMs) return;
    this.#busySaidAtMs = lastedMs;
    const what = `${this.#peerName} still asks to wait after ${durationText(lastedMs)}: ${sentence(words)}`;
    this.#log.warn(
      { kind: 'busy', waitMs: Math.round(ms) },
      `${what} Work waits and nothing is lost; next try in ${durationText(ms)}.`,
    );
  }

  /** The peer takes requests again after it asked to wait for `lastedMs`. */
  resumed(lastedMs: number): void {
    if (this.#busySaidAtMs === undefined) return;
    this.#busySaidAtMs = undefined;
    this.#log.info(
      { busyMs: Math.round(lastedMs) },
      `${this.#peerName} takes requests again after ${durationText(lastedMs)}.`,
    );
  }

  #say({ trouble, tries, troubleMs, nextProbeMs }: TroubleChange, what: string): void {
    this.#saidAtMs = troubleMs;
    const words = [
      `${what}: ${sentence(trouble.message)}`,
      ...(trouble.hint === undefined ? [] : [sentence(trouble.hint)]),
      `Work waits and nothing is lost; next try in ${durationText(nextProbeMs)}.`,
    ];
    const { kind, code } = trouble;
    this.#log.warn(
      { kind, ...(code === undefined ? {} : { code }), tries, nextProbeMs: Math.round(nextProbeMs) },
      words.join(' '),
    );
  }
}
