import { existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PageStore } from '../../src/content/page-store.js';
import { temporaryDirectory } from '../support/temp.js';

const PAGE = { text: 'words of a page', words: 4, confidence: 91.5 };

function setting() {
  const directory = join(temporaryDirectory(), 'extracts');
  return { directory, file: join(directory, 'a.page'), store: new PageStore(directory) };
}

it('a page is found again by another process, and only the user can read it', () => {
  const { directory, file, store } = setting();
  expect(store.read('a')).toBeUndefined();
  store.write('a', PAGE);
  expect(new PageStore(directory).read('a')).toEqual(PAGE);
  expect(new PageStore(directory).read('b')).toBeUndefined();
  expect(readdirSync(directory)).toEqual(['a.page']);
  expect([directory, file].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o600]);
});

it.each(['', '{"text":"wor', '{"text":"words","words":1}', '{"text":1,"words":1,"confidence":9}'])(
  'a page that is torn or of another form is not found: %s',
  (content) => {
    const { file, store } = setting();
    store.write('a', PAGE);
    writeFileSync(file, content);
    expect(store.read('a')).toBeUndefined();
  },
);

it('a page that is used counts as new', () => {
  const { file, store } = setting();
  store.write('a', PAGE);
  utimesSync(file, 1, 1);
  store.read('a');
  expect(statSync(file).mtimeMs).toBeGreaterThan(1_000_000);
});

it('a page that cannot be written is not kept', () => {
  const { directory, file, store } = setting();
  mkdirSync(file, { recursive: true });
  store.write('a', PAGE);
  expect(store.read('a')).toBeUndefined();
  expect(readdirSync(directory)).toEqual(['a.page']);
  const gone = join(directory, 'gone', 'extracts');
  new PageStore(gone).write('a', PAGE);
  expect(existsSync(gone)).toBe(false);
});
