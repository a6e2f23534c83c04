import { describe, expect, it } from 'vitest';
import { checkDatabase } from '../../src/embedded/check.js';
import { normaliseUrl } from '../../src/embedded/content.js';
import { FORMAT, int, MIGRATION, text } from '../../src/embedded/database.js';
import { DocumentStore } from '../../src/embedded/documents.js';
import { findDocuments } from '../../src/embedded/find.js';
import { Migration } from '../../src/embedded/migration.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import {
  openDatabase,
  openPeer,
  peerdoc,
  push,
  search,
  send,
  spawnPeer,
  toMigratedFormat,
} from './support.js';

const urlOf = (n: number) => normaliseUrl(`http://h/${n}.txt`);

/** Makes a directory with so many documents in the format before. Every third one has C++. */
function oldDirectory(count: number, filler = ''): string {
  const dir = temporaryDirectory();
  const database = openDatabase(dir);
  const documents = new DocumentStore(database);
  database.transaction(() => {
    for (let n = 0; n < count; n += 1) documents.index(document(n, filler));
  });
  database.close();
  toMigratedFormat(dir);
  return dir;
}

function document(n: number, filler = '') {
  const body = `Paper ${n}\n${filler}${n % 3 === 0 ? `C++ #tag${n}` : 'c and tag'}`;
  return { url: urlOf(n), collections: ['c'], loadDate: n, data: Buffer.from(body) };
}

/** A clock with which each slice takes one document. */
function clockOfShortSlices() {
  let now = 0;
  return {
    ...systemClock,
    now: () => {
      now += 1_000;
      return now;
    },
  };
}

/** Opens a database, and what a migration of it needs. */
function open(dir: string) {
  const lines: string[] = [];
  const record = (_: object, message: string) => void lines.push(message);
  const database = openDatabase(dir);
  const documents = new DocumentStore(database);
  const log = { ...silentLogger, info: record, error: record };
  const migration = new Migration({ database, documents, clock: clockOfShortSlices(), log });
  const find = (query: string) => {
    const request = { query, collection: '', offset: 0, limit: 100 };
    const result = findDocuments(request, { database, documents });
    const { corrected, found, signsIgnored, totalIsExact } = result;
    return {
      corrected,
      ...(signsIgnored && { signsIgnored }),
      ...(!totalIsExact && { totalIsExact }),
      numbers: found.map(({ url }) => Number(/(\d+)\.txt/.exec(url)?.[1])).sort((a, b) => a - b),
    };
  };
  return { database, documents, migration, find, lines };
}

describe('a database of the format before', () => {
  it('has its symbol words after the migration, which is logged', async () => {
    const { database, find, lines, migration } = open(oldDirectory(9));
    expect(find('C++')).toEqual({
      corrected: undefined,
      numbers: [0, 1, 2, 3, 4, 5, 6, 7, 8],
      signsIgnored: true,
    });
    await migration.run();
    expect(find('C++')).toEqual({ corrected: undefined, numbers: [0, 3, 6] });
    expect(find('#tag6')).toEqual({ corrected: undefined, numbers: [6] });
    expect(find('"paper 6"').numbers).toEqual([6]);
    expect(lines).toEqual([
      'Words such as C++, .NET and #tag are added to the index',
      'Words such as C++, .NET and #tag are in the index',
    ]);
    expect(int(database.row('PRAGMA user_version'), 'user_version')).toBe(FORMAT);
    expect(database.row('SELECT 1 FROM counts WHERE name = ?', MIGRATION)).toBeUndefined();
    database.close();
  });

  it('is migrated once', async () => {
    const dir = oldDirectory(3);
    for (const expected of [2, 0]) {
      const { database, lines, migration } = open(dir);
      await migration.run();
      expect(lines.length).toBe(expected);
      database.close();
    }
  });

  it('is migrated if it is empty', async () => {
    const { database, documents, migration } = open(oldDirectory(0));
    await migration.run();
    expect(documents.isMigrated).toBe(true);
    database.close();
  });

  it('continues where it was interrupted, after any slice and any change, and always passes the check', async () => {
    const dir = oldDirectory(9);
    let isMigrated = false;
    for (let slice = 0; !isMigrated; slice += 1) {
      expect(slice).toBeLessThan(20);
      const { database, documents, find, migration } = open(dir);
      expect(find('C++').numbers).toEqual(find('c').numbers);
      if (slice === 2) expect(documents.remove([urlOf(0), urlOf(6), urlOf(8)])).toHaveLength(3);
      if (slice === 3) database.transaction(() => documents.index(document(12)));
      if (slice === 4)
        database.transaction(() =>
          documents.index({ ...document(1), data: Buffer.from('Paper 1\nnow with C++') }),
        );
      migration.runSlice();
      isMigrated = documents.isMigrated;
      const { signal } = new AbortController();
      expect(await checkDatabase(database, signal)).toMatchObject({ differences: [], found: 0 });
      database.close();
    }
    const { database, find } = open(dir);
    expect(find('C++')).toEqual({ corrected: undefined, numbers: [1, 3, 12] });
    expect(find('#tag3').numbers).toEqual([3]);
    expect(find('c').numbers).toEqual([1, 2, 3, 4, 5, 7, 12]);
    database.close();
  });

  it.each([
    ['C++', 'c'],
    ['"C++"', 'c'],
    ['"0 C++"', '"0 c"'],
    ['(C++ OR #tag0) paper', '(c OR tag0) paper'],
    ['c -C++', 'c'],
    ['c -"with #tag0"', 'c'],
    ['c -C++ -tag0', 'c -tag0'],
    ['c -(C++ OR tag0)', 'c'],
    ['c -(C++ tag0)', 'c'],
    ['(c -C++) OR nothing', 'c OR nothing'],
    ['-C++', ' '],
  ])('ignores signs until all documents are done, and says so: %s', (query, plain) => {
    const { database, find, migration } = open(oldDirectory(3));
    migration.runSlice();
    const asked = find(plain);
    expect(asked).not.toHaveProperty('signsIgnored');
    expect(find(query)).toEqual({ ...asked, signsIgnored: true });
    database.close();
  });

  it('says that signs are ignored on the page and to programs', async () => {
    const dir = oldDirectory(3);
    const { database } = open(dir);
    // The migration cannot record its place, so it waits for the next start.
    const halt = `BEFORE UPDATE ON counts WHEN NEW.name = '${MIGRATION}'`;
    database.run(`CREATE TRIGGER halt ${halt} BEGIN SELECT RAISE(ABORT, 'halt'); END`);
    database.close();
    const peer = await openPeer({ dir });
    const ignored = 'signs of words such as C++ are ignored until the index is migrated';
    expect(await search(peer, { query: 'c -C++' })).toMatchObject({ signsIgnored: true, total: 3 });
    expect((await send(peer, '/?query=C%2B%2B')).body).toContain(ignored);
    expect((await send(peer, '/?query=c')).body).not.toContain(ignored);
  });

  it('is not migrated again by a document that cannot be read, which is logged', async () => {
    const { database, documents, find, lines, migration } = open(oldDirectory(9));
    database.run("UPDATE texts SET deflated = x'ffff' WHERE document = 4");
    await migration.run();
    expect(documents.isMigrated).toBe(true);
    expect(lines[1]).toBe('The document http://h/3.txt cannot be indexed again');
    expect(find('C++').numbers).toEqual([0, 6]);
    database.close();
  });

  it.each(['nextToMigrate', 'setMigratedFrom', 'endMigration', 'merge'] as const)(
    'waits for the next start if it cannot find or record its place: %s',
    async (name) => {
      const dir = oldDirectory(9);
      const damaged = open(dir);
      damaged.migration.runSlice();
      let calls = 0;
      const fail = (): never => {
        calls += 1;
        if (calls > 20) damaged.database.close();
        throw new Error('database disk image is malformed');
      };
      damaged.documents[name] = fail;
      await damaged.migration.run();
      expect(damaged.lines).toEqual([
        'Words such as C++, .NET and #tag are added to the index',
        'Words such as C++, .NET and #tag cannot be added to the index now: database disk image is malformed. The next start continues',
      ]);
      expect(calls).toBe(1);
      damaged.database.close();
      const { database, find, migration } = open(dir);
      await migration.run();
      expect(find('C++').numbers).toEqual([0, 3, 6]);
      database.close();
    },
  );

  it('waits for the next start if the disk is full', async () => {
    const dir = oldDirectory(300, 'filler of many words '.repeat(50));
    const full = open(dir);
    full.database.run('PRAGMA wal_checkpoint(TRUNCATE)');
    const pages = int(full.database.row('PRAGMA page_count'), 'page_count');
    full.database.run(`PRAGMA max_page_count = ${pages}`);
    await full.migration.run();
    expect(full.lines.at(-1)).toMatch(/cannot be added to the index now: .*full/);
    expect(full.documents.isMigrated).toBe(false);
    full.database.close();
    const { database, find, migration } = open(dir);
    await migration.run();
    expect(find('C++').numbers).toHaveLength(100);
    database.close();
  });

  it('answers and takes documents while it is migrated by a peer', async () => {
    const dir = oldDirectory(2_000, 'filler '.repeat(300));
    const peer = await openPeer({ dir });
    expect((await search(peer, { query: '"paper 1999"' })).total).toBe(1);
    await push(peer, { 'http://h/new.txt': 'new C++' });
    expect(await peerdoc(peer, 'http://h/new.txt')).toBeDefined();
    await until(
      async () => (await search(peer, { query: 'C++', limit: '0' })).total === 668,
      'it is migrated',
    );
    await peer.close();
    const { database } = open(dir);
    expect(database.row('SELECT 1 FROM counts WHERE name = ?', MIGRATION)).toBeUndefined();
    database.close();
  });

  it('is migrated whole, whenever the peer is killed', async () => {
    const count = 600;
    const dir = oldDirectory(count, 'filler of many different words '.repeat(200));
    const reached: number[] = [];
    // The peers live longer and longer, so that a slow machine comes to an end, too.
    let longest = 50;
    for (let progress: number | undefined = 0; progress !== undefined; longest *= 2) {
      const peer = await spawnPeer(dir);
      await systemClock.sleep(Math.random() * longest);
      await peer.kill();
      const { database } = open(dir);
      const row = database.row('SELECT value FROM counts WHERE name = ?', MIGRATION);
      progress = row && int(row, 'value');
      if (progress !== undefined) reached.push(progress);
      database.close();
    }
    expect(reached.some((id) => id > 1 && id <= count)).toBe(true);
    expect(reached).toEqual(reached.toSorted((a, b) => b - a));
    const { database, find } = open(dir);
    for (let n = 0; n < count; n += 3)
      expect(find(`#tag${n}`), `${n}`).toMatchObject({ numbers: [n] });
    expect(find('"#tag"').corrected).toBe('"tag"');
    expect(text(database.row('PRAGMA integrity_check') ?? {}, 'integrity_check')).toBe('ok');
    database.close();
  });
});
