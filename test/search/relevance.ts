import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { SearchDocument } from './document.js';

/**
 * A rule for documents. All that it gives has to be true. A text is compared without regard to
 * upper and lower case; `*` at the end stands for anything.
 */
const ruleSchema = z.strictObject({
  /** Name of the file. */
  file: z.string().optional(),
  /** A regular expression that occurs in the title or in the text. */
  text: z.string().optional(),
  /** A regular expression that occurs in neither. */
  lacks: z.string().optional(),
  /** A person who is a party to it, sent or received it, or is mentioned by the maker. */
  anyone: z.string().optional(),
  /** Properties that the maker of the document gave it. */
  facts: z.record(z.string(), z.string()).optional(),
});

const querySchema = z.strictObject({
  query: z.string(),
  kind: z.string(),
  /** The reason of the judgement. */
  why: z.string(),
  /** Documents that were wanted: grade 2. Without any, there is no answer. */
  wanted: z.array(ruleSchema),
  /** Documents that are also right: grade 1. */
  also: z.array(ruleSchema).optional(),
  /** An example of a document that contains the words, or nearly, and is wrong. */
  wrong: z.string(),
  /** The last word is being typed, so that it may be the beginning of a word. */
  typed: z.boolean().optional(),
  /** Looked at once, after the work. */
  apart: z.boolean().optional(),
  /** Its documents are manual pages, which are not installed everywhere. */
  needs: z.literal('manual').optional(),
});

type Rule = z.infer<typeof ruleSchema>;
export type JudgedQuery = z.infer<typeof querySchema>;

/** Grades of the documents that are right, by name: 2 for wanted, 1 for also right. */
export type Grades = ReadonlyMap<string, 1 | 2>;

/** Reads the queries. @throws ZodError for one that is not understood */
export function judgedQueries(path: string): JudgedQuery[] {
  return z.array(querySchema).parse(JSON.parse(readFileSync(path, 'utf8')));
}

export function gradesOf(query: JudgedQuery, documents: readonly SearchDocument[]): Grades {
  const grades = new Map<string, 1 | 2>();
  for (const document of documents) {
    if (query.wanted.some((rule) => matches(rule, document))) grades.set(document.file, 2);
    else if (query.also?.some((rule) => matches(rule, document))) grades.set(document.file, 1);
  }
  return grades;
}

function matches(rule: Rule, document: SearchDocument): boolean {
  const words = `${document.title ?? ''}\n${document.text}`;
  const { person, other, people } = document.facts;
  const names = [person, other, people].flat();
  const { file, text, lacks, anyone } = rule;
  return (
    (file === undefined || isLike(document.file, file)) &&
    (text === undefined || new RegExp(text, 'iu').test(words)) &&
    (lacks === undefined || !new RegExp(lacks, 'iu').test(words)) &&
    (anyone === undefined || names.some((name) => name !== undefined && isLike(name, anyone))) &&
    Object.entries(rule.facts ?? {}).every(([name, value]) =>
      [document.facts[name]].flat().some((fact) => fact !== undefined && isLike(fact, value)),
    )
  );
}

function isLike(value: string, pattern: string): boolean {
  const [a, b] = [value.toLowerCase(), pattern.toLowerCase()];
  return b.endsWith('*') ? a.startsWith(b.slice(0, -1)) : a === b;
}
