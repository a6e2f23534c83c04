/**
 * Returns the processor time of some work, in ms. A busy machine makes the work wait, but hardly
 * changes this time.
 */
export async function cpuMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
