import { type ErrorParts, PeersyncError } from '../lib/errors.js';

/** What the queue itself refuses; the errors of tasks pass through it unchanged. */
export class QueueError extends PeersyncError {}

type Parts = Omit<ErrorParts, 'code'>;

const errors = {
  QUEUE_STOPPED: (): Parts => ({
    message: 'The queue was stopped before this request was answered.',
    hint: 'Nothing to do: it is sent again after the next start.',
  }),
  QUEUE_OPTION: (name: string, expected: string, received: unknown): Parts => ({
    message: `${name} must be ${expected}; received ${String(received)}.`,
    hint: `Set ${name} to ${expected}.`,
    details: { name, received },
  }),
};

export type QueueErrorCode = keyof typeof errors;

/** Builds the error of `code` from the queue's one table. */
export function queueError<C extends QueueErrorCode>(
  code: C,
  ...values: Parameters<(typeof errors)[C]>
): QueueError {
  const build = errors[code] as (...values: unknown[]) => Parts;
  return new QueueError({ code, ...build(...values) });
}
