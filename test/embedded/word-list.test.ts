import { expect, it, vi } from 'vitest';
import { normaliseUrl } from '../../src/embedded/content.js';
import { DocumentStore } from '../../src/embedded/documents.js';
import { WordList } from '../../src/embedded/word-list.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { distinctWords, openDatabase } from './support.js';

function setUp() {
  const clock = new FakeClock();
  const database = openDatabase(temporaryDirectory());
  afterwards('test', () => database.close());
  const documents = new DocumentStore(database, clock);
  const { words } = documents;
  let count = 0;
  const index = (text: string): void => {
    count += 1;
    const url = normaliseUrl(`http://h/${count}`);
    database.transaction(() =>
      documents.index({ url, collections: [], loadDate: count, data: Buffer.from(text) }),
    );
  };
  const read = () => words.provide(() => words.current());
  return { clock, database, documents, index, read, words };
}

/** More words than are read at once. */
const MANY = distinctWords(5_000).join(' ');

it('has the words of letters, with the number of their documents as a power of two', async () => {
  const { index, read } = setUp();
  for (let n = 0; n < 5; n += 1) index(n < 3 ? 'often, Überall 4711 abc' : 'überall C++');
  index('#once привет 検索検索 𐐨𐐨𐐨𐐨 a1b2c3');
  const words = await read();
  const sought = ['often', 'uberall', 'once', 'привет', '4711', 'abc', 'a1b2c3', 'ofte', 'oftenn'];
  expect(sought.map((word) => words?.documentsOf(word))).toEqual([2, 4, 1, 1, 0, 0, 0, 0, 0]);
});

it('finds each of many words, and those that contain a part, the most frequent first', async () => {
  const { index, read } = setUp();
  const all = distinctWords(2_000).flatMap((word) => ['', 'b', 'c', 'd'].map((end) => word + end));
  index(all.join(' '));
  for (const text of ['amietevertrag', 'xmietevertrag', 'xmietevertrag', 'zmiete']) index(text);
  const words = await read();
  expect(all.filter((word) => words?.documentsOf(word) !== 1)).toEqual([]);
  expect(all.filter((word) => words?.documentsOf(`${word}q`) !== 0)).toEqual([]);
  expect(words?.containing('miete')).toEqual(['xmietevertrag', 'amietevertrag', 'zmiete']);
});

it('is read at once in a small index, also after each change', () => {
  const { documents, index, words } = setUp();
  index('green');
  expect(words.current()?.documentsOf('green')).toBe(1);
  index('green brown');
  expect(['green', 'brown'].map((word) => words.current()?.documentsOf(word))).toEqual([2, 1]);
  documents.remove([normaliseUrl('http://h/2')]);
  expect(['green', 'brown'].map((word) => words.current()?.documentsOf(word))).toEqual([1, 0]);
});

it('of a larger index is read in slices, for which only the first search waits', async () => {
  const { clock, index, read, words } = setUp();
  index(`${MANY} zzzz`);
  expect(words.current()).toBeUndefined();
  expect((await read())?.documentsOf('zzzz')).toBe(1);
  index('later');
  clock.skip(1);
  expect(words.current()?.documentsOf('zzzz')).toBe(1);
  await until(() => words.current()?.documentsOf('later') === 1, 'the words are read again');
});

it('of a larger index is read again only after a pause', async () => {
  const { clock, database, index, read, words } = setUp();
  index(MANY);
  const first = read();
  clock.skip(100);
  const before = await first;
  index('later');
  const scan = vi.spyOn(database, 'scan');
  clock.skip(1_999);
  expect(words.current()).toBe(before);
  expect(scan).not.toHaveBeenCalled();
  clock.skip(1);
  expect(words.current()).toBe(before);
  await until(() => words.current()?.documentsOf('later') === 1, 'the words are read again');
});

it('leaves out the words of the fewest documents if it becomes too long', async () => {
  const { clock, database, index } = setUp();
  index(MANY);
  for (let n = 0; n < 2; n += 1) index('twice');
  const words = new WordList(database, clock, 10_000);
  const short = await words.provide(() => words.current());
  expect(['twice', MANY.slice(0, 5)].map((word) => short?.documentsOf(word))).toEqual([2, 0]);
});

it('has the search fail that finds the index unreadable, and is read by the next one', async () => {
  const { database, index, read, words } = setUp();
  index(MANY);
  const { scan } = database;
  expect(words.current()).toBeUndefined();
  database.scan = () => {
    throw new Error('damaged');
  };
  await expect(read()).rejects.toThrow('damaged');
  database.scan = scan;
  expect(await read()).toBeDefined();
});

it('is no longer read when the database is closed', async () => {
  const { database, index, words } = setUp();
  index(MANY);
  const scan = vi.spyOn(database, 'scan');
  const answer = words.provide(() => (database.isOpen ? words.current() : 'closed'));
  database.close();
  expect(await answer).toBe('closed');
  expect(scan).toHaveBeenCalledTimes(1);
});
