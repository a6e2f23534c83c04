/**
 * How much of the processor a work takes, in ms: it waits longer where the machine does other
 * things, and takes hardly more.
 */
export async function cpuMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
