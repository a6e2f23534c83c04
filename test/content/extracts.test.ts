import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ExtractCache, extractKey } from '../../src/content/extracts.js';
import { forgetRefusals } from '../../src/content/refusals.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';

/** Each entry of the tests takes two blocks: its page and its record. */
const ENTRY_BYTES = 2 * 4096;
const extracted = {
  reader: 'PDF',
  words: 2,
  ms: 812,
  pages: 12,
  ocrPages: 3,
  confidence: 91,
  unreadPages: '3, 7-9',
  leftOut: 'Two members are left out.',
};
const pageOf = (text: string) => ({ words: 2, page: { bytes: Buffer.from(text), extracted } });

function setting(maxBytes = 100 * ENTRY_BYTES) {
  const directory = join(temporaryDirectory(), 'extracts');
  const clock = new FakeClock();
  const limit = { bytes: maxBytes };
  const open = () => new ExtractCache(directory, clock, () => limit.bytes);
  return { cache: open(), clock, directory, limit, open };
}

it('an entry is found again after a restart, and only the user can read it', async () => {
  const { cache, directory, open } = setting();
  expect(await cache.find('a')).toBeUndefined();
  const stored = await cache.store('a', pageOf('a page'));
  expect(stored.page).toMatchObject({ stat: { size: 6 } });
  expect(stored.page?.extracted).toEqual(extracted);
  expect(readFileSync(stored.page?.file ?? '', 'utf8')).toBe('a page');
  await cache.store('b', { words: 7 });
  expect([await open().find('a'), await open().find('b')]).toEqual([stored, { words: 7 }]);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(directory))
    expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
});

it('an entry that is torn, damaged or of another document is not found', async () => {
  const { cache, directory } = setting();
  for (const key of ['a', 'b', 'c', 'd']) await cache.store(key, pageOf('a page'));
  writeFileSync(join(directory, 'a.html'), 'a p');
  writeFileSync(join(directory, 'b.json'), '{"key":"b","wor');
  rmSync(join(directory, 'c.html'));
  writeFileSync(join(directory, 'd.json'), readFileSync(join(directory, 'a.json')));
  for (const key of ['a', 'b', 'c', 'd']) expect(await cache.find(key)).toBeUndefined();
  await cache.store('a', pageOf('a page'));
  expect(await cache.find('a')).toBeDefined();
});

it('the entries that were not used for longest are removed when the limit is exceeded', async () => {
  const { cache, clock, directory, limit, open } = setting(10 * ENTRY_BYTES);
  for (let i = 0; i < 10; i += 1) {
    await cache.store(`${i}`, pageOf(`page ${i}`));
    await clock.advance(1_000);
  }
  await cache.find('0');
  await clock.advance(1_000);
  await cache.store('10', pageOf('page 10'));
  const found = async (of: ExtractCache) => {
    const keys = Array.from({ length: 12 }, (_, i) => `${i}`);
    const all = await Promise.all(keys.map((key) => of.find(key)));
    return keys.filter((_, i) => all[i] !== undefined);
  };
  expect(await found(cache)).toEqual(['0', '3', '4', '5', '6', '7', '8', '9', '10']);
  expect(readdirSync(directory)).toHaveLength(18);
  // A lower limit holds from the next entry on, also after a restart.
  limit.bytes = 2 * ENTRY_BYTES;
  await clock.advance(1_000);
  const second = open();
  await second.store('11', pageOf('page 11'));
  expect(await found(second)).toEqual(['11']);
});

const broken = {
  kind: 'refused',
  failure: { code: 'DOCUMENT_BROKEN', message: 'It is damaged.', hint: 'Save it anew.' },
} as const;
const wordless = { kind: 'wordless', reader: 'PDF' } as const;

it('a document of which there is nothing to send is found again after a restart', async () => {
  const { cache, directory, open } = setting();
  await cache.storeRefusal('a', broken);
  await cache.storeRefusal('b', wordless);
  expect([await open().find('a'), await open().find('b')]).toEqual([broken, wordless]);
  // The last result counts.
  await cache.store('a', pageOf('a page'));
  expect(await cache.find('a')).toMatchObject({ words: 2 });
  await cache.storeRefusal('a', broken);
  expect(await cache.find('a')).toEqual(broken);
  expect(readdirSync(directory).sort()).toEqual(['a.none', 'b.none']);
});

it('such documents are forgotten on request, and texts are not', async () => {
  const { cache, directory } = setting();
  await forgetRefusals(directory);
  await cache.storeRefusal('a', broken);
  await cache.store('b', pageOf('a page'));
  await forgetRefusals(directory);
  expect(await cache.find('a')).toBeUndefined();
  expect(await cache.find('b')).toBeDefined();
});

it('such documents are removed like texts when the limit is exceeded', async () => {
  const { cache, clock, directory } = setting(10 * 4096);
  for (let i = 0; i < 11; i += 1) {
    await cache.storeRefusal(`${i}`, wordless);
    await clock.advance(1_000);
  }
  expect(readdirSync(directory)).toHaveLength(9);
  expect([await cache.find('0'), await cache.find('2')]).toEqual([undefined, wordless]);
});

it('what a killed process left is removed', async () => {
  const { cache, directory } = setting();
  mkdirSync(directory, { mode: 0o700 });
  for (const name of ['x.tmp', 'y.html']) writeFileSync(join(directory, name), 'left');
  await cache.store('a', pageOf('a page'));
  expect(readdirSync(directory).sort()).toEqual(['a.html', 'a.json']);
});

it('the directory above is not made anew: the state may have been moved away', async () => {
  const { clock } = setting();
  const gone = join(temporaryDirectory(), 'gone');
  const cache = new ExtractCache(join(gone, 'extracts'), clock, () => 1e9);
  await expect(cache.store('a', pageOf('a page'))).rejects.toThrow('ENOENT');
  expect(existsSync(gone)).toBe(false);
});

it('the key depends on the document, the extension of its name, and what is read in it', () => {
  const keys = [
    extractKey('a', 'x.pdf', 'text'),
    extractKey('b', 'x.pdf', 'text'),
    extractKey('a', 'x.eml', 'text'),
    extractKey('a', 'x.pdf', 'words'),
  ];
  expect(new Set(keys).size).toBe(4);
  expect(extractKey('a', 'y.PDF', 'text')).toBe(keys[0]);
});

it.each(['x.zip', 'x.tar.gz', 'x.mbox'])(
  'the key depends on the whole name of a document that has it as its title: %s',
  (name) => {
    expect(extractKey('a', name, 'text')).not.toBe(extractKey('a', `y${name}`, 'text'));
  },
);

/** Writes a page of a scan, as another process does. @param usedAt in ms since the epoch */
function addPage(directory: string, name: string, usedAt: number): void {
  const file = join(directory, `${name}.page`);
  writeFileSync(file, 'a page of a scan');
  utimesSync(file, usedAt / 1000, usedAt / 1000);
}

it('pages of scans are removed with the entries, those that were not used for longest first', async () => {
  const { cache, clock, directory, open } = setting(4 * ENTRY_BYTES);
  await cache.store('old', pageOf('a page'));
  for (let i = 0; i < 6; i += 1) addPage(directory, `scan${i}`, clock.now() + 1_000 + i);
  await clock.advance(60_000);
  await open().store('new', pageOf('a page'));
  const scans = ['scan1.page', 'scan2.page', 'scan3.page', 'scan4.page', 'scan5.page'];
  expect(readdirSync(directory).sort()).toEqual(['new.html', 'new.json', ...scans]);
});

it('pages of scans that other processes stored are counted after a while', async () => {
  const { cache, clock, directory } = setting(4 * ENTRY_BYTES);
  await cache.store('a', pageOf('a page'));
  for (let i = 0; i < 20; i += 1) addPage(directory, `scan${i}`, clock.now() + i);
  await cache.store('b', pageOf('a page'));
  expect(readdirSync(directory)).toHaveLength(24);
  await clock.advance(10 * 60_000);
  await cache.store('c', pageOf('a page'));
  expect(readdirSync(directory).length).toBeLessThan(8);
  expect(await cache.find('c')).toBeDefined();
});
