import { afterEach, describe, expect, it } from 'vitest';
import { Database, Tally } from '../../src/embedded/database.js';
import { Indexer } from '../../src/embedded/indexer.js';
import { Library, Queue } from '../../src/embedded/library.js';
import { BodyBudget } from '../../src/embedded/server.js';
import { type NormalUrl, normaliseUrl } from '../../src/embedded/urls.js';
import { type Logger, silentLogger } from '../../src/lib/logger.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const url = (n: number | string): NormalUrl => {
  const result = normaliseUrl(`http://h/${n}.txt`);
  if (!result.ok) throw new Error(result.why);
  return result.url;
};

const databases: Database[] = [];
afterEach(() => {
  for (const database of databases.splice(0)) database.close();
});

function setUp(log: Logger = silentLogger, clock = new FakeClock(), isReceiving = () => false) {
  const database = new Database(temporaryDirectory());
  databases.push(database);
  const tally = new Tally(database);
  const queue = new Queue(database, tally);
  const library = new Library(database, tally);
  const indexer = new Indexer({
    database,
    queue,
    library,
    clock,
    log,
    commitEveryMs: 1_000,
    isReceiving,
  });
  const accept = async (n: number | string, data: string, collections = ['c']): Promise<number[]> => {
    const seqs = await queue.accept([
      { url: url(n), collections, loadDate: clock.now(), data: Buffer.from(data) },
    ]);
    indexer.notify();
    return seqs;
  };
  return { clock, database, tally, queue, library, indexer, accept };
}

describe('an accepted document', () => {
  it('becomes visible a second after it was accepted, and not before', async () => {
    const { clock, library, tally, accept } = setUp();
    await accept(1, 'one');
    await clock.advance(999);
    expect(library.byUrl(url(1))).toBeUndefined();
    expect(tally.of('waiting')).toBe(1);
    await clock.advance(1);
    await until(() => library.byUrl(url(1)) !== undefined, 'visible');
    expect(tally.of('waiting')).toBe(0);
    expect(tally.of('documents')).toBe(1);
  });

  it('that comes just after the last look at the queue is not forgotten', async () => {
    let last: (() => void) | undefined;
    const { clock, database, indexer, library, accept } = setUp(silentLogger, new FakeClock(), () => {
      last?.();
      last = undefined;
      return false;
    });
    await accept(1, 'first');
    last = () => {
      const sql = "INSERT INTO queue (url, collections, load_date, data) VALUES (?, '[]', 0, x'41')";
      database.run(sql, url('late'));
      indexer.notify();
    };
    await clock.advance(1_000);
    await until(() => last === undefined && library.byUrl(url(1)) !== undefined, 'the first is visible');
    expect(library.byUrl(url('late'))).toBeUndefined();
    await until(async () => {
      await clock.advance(1_000);
      return library.byUrl(url('late')) !== undefined;
    }, 'the late one is visible');
  });

  it('is the last one pushed for its URL, in whatever order they are indexed', async () => {
    const { clock, library, indexer, accept, tally } = setUp();
    await accept(1, 'old');
    const seqs = await accept(1, 'new words');
    await indexer.indexNow(seqs);
    expect(library.byUrl(url(1))?.words).toBe(2);
    await clock.advance(1_000);
    await until(() => tally.of('waiting') === 0, 'nothing waits');
    expect(library.byUrl(url(1))?.words).toBe(2);
    expect(tally.of('documents')).toBe(1);
  });

  it('keeps the time of its last change when it is pushed again unchanged', async () => {
    const { clock, library, indexer, accept, tally } = setUp();
    await indexer.indexNow(await accept(1, 'same', ['a', 'b']));
    const before = library.byUrl(url(1));
    await clock.advance(5_000);
    await indexer.indexNow(await accept(1, 'same', ['b', 'x']));
    const after = library.byUrl(url(1));
    expect(after).toEqual({
      ...before,
      collections: ['b', 'x'],
      loadDate: (before?.loadDate ?? 0) + 5_000,
    });
    expect(tally.collections(10)).toEqual([
      { collection: 'b', documents: 1 },
      { collection: 'x', documents: 1 },
    ]);
    await clock.advance(5_000);
    await indexer.indexNow(await accept(1, 'changed'));
    expect(library.byUrl(url(1))?.lastModified).toBe((before?.loadDate ?? 0) + 10_000);
  });

  it('that cannot be indexed does not keep the others out, and is told once', async () => {
    const told: string[] = [];
    const { clock, database, library, accept, tally } = setUp({
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
    expect(library.byUrl(url('good'))).toBeDefined();
    expect(library.byUrl(url('bad'))).toBeUndefined();
    expect(tally.of('documents')).toBe(1);
    expect(tally.of('waiting')).toBe(1);
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
      const { accept, tally } = setUp(silentLogger, clock, () => receiving);
      for (let n = 0; n < 5; n += 1) await accept(n, 'x');
      await clock.advance(5_000);
      await until(() => tally.of('waiting') === 0, 'all indexed');
      return clock.slept;
    };
    expect(await sleptWhile(true)).toBeGreaterThan(0);
    expect(await sleptWhile(false)).toBe(0);
  });
});

describe('a budget for bodies', () => {
  it('lets as many in as fit, and the others one after the other', async () => {
    const budget = new BodyBudget(100);
    const entered: string[] = [];
    const enter = (name: string, bytes: number): Promise<() => void> =>
      budget.take(bytes).then((release) => {
        entered.push(name);
        return release;
      });
    const a = await enter('a', 60);
    const b = enter('b', 100);
    const c = enter('c', 10);
    await new Promise((resolve) => setImmediate(resolve));
    expect(entered).toEqual(['a']);
    a();
    a();
    await new Promise((resolve) => setImmediate(resolve));
    expect(entered).toEqual(['a', 'b']);
    (await b)();
    await c;
    expect(entered).toEqual(['a', 'b', 'c']);
  });
});

describe('pushes that come together', () => {
  it('share a transaction, and are all refused where it fails', async () => {
    const { database, queue, tally } = setUp();
    const one = { url: url(1), collections: ['c'], loadDate: 1, data: Buffer.from('x') };
    expect(await Promise.all([queue.accept([one]), queue.accept([one, one])])).toEqual([[1], [2, 3]]);
    database.run('ALTER TABLE queue RENAME TO gone');
    await expect(queue.accept([one])).rejects.toThrow(/no such table/);
    database.run('ALTER TABLE gone RENAME TO queue');
    expect(tally.of('waiting')).toBe(3);
  });
});
