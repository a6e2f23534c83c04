/** Returns the largest number of times within any window of this length. All in ms. */
export function mostWithin(times: readonly number[], windowMs: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  let most = 0;
  let first = 0;
  for (const [i, time] of sorted.entries()) {
    while (time - (sorted[first] ?? time) >= windowMs) first += 1;
    most = Math.max(most, i - first + 1);
  }
  return most;
}
