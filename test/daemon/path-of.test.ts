import { describe, expect, it } from 'vitest';
import { pathOf } from '../../src/daemon/parts.js';

const FOLDERS = [
  { name: 'one', path: '/srv/one', url: 'https://x.example/docs/' },
  { name: 'two', path: '/srv/two', url: 'https://x.example/two/' },
];

describe('where the file of an item is', () => {
  it('is in its folder', () => {
    const item = { folder: 'one', path: 'a/b c.txt', url: 'https://x.example/docs/a/b%20c.txt' };
    expect(pathOf(item, FOLDERS)).toBe('/srv/one/a/b c.txt');
  });

  it.each([
    ['its folder is not configured any more', { folder: 'three', url: 'https://x.example/docs/a/b.txt' }],
    ['its folder has another URL now', { folder: 'one', url: 'https://x.example/old/a/b.txt' }],
    ['another folder has that URL now', { folder: 'one', url: 'https://x.example/two/a/b.txt' }],
    ['the URL of its folder was a longer one', { folder: 'one', url: 'https://x.example/docs/old/a/b.txt' }],
  ])('is asked for in vain when %s', (_, item) => {
    expect(pathOf({ ...item, path: 'a/b.txt' }, FOLDERS)).toBeUndefined();
  });
});
