import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkPeer } from '../../src/embedded/check-peer.js';
import { temporaryDirectory } from '../support/temp.js';
import { AskedTable, answered, driver, openDatabase, openPeer, push } from './support.js';

const signal = new AbortController().signal;

const LONG = `${'lorem ipsum '.repeat(9_000)}${'x'.repeat(40_000)}${'é'.repeat(40_000)}`;
const DOCUMENTS = {
  'http://h/a%20Big%20Name.txt': 'The Title\nGrüne Wörter, 緑茶 and ΣΟΦΟΣ\0nul \ufffd end abé',
  'http://h/long': LONG,
  'http://h/empty': '',
  'http://h/page.html':
    '<html><title>Page &amp; &#xd800;</title><p>some <b>text</b> &#0; here</html>',
  'http://h/replaced': 'old words that are gone',
  'http://h/removed': 'words of a removed one',
};

/** A stopped peer with some documents and a table. */
async function stopped(): Promise<string> {
  const dir = temporaryDirectory();
  const peer = await openPeer({ dir });
  await push(peer, DOCUMENTS, { collection: 'c' });
  await push(peer, { 'http://h/replaced': 'new words' }, { collection: 'd' });
  await answered(peer, '/api/remove_p.json', { 'url-0': 'http://h/removed' });
  const table = new AskedTable(peer);
  await table.commit('a', { price: '5' });
  await table.commit('b', { price: '6', name: '' });
  await peer.close();
  return dir;
}

/** Changes a database behind the peer, and returns what the check then says. */
async function differences(...statements: readonly string[]): Promise<readonly string[]> {
  const dir = await stopped();
  const database = openDatabase(dir);
  for (const sql of statements) database.run(sql);
  database.close();
  return (await checkPeer(dir, signal, driver)).differences;
}

describe('the check of a peer', () => {
  it('agrees with what the peer indexes, of all kinds of text, and changes nothing', async () => {
    const dir = await stopped();
    const before = readFileSync(join(dir, 'peer.sqlite'));
    const found = { documents: 5, tables: 1, shares: 0, differences: [], found: 0 };
    expect(await checkPeer(dir, signal, driver)).toEqual(found);
    expect(readFileSync(join(dir, 'peer.sqlite')).equals(before)).toBe(true);
  });

  const OF = (url: string) => `(SELECT id FROM documents WHERE url = '${url}')`;
  const EMPTY = `x'0300'`;

  it.each([
    [
      'a text that was changed behind the index',
      [
        `UPDATE texts SET deflated = (SELECT deflated FROM texts WHERE document = ${OF('http://h/page.html')})
        WHERE document = ${OF('http://h/replaced')}`,
      ],
      /other words of http:\/\/h\/replaced/,
    ],
    [
      'a text without a part',
      [`DELETE FROM texts WHERE document = ${OF('http://h/long')} AND part = 0`],
      /text of http:\/\/h\/long cannot be read: part 0 is missing/,
    ],
    [
      'a text that is no deflated one',
      [`UPDATE texts SET deflated = x'ff' WHERE document = ${OF('http://h/replaced')}`],
      /text of http:\/\/h\/replaced cannot be read/,
    ],
    [
      'a changed title',
      [`UPDATE documents SET title = 'other' WHERE url = 'http://h/long'`],
      /other words of http:\/\/h\/long/,
    ],
    [
      'a missing row of the index',
      [`DELETE FROM words WHERE rowid = ${OF('http://h/replaced')}`],
      /other words of http:\/\/h\/replaced/,
    ],
    [
      'missing prefixes',
      [`DELETE FROM prefixes WHERE rowid = ${OF('http://h/replaced')}`],
      /other words of http:\/\/h\/replaced/,
    ],
    [
      'an orphan of the index',
      [`INSERT INTO words (rowid, title, name, body) VALUES (999, 'a', 'b', 'c')`],
      /words of a document that does not exist \(number 999\)/,
    ],
    [
      'a removed document',
      [`DELETE FROM documents WHERE url = 'http://h/replaced'`],
      /texts has rows of 1 document/,
    ],
    [
      'a text without document',
      [`INSERT INTO texts VALUES (999, 0, ${EMPTY})`],
      /texts has rows of 1 document that do not exist/,
    ],
    [
      'a wrong count of documents',
      [`UPDATE counts SET value = 9 WHERE name = 'documents'`],
      /There are 5 documents, and 9 are counted/,
    ],
    [
      'a wrong count of a collection',
      [`UPDATE counts SET value = 9 WHERE name = 'in d'`],
      /collection "d" has 1 documents, and 9 are counted/,
    ],
    [
      'a missing membership',
      [`DELETE FROM memberships WHERE collection = 'd'`],
      /collections of http:\/\/h\/replaced/,
    ],
    ['a foreign membership', [`INSERT INTO memberships VALUES ('c', 999)`], /memberships has rows/],
    [
      'a wrong number of words',
      [`UPDATE documents SET words = 77 WHERE url = 'http://h/replaced'`],
      /number of words of http:\/\/h\/replaced/,
    ],
    [
      'a wrong hash',
      [`UPDATE documents SET urlhash = 'x' WHERE url = 'http://h/replaced'`],
      /hash of http:\/\/h\/replaced/,
    ],
    [
      'a wrong number of rows',
      ['UPDATE tables SET rows = 9'],
      /table "t" has 2 rows, and 9 are counted/,
    ],
    [
      'a row that cannot be read',
      [`UPDATE table_rows SET cells = x'00'`],
      /In the table "t", 2 rows cannot be read/,
    ],
    ['rows of no table', ['DELETE FROM tables'], /rows or columns of a table that does not exist/],
  ] as const)('finds %s', async (_, statements, expected) => {
    expect((await differences(...statements)).join('\n')).toMatch(expected);
  });

  it('finds flipped bytes in the index', async () => {
    const dir = await stopped();
    const path = join(dir, 'peer.sqlite');
    const changed = readFileSync(path, 'latin1').replaceAll('ipsum', 'upsum');
    writeFileSync(path, changed, 'latin1');
    expect((await checkPeer(dir, signal, driver)).found).toBeGreaterThan(0);
  });
});
