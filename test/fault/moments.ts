import type { Running } from '../support/cli.js';
import type { Random } from '../support/random.js';
import type { Recorded, ScriptedPeer } from '../support/scripted-peer.js';

/** When something is done to a daemon: so many ms after something happened. */
export interface Moment {
  readonly after: 'spawned' | 'running' | 'push came' | 'push answered' | 'look-up answered';
  /** The how manieth of these, from 1. */
  readonly nth: number;
  readonly ms: number;
}

/** Where nothing of the kind happens, it is done all the same. */
const LONGEST_WAIT_MS = 1_500;

const KINDS = [
  ['spawned', 1, 400],
  ['running', 1, 500],
  ['push came', 12, 12],
  ['push answered', 12, 12],
  ['look-up answered', 30, 6],
] as const satisfies readonly (readonly [Moment['after'], number, number])[];

export function randomMoment(random: Random): Moment {
  const [after, most, longest] = random.pick(KINDS);
  return { after, nth: random.between(1, most), ms: random.between(0, longest) };
}

export function inWords({ after, nth, ms }: Moment): string {
  return `${ms} ms after ${after}${nth === 1 ? '' : ` (${nth})`}`;
}

/** Tells of what passes a proxy, and remembers what the peer has shown. */
export class Passing {
  /** Every version that a look-up was answered with, as URL and digest. */
  readonly shown = new Set<string>();
  readonly #listeners = new Set<(event: Moment['after']) => void>();

  /** @param holdMs how long the answer to a push is held back, once the peer has taken it */
  constructor(proxy: ScriptedPeer, holdMs: () => number = () => 0) {
    proxy.behaviour = async (call) => {
      if (isPush(call)) this.#tell('push came');
      const answer = await call.forward();
      const [digest] = /\b[0-9a-f]{64}\b/.exec(answer.body.toString()) ?? [];
      if (digest !== undefined) this.shown.add(`${call.form.get('url')} ${digest}`);
      this.#tell(isPush(call) ? 'push answered' : 'look-up answered');
      if (isPush(call)) await sleep(holdMs());
      return answer;
    };
  }

  /** Resolves when the moment is there in the life of a daemon that was just started. */
  async comes({ after, nth, ms }: Moment, daemon: Running): Promise<void> {
    if (after === 'running') await daemon.says('pushing to');
    else if (after !== 'spawned') await this.#nth(after, nth);
    await sleep(ms);
  }

  async #nth(wanted: Moment['after'], nth: number): Promise<void> {
    let count = 0;
    let listener: (event: Moment['after']) => void = () => {};
    const happened = new Promise<void>((resolve) => {
      listener = (event) => {
        if (event !== wanted) return;
        count += 1;
        if (count === nth) resolve();
      };
    });
    this.#listeners.add(listener);
    await Promise.race([happened, sleep(LONGEST_WAIT_MS)]);
    this.#listeners.delete(listener);
  }

  #tell(event: Moment['after']): void {
    for (const listener of this.#listeners) listener(event);
  }
}

function isPush({ items }: Recorded): boolean {
  return items.length > 0;
}

function sleep(ms: number): Promise<void> {
  return ms === 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, ms));
}
