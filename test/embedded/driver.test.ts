import { spawnSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Database, isDiskFailure } from '../../src/embedded/database.js';
import {
  DRIVER_NAMES,
  type Driver,
  type DriverName,
  driverNamed,
  fastestDriver,
  nodeDriver,
  type Row,
  wasmDriver,
} from '../../src/embedded/driver.js';
import { messageOf } from '../../src/lib/errors.js';
import { temporaryDirectory } from '../support/temp.js';
import { AskedTable, driver, openDatabase, openPeer, peerdoc, push, search } from './support.js';

const DRIVERS: readonly Driver[] = [nodeDriver(), await wasmDriver()].filter(
  (each) => each !== undefined,
);
const driverModule = new URL('../../.build/embedded/driver.js', import.meta.url).href;

const NODE_MAJOR = Number(process.versions.node.split('.')[0]);

/** Every pair of drivers of this Node, in both directions. */
const PAIRS = DRIVERS.flatMap((first) =>
  DRIVERS.filter((second) => second !== first).map((second) => ({ first, second })),
);

function plain(row: Row | undefined): object {
  return { ...row };
}

describe('the driver', () => {
  it('is node:sqlite if this Node has it with FTS5', async () => {
    const [fastest] = DRIVERS;
    expect((await fastestDriver()).name).toBe(fastest?.name);
    if (nodeDriver() === undefined)
      await expect(driverNamed('node:sqlite')).rejects.toThrow('has no node:sqlite with FTS5');
  });

  it.runIf(NODE_MAJOR >= 24)('is node:sqlite in the builds of Node 24 and later', async () => {
    expect((await fastestDriver()).name).toBe('node:sqlite');
  });

  it('loads without a warning', () => {
    const script = `const { fastestDriver } = await import(process.argv[1]);
      console.log((await fastestDriver()).name);`;
    const args = ['--input-type=module', '-e', script, driverModule];
    const { stderr, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect([stderr, DRIVER_NAMES.includes(stdout.trim() as DriverName)]).toEqual(['', true]);
  });

  it('returns the values that were written: numbers, texts, bytes and null', () => {
    const database = openDatabase(temporaryDirectory());
    database.run('CREATE TABLE written (id INTEGER PRIMARY KEY, value)');
    const written = [0, -1, 2 ** 31, Number.MAX_SAFE_INTEGER, 0.5, '', 'ü😀', null];
    for (const value of written) database.run('INSERT INTO written (value) VALUES (?)', value);
    const rows = database.rows('SELECT value, typeof(value) AS type FROM written ORDER BY id');
    expect(rows.map(({ value }) => value)).toEqual(written);
    const types = ['integer', 'integer', 'integer', 'integer', 'real', 'text', 'text', 'null'];
    expect(rows.map(({ type }) => type)).toEqual(types);
    for (const value of [Buffer.from('abc').subarray(1), Buffer.alloc(0), new Uint8Array([0, 9])]) {
      const row = database.row('SELECT ? AS value, typeof(?) AS type', value, value);
      expect(row?.value).toBeInstanceOf(Uint8Array);
      expect([Buffer.from(row?.value as Uint8Array), row?.type]).toEqual([
        Buffer.from(value),
        'blob',
      ]);
    }
    database.close();
  });

  it('ends a text at NUL, and replaces half a surrogate pair', () => {
    const database = openDatabase(temporaryDirectory());
    const row = database.row(
      "SELECT ? AS cut, ? AS half, 'a' = ? AS same",
      'a\0b',
      '\ud800',
      'a\0',
    );
    expect(plain(row)).toEqual({ cut: 'a', half: '\ufffd', same: 1 });
    database.close();
  });

  it('returns the number of an inserted row, and finds a document of the index by it', () => {
    const database = openDatabase(temporaryDirectory());
    const insert = 'INSERT INTO words (rowid, body) VALUES (?, ?)';
    expect([1, 2, 3].map((id) => database.run(insert, id, 'hello'))).toEqual([1, 2, 3]);
    const rowids = (sql: string, ...values: number[]) =>
      database.rows(sql, ...values).map(({ rowid }) => rowid);
    const match = "SELECT rowid FROM words WHERE words MATCH 'hello'";
    expect(rowids(`${match} AND rowid = ?`, 2)).toEqual([2]);
    expect(rowids(`${match} AND rowid <> ?`, 2)).toEqual([1, 3]);
    expect(rowids(`${match} AND rowid > ? LIMIT ? OFFSET ?`, 1, 1, 1)).toEqual([3]);
    database.run('DELETE FROM words WHERE rowid = ?', 2);
    expect(rowids(match)).toEqual([1, 3]);
    database.close();
  });

  it('reads rows one by one, and the statement can be broken off', () => {
    const database = openDatabase(temporaryDirectory());
    const seen: unknown[] = [];
    const numbers =
      'WITH RECURSIVE n (i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n) SELECT i FROM n';
    database.scan(numbers, [5], ({ i }) => seen.push(i) < 3);
    expect(seen).toEqual([5, 6, 7]);
    database.transaction(() => database.run('INSERT INTO dropped_tables VALUES (1)'));
    expect(() => database.scan('SELECT missing', [], () => true)).toThrow(
      'no such column: missing',
    );
    database.close();
  });

  it('throws errors with the message of SQLite, and works after them', () => {
    const database = openDatabase(temporaryDirectory());
    const failure = (work: () => unknown): unknown => {
      try {
        return work();
      } catch (error) {
        return error;
      }
    };
    const twice = () => database.run('INSERT INTO dropped_tables VALUES (?)', 1);
    twice();
    const errors = [
      failure(twice),
      failure(() => database.run("INSERT INTO dropped_tables VALUES ('x')")),
      failure(() => database.rows('SELEC')),
      failure(() => database.rows('SELECT * FROM nowhere')),
    ];
    expect(errors.map(messageOf)).toEqual([
      'UNIQUE constraint failed: dropped_tables.id',
      expect.stringMatching(/datatype mismatch|cannot store TEXT value in INTEGER column/),
      'near "SELEC": syntax error',
      'no such table: nowhere',
    ]);
    for (const error of errors) expect(error).not.toHaveProperty('code');
    expect(errors.map(isDiskFailure)).toEqual([false, false, false, false]);
    expect(database.rows('SELECT id FROM dropped_tables')).toHaveLength(1);
    database.close();
  });

  it('undoes a transaction that fails, also one that SQLite itself undid', () => {
    const database = openDatabase(temporaryDirectory());
    const add = (id: number) => database.run('INSERT INTO dropped_tables VALUES (?)', id);
    const undone = (last: () => void) => () =>
      database.transaction(() => {
        add(1);
        last();
      });
    expect(
      undone(() => {
        throw new Error('of the caller');
      }),
    ).toThrow('of the caller');
    const rollback = 'INSERT OR ROLLBACK INTO dropped_tables VALUES (1)';
    expect(undone(() => void database.run(rollback))).toThrow('UNIQUE constraint failed');
    expect(database.rows('SELECT * FROM dropped_tables')).toEqual([]);
    database.transaction(() => add(2));
    expect(database.rows('SELECT * FROM dropped_tables')).toHaveLength(1);
    database.close();
  });

  it('leaves no other file than the database when it is closed', () => {
    const dir = temporaryDirectory();
    const database = openDatabase(dir);
    database.run('INSERT INTO dropped_tables VALUES (1)');
    expect(readdirSync(dir)).not.toContain('peer.sqlite-shm');
    database.close();
    expect(readdirSync(dir)).toEqual(['peer.sqlite']);
  });

  it.runIf(driver.name === 'node:sqlite')(
    'refuses a file that another program has open, and does not call it damaged',
    () => {
      const dir = temporaryDirectory();
      const first = openDatabase(dir);
      expect(() => openDatabase(dir)).toThrow(
        expect.objectContaining({
          code: 'EMBEDDED_DIR_UNWRITABLE',
          message: expect.stringContaining('another program has peer.sqlite open'),
        }),
      );
      first.close();
    },
  );

  it('reports a file that is no database', () => {
    const dir = temporaryDirectory();
    writeFileSync(join(dir, 'peer.sqlite'), 'this is no database at all '.repeat(200));
    expect(() => openDatabase(dir)).toThrow(
      expect.objectContaining({
        code: 'EMBEDDED_DIR_DAMAGED',
        message: expect.stringContaining('file is not a database'),
      }),
    );
  });
});

describe.each(PAIRS)('a directory of $first.name', ({ first, second }) => {
  const open = (dir: string, { name }: Driver) => openPeer({ dir, driver: name });

  it(`is continued by ${second.name}`, async () => {
    const dir = temporaryDirectory();
    const before = await open(dir, first);
    await push(before, { 'http://h/1': 'green tea', 'http://h/2': 'black tea' });
    await new AskedTable(before).commit('k', { a: 'all\0kept' });
    await before.close();
    const after = await open(dir, second);
    await push(after, { 'http://h/2': 'black coffee', 'http://h/3': 'white tea' });
    const { rows } = await new AskedTable(after).ask();
    expect(rows).toEqual([{ pk: 'k', cells: { a: 'all\0kept' } }]);
    await after.close();
    const again = await open(dir, first);
    const found = async (query: string) =>
      (await search(again, { query })).items.map(({ url }) => url).sort();
    expect(await found('tea ')).toEqual(['http://h/1', 'http://h/3']);
    expect(await found('cof*')).toEqual(['http://h/2']);
    expect(await peerdoc(again, 'http://h/3')).toBeDefined();
    await again.close();
    const database = new Database(dir, second);
    expect(plain(database.row('PRAGMA integrity_check'))).toEqual({ integrity_check: 'ok' });
    database.run("INSERT INTO words (words, rank) VALUES ('integrity-check', 0)");
    database.close();
  });
});
