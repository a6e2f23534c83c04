import { durationText } from '../lib/duration-text.js';
import type { Logger } from '../lib/logger.js';
import type { Change, TroubleChange } from './breaker.js';
import type { TroubleKind } from './outcome.js';

const SAYS: Record<TroubleKind, string> = {
  unreachable: 'does not answer',
  failing: 'answers with errors',
  denied: 'refuses the credentials',
};

/**
 * Says trouble with the peer once: when it begins, when it turns into another kind, again after every
 * `sayAgainMs` that it lasts, and once when it is over. What comes in between is counted in `tries`.
 */
export class Announcer {
  readonly #log: Logger;
  readonly #peerName: string;
  readonly #sayAgainMs: number;
  /** How long the trouble had lasted when it was last said. */
  #saidAtMs = 0;

  constructor(log: Logger, peerName: string, sayAgainMs: number) {
    this.#log = log;
    this.#peerName = peerName;
    this.#sayAgainMs = sayAgainMs;
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
        const { downMs, trouble } = change;
        if (downMs - this.#saidAtMs < this.#sayAgainMs) return;
        this.#say(change, `${this.#peerName} still ${SAYS[trouble.kind]} after ${durationText(downMs)}`);
        return;
      }
      default:
        this.#say(change, `${this.#peerName} ${SAYS[change.trouble.kind]}`);
    }
  }

  /** The peer asked to be left alone for `ms`. */
  paused(ms: number): void {
    this.#log.info(
      { waitMs: Math.round(ms) },
      `${this.#peerName} is busy and asks to wait; going on in ${durationText(ms)}.`,
    );
  }

  #say({ trouble, tries, downMs, nextProbeMs }: TroubleChange, what: string): void {
    this.#saidAtMs = downMs;
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

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
