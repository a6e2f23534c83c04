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

/**
 * Ends a life. If a job fails, the others are done all the same: no process is left beside the
 * tests that follow.
 */
export async function end(life: Life): Promise<void> {
  const failures: unknown[] = [];
  for (const job of jobs[life].splice(0).reverse()) {
    try {
      await job();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, 'several jobs failed afterwards');
}
