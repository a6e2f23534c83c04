import { describe, expect, it } from 'vitest';
import type { Timer } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { Door } from '../../src/queue/door.js';
import { LANES } from '../../src/queue/lanes.js';
import { FakeClock } from '../support/fake-clock.js';

/**
 * Time goes on between any two looks at it, as it does for a program that shares its cores, and timers come up to a
 * millisecond early, as Node's do by the measure of its finer clock.
 */
class RoughClock extends FakeClock {
  readonly #creep: () => number;
  #last = 0;

  constructor(creep: () => number) {
    super();
    this.#creep = creep;
  }

  override monotonic(): number {
    const elapsed = super.monotonic();
    this.#last = Math.max(this.#last, elapsed) + this.#creep();
    return this.#last;
  }

  override after(ms: number, fn: () => void): Timer {
    return super.after(Math.max(0, ms - 1), fn);
  }
}

/** Numbers from 0 to 1 that are the same in every run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describe('a door whose clock moves on between two looks', () => {
  it.each([1, 2, 3, 4])('forgets no task that waits for the rate (seed %d)', async (seed) => {
    const random = numbers(seed);
    const clock = new RoughClock(() => random() / 10);
    const lane = { requestsPerSecond: 200, concurrency: 8 };
    const door = new Door({
      lanes: Object.fromEntries(LANES.map((name) => [name, lane])) as never,
      maxConcurrency: 14,
      classify: () => ({ kind: 'answered' }),
      clock,
      log: silentLogger,
      peerName: 'the peer',
    });
    let done = 0;
    const producer = async () => {
      for (let i = 0; i < 400; i += 1) {
        await door.ready('confirm');
        void door.run('confirm', async () => {
          await clock.sleep(random() * 30);
          done += 1;
        });
      }
    };
    void producer();
    for (let i = 0; i < 1_000 && done < 400; i += 1) await clock.advance(10);
    expect(done).toBe(400);
    await door.stop(0);
  });
});
