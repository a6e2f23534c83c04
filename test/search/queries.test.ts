import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { commonCorpus, ownDocuments } from './corpus.js';
import { gradesOf, judgedQueries } from './relevance.js';
import { figuresOf, judged } from './scores.js';

const root = resolve(import.meta.dirname, '../..');
const queries = judgedQueries(resolve(import.meta.dirname, 'queries.json'));

test('the corpus has 2,400 to 3,500 documents, each with its own name', () => {
  const files = commonCorpus(root).map(({ file }) => file);
  expect(files.length).toBeGreaterThan(2_400);
  expect(files.length).toBeLessThan(3_500);
  expect(new Set(files).size).toBe(files.length);
});

// A change of the makers can make a judgement wrong. Read the judgements again before you change
// this digest.
test('the documents that are written or generated are those that were judged', () => {
  const hash = createHash('sha256');
  for (const { file, title = '', text } of ownDocuments(root))
    hash.update(`${file}\0${title}\0${text}\0`);
  expect(hash.digest('hex')).toBe(
    '448d08daa9f5053022e23fbc1b51d66d574571143bbe8f6a7617a459c3f9de57',
  );
});

test('there are 120 different queries, half of them apart, of 17 kinds', () => {
  expect(queries.length).toBe(120);
  expect(new Set(queries.map(({ query, kind }) => `${kind} ${query}`)).size).toBe(120);
  expect(queries.filter(({ apart }) => apart).length).toBe(60);
  expect(new Set(queries.map(({ kind }) => kind)).size).toBe(17);
});

test('each query has a wanted document in the corpus, and those without an answer have none', () => {
  const documents = commonCorpus(root);
  const unanswered = queries
    .filter(({ needs }) => needs === undefined)
    .filter((query) => ![...gradesOf(query, documents).values()].includes(2));
  expect(unanswered.map(({ kind }) => kind)).toEqual(Array(5).fill('none'));
});

test('an answer is judged by its first right document, and by whether all are wrong', () => {
  const grades = new Map([
    ['best', 2],
    ['good', 1],
  ] as const);
  const shown = (...files: string[]) => ({ files, isAnnounced: false });
  expect(judged(shown('wrong', 'good'), grades)).toMatchObject({ rank: 2, isOnlyWrong: false });
  expect(judged(shown('best', 'good'), grades)).toMatchObject({ rank: 1, gain: 1 });
  expect(judged(shown('wrong'), grades)).toMatchObject({ rank: undefined, isOnlyWrong: true });
  expect(judged(shown(), grades).isOnlyWrong).toBe(false);
});

test('where there is no answer, documents are wrong unless the engine announces them', () => {
  const grades = new Map();
  expect(judged({ files: ['any'], isAnnounced: false }, grades).isOnlyWrong).toBe(true);
  expect(judged({ files: ['any'], isAnnounced: true }, grades).isOnlyWrong).toBe(false);
});

test('figures are of the queries that have an answer', () => {
  const grades = new Map([['right', 2]] as const);
  const answers = [
    { answer: { files: ['right'], isAnnounced: false }, grades },
    { answer: { files: ['wrong', 'right'], isAnnounced: false }, grades },
    { answer: { files: [], isAnnounced: false }, grades },
    { answer: { files: ['wrong'], isAnnounced: false }, grades: new Map() },
  ];
  expect(figuresOf(answers)).toMatchObject({
    answerable: 3,
    first: 1,
    inThree: 2,
    meanReciprocalRank: 0.5,
    onlyWrong: 1,
    nothing: 1,
  });
});
