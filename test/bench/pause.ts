/** How long nothing else could run while something worked, in ms. */
export interface Paused<T> {
  readonly value: T;
  readonly ms: number;
  readonly pauseMs: number;
  /** The longest of them in processor time, which does not count what other programs of the machine took. */
  readonly busyMs: number;
}

/** Runs `work` and measures the longest time that nothing else could run meanwhile. */
export async function longestPause<T>(work: () => Promise<T>): Promise<Paused<T>> {
  const began = performance.now();
  let [pauseMs, busyMs] = [0, 0];
  let [last, lastBusy] = [began, processorMs()];
  let next: NodeJS.Immediate | undefined;
  const look = () => {
    const [now, busy] = [performance.now(), processorMs()];
    pauseMs = Math.max(pauseMs, now - last);
    busyMs = Math.max(busyMs, busy - lastBusy);
    [last, lastBusy] = [now, busy];
    next = setImmediate(look);
  };
  next = setImmediate(look);
  const value = await work();
  clearImmediate(next);
  look();
  clearImmediate(next);
  return { value, ms: last - began, pauseMs, busyMs };
}

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
