import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import {
  type CorpusDocument,
  type CorpusType,
  documentsOf,
  missingFor,
  OLDER_ENCODINGS,
  TYPES,
} from '../content/corpus/corpus.js';
import { allWords, distinctWords, type Language } from '../content/corpus/sentences.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';

const LIMIT_MS = 1_500_000;
/** Documents of each type, if a number is given. */
const { CORPUS_DOCUMENTS } = process.env;
/** Before the daemon is asked again, in ms: it is not to be slowed down by questions. */
const ASK_AGAIN_MS = 1_000;
/** The most results of one answer. */
const PAGE = 100;
/** The largest share of words that are found in documents without them, as OCR may misread. */
const MOST_WRONG = 0.01;

interface Listed {
  readonly path: string;
  readonly status: string;
  readonly message?: string;
}

interface Answer {
  readonly corrected?: string;
  readonly without?: readonly string[];
  readonly items: readonly { readonly url: string }[];
}

/** A line of the table. */
interface Measured {
  readonly type: CorpusType;
  readonly documents: number;
  readonly confirmed: number;
  readonly words: number;
  readonly found: number;
  readonly share: number;
}

/** Asks for a word, and returns the paths of all documents that are found by it. */
async function documentsWith(base: string, word: string): Promise<readonly string[]> {
  const paths: string[] = [];
  for (let offset = 0; ; offset += PAGE) {
    // In quotes, it is neither a prefix nor another spelling.
    const asked = new URLSearchParams({
      query: `"${word}"`,
      limit: `${PAGE}`,
      offset: `${offset}`,
    });
    const answer = (await (await fetch(`${base}search.json?${asked}`)).json()) as Answer;
    if (answer.corrected !== undefined || answer.without !== undefined) return [];
    for (const { url } of answer.items)
      paths.push(decodeURIComponent(new URL(url).pathname.slice('/inbox/'.length)));
    if (answer.items.length < PAGE) return paths;
  }
}

function measure(
  type: CorpusType,
  documents: readonly CorpusDocument[],
  isFound: (document: CorpusDocument, word: string) => boolean,
  isConfirmed: (document: CorpusDocument) => boolean,
): Measured {
  let [words, found] = [0, 0];
  for (const document of documents)
    for (const word of distinctWords(document.text)) {
      words += 1;
      if (isFound(document, word)) found += 1;
    }
  return {
    type,
    documents: documents.length,
    confirmed: documents.filter(isConfirmed).length,
    words,
    found,
    share: found / words,
  };
}

function table(measured: readonly Measured[]): string {
  const lines = measured.map(({ confirmed, documents, found, share, type, words }) => {
    // Rounded down: 100 % are all of them.
    const percent = (Math.floor(share * 1_000) / 10).toFixed(1);
    return `| ${type.name} | ${documents} | ${confirmed} | ${words} | ${found} | ${percent} % |`;
  });
  return [
    '| type | documents | confirmed | words | found | share |',
    '| --- | --- | --- | --- | --- | --- |',
    ...lines,
  ].join('\n');
}

/** Returns how many documents are made of a type: a page of OCR takes some seconds. */
function numberOf({ needs }: CorpusType): number {
  if (CORPUS_DOCUMENTS !== undefined) return Number(CORPUS_DOCUMENTS);
  return needs.includes('tesseract') ? 1 : 2;
}

it('the words of documents of all types are found', { timeout: LIMIT_MS }, async () => {
  const directory = temporaryDirectory();
  const config = writeConfig(directory, {
    peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
    documents: { languages: languagesOf(TYPES) },
  });
  const types = [...TYPES, OLDER_ENCODINGS].filter((type) => {
    const missing = missingFor(type);
    if (missing.length > 0) console.log(`${type.name}: not measured without ${missing.join(', ')}`);
    return missing.length === 0;
  });
  const corpus = types.flatMap((type) => documentsOf(type, numberOf(type)));
  for (const { bytes, path } of corpus) {
    const file = join(directory, 'inbox', path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, bytes);
  }

  const daemon = new Running(['run', '-c', config]);
  await daemon.says(/search it at http:\/\/127\.0\.0\.1:\d+\//);
  const base = /search it at (http:\/\/[\d.:]+\/)/.exec(daemon.stdout)?.[1] ?? '';
  const began = performance.now();
  let listed: readonly Listed[] = [];
  await until(
    async () => {
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
      const { stdout } = await peersync(['list', '--json', '-c', config]);
      listed = stdout
        .split('\n')
        .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Listed]));
      const waits = listed.some(({ status }) => status === 'pending' || status === 'accepted');
      return listed.length === corpus.length && !waits;
    },
    'each document has come to rest',
    LIMIT_MS,
  );
  const seconds = Math.round((performance.now() - began) / 1_000);
  const statuses = new Map(listed.map(({ path, status }) => [path, status]));

  const byWord = new Map<string, ReadonlySet<string>>();
  const asked = new Set(corpus.flatMap(({ text }) => distinctWords(text)));
  for (const word of asked) byWord.set(word, new Set(await documentsWith(base, word)));
  const isFound = ({ path }: CorpusDocument, word: string) => byWord.get(word)?.has(path) === true;
  const measured = types.map((type) =>
    measure(
      type,
      corpus.filter((document) => document.type === type),
      isFound,
      ({ path }) => statuses.get(path) === 'confirmed',
    ),
  );
  console.log(`${corpus.length} documents in ${seconds} s\n${table(measured)}`);
  for (const { message = '', path, status } of listed)
    if (status !== 'confirmed') console.log(`${path}: ${status} ${message}`);

  // A search that finds everything everywhere would be no measure.
  let [absent, wrong] = [0, 0];
  for (const document of corpus.filter(({ type }) => type !== OLDER_ENCODINGS)) {
    const own = new Set(distinctWords(document.text));
    for (const word of new Set((['en', 'de'] as const).flatMap((each) => allWords(each)))) {
      if (own.has(word) || !byWord.has(word)) continue;
      absent += 1;
      if (isFound(document, word)) wrong += 1;
    }
  }
  expect(absent).toBeGreaterThan(1_000);
  expect(wrong / absent).toBeLessThan(MOST_WRONG);
  const tooFew = measured.filter(({ share, type: { least = 0 } }) => share < least);
  expect(tooFew.map(({ share, type }) => `${type.name}: ${share}`)).toEqual([]);
});

/** Languages of tesseract for those types that can be made here. */
function languagesOf(types: readonly CorpusType[]): readonly string[] {
  const names = { en: 'eng', de: 'deu' } as const;
  const made = types.filter(
    (type) => type.needs.includes('tesseract') && missingFor(type).length === 0,
  );
  const languages = new Set<Language>(made.flatMap((type) => type.languages));
  return languages.size === 0 ? ['eng'] : [...languages].map((language) => names[language]);
}
