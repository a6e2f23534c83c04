import { PeerError, type PeerErrorCode } from '../peer/errors.js';
import type { RequestQueue } from '../queue/request-queue.js';

/** The peer works, and says something about this one request: nobody else has to wait for that. */
const OWN_FAULT: ReadonlySet<PeerErrorCode> = new Set([
  'PEER_ANSWER',
  'PEER_ANSWER_TOO_LARGE',
  'PEER_REFUSED',
]);

/** Asks the peer when it is a mirror's turn. A long answer is one task from beginning to end. */
export async function throughQueue<T>(
  queue: Pick<RequestQueue, 'run'>,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const result = await queue.run(
    'mirror',
    async (signal): Promise<{ readonly value: T } | { readonly error: PeerError }> => {
      try {
        return { value: await work(signal) };
      } catch (error) {
        if (error instanceof PeerError && OWN_FAULT.has(error.code)) return { error };
        throw error;
      }
    },
    signal === undefined ? {} : { signal },
  );
  if ('error' in result) throw result.error;
  return result.value;
}
