import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Random } from '../support/random.js';
import { emlOf } from './bytes.js';
import { type SearchDocument, withDistinctNames } from './document.js';
import { englishDocuments } from './english.js';
import { germanDocuments } from './german.js';
import { manualPages } from './manual-pages.js';
import { packageDocuments } from './package-docs.js';

const SEED = 20_261_128;
/** Contracts, invoices, letters, minutes and notes of each language: so many of each. */
const OF_EACH_KIND = 210;

/**
 * The documents that the queries are judged for: documentation of packages, documents that were
 * written by hand, generated documents in English and German, and manual pages if they are
 * installed.
 *
 * @param root the directory that has `node_modules` and `test`
 */
export function corpus(root: string): SearchDocument[] {
  return [...commonCorpus(root), ...manualPages(join(root, '.bench/manual'))];
}

/** The documents that are the same on each machine: all but the manual pages. */
export function commonCorpus(root: string): SearchDocument[] {
  return [...packageDocuments(join(root, 'node_modules')), ...ownDocuments(root)];
}

/** The documents that were written by hand or generated. */
export function ownDocuments(root: string): SearchDocument[] {
  return [
    ...writtenDocuments(join(root, 'test/search/written.txt')),
    ...withDistinctNames(englishDocuments(new Random(SEED), OF_EACH_KIND)),
    ...withDistinctNames(germanDocuments(new Random(SEED + 1), OF_EACH_KIND)),
  ];
}

/** Writes the documents below a directory. */
export function plant(documents: readonly SearchDocument[], directory: string): void {
  for (const { file, text, bytes } of documents) {
    const path = join(directory, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes?.() ?? text);
  }
}

/** Reads the documents that were written by hand: each begins with a line `=== name`. */
function writtenDocuments(path: string): SearchDocument[] {
  const [, ...parts] = readFileSync(path, 'utf8').split(/^=== /m);
  return parts.map((part) => {
    const end = part.indexOf('\n');
    const file = part.slice(0, end);
    const text = part.slice(end + 1).trim();
    const title = /^# (.*)$/m.exec(text)?.[1];
    const facts = { kind: 'written' };
    if (file.endsWith('.eml')) {
      const subject = 'News';
      const mail = { subject, from: 'Nora', date: '2024-04-12', text };
      return { file, title: subject, text, bytes: () => emlOf(mail), facts };
    }
    return { file, ...(title === undefined ? {} : { title }), text: `${text}\n`, facts };
  });
}
