/** Runs `work` and measures the longest time that nothing else could run meanwhile, in ms. */
export async function longestPause<T>(work: () => Promise<T>): Promise<{ value: T; pauseMs: number }> {
  let pauseMs = 0;
  let last = performance.now();
  let next: NodeJS.Immediate;
  const look = () => {
    const now = performance.now();
    pauseMs = Math.max(pauseMs, now - last);
    last = now;
    next = setImmediate(look);
  };
  next = setImmediate(look);
  const value = await work();
  clearImmediate(next);
  return { value, pauseMs: Math.max(pauseMs, performance.now() - last) };
}
