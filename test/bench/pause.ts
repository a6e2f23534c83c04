/** Runs `work` and measures the longest time that nothing else could run meanwhile, in ms. */
export async function longestPause<T>(
  work: () => Promise<T>,
): Promise<{ value: T; ms: number; pauseMs: number }> {
  let pauseMs = 0;
  const began = performance.now();
  let last = began;
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
  const end = performance.now();
  return { value, ms: end - began, pauseMs: Math.max(pauseMs, end - last) };
}
