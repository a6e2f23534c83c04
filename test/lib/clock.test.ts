import { describe, expect, it } from 'vitest';
import { steadyTime } from '../../src/lib/clock.js';

const HOUR = 3_600_000;

/** A machine whose clocks a test moves, and its steady time since the start. */
class Machine {
  asked = 0;
  #wall = 1_800_000_000_000;
  #monotonic = 5_000;
  #slept = 0;
  /** The resolution of the kernel's uptime, in ms. */
  coarseness = 1;
  readonly #now = steadyTime(
    () => this.#wall,
    () => this.#monotonic,
    () => {
      this.asked += 1;
      const uptime = this.#monotonic + 70_000 + this.#slept;
      return uptime - (uptime % this.coarseness);
    },
  );
  readonly #startedAt = this.#now();

  get elapsed(): number {
    return this.#now() - this.#startedAt;
  }

  pass(ms: number): void {
    this.set(ms);
    this.#monotonic += ms;
  }

  suspend(ms: number): void {
    this.set(ms);
    this.#slept += ms;
  }

  /** Sets the wall clock, as a person does. */
  set(byMs: number): void {
    this.#wall += byMs;
  }
}

describe('steady time', () => {
  it.each([0, 8 * HOUR, -8 * HOUR])(
    'goes on as time passes, in sleep too, though the wall is set by %d ms',
    (byMs) => {
      const machine = new Machine();
      machine.pass(HOUR);
      machine.set(byMs);
      expect(machine.elapsed).toBe(HOUR);
      machine.suspend(8 * HOUR);
      expect(machine.elapsed).toBe(9 * HOUR);
      machine.pass(HOUR);
      machine.suspend(HOUR);
      machine.set(byMs);
      machine.pass(HOUR);
      expect(machine.elapsed).toBe(12 * HOUR);
    },
  );

  it('never goes back although the kernel reports whole seconds', () => {
    const machine = new Machine();
    machine.suspend(HOUR + 400);
    expect(machine.elapsed).toBe(HOUR + 400);
    machine.coarseness = 1_000;
    machine.set(8 * HOUR);
    expect(machine.elapsed).toBe(HOUR + 400);
  });

  it('does not read the uptime while the clocks run in parallel', () => {
    const machine = new Machine();
    for (let i = 0; i < 1_000; i += 1) {
      machine.pass(1_000);
      machine.set(i % 2);
      expect(machine.elapsed).toBe(1_000 * (i + 1));
    }
    expect(machine.asked).toBe(1);
  });
});
