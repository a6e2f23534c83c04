import { z } from 'zod';
import type { PageProgress } from '../content/readers/document-reader.js';
import { extractedBy } from '../lib/extracted-by.js';
import type { Frame } from '../lib/pipe-messages.js';
import type { DocumentOrder, Extracted } from './documents.js';

/**
 * Signals with which a process ends itself at a limit. Their default action ends it without a core
 * dump. Neither V8 nor a system that lacks memory uses them.
 */
export const LIMIT_SIGNALS = { memory: 'SIGUSR2', cpu: 'SIGVTALRM' } as const;

/** The most memory of a process that reads documents, in bytes (RSS). */
export const MAX_PROCESS_BYTES = 352 * 2 ** 20;

/** An order for a process that reads documents, written as one line of JSON. */
export interface DocumentRequest {
  /** The answer repeats it. */
  readonly id: number;
  readonly order: DocumentOrder;
  /** Existing directory for private files of the process. */
  readonly directory: string;
  /** Directory of the pages that were read by OCR; see `PageStore`. */
  readonly pages: string;
  /** Maximum size of the page, in bytes. */
  readonly mostBytes: number;
  /** Maximum processor time for the document, and for each page of a PDF, in ms. */
  readonly mostCpuMs: number;
}

/** Maximum number of things that a document lacks, and of characters of each; see `Lack`. */
export const MAX_LACKS = 20;
export const MAX_LACK = 40;

const count = z.number().int().nonnegative();
const short = z.string().max(1_000);

/** The result of reading a document, without its page. */
export const RESULT = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('extracted'),
    words: count,
    lacks: z.array(z.string().max(MAX_LACK)).max(MAX_LACKS).exactOptional(),
    /** Set if the text was wanted. */
    extracted: extractedBy.optional(),
  }),
  z.object({ kind: z.literal('wordless'), reader: short }),
  z.object({
    kind: z.literal('refused'),
    failure: z.object({
      code: z.enum([
        'DOCUMENT_ENCRYPTED',
        'DOCUMENT_BROKEN',
        'DOCUMENT_TOO_LARGE',
        'NO_OCR',
        'NO_HELPER',
        'NO_HELPER_BY_CONTENT',
      ]),
      message: short,
      hint: short,
    }),
    isMomentary: z.boolean().optional(),
  }),
  z.object({ kind: z.literal('stale') }),
  z.object({ kind: z.literal('unreadable'), code: short }),
]);

/** The header of the answer. The page is the body of the message. */
const ANSWER = z.object({
  id: count,
  result: RESULT,
  /** Whether the process accepts no further order. */
  isLast: z.boolean(),
});

/** How far a document is read, sent before the answer. */
const PROGRESS = z.object({ id: count, progress: z.object({ page: count, pages: count }) });

/** Returns the progress that a message reports; undefined if it is an answer. */
export function progressOf({ header }: Frame, { id }: DocumentRequest): PageProgress | undefined {
  const { data } = PROGRESS.safeParse(header);
  return data?.id === id ? data.progress : undefined;
}

/** A validated answer. */
export interface DocumentAnswer {
  readonly result: Extracted;
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
  return { result: resultOf(answer.result, body, order), isLast: answer.isLast };
}

/**
 * Returns a result with its page.
 *
 * @throws Error if it is not what the order wants
 */
export function resultOf(
  result: z.output<typeof RESULT>,
  page: Uint8Array,
  { wanted }: Pick<DocumentOrder, 'wanted'>,
): Extracted {
  if (result.kind !== 'extracted') return result;
  const { extracted, ...rest } = result;
  const isText = extracted !== undefined;
  if (isText ? wanted === 'words' : wanted === 'text')
    throw new Error('it answered with something else than was wanted');
  return { ...rest, ...(extracted && { page: { bytes: page, extracted } }) };
}
