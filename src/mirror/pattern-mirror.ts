import { MirrorError } from './errors.js';
import type { Identity } from './life.js';
import type { Followed, FollowOptions, Mirror, MirrorTools } from './parts.js';
import { quoted } from './quoted.js';
import { throughQueue } from './through-queue.js';

/** A peer that lists more is not listing what a person made. */
const MOST_MEMBERS = 10_000;

export interface PatternMirrorParts {
  readonly name: string;
  readonly identity: Identity;
  /** In ms. */
  readonly every: number;
  /** As it stands in the configuration. */
  readonly pattern: string;
  /** What it is over, as one and as many. */
  readonly words: readonly [one: string, many: string];
  readonly queue: MirrorTools['queue'];
  readonly matches: (name: string) => boolean;
  /** Undefined where the peer does not tell. */
  readonly list: (signal: AbortSignal) => Promise<readonly string[] | undefined>;
  /** Hears of all that the peer has, each time it was asked. */
  readonly onList: (names: readonly string[]) => void;
}

/**
 * A pattern over the tables, or the shared objects, of the peer. A run asks for the list of them; each that matches is a mirror of
 * its own, and stays one when it is not on the list any more, until a person accepts that.
 */
export class PatternMirror implements Mirror {
  readonly name: string;
  readonly identity: Identity;
  readonly every: number;
  readonly #parts: PatternMirrorParts;

  constructor(parts: PatternMirrorParts) {
    this.name = parts.name;
    this.identity = parts.identity;
    this.every = parts.every;
    this.#parts = parts;
  }

  async follow(_before: unknown, { signal }: FollowOptions): Promise<Followed> {
    const { queue, pattern, matches, words } = this.#parts;
    const [one, many] = words;
    const names = await throughQueue(queue, signal, this.#parts.list);
    if (names === undefined) throw new MirrorError('MIRROR_NO_LIST', { what: quoted(pattern), detail: many });
    const matching = names.filter(matches).length;
    if (matching > MOST_MEMBERS) {
      const detail = `${MOST_MEMBERS} ${many}`;
      throw new MirrorError('MIRROR_TOO_MANY', { what: quoted(pattern), detail });
    }
    this.#parts.onList(names);
    const notes =
      matching === 0
        ? [`None of the ${many} of the peer matches it.`]
        : [`Follows ${matching} ${matching === 1 ? one : many} of the peer.`];
    return { kind: 'followed', changed: false, facts: { notes } };
  }
}
