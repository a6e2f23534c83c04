/** For each mode, the modes that may follow it. */
export type Transitions<Mode extends string> = Readonly<Record<Mode, readonly Mode[]>>;

/** The current mode of a machine. Asserts that every change of mode is an allowed transition. */
export class Modes<Mode extends string> {
  #current: Mode;

  constructor(
    first: Mode,
    private readonly transitions: Transitions<Mode>,
  ) {
    this.#current = first;
  }

  get current(): Mode {
    return this.#current;
  }

  /** Whether the current mode is one of these. */
  is(...modes: readonly Mode[]): boolean {
    return modes.includes(this.#current);
  }

  /** @throws Error if the current mode may not be followed by `next` */
  enter(next: Mode): void {
    const current = this.#current;
    if (!this.transitions[current].includes(next))
      throw new Error(`the mode ${current} may not be followed by ${next}`);
    this.#current = next;
  }
}
