import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { Database, int } from '../../src/embedded/database.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { openPeer, peerdoc, push, search } from './support.js';

/** The database of a peer that knew no tables yet, with one document in it. */
const format1 = new URL('./fixtures/format-1.sqlite.gz', import.meta.url);

function olderDirectory(): string {
  const dir = temporaryDirectory();
  writeFileSync(join(dir, 'peer.sqlite'), gunzipSync(readFileSync(format1)));
  return dir;
}

describe('the database of an older peer', () => {
  it('opens, is upgraded once, and keeps its documents', async () => {
    const dir = olderDirectory();
    for (let start = 0; start < 2; start += 1) {
      const peer = await openPeer({ dir });
      expect(await peerdoc(peer, 'http://h/kept')).toMatchObject({ collections: ['old'] });
      expect((await search(peer, { query: 'older' })).total).toBe(1);
      // By the beginning of a word, which the older peer did not index.
      await until(
        async () => (await search(peer, { query: 'old' })).total === 1,
        'it is indexed anew',
      );
      expect(await push(peer, { 'http://h/new': 'new' })).toMatchObject({ countsuccess: 1 });
      await peer.close();
    }
    const database = new Database(dir);
    expect(int(database.row('PRAGMA user_version'), 'user_version')).toBe(4);
    expect(int(database.row('SELECT count(*) AS n FROM tables'), 'n')).toBe(0);
    database.close();
  });

  it('has the form of a new one after that', () => {
    const [older, newer] = [new Database(olderDirectory()), new Database(temporaryDirectory())];
    const sql = 'SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name';
    expect(older.rows(sql)).toEqual(newer.rows(sql));
    older.close();
    newer.close();
  });
});
