/** Lifetime of a resource: until the end of the test, or of all tests of the file. */
export type Life = 'test' | 'file';

const jobs: Record<Life, (() => void | Promise<void>)[]> = { test: [], file: [] };

/**
 * Has something undone at the end of a life, the last first: a process is gone before its directory
 * is removed.
 */
export function afterwards(life: Life, job: () => void | Promise<void>): void {
  jobs[life].push(job);
}

/** Ends a life. */
export async function end(life: Life): Promise<void> {
  for (const job of jobs[life].splice(0).reverse()) await job();
}
