import { z } from 'zod';
import type { ExtractedBy } from './file.js';

/** Maximum length of a text about a document, in characters. */
const MAX_TEXT = 500;

const count = z.number().int().nonnegative();
const text = z.string().max(MAX_TEXT);

/** How the text of a document was found, as a process, the cache and `peersync why` write it. */
export const extractedBy: z.ZodType<ExtractedBy> = z.object({
  reader: text,
  words: count,
  ms: count.exactOptional(),
  pages: count.exactOptional(),
  ocrPages: count.exactOptional(),
  confidence: z.number().min(0).max(100).exactOptional(),
  unreadPages: text.exactOptional(),
  leftOut: text.exactOptional(),
});

/** Returns what a reader says about its document, within the bounds of `extractedBy`. */
export function bounded({
  confidence,
  leftOut,
  ocrPages,
  pages,
  unreadPages,
}: Partial<ExtractedBy> = {}): Partial<ExtractedBy> {
  return {
    ...(pages !== undefined && { pages }),
    ...(ocrPages !== undefined && { ocrPages }),
    // OCR that found no word has no mean confidence.
    ...(Number.isFinite(confidence) && { confidence: Math.round(confidence ?? 0) }),
    ...(unreadPages && { unreadPages: cut(unreadPages) }),
    ...(leftOut && { leftOut: cut(leftOut) }),
  };
}

function cut(long: string): string {
  return long.length > MAX_TEXT ? `${long.slice(0, MAX_TEXT - 1)}…` : long;
}
