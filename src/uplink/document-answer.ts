import { z } from 'zod';
import type { Frame } from '../lib/frames.js';
import { isEncoded } from '../peer/form.js';
import type { DocumentOrder, Packed } from './documents.js';

/**
 * Signals by which a process ends itself at a limit. By default they end it without a core dump. V8
 * does not use them, and neither does the system when it lacks memory.
 */
export const LIMIT_SIGNALS = { memory: 'SIGUSR2', cpu: 'SIGVTALRM' } as const;

/** An order for a process that reads documents, written as one line of JSON. */
export interface DocumentRequest {
  /** Stands in the answer as well. */
  readonly id: number;
  readonly order: DocumentOrder;
  /** Bytes that the text of the document may have, encoded for its way. */
  readonly mostBytes: number;
  /** Processor time that its reading may take, in ms. */
  readonly mostCpuMs: number;
}

const count = z.number().int().nonnegative();
const short = z.string().max(1_000);

/**
 * The header of its answer. The text of the document, encoded for its way, is the body of the
 * message.
 */
const ANSWER = z.object({
  id: count,
  packed: z.discriminatedUnion('kind', [
    z.object({
      kind: z.literal('content'),
      size: count,
      digest: z.string().regex(/^[0-9a-f]{64}$/),
      type: z.enum(['', 'text/html; charset=UTF-8']),
      words: count,
      extracted: z.object({ reader: short, words: count }),
    }),
    z.object({ kind: z.literal('wordless'), reader: short }),
    z.object({ kind: z.literal('counted'), words: count }),
    z.object({
      kind: z.literal('refused'),
      trouble: z.object({
        code: z.enum(['DOCUMENT_ENCRYPTED', 'DOCUMENT_BROKEN', 'DOCUMENT_TOO_LARGE']),
        message: short,
        hint: short,
      }),
    }),
    z.object({ kind: z.literal('stale') }),
    z.object({ kind: z.literal('tooLarge') }),
    z.object({ kind: z.literal('unreadable'), code: short }),
  ]),
  /** Whether the process takes no other order. */
  isLast: z.boolean(),
});

/** An answer that was checked. */
export interface DocumentAnswer {
  readonly packed: Packed;
  /** Whether the process takes no other order. */
  readonly isLast: boolean;
}

/**
 * Reads an answer. The process may be in the hands of the document that it reads, so that every
 * field is checked.
 *
 * @throws Error for what is no answer to this order
 */
export function answerOf({ body, header }: Frame, { id, order }: DocumentRequest): DocumentAnswer {
  const { data: answer } = ANSWER.safeParse(header);
  if (answer === undefined) throw new Error('it answered in a wrong form');
  if (answer.id !== id) throw new Error('it answered another order');
  const { isLast, packed } = answer;
  if (packed.kind !== 'content') return { packed, isLast };
  const { encoding } = order.rules;
  // The text stands in a request as it is: with other characters it could add fields to that.
  if (!isEncoded(body, encoding, packed.size))
    throw new Error('it answered with wrongly encoded text');
  return { packed: { ...packed, text: { encoding, size: packed.size, encoded: body } }, isLast };
}
