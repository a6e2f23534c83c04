import type { DocumentStore } from './documents.js';

/** Ends a page in a stored text, as in plain text of printers and of `pdftotext`. */
export const PAGE_END = '\f';
/** A word is moved out of a part into the section before it, if it is no longer than this. */
const MAX_MOVED_CHARS = 1_000;

/**
 * The sections of a stored text: its parts, but cut between words. A section holds about 64 kB, and
 * any of them is read without those before it.
 */
export class TextSections {
  /** The part that was read last, which the next section begins with. */
  #last: { readonly number: number; readonly text: string | undefined } | undefined;

  constructor(
    private readonly documents: Pick<DocumentStore, 'textPart'>,
    private readonly id: number,
  ) {}

  /** Returns a section, from 0; undefined beyond the end of the text. */
  at(section: number): string | undefined {
    const part = this.#part(section);
    if (part === undefined) return undefined;
    const begin = section === 0 ? 0 : beginOf(part);
    const next = this.#part(section + 1);
    return part.slice(begin) + (next?.slice(0, beginOf(next)) ?? '');
  }

  /** Whether there is text in a section. The end of a word alone belongs to the one before. */
  has(section: number): boolean {
    const part = this.#part(section);
    return part !== undefined && (section === 0 || beginOf(part) < part.length);
  }

  #part(number: number): string | undefined {
    if (this.#last?.number === number) return this.#last.text;
    const text = this.documents.textPart(this.id, number);
    this.#last = { number, text };
    return text;
  }
}

/** Returns where the first word begins that is in a part from its first letter on. */
function beginOf(part: string): number {
  const blank = part.slice(0, MAX_MOVED_CHARS).search(/\s/);
  return blank === -1 && part.length < MAX_MOVED_CHARS ? part.length : blank + 1;
}

/** Returns how many pages end in a text. */
export function pageEndsIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf(PAGE_END); at !== -1; at = text.indexOf(PAGE_END, at + 1)) count += 1;
  return count;
}
