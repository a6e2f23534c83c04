import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { standard } from '../../src/peer/dialects/standard.js';
import { yacy } from '../../src/peer/dialects/yacy.js';
import { type PeerdocQuery, parseMoment, readPeerdocs } from '../../src/peer/peerdoc.js';
import { isSameUrl } from '../../src/peer/url.js';
import { answerOf, realAnswer, refusalOf } from './support.js';

const REAL = { url: 'http://push3.example.org/g6.html' };
const URL = 'https://docs.example.org/b%20%C3%A4.txt';
const DIGEST = 'ab'.repeat(32);
const MOMENT = Date.UTC(2026, 10, 21, 3, 26, 19);

const read = (body: string | Buffer, query: PeerdocQuery = { url: URL }, status = 200) =>
  standard.peerdocOf(answerOf(body, { status }), query);

it.each<PeerdocQuery>([
  REAL,
  { urlhash: 'He4fSbqdOZpQ' },
  { urlhash: 'yacy:urlhash:He4fSbqdOZpQ' },
])(
  'a document, as a real peer shows it, is read with every field under the name that the peer gave it: %j',
  (query) => {
    const doc = read(realAnswer('peerdoc.xml'), query);
    expect(doc).toMatchObject({
      ...REAL,
      urlhash: 'He4fSbqdOZpQ',
      title: 'My Title g6',
      size: 260,
      words: 26,
      loadDate: MOMENT,
      lastModified: MOMENT,
      collections: ['c3'],
      at: 1_000,
    });
    expect(doc?.fields['dc:identifier']).toEqual(['yacy:urlhash:He4fSbqdOZpQ', REAL.url]);
  },
);

const VALUES = {
  url: URL,
  urlhash: 'hash',
  title: 'Notes',
  size: 12,
  words: 3,
  digest: DIGEST,
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
  [
    'RSS',
    `<rss><channel><title>Peer</title><link>http://peer/</link><item>${XML}</item></channel></rss>`,
  ],
  ['a definition list', `<dl>${rows((name, value) => `<dt>${name}:</dt><dd>${value}</dd>`)}</dl>`],
  ['plain lines', rows((name, value) => `${name}: ${value}\n`)],
  ['plain lines with equals signs', rows((name, value) => `dc:${name}=${value}\r\n`)],
  ['a table', `<table>${rows((name, value) => `<tr><th>${name}<td>${value}`)}</table>`],
])('a document is read from %s', (_, body) => {
  expect(read(body)).toMatchObject({ ...LISTED, loadDate: Date.parse(VALUES.loadDate) });
});

const ERROR = 'HTTP ERROR 500: Problem accessing /x, document not found';
const PAGE = `<html><title>${ERROR}</title><dl><dt>url<dd>${URL}<dt>title<dd>${ERROR}</dl></html>`;
const NONE = { size: undefined, words: undefined, digest: undefined, loadDate: undefined };
it.each<[string, string, object]>([
  ['no collections', `{"url":"${URL}","collections":""}`, { collections: undefined }],
  ['an empty list', `{"url":"${URL}","collections":[]}`, { collections: [] }],
  [
    'no values that are none',
    `{"url":"${URL}","size":"big","words":-1,"digest":"abc","loadDate":"today"}`,
    NONE,
  ],
  ['words of an error in its title', PAGE, { url: URL, title: ERROR }],
  [
    'the URL asked for',
    `[{"url":"https://docs.example.org/other"},{"url":"${URL}","title":"a"}]`,
    { title: 'a' },
  ],
])('a document has %s', (_, body, expected) => {
  expect(read(body)).toMatchObject(expected);
});

it('hostile field names do no harm', () => {
  const doc = read(`{"url":"${URL}","__proto__":{"polluted":1},"constructor":"x","__proto__":"y"}`);
  expect(doc?.fields.constructor).toEqual(['x']);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

it.each<[string | Buffer, number?]>([
  [realAnswer('peerdoc-unknown.xml')],
  [realAnswer('peerdoc-unknown.html')],
  ['', 404],
])('an answer can say that there is no document: %#', (body, status) => {
  expect(read(body, { url: URL }, status)).toBeUndefined();
});

it.each<[string, string | Buffer, RegExp, PeerdocQuery?]>([
  ['another URL', realAnswer('peerdoc.xml'), /another document than the one asked for/],
  ['another hash', realAnswer('peerdoc.xml'), /another document/, { urlhash: 'AAAAAAAAAAAA' }],
  ['an error page', realAnswer('error-500.html'), /does not say whether it has/],
  ['half a record', realAnswer('peerdoc.xml').subarray(0, 900), /breaks off/],
  [
    'a text that speaks of the URL',
    `url: ${URL}\nis not in the index`,
    /does not say whether it has/,
  ],
  [
    'an error in plain lines',
    `url: ${URL}\nerror: no such document`,
    /does not say whether it has/,
  ],
  ['another record', '{"status":"ok"}', /does not say whether it has/],
  [
    'an error beside the URL that was asked for',
    `{"url":"${URL}","error":"no such"}`,
    /does not say/,
  ],
  ['what was not found', `{"url":"${URL}","found":"false"}`, /does not say/],
])('%s is no answer', async (_, body, why, query) => {
  const refusal = await refusalOf(() => read(body, query));
  expect(refusal).toMatch(/^PEER_ANSWER/);
  expect(refusal).toMatch(why);
});

it.each([
  ['nothing of one of them', '{"item-0":{"item":0,"found":true,"url":"http://h/a"}}'],
  [
    'neither yes nor no',
    '{"item-0":{"item":0,"url":"http://h/a"},"item-1":{"item":1,"found":false,"url":"http://h/b"}}',
  ],
  ['one document', JSON.stringify(VALUES)],
  ['an error page', realAnswer('error-500.html').toString()],
])('%s is no answer to a request for several documents', async (_, body) => {
  const refusal = await refusalOf(() => readPeerdocs(answerOf(body), ['http://h/a', 'http://h/b']));
  expect(refusal).toMatch(/^PEER_ANSWER.*does not say of each document whether it has it/);
});

it.each([
  'Sat Nov 21 03:26:19 UTC 2026',
  'Sat Nov 21 04:26:19 CET 2026',
  'Fri Nov 20 22:26:19 EST 2026',
  '2026-11-21T03:26:19.000Z',
  '2026-11-21T04:26:19+0100',
  '2026-11-21 03:26:19',
])('the date %s is read', (text) => {
  expect(parseMoment(text)).toBe(MOMENT);
});

it.each(['', '260', '2026-11-21', '2026-13-41T00:00:00Z', 'Sat Nov 21 03:26:19 XYZ 2026'])(
  'no moment is guessed from "%s"',
  (text) => {
    expect(parseMoment(text)).toBeUndefined();
  },
);

describe('the URL of a document in YaCy', () => {
  const shownAs = (url: string) => answerOf(JSON.stringify({ url, urlhash: 'He4fSbqdOZpQ' }));

  it.each([
    ['HTTP://Files.Example.ORG/A#part', 'http://files.example.org/A'],
    ['http://x.org/"q".txt?b=%7E', 'http://x.org/%22q%22.txt?b=%7E'],
    ['file:///srv/a b.txt', 'file:///srv/a%20b.txt'],
    ['no url', 'no url'],
  ])('%s is sent as %s', (url, sent) => {
    expect(yacy.sentUrl(url)).toBe(sent);
  });

  it.each([
    ['http://x.org/a/b?c=//d', 'http://x.org//a///b?c=//d'],
    ['file:///srv/notes/ü b.txt', 'file:///srv/notes/%C3%BC%20b.txt'],
    ['http://x.org/', 'http://x.org'],
  ])('is recognised as %s after %s was sent', (shown, sent) => {
    expect(yacy.peerdocOf(shownAs(shown), { url: sent })).toMatchObject({ url: sent });
  });

  it.each([
    ['http://x.org/a?c=/d', 'http://x.org/a?c=//d'],
    ['http://x.org/a/', 'http://x.org/a'],
  ])('%s differs from %s', (shown, sent) => {
    expect(() => yacy.peerdocOf(shownAs(shown), { url: sent })).toThrow('another document');
  });
});

describe('two URLs', () => {
  const at = (path: string) => `https://h.example/${path}`;

  it.each([
    [at('a%28b%29%27%21%2A%7E#part'), at("a(b)'!*~")],
    ['HTTPS://H.Example:443/a', at('a')],
    [at('a%b0'), at('a%B0')],
    ['not a url', ' not a url'],
  ])('are equal: %s and %s', (a, b) => {
    expect(isSameUrl(a, b)).toBe(true);
  });

  it('are equal however a name was escaped', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (name) => {
        fc.pre(!/^\.{1,2}$|[\\/?#\t\n\r]|^\s|\s$/.test(name));
        const much = [...Buffer.from(name)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`);
        expect(isSameUrl(at(`d/${encodeURIComponent(name)}/f`), at(`d/${much.join('')}/f`))).toBe(
          true,
        );
      }),
    );
  });

  const others = [
    'A',
    'a/',
    'a%2Fb',
    'a/b',
    'a%3Fb',
    'a?b',
    'a%25b',
    'a%b0',
    'a?x=a%26b',
    'a?x=a&b',
  ].map(at);
  const origins = [
    'http://h.example/A',
    'https://h.example:8443/A',
    'https://u@h.example/A',
    'https://u:p@h.example/A',
  ];
  it('differ if case, path, escaped delimiter, query or origin differ', () => {
    const all = [...others, ...origins];
    for (const a of all) expect(all.filter((b) => isSameUrl(a, b))).toEqual([a]);
  });
});
