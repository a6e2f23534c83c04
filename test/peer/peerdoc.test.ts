import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isSameUrl } from '../../src/peer/answer.js';
import { standard, yacy } from '../../src/peer/dialects.js';
import { type PeerdocQuery, parseMoment } from '../../src/peer/peerdoc.js';
import { answerOf, realAnswer, refusalOf } from './support.js';

const REAL = { url: 'http://push3.example.org/g6.html' };
const URL = 'https://docs.example.org/b%20%C3%A4.txt';
const DIGEST = 'ab'.repeat(32);
const MOMENT = Date.UTC(2026, 10, 21, 3, 26, 19);

const read = (body: string | Buffer, query: PeerdocQuery = { url: URL }, status = 200) =>
  standard.peerdocOf(answerOf(body, { status }), query);

describe('a document, as a real peer shows it', () => {
  it('is read with every field under the name that the peer gave it', () => {
    const doc = read(realAnswer('peerdoc.xml'), REAL);
    expect(doc).toMatchObject({
      ...{ ...REAL, urlhash: 'He4fSbqdOZpQ', title: 'My Title g6', size: 260, words: 26 },
      ...{ loadDate: MOMENT, lastModified: MOMENT, collections: ['c3'], at: 1_000 },
    });
    expect(doc?.fields['dc:identifier']).toEqual(['yacy:urlhash:He4fSbqdOZpQ', REAL.url]);
    expect(doc?.fields['yacy:citations']).toEqual(['0']);
  });

  it.each(['He4fSbqdOZpQ', 'yacy:urlhash:He4fSbqdOZpQ'])('is found by its hash %s', (urlhash) => {
    expect(read(realAnswer('peerdoc.xml'), { urlhash })).toMatchObject(REAL);
  });
});

const VALUES = {
  ...{ url: URL, urlhash: 'hash', title: 'Notes', size: 12, words: 3, digest: DIGEST },
  loadDate: '2026-11-21T03:26:19.005Z',
};
const LISTED = { ...VALUES, collections: ['inbox', 'notes'] };
const rows = (write: (name: string, value: unknown) => string) =>
  Object.entries({ ...VALUES, collections: '[inbox, notes]' })
    .map(([name, value]) => write(name, value))
    .join('');
const XML = rows((name, value) => `<x:${name}>${value}</x:${name}>`);

it.each([
  ['JSON', JSON.stringify(LISTED)],
  ['XML', `<doc>${XML}</doc>`],
  ['RSS', `<rss><channel><title>Peer</title><link>http://peer/</link><item>${XML}</item></channel></rss>`],
  ['a definition list', `<dl>${rows((name, value) => `<dt>${name}:</dt><dd>${value}</dd>`)}</dl>`],
  ['a table', `<table>${rows((name, value) => `<tr><th>${name}<td>${value}`)}</table>`],
])('a document is read from %s', (_, body) => {
  expect(read(body)).toMatchObject({ ...LISTED, loadDate: Date.parse(VALUES.loadDate) });
});

const TITLE = 'HTTP ERROR 500: Problem accessing /x, document not found';
it.each<[string, string, object]>([
  ['no collections', JSON.stringify({ url: URL }), { collections: undefined }],
  [
    'no collections in XML',
    `<d><url>${URL}</url><collections></collections></d>`,
    { collections: undefined },
  ],
  ['an empty list', JSON.stringify({ url: URL, collections: [] }), { collections: [] }],
  ['an empty list in XML', `<d><url>${URL}</url><collections>[]</collections></d>`, { collections: [] }],
  [
    'no number and no digest where there is none',
    JSON.stringify({ url: URL, size: 'large', words: -1, digest: 'abc', loadDate: 'today' }),
    { size: undefined, words: undefined, digest: undefined, loadDate: undefined },
  ],
  [
    'words of an error in its title',
    `<html><title>${TITLE}</title><h1>${TITLE}</h1><dl><dt>url<dd>${URL}<dt>title<dd>${TITLE}</dl></html>`,
    { url: URL, title: TITLE },
  ],
  [
    'the one of several that was asked for',
    JSON.stringify([{ url: 'https://docs.example.org/other' }, { url: URL, title: 'this' }]),
    { title: 'this' },
  ],
])('a document has %s', (_, body, expected) => {
  expect(read(body)).toMatchObject(expected);
});

it('hostile names of fields do no harm', () => {
  const doc = read(`{"url":"${URL}","__proto__":{"polluted":1},"constructor":"x","__proto__":"y"}`);
  expect(doc?.fields.constructor).toEqual(['x']);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

it.each<[string | Buffer, number?]>([
  [realAnswer('peerdoc-unknown.xml')],
  [realAnswer('peerdoc-unknown.html')],
  ['', 404],
  ['<html><h1>404</h1></html>', 404],
])('no document is an answer that says so: %#', (body, status) => {
  expect(read(body, { url: URL }, status)).toBeUndefined();
});

it.each<[string, string | Buffer, RegExp, PeerdocQuery?]>([
  ['another URL', realAnswer('peerdoc.xml'), /another document than the one asked for/],
  ['another hash', realAnswer('peerdoc.xml'), /another document/, { urlhash: 'AAAAAAAAAAAA' }],
  ['nothing', '', /gave an empty answer/],
  ['an error page', realAnswer('error-500.html'), /does not say what it knows/],
  ['a text', 'Not found\n', /does not say what it knows/],
  ['a page for people', '<p>This document was not found.</p>', /does not say what it knows/],
  ['half a page', realAnswer('peerdoc.html').subarray(0, 3_800), /breaks off/],
  ['half a record', realAnswer('peerdoc.xml').subarray(0, 900), /breaks off/],
  ['another record', '{"status":"ok"}', /does not say what it knows/],
  ['an error beside the URL that was asked for', `{"url":"${URL}","error":"no such"}`, /does not say/],
  ['what was not found', `{"url":"${URL}","found":"false"}`, /does not say/],
])('%s is no answer', async (_, body, why, query) => {
  const refusal = await refusalOf(() => read(body, query));
  expect(refusal).toMatch(/^PEER_ANSWER/);
  expect(refusal).toMatch(why);
});

it.each([
  'Sat Nov 21 03:26:19 UTC 2026',
  'Sat Nov 21 04:26:19 CET 2026',
  'Fri Nov 20 22:26:19 EST 2026',
  '2026-11-21T03:26:19.000Z',
  '2026-11-21T04:26:19+01:00',
  '2026-11-21T04:26:19+0100',
  '2026-11-21 03:26:19',
])('the moment %s is read', (text) => {
  expect(parseMoment(text)).toBe(MOMENT);
});

it.each([
  ...['', 'today', '260', '2026', '2026-11-21', '21.11.2026', '2026-13-41T00:00:00Z'],
  ...['Sat Nov 21 03:26:19 XYZ 2026', 'Sat Foo 21 03:26:19 UTC 2026'],
])('no moment is guessed from "%s"', (text) => {
  expect(parseMoment(text)).toBeUndefined();
});

describe('a URL for YaCy', () => {
  const shownAs = (url: string) => answerOf(JSON.stringify({ url, urlhash: 'He4fSbqdOZpQ' }));

  it.each([
    ['HTTP://Files.Example.ORG/A', 'http://files.example.org/A'],
    ['http://x.org/a#part', 'http://x.org/a'],
    ['http://x.org/"q".txt', 'http://x.org/%22q%22.txt'],
    ['http://x.org/%c3%BC?b=1&a=%7E', 'http://x.org/%c3%BC?b=1&a=%7E'],
    ['file:///srv/a b.txt', 'file:///srv/a%20b.txt'],
    ['no url', 'no url'],
  ])('%s is sent as %s', (url, sent) => {
    expect(yacy.sentUrl(url)).toBe(sent);
  });

  it.each([
    ['http://x.org/a/b', 'http://x.org//a///b'],
    ['http://x.org/a/b?c=//d', 'http://x.org/a//b?c=//d'],
    ['http://x.org/a%20b', 'http://x.org/a b'],
    ['file:///srv/notes/ü b.txt', 'file:///srv/notes/%C3%BC%20b.txt'],
    ['http://x.org/', 'http://x.org'],
  ])('is shown as %s where %s was sent', (shown, sent) => {
    expect(yacy.peerdocOf(shownAs(shown), { url: sent })).toMatchObject({ url: sent });
  });

  it.each([
    ['http://x.org/a', 'http://x.org/b'],
    ['http://x.org/a?c=/d', 'http://x.org/a?c=//d'],
    ['http://x.org/a/', 'http://x.org/a'],
    ['http://y.org/a', 'http://x.org/a'],
  ])('%s is another than %s', (shown, sent) => {
    expect(() => yacy.peerdocOf(shownAs(shown), { url: sent })).toThrow('another document');
  });
});

describe('two URLs', () => {
  const at = (path: string) => `https://h.example/${path}`;

  it.each([
    [at('%7Ea%2D'), at('~a-')],
    [at('a%28b%29%27%21%2A'), at("a(b)'!*")],
    ['HTTPS://H.Example:443/a', at('a')],
    [at('a#part'), at('a')],
    ['file:///srv/a b.txt', 'file:///srv/a%20b.txt'],
    ['not a url', 'not a url'],
  ])('are the same: %s and %s', (a, b) => {
    expect(isSameUrl(a, b)).toBe(true);
  });

  it('are the same however a name was escaped', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (name) => {
        fc.pre(!/^\.{1,2}$|[\\/?#\t\n\r]|^\s|\s$/.test(name));
        const much = [...Buffer.from(name)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`);
        expect(isSameUrl(at(`d/${encodeURIComponent(name)}/f`), at(`d/${much.join('')}/f`))).toBe(true);
      }),
    );
  });

  it.each([
    [at('a'), at('A')],
    [at('a'), 'http://h.example/a'],
    [at('a'), at('a/')],
    [at('a%2Fb'), at('a/b')],
    [at('a%3Fb'), at('a?b')],
    [at('a%23b'), at('a#b')],
    [at('a%25b'), at('a%b0')],
    [at('a?x=a%26b'), at('a?x=a&b')],
    ['https://h.example:8443/a', at('a')],
    ['https://u@h.example/a', at('a')],
  ])('are not the same: %s and %s', (a, b) => {
    expect(isSameUrl(a, b)).toBe(false);
  });
});
