import type { JobQueue } from './job-queue.js';
import { EXTRACT_JOB, EXTRACT_RESULT, type ExtractJob, referenceOf } from './protocol.js';

/** The jobs of earlier runs of the owner, by what they read. Workers do them, or have done them. */
export class EarlierJobs {
  /** The ids of the jobs. */
  readonly #ids = new Map<string, string>();

  /**
   * Finds the jobs of these epochs. An earlier run may have taken the end of one that is done. A
   * text can be taken only once, but a refusal would answer the next reading of the document as
   * well, which somebody may have asked for because of the refusal.
   */
  async find(jobs: Pick<JobQueue, 'earlier'>, epochs: readonly string[]): Promise<void> {
    if (epochs.length === 0) return;
    for (const { data, id, result } of await jobs.earlier(epochs)) {
      const { data: job } = EXTRACT_JOB.safeParse(data);
      if (job !== undefined && !hasNoText(result)) this.#ids.set(referenceOf(job), id);
    }
  }

  /**
   * Returns the id of a job that reads the same document in the same version; undefined if there is
   * none. Each one is returned once.
   */
  take(job: Omit<ExtractJob, 'abilities' | 'epoch'>): string | undefined {
    const reference = referenceOf(job);
    const id = this.#ids.get(reference);
    this.#ids.delete(reference);
    return id;
  }

  clear(): void {
    this.#ids.clear();
  }
}

/** Whether the result of a job is that there is nothing to send of the document. */
function hasNoText(result: unknown): boolean {
  const { data } = EXTRACT_RESULT.safeParse(result);
  return data?.kind === 'read' && ['refused', 'wordless'].includes(data.result.kind);
}
