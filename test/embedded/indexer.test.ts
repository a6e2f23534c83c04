import { copyFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { type NormalUrl, normaliseUrl } from '../../src/embedded/content.js';
import { int } from '../../src/embedded/database.js';
import { DocumentStore } from '../../src/embedded/documents.js';
import { findDocuments } from '../../src/embedded/find.js';
import { Indexer } from '../../src/embedded/indexer.js';
import { silentLogger } from '../../src/lib/logger.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { openDatabase } from './support.js';

const url = (n: number | string): NormalUrl => normaliseUrl(`http://h/${n}.txt`);

function setUp(clock = new FakeClock()) {
  const dir = temporaryDirectory();
  const database = openDatabase(dir);
  afterwards('test', () => database.close());
  const documents = new DocumentStore(database);
  const errors: string[] = [];
  const log = { ...silentLogger, error: (_: object, message: string) => void errors.push(message) };
  const indexer = new Indexer({ database, documents, clock, log });
  const index = (n: number | string, data: string, collections = ['c']) =>
    indexer.index([{ url: url(n), collections, loadDate: clock.now(), data: Buffer.from(data) }]);
  return { dir, clock, database, documents, indexer, errors, index };
}

it('a document that is pushed again unchanged keeps the time of its last change', async () => {
  const { clock, documents, index } = setUp();
  await index(1, 'same', ['a', 'b']);
  const before = documents.find('url', url(1));
  const loadDate = before?.loadDate ?? 0;
  await clock.advance(5_000);
  await index(1, 'same', ['b', 'x']);
  const after = { ...before, collections: ['b', 'x'], loadDate: loadDate + 5_000 };
  expect(documents.find('url', url(1))).toEqual(after);
  expect(documents.collections(10)).toEqual(['b', 'x']);
  expect(['a', 'b', 'x'].map((collection) => documents.count({ collection }))).toEqual([0, 1, 1]);
  await clock.advance(5_000);
  await index(1, 'changed');
  expect(documents.find('url', url(1))?.lastModified).toBe(loadDate + 10_000);
});

it('a document that is pushed again changed is indexed once, by its new words', async () => {
  const { database, documents, index } = setUp();
  await index(1, 'green tea');
  await index(1, 'black tea');
  const found = (query: string) => {
    const request = { query, collection: '', offset: 0, limit: 10 };
    const result = findDocuments(request, { database, documents });
    return [result.total, result.found.length, result.corrected];
  };
  expect(found('tea ')).toEqual([1, 1, undefined]);
  expect(found('black ')).toEqual([1, 1, undefined]);
  expect(found('green ')).toEqual([0, 0, undefined]);
  expect(found('gre')).toEqual([0, 0, undefined]);
  const sql = "SELECT doc FROM vocabulary WHERE term = 'tea'";
  expect(int(database.row(sql), 'doc')).toBe(1);
  expect(documents.count('documents')).toBe(1);
});

it('a document is on disk when it is answered as indexed: a crash at that moment loses nothing', async () => {
  const { dir, index } = setUp();
  for (const n of [1, 2]) expect(await index(n, 'green tea')).toEqual([true]);
  // The files as a crash would leave them: without a commit or a checkpoint at the end.
  const crashed = temporaryDirectory();
  for (const name of readdirSync(dir).filter((each) => /^peer\.sqlite(-wal)?$/.test(each)))
    copyFileSync(join(dir, name), join(crashed, name));
  const database = openDatabase(crashed);
  const documents = new DocumentStore(database);
  for (const n of [1, 2]) expect(documents.find('url', url(n))).toBeDefined();
  database.close();
});

it('a document that cannot be indexed is logged, and does not affect others', async () => {
  const { documents, indexer, errors } = setUp();
  const good = { url: url('good'), collections: ['c'], loadDate: 1, data: Buffer.from('x') };
  // A collection that is no text stands for whatever may go wrong half-way through one document.
  const bad = { ...good, url: url('bad'), collections: [{}] as string[] };
  expect(await indexer.index([bad, good])).toEqual([false, true]);
  expect(errors).toEqual([expect.stringContaining('bad.txt')]);
  expect([documents.find('url', url('bad')), documents.count('documents')]).toEqual([undefined, 1]);
});

it('the event loop runs between long documents, and after a stop no more are indexed', async () => {
  const clock = new FakeClock();
  let looks = 0;
  // Every look at it costs 10 ms, so that each document fills a slice.
  const now = clock.now.bind(clock);
  clock.now = () => now() + 10 * ++looks;
  const { documents, indexer } = setUp(clock);
  const pushed = Array.from({ length: 50 }, (_, n) => ({
    url: url(n),
    collections: ['c'],
    loadDate: 1,
    data: Buffer.from('x'),
  }));
  const indexed = indexer.index(pushed);
  while (documents.count('documents') < 3) await nextTurn();
  indexer.stop();
  await expect(indexed).rejects.toMatchObject({ status: 503 });
  expect(documents.count('documents')).toBeLessThan(10);
});

it('the index has few segments, because each transaction merges some', async () => {
  const { database, index } = setUp();
  const pieces = () =>
    ['words', 'prefixes'].map((table) => {
      const sql = `SELECT count(DISTINCT id >> 37) AS n FROM ${table}_data WHERE id > 10`;
      return int(database.row(sql), 'n');
    });
  for (let n = 0; n < 60; n += 1) {
    await index(n, `word${n}`);
    expect(Math.max(...pieces())).toBeLessThan(10);
  }
});

it('documents of several pushes share a transaction, and a bad one does not affect other pushes', async () => {
  const { database, documents, indexer, index } = setUp();
  const transactions = vi.spyOn(database, 'transaction');
  const bad = {
    url: url('bad'),
    collections: [{}] as string[],
    loadDate: 1,
    data: Buffer.from('x'),
  };
  const pushes = [index(0, 'x'), index(1, 'x'), indexer.index([bad]), index(2, 'x'), index(3, 'x')];
  expect(await Promise.all(pushes)).toEqual([[true], [true], [false], [true], [true]]);
  expect(documents.count('documents')).toBe(4);
  // The first push alone, the slice that fails, and the rest.
  expect(transactions).toHaveBeenCalledTimes(3);
});

it('a short push does not wait for a long one', async () => {
  const clock = new FakeClock();
  let looks = 0;
  // Every look at it costs 10 ms, so that each document fills a slice.
  const now = clock.now.bind(clock);
  clock.now = () => now() + 10 * ++looks;
  const { documents, indexer } = setUp(clock);
  const push = (from: number, count: number) =>
    indexer.index(
      Array.from({ length: count }, (_, n) => ({
        url: url(from + n),
        collections: ['c'],
        loadDate: 1,
        data: Buffer.from('x'),
      })),
    );
  const long = push(0, 50);
  await push(100, 1);
  expect(documents.count('documents')).toBeLessThan(10);
  await long;
  expect(documents.count('documents')).toBe(51);
});

it('a failing disk is told to all pushes that wait', async () => {
  const { database, index } = setUp();
  const full = new Error('database or disk is full');
  vi.spyOn(database, 'transaction').mockImplementation(() => {
    throw full;
  });
  const pushes = await Promise.allSettled([index(0, 'x'), index(1, 'x')]);
  expect(pushes).toEqual([
    { status: 'rejected', reason: full },
    { status: 'rejected', reason: full },
  ]);
  vi.restoreAllMocks();
  expect(await index(2, 'x')).toEqual([true]);
});
