/** Work that does not go on by itself any more. */
export interface Stuck {
  /** Of the health check. */
  readonly name: string;
  /** What is not done, as the beginning of a sentence. */
  readonly what: string;
  /** When it last made progress, in ms since the epoch. */
  readonly since: number;
}

export interface HealthOptions {
  /**
   * Whether there is something to do and no reason to wait: a time that has not come, a peer that
   * is away, a request under way. @default while anything is `during`
   */
  readonly busy?: () => boolean;
  /** Whether what it is `during` has a reason to wait that people are told of. @default never */
  readonly waits?: () => boolean;
  /** How long it may be busy without progress, in ms. @default that of the watchdog */
  readonly limitMs?: number;
}

/**
 * Whether the work of a loop goes on. The watchdog asks; a loop calls `progress` at each step, or
 * does its work `during` it.
 */
export class HealthCheck {
  /**
   * Of the last look, by the clock of whoever looks: when it was not busy, or had made progress. In
   * ms.
   */
  lastProgressAt = 0;
  #progressed = true;
  #underWay = 0;

  /** @param what what is not done while it stands still, as the beginning of a sentence */
  constructor(
    readonly name: string,
    readonly what: string,
    readonly options: HealthOptions = {},
  ) {}

  get busy(): boolean {
    const { busy, waits } = this.options;
    if (waits?.() === true) return false;
    return busy?.() ?? this.#underWay > 0;
  }

  progress(): void {
    this.#progressed = true;
  }

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#underWay += 1;
    try {
      return await work();
    } finally {
      this.#underWay -= 1;
      this.#progressed = true;
    }
  }

  /** @returns for how long it has been busy without progress, in ms */
  look(now: number): number {
    if (this.#progressed || !this.busy) this.lastProgressAt = now;
    this.#progressed = false;
    return now - this.lastProgressAt;
  }
}
