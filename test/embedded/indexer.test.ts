import { afterEach, describe, expect, it } from 'vitest';
import { type NormalUrl, normaliseUrl } from '../../src/embedded/content.js';
import { Database } from '../../src/embedded/database.js';
import { DocumentStore } from '../../src/embedded/documents.js';
import { Indexer } from '../../src/embedded/indexer.js';
import { type Logger, silentLogger } from '../../src/lib/logger.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const url = (n: number | string): NormalUrl => normaliseUrl(`http://h/${n}.txt`);

const databases: Database[] = [];
afterEach(() => {
  for (const database of databases.splice(0)) database.close();
});

function setUp(log: Logger = silentLogger, clock = new FakeClock(), forms = { isReceiving: false }) {
  const database = new Database(temporaryDirectory());
  databases.push(database);
  const documents = new DocumentStore(database);
  const indexer = new Indexer({
    database,
    documents,
    clock,
    log,
    commitEveryMs: 1_000,
    forms,
  });
  const accept = async (n: number | string, data: string, collections = ['c']): Promise<number[]> => {
    const seqs = documents.accept([
      { url: url(n), collections, loadDate: clock.now(), data: Buffer.from(data) },
    ]);
    indexer.notify();
    return seqs;
  };
  return { clock, database, documents, indexer, accept };
}

describe('an accepted document', () => {
  it('becomes visible a second after it was accepted, and not before', async () => {
    const { clock, documents, accept } = setUp();
    await accept(1, 'one');
    await clock.advance(999);
    expect(documents.byUrl(url(1))).toBeUndefined();
    expect(documents.count('waiting')).toBe(1);
    await clock.advance(1);
    await until(() => documents.byUrl(url(1)) !== undefined, 'visible');
    expect(documents.count('waiting')).toBe(0);
    expect(documents.count('documents')).toBe(1);
  });

  it('that comes just after the last look at the queue is not forgotten', async () => {
    let last: (() => void) | undefined;
    const forms = {
      get isReceiving() {
        last?.();
        last = undefined;
        return false;
      },
    };
    const { clock, database, indexer, documents, accept } = setUp(silentLogger, new FakeClock(), forms);
    await accept(1, 'first');
    last = () => {
      const sql = "INSERT INTO queue (url, collections, load_date, data) VALUES (?, '[]', 0, x'41')";
      database.run(sql, url('late'));
      indexer.notify();
    };
    await clock.advance(1_000);
    await until(() => last === undefined && documents.byUrl(url(1)) !== undefined, 'the first is visible');
    expect(documents.byUrl(url('late'))).toBeUndefined();
    await until(async () => {
      await clock.advance(1_000);
      return documents.byUrl(url('late')) !== undefined;
    }, 'the late one is visible');
  });

  it('is the last one pushed for its URL, in whatever order they are indexed', async () => {
    const { clock, documents, indexer, accept } = setUp();
    await accept(1, 'old');
    const seqs = await accept(1, 'new words');
    await indexer.indexNow(seqs);
    expect(documents.byUrl(url(1))?.words).toBe(2);
    await clock.advance(1_000);
    await until(() => documents.count('waiting') === 0, 'nothing waits');
    expect(documents.byUrl(url(1))?.words).toBe(2);
    expect(documents.count('documents')).toBe(1);
  });

  it('keeps the time of its last change when it is pushed again unchanged', async () => {
    const { clock, documents, indexer, accept } = setUp();
    await indexer.indexNow(await accept(1, 'same', ['a', 'b']));
    const before = documents.byUrl(url(1));
    await clock.advance(5_000);
    await indexer.indexNow(await accept(1, 'same', ['b', 'x']));
    const after = documents.byUrl(url(1));
    expect(after).toEqual({
      ...before,
      collections: ['b', 'x'],
      loadDate: (before?.loadDate ?? 0) + 5_000,
    });
    expect(documents.collections(10)).toEqual(['b', 'x']);
    expect(['a', 'b', 'x'].map((collection) => documents.count({ collection }))).toEqual([0, 1, 1]);
    await clock.advance(5_000);
    await indexer.indexNow(await accept(1, 'changed'));
    expect(documents.byUrl(url(1))?.lastModified).toBe((before?.loadDate ?? 0) + 10_000);
  });

  it('that cannot be indexed does not keep the others out, and is told once', async () => {
    const told: string[] = [];
    const { clock, database, documents, accept } = setUp({
      ...silentLogger,
      error: (_, message) => told.push(message),
    });
    await accept('bad', 'x');
    // A collection that is no text stands for whatever may go wrong half-way through one document.
    database.run("UPDATE queue SET collections = '[{}]'");
    await accept('good', 'y');
    await clock.advance(1_000);
    await until(() => told.length > 0, 'told');
    await clock.advance(10_000);
    expect(documents.byUrl(url('good'))).toBeDefined();
    expect(documents.byUrl(url('bad'))).toBeUndefined();
    expect(documents.count('documents')).toBe(1);
    expect(documents.count('waiting')).toBe(1);
    expect(told).toHaveLength(1);
  });
});

describe('the indexer', () => {
  it('leaves half of the time to bodies that come in, and none where none come', async () => {
    /** Every look at it costs 10 ms, so that each document fills a slice; sleeping is noted. */
    class SlowClock extends FakeClock {
      slept = 0;
      #looks = 0;
      override now(): number {
        this.#looks += 1;
        return super.now() + this.#looks * 10;
      }
      override sleep(): Promise<void> {
        this.slept += 1;
        return Promise.resolve();
      }
    }
    const sleptWhile = async (receiving: boolean): Promise<number> => {
      const clock = new SlowClock();
      const { accept, documents } = setUp(silentLogger, clock, { isReceiving: receiving });
      for (let n = 0; n < 5; n += 1) await accept(n, 'x');
      await clock.advance(5_000);
      await until(() => documents.count('waiting') === 0, 'all indexed');
      return clock.slept;
    };
    expect(await sleptWhile(true)).toBeGreaterThan(0);
    expect(await sleptWhile(false)).toBe(0);
  });
});

describe('a push', () => {
  it('is accepted whole or not at all', async () => {
    const { database, documents } = setUp();
    const one = { url: url(1), collections: ['c'], loadDate: 1, data: Buffer.from('x') };
    expect(documents.accept([one, one])).toEqual([1, 2]);
    database.run('ALTER TABLE queue RENAME TO gone');
    expect(() => documents.accept([one])).toThrow(/no such table/);
    database.run('ALTER TABLE gone RENAME TO queue');
    expect(documents.count('waiting')).toBe(2);
  });
});
