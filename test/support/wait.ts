/** Waits until `condition` holds; fails with `what` after a generous limit. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  limitMs = 90_000,
): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`still not so after ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
