import { describe, expect, it } from 'vitest';
import { type NormalUrl, normaliseUrl } from '../../src/embedded/content.js';
import { Database } from '../../src/embedded/database.js';
import { DocumentStore } from '../../src/embedded/documents.js';
import { Indexer } from '../../src/embedded/indexer.js';
import { silentLogger } from '../../src/lib/logger.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const url = (n: number | string): NormalUrl => normaliseUrl(`http://h/${n}.txt`);

function setUp(clock = new FakeClock(), forms = { isReceiving: false }) {
  const database = new Database(temporaryDirectory());
  afterwards('test', () => database.close());
  const documents = new DocumentStore(database);
  const errors: string[] = [];
  const log = { ...silentLogger, error: (_: object, message: string) => void errors.push(message) };
  const indexer = new Indexer({ database, documents, clock, log, commitEveryMs: 1_000, forms });
  const accept = (n: number | string, data: string, collections = ['c']): number[] => {
    const seqs = documents.accept([
      { url: url(n), collections, loadDate: clock.now(), data: Buffer.from(data) },
    ]);
    indexer.notify();
    return seqs;
  };
  const isVisible = (n: number | string) => documents.find('url', url(n)) !== undefined;
  const counts = () => [documents.count('documents'), documents.count('waiting')];
  return { clock, database, documents, indexer, errors, accept, isVisible, counts };
}

describe('an accepted document', () => {
  it('becomes visible a second after it was accepted, and not before', async () => {
    const { clock, accept, counts } = setUp();
    accept(1, 'one');
    await clock.advance(999);
    expect(counts()).toEqual([0, 1]);
    await clock.advance(1);
    await until(() => counts()[1] === 0, 'visible');
    expect(counts()).toEqual([1, 0]);
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
    const { clock, database, indexer, accept, isVisible } = setUp(new FakeClock(), forms);
    accept(1, 'first');
    last = () => {
      const sql = "INSERT INTO queue (url, collections, load_date, data) VALUES (?, '[]', 0, x'41')";
      database.run(sql, url('late'));
      indexer.notify();
    };
    await clock.advance(1_000);
    await until(() => last === undefined && isVisible(1), 'the first is visible');
    expect(isVisible('late')).toBe(false);
    await until(async () => {
      await clock.advance(1_000);
      return isVisible('late');
    }, 'the late one is visible');
  });

  it('is the last one pushed for its URL, in whatever order they are indexed', async () => {
    const { clock, documents, indexer, accept, counts } = setUp();
    accept(1, 'old');
    await indexer.indexNow(accept(1, 'new words'));
    expect(documents.find('url', url(1))?.words).toBe(2);
    await clock.advance(1_000);
    await until(() => counts()[1] === 0, 'nothing waits');
    expect([documents.find('url', url(1))?.words, ...counts()]).toEqual([2, 1, 0]);
  });

  it('keeps the time of its last change when it is pushed again unchanged', async () => {
    const { clock, documents, indexer, accept } = setUp();
    await indexer.indexNow(accept(1, 'same', ['a', 'b']));
    const before = documents.find('url', url(1));
    const loadDate = before?.loadDate ?? 0;
    await clock.advance(5_000);
    await indexer.indexNow(accept(1, 'same', ['b', 'x']));
    const after = { ...before, collections: ['b', 'x'], loadDate: loadDate + 5_000 };
    expect(documents.find('url', url(1))).toEqual(after);
    expect(documents.collections(10)).toEqual(['b', 'x']);
    expect(['a', 'b', 'x'].map((collection) => documents.count({ collection }))).toEqual([0, 1, 1]);
    await clock.advance(5_000);
    await indexer.indexNow(accept(1, 'changed'));
    expect(documents.find('url', url(1))?.lastModified).toBe(loadDate + 10_000);
  });

  it('that cannot be indexed does not keep the others out, and is told once', async () => {
    const { clock, database, errors, accept, isVisible, counts } = setUp();
    accept('bad', 'x');
    // A collection that is no text stands for whatever may go wrong half-way through one document.
    database.run("UPDATE queue SET collections = '[{}]'");
    accept('good', 'y');
    await clock.advance(1_000);
    await until(() => errors.length > 0, 'told');
    await clock.advance(10_000);
    expect([isVisible('good'), isVisible('bad'), ...counts(), errors.length]).toEqual([true, false, 1, 1, 1]);
  });
});

it.each([true, false])(
  'the indexer leaves half of the time to bodies that come in: %s',
  async (isReceiving) => {
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
    const clock = new SlowClock();
    const { accept, counts } = setUp(clock, { isReceiving });
    for (let n = 0; n < 5; n += 1) accept(n, 'x');
    await clock.advance(5_000);
    await until(() => counts()[1] === 0, 'all indexed');
    expect(clock.slept > 0).toBe(isReceiving);
  },
);

it('a push is accepted whole or not at all', () => {
  const { database, documents } = setUp();
  const one = { url: url(1), collections: ['c'], loadDate: 1, data: Buffer.from('x') };
  expect(documents.accept([one, one])).toEqual([1, 2]);
  database.run('ALTER TABLE queue RENAME TO gone');
  expect(() => documents.accept([one])).toThrow(/no such table/);
  database.run('ALTER TABLE gone RENAME TO queue');
  expect(documents.count('waiting')).toBe(2);
});
