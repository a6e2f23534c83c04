import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../lib/clock.js';

/** Milliseconds for which a nonce is good. */
const LIFETIME_MS = 300_000;
/** Uses of one nonce; a client that reaches it gets a new one. */
const MOST_USES = 100_000;
/** Nonces whose uses are remembered. */
const MOST_REMEMBERED = 1_000;

/** Counts below `upTo` are all used; `above` holds the ones that came out of order. */
interface Uses {
  upTo: number;
  readonly above: Set<number>;
}

/**
 * The nonces of digest authentication (RFC 7616, 3.3 and 3.4).
 *
 * A nonce carries its time and a signature, so issuing one costs no memory. It is *fresh* for LIFETIME_MS; each count (nc) of it
 * is accepted once, in any order, as parallel connections need. What happened to it is remembered from its first
 * successful use; where too many are remembered the oldest is dropped, and nonces as old as that are stale from then on.
 */
export class Nonces {
  readonly #secret = randomBytes(32);
  readonly #clock: Clock;
  readonly #uses = new Map<string, Uses>();
  #staleUpTo = -1;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  issue(): string {
    const head = Buffer.alloc(14);
    head.writeUIntBE(this.#clock.now(), 0, 6);
    randomBytes(8).copy(head, 6);
    return Buffer.concat([head, this.#sign(head)]).toString('base64url');
  }

  isFresh(nonce: string): boolean {
    const issued = this.#issuedAt(nonce);
    return issued !== undefined && issued > this.#staleUpTo && this.#clock.now() - issued <= LIFETIME_MS;
  }

  /** Takes the count `nc` of a fresh nonce; false where it was taken before or is past the last. */
  use(nonce: string, nc: number): boolean {
    if (!Number.isInteger(nc) || nc < 1 || nc > MOST_USES) return false;
    const uses = this.#uses.get(nonce) ?? this.#remember(nonce);
    if (nc <= uses.upTo || uses.above.has(nc)) return false;
    uses.above.add(nc);
    while (uses.above.delete(uses.upTo + 1)) uses.upTo += 1;
    return true;
  }

  #remember(nonce: string): Uses {
    const [oldest] = this.#uses.keys();
    if (oldest !== undefined && (this.#uses.size >= MOST_REMEMBERED || !this.isFresh(oldest))) {
      this.#uses.delete(oldest);
      this.#staleUpTo = Math.max(this.#staleUpTo, this.#issuedAt(oldest) ?? -1);
    }
    const uses: Uses = { upTo: 0, above: new Set() };
    this.#uses.set(nonce, uses);
    return uses;
  }

  #issuedAt(nonce: string): number | undefined {
    const raw = Buffer.from(nonce, 'base64url');
    if (raw.length !== 30) return undefined;
    const head = raw.subarray(0, 14);
    if (!timingSafeEqual(this.#sign(head), raw.subarray(14))) return undefined;
    return head.readUIntBE(0, 6);
  }

  #sign(head: Buffer): Buffer {
    return createHmac('sha256', this.#secret).update(head).digest().subarray(0, 16);
  }
}
