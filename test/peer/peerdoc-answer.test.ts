import { describe, expect, it } from 'vitest';
import { standard } from '../../src/peer/dialects.js';
import type { PeerdocQuery } from '../../src/peer/peerdoc.js';
import { answerOf, realAnswer } from './answers.js';

const REAL = { url: 'http://push3.example.org/g6.html' };
const URL = 'https://docs.example.org/b%20%C3%A4.txt';
const DIGEST = 'ab'.repeat(32);

function read(body: string | Buffer, query: PeerdocQuery = { url: URL }, status = 200) {
  const answer = answerOf(body, { status });
  return standard.peerdocOf(answer, query);
}
function refusalOf(body: string | Buffer, query?: PeerdocQuery): string {
  try {
    return `no error: ${JSON.stringify(read(body, query))}`;
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return `${code} ${message}`;
  }
}

describe('a document, as a real peer shows it', () => {
  it('is read from its XML', () => {
    expect(read(realAnswer('peerdoc.xml'), REAL)).toMatchObject({
      url: 'http://push3.example.org/g6.html',
      urlhash: 'He4fSbqdOZpQ',
      title: 'My Title g6',
      size: 260,
      words: 26,
      loadDate: Date.UTC(2026, 10, 21, 3, 26, 19),
      lastModified: Date.UTC(2026, 10, 21, 3, 26, 19),
      collections: ['c3'],
      at: 1_000,
    });
  });

  it('keeps every field under the name that the peer gave it', () => {
    const { fields } = read(realAnswer('peerdoc.xml'), REAL) ?? {};
    expect(fields?.['dc:identifier']).toEqual([
      'yacy:urlhash:He4fSbqdOZpQ',
      'http://push3.example.org/g6.html',
    ]);
    expect(fields?.['yacy:citations']).toEqual(['0']);
  });

  it('is found by its hash, with or without the prefix', () => {
    expect(read(realAnswer('peerdoc.xml'), { urlhash: 'He4fSbqdOZpQ' })).toMatchObject(REAL);
    expect(read(realAnswer('peerdoc.xml'), { urlhash: 'yacy:urlhash:He4fSbqdOZpQ' })).toMatchObject(REAL);
  });
});

describe('a document', () => {
  const expected = {
    url: URL,
    urlhash: 'hash',
    title: 'Notes',
    size: 12,
    words: 3,
    digest: DIGEST,
    loadDate: Date.UTC(2026, 10, 21, 3, 26, 19, 5),
    collections: ['inbox', 'notes'],
  };
  const values = {
    url: URL,
    urlhash: 'hash',
    title: 'Notes',
    size: 12,
    words: 3,
    loadDate: '2026-11-21T03:26:19.005Z',
  };
  const rows = Object.entries({ ...values, digest: `sha256:${DIGEST}`, collections: '[inbox, notes]' });
  it.each([
    ['JSON', JSON.stringify({ ...values, digest: DIGEST, collections: ['inbox', 'notes'] })],
    [
      'JSON inside',
      JSON.stringify({ version: 1, document: { ...values, digest: DIGEST, collections: 'inbox,notes' } }),
    ],
    ['XML', `<doc>${rows.map(([name, value]) => `<${name}>${value}</${name}>`).join('')}</doc>`],
    [
      'RSS',
      `<rss><channel><title>Peer</title><link>http://peer/</link><item>${rows.map(([name, value]) => `<x:${name}>${value}</x:${name}>`).join('')}</item></channel></rss>`,
    ],
    [
      'RSS without items',
      `<rss><channel>${rows.map(([name, value]) => `<x:${name}>${value}</x:${name}>`).join('')}<link>http://peer/</link><image><url>http://peer/logo.png</url></image></channel></rss>`,
    ],
    [
      'a definition list',
      `<dl>${rows.map(([name, value]) => `<dt>${name}:</dt><dd>${value}</dd>`).join('')}</dl>`,
    ],
    ['a table', `<table>${rows.map(([name, value]) => `<tr><th>${name}<td>${value}`).join('')}</table>`],
  ])('is read from %s', (_, body) => {
    expect(read(body)).toMatchObject(expected);
  });

  it('is the item of RSS that has one, and not the channel around it', () => {
    const channel = `<title>Search</title><link>${URL}</link><urlhash>other</urlhash>`;
    const item = `<item><title>Notes</title><link>${URL}</link></item>`;
    expect(read(`<rss><channel>${channel}${item}</channel></rss>`)).toMatchObject({
      title: 'Notes',
      urlhash: undefined,
    });
  });

  it('is not the channel of RSS, whose link leads to the peer', () => {
    const channel = '<rss><channel><title>Notes</title><link>http://peer/</link></channel></rss>';
    expect(refusalOf(channel)).toMatch(/does not say what it knows/);
  });

  it('has no collections where the peer shows none, and an empty list where it shows that', () => {
    expect(read(JSON.stringify({ url: URL }))?.collections).toBeUndefined();
    expect(read(`<d><url>${URL}</url><collections></collections></d>`)?.collections).toBeUndefined();
    expect(read(JSON.stringify({ url: URL, collections: [] }))?.collections).toEqual([]);
    expect(read(`<d><url>${URL}</url><collections>[]</collections></d>`)?.collections).toEqual([]);
  });

  it('has no number where there is none, and no digest that is not one', () => {
    const doc = read(
      JSON.stringify({ url: URL, size: 'large', words: -1, digest: 'abc', loadDate: 'today' }),
    );
    expect(doc).toMatchObject({ size: undefined, words: undefined, digest: undefined, loadDate: undefined });
  });

  it('may have words like those of an error in its title', () => {
    const title = 'HTTP ERROR 500: Problem accessing /x, document not found';
    const page = `<html><head><title>${title}</title></head><body><h1>${title}</h1><dl><dt>url<dd>${URL}<dt>title<dd>${title}</dl></body></html>`;
    expect(read(page)).toMatchObject({ url: URL, title });
    expect(read(JSON.stringify({ url: URL, title }))).toMatchObject({ title });
  });

  it('with hostile names of fields does no harm', () => {
    const doc = read(`{"url":"${URL}","__proto__":{"polluted":1},"constructor":"x","__proto__":"y"}`);
    expect(doc?.fields.constructor).toEqual(['x']);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});

describe('no document', () => {
  it.each(['peerdoc-unknown.xml', 'peerdoc-unknown.html'])('is a record with nothing in it: %s', (name) => {
    expect(read(realAnswer(name))).toBeUndefined();
  });

  it.each([
    ['', 404],
    ['<html><h1>404</h1></html>', 404],
    ['{"error":"Document not found"}', 200],
    ['{"found":false}', 200],
    [`{"url":"${URL}","found":"false"}`, 200],
    [`{"url":"${URL}","error":"no such document"}`, 200],
    ['<error><message>URL is not indexed</message></error>', 200],
    ['<rss><channel><title>Peer</title><link>http://peer/</link></channel></rss>', 404],
    ['<rss><channel><title/><link>http://peer/</link><url></url><urlhash></urlhash></channel></rss>', 200],
    ['<rss><channel><link>http://peer/</link><message>Document not found</message></channel></rss>', 200],
  ])('is %s with %i', (body, status) => {
    expect(read(body, { url: URL }, status)).toBeUndefined();
  });
});

describe('an answer about something else', () => {
  it('is none: another URL', () => {
    expect(refusalOf(realAnswer('peerdoc.xml'))).toMatch(
      /^PEER_ANSWER .*another document than the one asked for/,
    );
  });

  it('is none: another hash', () => {
    expect(refusalOf(realAnswer('peerdoc.xml'), { urlhash: 'AAAAAAAAAAAA' })).toMatch(
      /^PEER_ANSWER .*another document/,
    );
  });

  it('is passed over where the document asked for is there too', () => {
    const body = JSON.stringify([{ url: 'https://docs.example.org/other' }, { url: URL, title: 'this' }]);
    expect(read(body)).toMatchObject({ title: 'this' });
  });
});

describe('no answer', () => {
  it.each([
    ['nothing', '', /gave an empty answer/],
    ['{}', '{}', /gave an empty answer/],
    ['an error page', realAnswer('error-500.html'), /does not say what it knows/],
    ['an error page that does not find the endpoint', realAnswer('error-404.html'), /does not say/],
    ['a text', 'Not found\n', /does not say what it knows/],
    ['a page for people', '<p>This document was not found.</p>', /does not say what it knows/],
    ['another page', '<html><body><h1>Welcome</h1></body></html>', /does not say what it knows/],
    ['half a page', realAnswer('peerdoc.html').subarray(0, 3_800), /breaks off/],
    ['half a record', realAnswer('peerdoc.xml').subarray(0, 900), /breaks off/],
    ['another record', '{"status":"ok"}', /does not say what it knows/],
  ])('is %s', (_, body, why) => {
    const refusal = refusalOf(body);
    expect(refusal).toMatch(/^PEER_ANSWER/);
    expect(refusal).toMatch(why);
  });
});
