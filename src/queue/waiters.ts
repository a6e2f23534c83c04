interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/** Producers that wait for their lane, in the order they came. */
export class Waiters {
  readonly #waiters = new Set<Waiter>();

  get size(): number {
    return this.#waiters.size;
  }

  /** Waits to be released. @throws the signal's reason when it aborts first */
  wait(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiters.delete(waiter);
        signal?.removeEventListener('abort', onAbort);
      };
      const waiter: Waiter = {
        resolve: () => {
          leave();
          resolve();
        },
        reject: (reason) => {
          leave();
          reject(reason);
        },
      };
      const onAbort = () => waiter.reject(signal?.reason);
      signal?.addEventListener('abort', onAbort);
      this.#waiters.add(waiter);
    });
  }

  /** Lets up to `count` of them go on. */
  release(count: number): void {
    let left = count;
    for (const waiter of this.#waiters) {
      if (left <= 0) return;
      left -= 1;
      waiter.resolve();
    }
  }

  rejectAll(reason: unknown): void {
    for (const waiter of this.#waiters) waiter.reject(reason);
  }
}
