import type { Peerdoc } from '../peer/peerdoc.js';
import type { UplinkParts } from './parts.js';

/** A YaCy takes 9 s to index 5 MB of text and 57 s for 50 MB; nothing else is indexed meanwhile. */
const INDEXING_MS_PER_BYTE = 2_000 / 1e6;
const LONGEST_INDEXING_MS = 60_000;
/** How much two moments in whole seconds may be further apart than they look, in ms. */
const WHOLE_SECONDS_MS = 2_000;
/** A wait in doubt is at least this long, in ms: a peer needs a moment to show what it has just taken. */
const SHORTEST_DOUBT_MS = 5_000;

/** For how long what the peer shows proves nothing, and how long it may take to show something. */
export class Hold {
  readonly #parts: Pick<UplinkParts, 'settings' | 'dialect'>;

  constructor(parts: Pick<UplinkParts, 'settings' | 'dialect'>) {
    this.#parts = parts;
  }

  /** So long after a push the peer may take back what it shows, in ms. */
  get ms(): number {
    return this.#parts.settings.confirm.hold ?? this.#parts.dialect.current?.holdMs ?? 0;
  }

  /** From when on what was taken `at` is shown for good, if it is shown: it has to be indexed before. */
  sureFrom(at: number, bytes: number): number {
    if (this.ms === 0) return at;
    return at + this.ms + Math.min(LONGEST_INDEXING_MS, bytes * INDEXING_MS_PER_BYTE);
  }

  /** For how long a document is still too fresh to count, where the peer tells when it was indexed, in ms. */
  freshMs({ loadDate, peerAt }: Peerdoc): number {
    if (loadDate === undefined || peerAt === undefined) return 0;
    const age = peerAt - loadDate;
    // One from the future is of another time zone than it seems.
    return age < -WHOLE_SECONDS_MS ? 0 : Math.max(0, this.ms - WHOLE_SECONDS_MS - age);
  }

  /**
   * How long the peer may take until it shows an item, in ms.
   *
   * @param typicalMs how long it usually takes
   * @param kind `doubt`: nothing answered the push; `gated`: the peer seems to drop its address
   */
  patienceMs(typicalMs: number, kind: 'doubt' | 'gated' | undefined): number {
    const { timeout } = this.#parts.settings.confirm;
    if (kind === 'doubt') return Math.max(SHORTEST_DOUBT_MS, 3 * typicalMs, 2 * this.ms);
    if (kind === 'gated') return Math.min(timeout, 3 * Math.max(this.ms, typicalMs));
    return Math.max(timeout, 2 * this.ms);
  }
}

/** How many observations are remembered. */
const REMEMBERED = 64;
const FIRST_GUESS_MS = 1_000;
const SHORTEST_MS = 50;

/** What was learned of the peer's time-to-visible: from the answer to a push until a look-up shows it. */
export class Visibility {
  readonly #seen: number[] = [];
  #next = 0;

  constructor(learned: number | undefined) {
    if (learned !== undefined) this.saw(learned);
  }

  /** An item was first shown `ms` after it was accepted. */
  saw(ms: number): void {
    this.#seen[this.#next] = Math.max(SHORTEST_MS, ms);
    this.#next = (this.#next + 1) % REMEMBERED;
  }

  /** The wait after which three of four items were visible, in ms. */
  get typicalMs(): number {
    if (this.#seen.length === 0) return FIRST_GUESS_MS;
    const sorted = [...this.#seen].sort((a, b) => a - b);
    return sorted[Math.floor((sorted.length - 1) * 0.75)] ?? FIRST_GUESS_MS;
  }
}
