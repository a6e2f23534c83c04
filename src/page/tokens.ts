import { createHmac, timingSafeEqual } from 'node:crypto';

/** How long a browser stays signed in, in ms. */
export const SESSION_MS = 30 * 86_400_000;

/**
 * Knows the token, and the sessions that were begun with it.
 *
 * A session is its end and a signature that only who has the token could make: nothing is remembered of it, it
 * survives a restart, and another token ends them all. It is not the token, nor does it lead there sooner than guessing.
 */
export class Tokens {
  readonly #token: string;
  readonly #key: Buffer;

  constructor(token: string) {
    this.#token = token;
    this.#key = createHmac('sha256', token).update('peersync status page session').digest();
  }

  /** Takes as long for a wrong token as for the right one. */
  isToken(offered: string): boolean {
    const [a, b] = [this.#token, offered].map((text) =>
      createHmac('sha256', this.#key).update(text).digest(),
    );
    return a !== undefined && b !== undefined && timingSafeEqual(a, b);
  }

  /** @param now ms since the epoch */
  newSession(now: number): string {
    const end = String(now + SESSION_MS);
    return `${end}.${this.#sign(end)}`;
  }

  isSession(offered: string, now: number): boolean {
    const [end = '', signature = ''] = offered.split('.');
    // Anything may stand in a cookie: its bytes are counted, not its letters.
    const [offeredBytes, right] = [Buffer.from(signature), Buffer.from(this.#sign(end))];
    if (offeredBytes.length !== right.length) return false;
    return timingSafeEqual(offeredBytes, right) && Number(end) > now;
  }

  #sign(end: string): string {
    return createHmac('sha256', this.#key).update(end).digest('hex');
  }
}
