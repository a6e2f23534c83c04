import type { Random } from '../support/random.js';

/** Properties of a document that judgements ask for; the maker of the document knows them. */
export type Facts = Readonly<Record<string, string | readonly string[]>>;

/** A document of the corpus. */
export interface SearchDocument {
  /** Its path in the corpus, with `/`. It is the name of the document in all judgements. */
  readonly file: string;
  readonly title?: string;
  /** Its words, without the title. */
  readonly text: string;
  /** The bytes to write, if they are not `text`. */
  readonly bytes?: () => Uint8Array;
  readonly facts: Facts;
}

/** Replaces `{name}` by the slot of that name. @throws Error for a name that has no slot */
export function filled(template: string, slots: Readonly<Record<string, string>>): string {
  return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const slot = slots[name];
    if (slot === undefined) throw new Error(`{${name}} in "${template}" has no slot`);
    return slot;
  });
}

/** Splits a list that is written with one entry a line. */
export function lines(text: string): readonly [string, ...string[]] {
  const [first, ...rest] = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (first === undefined) throw new Error('an empty list');
  return [first, ...rest];
}

/** Returns so many different entries of a list, in the order of the list. */
export function some<T>(random: Random, values: readonly T[], count: number): T[] {
  const kept = values.map((value, i) => ({ value, i, key: random.next() }));
  kept.sort((a, b) => a.key - b.key);
  return kept
    .slice(0, count)
    .sort((a, b) => a.i - b.i)
    .map(({ value }) => value);
}

/** Gives each document a name of its own: a second `a.txt` becomes `a (2).txt`. */
export function withDistinctNames(documents: readonly SearchDocument[]): SearchDocument[] {
  const taken = new Map<string, number>();
  return documents.map((document) => {
    const count = (taken.get(document.file) ?? 0) + 1;
    taken.set(document.file, count);
    if (count === 1) return document;
    return { ...document, file: document.file.replace(/(\.\w+)$/, ` (${count})$1`) };
  });
}

/** A day between 2019 and 2025, as `2024-03-17`. */
export function someDay(random: Random): string {
  const two = (number: number) => String(number).padStart(2, '0');
  return `${random.between(2019, 2025)}-${two(random.between(1, 12))}-${two(random.between(1, 28))}`;
}
