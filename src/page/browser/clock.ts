/** The only source of time of the page. */
export interface PageClock {
  /** In ms since the epoch, as this machine has it. */
  now(): number;
  /** Calls `fn` once, `ms` from now; returns how to call that off. */
  after(ms: number, fn: () => void): () => void;
  /** Calls `fn` again and again. */
  every(ms: number, fn: () => void): void;
}

export const pageClock: PageClock = {
  now: () => Date.now(),
  after(ms, fn) {
    const timer = setTimeout(fn, ms);
    return () => clearTimeout(timer);
  },
  every(ms, fn) {
    setInterval(fn, ms);
  },
};
