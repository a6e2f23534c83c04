/**
 * The wait after the `step`-th failure in a row (0 is the first): `firstMs` doubled each step up to `maxMs`, then
 * shortened by up to half at random, so that many who lost the same peer do not come back together.
 */
export function backoffMs(step: number, firstMs: number, maxMs: number, random: () => number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(step, 30)) * (0.5 + random() / 2);
}
