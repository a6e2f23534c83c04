import { z } from 'zod';
import type { Frame } from '../lib/pipe-messages.js';
import { isEncoded } from '../peer/form.js';
import type { DocumentOrder, Packed } from './documents.js';

/**
 * Signals with which a process ends itself at a limit. Their default action ends it without a core
 * dump. Neither V8 nor a system that lacks memory uses them.
 */
export const LIMIT_SIGNALS = { memory: 'SIGUSR2', cpu: 'SIGVTALRM' } as const;

/** An order for a process that reads documents, written as one line of JSON. */
export interface DocumentRequest {
  /** The answer repeats it. */
  readonly id: number;
  readonly order: DocumentOrder;
  /** Maximum size of the text, encoded for the request, in bytes. */
  readonly mostBytes: number;
  /** Maximum processor time, in ms. */
  readonly mostCpuMs: number;
}

const count = z.number().int().nonnegative();
const short = z.string().max(1_000);

/**
 * The header of the answer. The text of the document, encoded for the request, is the body of the
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
      failure: z.object({
        code: z.enum(['DOCUMENT_ENCRYPTED', 'DOCUMENT_BROKEN', 'DOCUMENT_TOO_LARGE']),
        message: short,
        hint: short,
      }),
    }),
    z.object({ kind: z.literal('stale') }),
    z.object({ kind: z.literal('tooLarge') }),
    z.object({ kind: z.literal('unreadable'), code: short }),
  ]),
  /** Whether the process accepts no further order. */
  isLast: z.boolean(),
});

/** A validated answer. */
export interface DocumentAnswer {
  readonly packed: Packed;
  /** Whether the process accepts no further order. */
  readonly isLast: boolean;
}

/**
 * Validates an answer. A document may have taken over the process that reads it, so every field is
 * checked.
 *
 * @throws Error if it is no valid answer to this order
 */
export function answerOf({ body, header }: Frame, { id, order }: DocumentRequest): DocumentAnswer {
  const { data: answer } = ANSWER.safeParse(header);
  if (answer === undefined) throw new Error('it answered in a wrong form');
  if (answer.id !== id) throw new Error('it answered another order');
  const { isLast, packed } = answer;
  if (packed.kind !== 'content') return { packed, isLast };
  const { encoding } = order.rules;
  // The text is copied into a request: other characters could add fields to that.
  if (!isEncoded(body, encoding, packed.size))
    throw new Error('it answered with wrongly encoded text');
  return { packed: { ...packed, text: { encoding, size: packed.size, encoded: body } }, isLast };
}
