import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';

/** So many wrong tokens cost nothing: a person mistypes. */
const FREE = 3;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** After so long without a wrong one, an address begins anew. */
const FORGET_MS = 15 * 60_000;
/** How many addresses are remembered. */
const MOST = 1_000;
const SAY_AGAIN_MS = 60_000;

interface Tries {
  wrong: number;
  lastAt: number;
  nextAt: number;
}

/**
 * Slows down who guesses the token: after a few wrong ones an address has to wait before its next is even looked at,
 * twice as long each time. Told in the log once an address, and at most once a minute. Bounded: of very many addresses the
 * ones that were longest quiet are forgotten.
 */
export class Attempts {
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Those that were quiet the longest come first. */
  readonly #addresses = new Map<string, Tries>();
  #saidAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** How long the next try of this address has to wait, in ms. */
  waitMs(address: string): number {
    const tries = this.#addresses.get(networkOf(address));
    return tries === undefined ? 0 : Math.max(0, tries.nextAt - this.#clock.now());
  }

  wrong(address: string): void {
    const now = this.#clock.now();
    const network = networkOf(address);
    const known = this.#addresses.get(network);
    const tries =
      known !== undefined && now - known.lastAt < FORGET_MS ? known : { wrong: 0, lastAt: 0, nextAt: 0 };
    tries.wrong += 1;
    tries.lastAt = now;
    const over = tries.wrong - FREE;
    tries.nextAt = over <= 0 ? 0 : now + Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (over - 1));
    this.#addresses.delete(network);
    this.#addresses.set(network, tries);
    for (const oldest of this.#addresses.keys()) {
      if (this.#addresses.size <= MOST) break;
      this.#addresses.delete(oldest);
    }
    if (tries.wrong === 1) this.#say(address, now);
  }

  right(address: string): void {
    this.#addresses.delete(networkOf(address));
  }

  #say(address: string, now: number): void {
    if (now - this.#saidAt < SAY_AGAIN_MS) return;
    this.#saidAt = now;
    this.#log.warn(
      { event: 'token', address },
      `Somebody at ${address} gave a wrong token for the status page; more of them are slowed down.`,
    );
  }
}

/** Who has one IPv6 address has the 2^64 beside it too. */
function networkOf(address: string): string {
  if (!address.includes(':') || address.startsWith('::ffff:')) return address;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros =
    tail === undefined
      ? []
      : Array.from({ length: Math.max(0, 8 - groups.length - after.length) }, () => '0');
  return [...groups, ...zeros, ...after].slice(0, 4).join(':');
}
