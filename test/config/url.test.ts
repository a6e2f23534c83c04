import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { documentUrl, fileBase, normaliseBase, normalisePeerUrl } from '../../src/config/url.js';
import { pathBelow } from '../../src/lib/text.js';

const base = 'https://files.example.org/inbox/';
const bases = [base, 'http://[::1]:8080/', 'file:///srv/x/', 'ftp://host/a%20b/'];

const name = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 20 })
  .map((text) => text.replaceAll('/', ''))
  .filter((text) => text !== '' && text !== '.' && text !== '..');
const relativePath = fc.array(name, { minLength: 1, maxLength: 5 }).map((names) => names.join('/'));

describe('the URL of a document', () => {
  it.each([
    ['a#b?c&d=e;f:g@h,i+j$k', 'a%23b%3Fc%26d%3De%3Bf%3Ag%40h%2Ci%2Bj%24k'],
    ["it's (really) *new*!", 'it%27s%20%28really%29%20%2Anew%2A%21'],
    ["it's!", 'it%27s%21'],
    ['u\u0308', '%C3%BC'],
    ['a\ud800b', 'a%EF%BF%BDb'],
    ['~a-b_c.d/...', '~a-b_c.d/...'],
  ])('of %j ends in %s', (path, end) => {
    expect(documentUrl(base, path)).toBe(base + end);
  });

  it('is different for two files unless their names differ only by Unicode normalisation', () => {
    fc.assert(
      fc.property(relativePath, relativePath, (a, b) => {
        const same = a.normalize('NFC') === b.normalize('NFC');
        expect(documentUrl(base, a) === documentUrl(base, b)).toBe(same);
      }),
    );
  });

  it('is not changed by a URL parser, and gives back the path in NFC', () => {
    fc.assert(
      fc.property(fc.constantFrom(...bases), relativePath, (anyBase, path) => {
        const url = documentUrl(anyBase, path);
        expect(new URL(url).href).toBe(url);
        expect(url.slice(anyBase.length)).toMatch(/^(?:[A-Za-z0-9\-_.~/]|%[0-9A-F]{2})+$/);
        expect(pathBelow(anyBase, url)).toBe(path.normalize('NFC').toWellFormed());
      }),
    );
  });
});

it('a URL has no path if it is not below the base, or if no path has this URL', () => {
  expect(pathBelow(base, 'https://files.example.org/a.txt')).toBeUndefined();
  expect(pathBelow('https://x.example/', 'https://x.example/%FF/a.txt')).toBeUndefined();
});

describe('the base of a folder', () => {
  it.each([
    ['https://Files.Example.ORG/Inbox', 'https://files.example.org/Inbox/'],
    ['https://x/%c3%a4/%7euser', 'https://x/%C3%A4/~user/'],
    ['https://x/a\u0308', 'https://x/%C3%A4/'],
    ['https://bücher.example', 'https://xn--bcher-kva.example/'],
    ['https://x/100%/', 'https://x/100%25/'],
    ['https://x//a/./b/../c', 'https://x//a/c/'],
  ])('%j is normalised to %j', (given, normal) => {
    expect(normaliseBase(given)).toBe(normal);
    expect(normaliseBase(normal)).toBe(normal);
  });

  // `URL.canParse` of Node 20 reads Latin-1 as UTF-8 once V8 has compiled its caller, after some
  // thousand calls.
  it('is the same after many calls', () => {
    const forms = Array.from({ length: 30_000 }, () => normaliseBase('https://bücher.example'));
    expect(new Set(forms)).toEqual(new Set(['https://xn--bcher-kva.example/']));
  });

  it.each([
    '',
    'inbox',
    '/inbox',
    'files.example.org/inbox',
    'https://',
    'https:/x/',
    ' https://x/',
    'https://x/a\nb',
    'https://user:pw@x/',
    'https://user@x/',
    'https://x/?a=b',
    'https://x/#a',
    'https://x/?',
    'mailto:a@b',
    'javascript://x/',
    'data:text/plain,x',
  ])('is refused: %j', (given) => {
    expect(normaliseBase(given)).toBeUndefined();
  });

  it('is the same file URL of a directory as in other programs', () => {
    expect(fileBase('/')).toBe('file:///');
    expect(fileBase('/srv/my docs/100%#')).toBe(`${pathToFileURL('/srv/my docs/100%#').href}/`);
  });
});

describe('the URL of the peer', () => {
  it('has no slash at its end', () => {
    expect(normalisePeerUrl('http://LOCALHOST:8090/')).toBe('http://localhost:8090');
    expect(normalisePeerUrl('https://x/peer//')).toBe('https://x/peer');
  });

  it.each([
    'localhost:8090',
    'ftp://x/',
    'http://admin:pw@x',
    'http://x/?a',
    'http://x/#',
    'http://x y/',
  ])('is refused: %j', (given) => {
    expect(normalisePeerUrl(given)).toBeUndefined();
  });
});
