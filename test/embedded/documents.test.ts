import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normaliseUrl, readContent, urlHash } from '../../src/embedded/content.js';
import { Form, parseInto } from '../../src/embedded/form.js';
import { PeerClient } from '../../src/peer/client.js';
import { cpuMs } from '../support/cpu.js';
import {
  answered,
  ask,
  basic,
  openPeer,
  peerdoc,
  peerWith,
  push,
  pushForm,
  send,
} from './support.js';

const url = 'https://files.example.org/inbox/note.md';
const PUSH = '/api/push_p.json';

describe('a push', () => {
  it('is answered for each item, and peerdoc shows all metadata of it', async () => {
    const peer = await openPeer();
    const data = '# Tea — notes\n\nGreen tea for two.\n';
    const before = Date.now();
    expect(await push(peer, { [url]: data }, { count: '1', collection: 'inbox, notes' })).toEqual({
      count: '1',
      successall: 'true',
      'item-0': {
        item: '0',
        url,
        success: 'true',
        message: expect.stringContaining('/api/peerdoc.html?urlhash='),
      },
      countsuccess: 1,
      countfail: 0,
    });
    const shown = await peerdoc(peer, url);
    expect(shown).toMatchObject({
      url,
      urlhash: expect.stringMatching(/^[\w-]{12}$/),
      title: 'Tea — notes',
      collections: ['inbox', 'notes'],
      size: Buffer.byteLength(data),
      words: 6,
      digest: createHash('sha256').update(data).digest('hex'),
      loadDate: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      lastModified: shown?.loadDate,
    });
    expect(Date.parse(shown?.loadDate ?? '')).toBeGreaterThanOrEqual(before);
  });

  it('is answered when its last document can be looked up, however long the indexing takes', async () => {
    const peer = await openPeer();
    const text = Array.from({ length: 3_000 }, (_, i) => `word${i}`).join(' ');
    const urls = Array.from({ length: 10 }, (_, i) => `https://files.example.org/inbox/${i}.txt`);
    const answer = await push(peer, Object.fromEntries(urls.map((each) => [each, text])));
    expect(answer).toMatchObject({ successall: 'true', countsuccess: 10 });
    const last = urls.at(-1) ?? '';
    expect(await peerdoc(peer, last)).toMatchObject({ url: last });
  });

  it('of text with terminal escape sequences is searchable, and shown without them', async () => {
    const peer = await openPeer();
    const data =
      '\x1b[31mErrorful\x1b[0m \x1b[1mdisk\x1b[m\n\x1b]8;;http://h/\x07linked\x1b]8;;\x07\n';
    await push(peer, { [url]: data });
    expect(await peerdoc(peer, url)).toMatchObject({
      title: 'Errorful disk',
      words: 3,
      size: data.length,
      digest: createHash('sha256').update(data).digest('hex'),
    });
    for (const query of ['errorful', 'disk', 'linked'])
      expect(await answered(peer, '/search.json', { query })).toMatchObject({ total: 1 });
    expect(await answered(peer, '/search.json', { query: '31merrorful' })).toMatchObject({
      total: 0,
    });
  });

  it('reports the fault of each invalid item, and takes the others', async () => {
    const peer = await openPeer();
    const long = `http://h/${'a'.repeat(17_000)}`;
    const fields = {
      'url-0': 'http://h/0',
      'data-0': 'good',
      'data-1': 'no url',
      'url-2': 'not a url',
      'data-2': 'x',
    };
    const more = {
      'url-3': 'http://h/3',
      'url-4': 'http://h/4',
      'data-4': 'x',
      'collection-4': 'y'.repeat(200),
    };
    const rest = {
      'url-5': 'http://h/5',
      'data-5': 'x',
      'collection-5': 'c',
      'url-6': long,
      'data-6': 'x',
    };
    const answer = await answered(peer, PUSH, { count: '7', ...fields, ...more, ...rest });
    expect(answer).toMatchObject({
      count: '7',
      successall: 'false',
      countsuccess: 2,
      countfail: 5,
    });
    expect([1, 2, 3, 4, 6].map((n) => answer[`item-${n}`].message)).toEqual([
      'url-1 is missing',
      expect.stringContaining('cannot be parsed'),
      'data-3 is missing',
      expect.stringContaining('collection-4 has to be'),
      expect.stringContaining('longer than 16384 bytes'),
    ]);
    expect((await peerdoc(peer, 'http://h/0'))?.collections).toEqual(['user']);
    expect((await peerdoc(peer, 'http://h/5'))?.collections).toEqual(['c']);
    expect(await peerdoc(peer, 'http://h/4')).toBeUndefined();
  });

  it('stores the time of the last change of the file if it is given and valid', async () => {
    const peer = await openPeer();
    const changed = async (lastModified: string) => {
      await answered(peer, PUSH, { 'url-0': url, 'data-0': 'x', 'lastModified-0': lastModified });
      return (await peerdoc(peer, url))?.lastModified ?? '';
    };
    const before = new Date().toISOString();
    expect((await changed('not a date')) >= before).toBe(true);
    expect(await changed('2020-05-01T10:00:00.123Z')).toBe('2020-05-01T10:00:00.123Z');
    expect(await changed('1960-05-01T10:00:00Z')).toBe('1960-05-01T10:00:00.000Z');
    expect(await changed('')).toBe('1960-05-01T10:00:00.000Z');
    expect((await changed('+123456-01-01T00:00:00.000Z')) < '2100').toBe(true);
  });

  it('without count takes all items in the request; with a count it answers for that many', async () => {
    const peer = await openPeer();
    const items = pushForm({ 'http://h/0': 'a', 'http://h/1': 'b' });
    for (const [fields, count, countsuccess] of [
      [items, '2', 2],
      [{ ...items, count: '1' }, '1', 1],
      [{ ...items, count: '3' }, '3', 2],
      [{}, '0', 0],
    ] as const)
      expect(await answered(peer, PUSH, fields)).toMatchObject({
        count,
        countsuccess,
        countfail: Number(count) - countsuccess,
        successall: String(Number(count) === countsuccess),
      });
  });

  it('is taken by GET, and as multipart with fields or files, byte for byte', async () => {
    const peer = await openPeer();
    const data = 'Grüße\r\n=&%41+😀\n';
    const headers = { authorization: basic(peer) };
    const query = new URLSearchParams(pushForm({ 'http://h/get': data }));
    expect((await send(peer, `${PUSH}?${query}`, { headers })).status).toBe(200);
    const body = new FormData();
    for (const [name, value] of Object.entries(pushForm({ 'http://h/field': data })))
      body.set(name, value);
    body.set('url-1', 'http://h/file');
    body.set('data-1', new File([data], 'x.txt', { type: 'text/plain' }));
    const answer = await fetch(peer.url + PUSH, { method: 'POST', headers, body });
    expect(await answer.json()).toMatchObject({ countsuccess: 2 });
    const digest = createHash('sha256').update(data).digest('hex');
    expect((await peerdoc(peer, 'http://h/get'))?.digest).toBe(digest);
    expect((await peerdoc(peer, 'http://h/file'))?.digest).toBe(digest);
    // A form's text field has its line ends made CRLF by whoever encodes it, not by the peer.
    const field = Buffer.byteLength(data.replace(/\r?\n/g, '\r\n'));
    expect((await peerdoc(peer, 'http://h/field'))?.size).toBe(field);
  });

  it('is answered as HTML with the same fields, escaped', async () => {
    const items = pushForm({
      'http://h/?a=1&b=<i>"\'': 'x',
      '<script>alert(1)</script>\u0001': 'x',
    });
    const { body } = await ask(await openPeer(), '/api/push_p.html', items);
    expect(body).toContain('<dt>successall</dt><dd>false</dd>');
    expect(body).toContain('<dt>countsuccess</dt><dd>1</dd>');
    expect(body).toContain('<dd>The URL holds control characters.</dd>');
    expect(body).not.toContain('<script');
  });

  it('refuses bytes that are not UTF-8', async () => {
    const peer = await openPeer();
    const headers = { authorization: basic(peer) };
    const answer = await send(peer, `${PUSH}?url-0=http://h/&data-0=%FF%FE`, { headers });
    expect(answer.json()['item-0'].message).toBe('data-0 is not UTF-8 text');
  });
});

describe('peerdoc', () => {
  it('finds a document by its URL in any spelling, and by its hash', async () => {
    const peer = await peerWith({ 'http://Example.org:80/a b': 'x' });
    const shown = await peerdoc(peer, 'http://example.org/a%20b');
    expect(shown?.url).toBe('http://example.org/a%20b');
    expect((await send(peer, `/api/peerdoc.json?urlhash=${shown?.urlhash}`)).json()).toEqual(shown);
  });

  it('shows several documents at once, and names the missing ones', async () => {
    const peer = await peerWith({ 'http://h/a%20b': 'x', 'http://h/c': 'y' });
    const urls = ['http://h/none', 'http://H/a b', 'no address', '', 'http://h/c'];
    const fields = Object.fromEntries(urls.map((url, n) => [`url-${n}`, url]));
    const answer = await answered(peer, '/api/peerdoc.json', fields);
    const items = urls.map((_, n) => answer[`item-${n}`]);
    expect(items.map(({ found }) => found)).toEqual([false, true, false, false, true]);
    expect(items[4]).toEqual({ item: 4, found: true, ...(await peerdoc(peer, 'http://h/c')) });
    const client = new PeerClient({ baseUrl: peer.url, dialect: 'standard' });
    const shown = await client.peerdocs(urls.slice(0, 3));
    await client.close();
    expect(shown.map((doc) => doc?.url)).toEqual([undefined, 'http://h/a%20b', undefined]);
    expect(await answered(peer, '/api/peerdoc.json', { count: '21' })).toBe(400);
  });

  it('answers 404 in the requested form for a missing document', async () => {
    const peer = await openPeer();
    const json = await send(peer, '/api/peerdoc.json?url=http://h/none');
    const message = 'This document is not in the index.';
    expect([json.status, json.json()]).toMatchObject([404, { status: 404, message }]);
    const html = await send(peer, '/api/peerdoc.html?urlhash=AAAAAAAAAAAA');
    expect([html.status, html.body]).toEqual([
      404,
      expect.stringContaining('<h1>Nothing is here</h1>'),
    ]);
    for (const query of ['', '?url=nonsense'])
      expect((await send(peer, `/api/peerdoc.json${query}`)).status).toBe(400);
  });

  it('is readable as HTML, with the text on request', async () => {
    const peer = await peerWith({ [url]: '# <b>Tea</b> & co\nmore </pre> text' });
    const html = (await send(peer, `/api/peerdoc.html?url=${url}`)).body;
    expect(html).toContain('<dt>size</dt><dd>34</dd>');
    expect(html).not.toContain('<pre>');
    const withText = (await send(peer, `/api/peerdoc.html?url=${url}&html=true`)).body;
    expect(withText).toContain('more &lt;/pre&gt; text</pre>');
  });
});

function read(url: string, data: string): { title: string; text: string } {
  const { title, text } = readContent(normaliseUrl(url), Buffer.from(data));
  return { title, text: text.toString() };
}

describe('the title of a document', () => {
  it.each([
    ['a.md', '---\nx: 1\n---\n\n## The **Plan** ##\n', 'The Plan'],
    [
      'a.md',
      '# [![CI](http://b/x.svg)](http://ci/)\n# [stream](http://s/) `api` [![CI][1]][2]\n',
      'stream api',
    ],
    ['a.txt', '\n----\n  Dear all,\nmore\n', 'Dear all,'],
    ['d/caf%C3%A9%20%231.txt', '***\n', 'café #1.txt'],
    ['a.md', 'Status\n\n# Not the *first*', 'Not the *first*'],
    ['a.md', '---\ntags: x\n---\nTea & more\n==========\n# later', 'Tea & more'],
    ['a.markdown', '> quote\n---\n- point\n---\n\nUnder a line  \n---\n', 'Under a line'],
    ['a.md', '```\n# to install\n```\n~~~sh\n# it\n~~~\n# The program', 'The program'],
    ['a.md', '« Tea »\n---\n', '« Tea »'],
    ['a.py', 'import os\n# a remark\n', 'import os'],
    ['a.conf', '\nListen 80\n=====\n', 'Listen 80'],
    ['a.html', '<p>page</p># no heading', 'page'],
    ['a.md', `# ${' '.repeat(1_500)}\u2028x\n`.repeat(5), 'x'],
  ])(
    'is its first heading in Markdown, else its first line with a word, else the name of its file (%#)',
    async (name, data, title) => {
      const reading = () => expect(read(`http://h/${name}`, data).title).toBe(title);
      expect(await cpuMs(reading)).toBeLessThan(5_000);
    },
  );

  it('stays one short line', () => {
    const { title } = read('http://h/a.txt', `${'long '.repeat(100)}\n`);
    expect([title.length <= 200, title.at(-1)]).toEqual([true, '…']);
  });
});

describe('an HTML document', () => {
  const html = `<!DOCTYPE html><html><head><title>Tea &amp; Cake</title><style>p{color:red}</style></head>
    <body><h1>Menu</h1><p>Green <b>t</b>ea &mdash; 3&nbsp;€</p><script>alert("x")</script><p>Cake</p></body></html>`;

  it('is read as text with its title, without scripts and styles, recognised by name or first bytes', () => {
    expect(read('http://h/page', html)).toEqual({
      title: 'Tea & Cake',
      text: 'Menu\nGreen tea — 3\u00a0€\nCake',
    });
    expect(read('http://h/x.html', '<p>one<p>two<b><i>three</b').text).toContain('two');
    expect(read('http://h/x.txt', 'if (a <b> c) <p>').text).toBe('if (a <b> c) <p>');
  });

  it('with hundreds of thousands of unclosed elements takes linear time', async () => {
    const reading = () => {
      const { title, text } = read(
        'http://h/x.html',
        `<title>T</title>${'<b>a</i>'.repeat(250_000)}<p>end`,
      );
      expect([title, text]).toEqual(['T', `${'a'.repeat(250_000)}\nend`]);
    };
    expect(await cpuMs(reading)).toBeLessThan(5_000);
  });
});

describe('a URL', () => {
  it('has one normal form, and a hash of 12 characters from it', () => {
    expect(normaliseUrl('HTTP://Example.ORG:80/a b#part')).toBe('http://example.org/a%20b');
    const [one, other] = ['http://example.org/', 'http://example.org/a'].map((text) =>
      urlHash(normaliseUrl(text)),
    );
    expect(one).toMatch(/^[A-Za-z0-9_-]{12}$/);
    expect(one).not.toBe(other);
    expect(normaliseUrl(`https://h/${'%C3%BC'.repeat(2_040)}`)).toHaveLength(12_250);
  });

  const none = ['not a url', '/a/b', 'example.org', 'mailto:a@b.c', 'http://', 'http://a\nb/'];
  it.each([
    ...none,
    'javascript:alert(1)',
    'javascript://x/%0aalert(1)',
    `https://h/${'a'.repeat(17_000)}`,
  ])('that is invalid is refused with the reason (%#)', (url) =>
    expect(() => normaliseUrl(url)).toThrow(/^The URL /),
  );
});

describe('an urlencoded body', () => {
  const LIMITS = { body: 32_000_000, fields: 100 };

  /** Reads a form that arrives in pieces of this size. */
  async function read(text: string, piece = 65_536): Promise<[string, string][]> {
    const form = new Form(LIMITS);
    const bytes = Buffer.from(text);
    const count = Math.ceil(bytes.length / piece);
    const pieces = Array.from({ length: count }, (_, n) =>
      bytes.subarray(n * piece, (n + 1) * piece),
    );
    await parseInto(form, LIMITS, {}, pieces);
    return [...form.names()].map((name) => [name, form.bytes(name)?.toString() ?? '']);
  }

  const text = fc.string({ unit: 'grapheme', maxLength: 12 });
  const encoded = fc
    .array(fc.tuple(text, text), { maxLength: 6 })
    .map((pairs) => new URLSearchParams(pairs).toString());
  // A percent sign may begin no escape.
  const odd = fc.constantFrom('%', '4', 'f', 'g', '&', '=', '+', 'a');
  const nonsense = fc.string({ unit: odd, maxLength: 20 });

  it('is read as URLSearchParams reads it, however it is split; a repeated name is refused', async () => {
    const piece = fc.integer({ min: 1, max: 30 });
    const isReadRight = fc.asyncProperty(
      fc.oneof(encoded, nonsense),
      piece,
      async (text, piece) => {
        const pairs = [...new URLSearchParams(text)];
        fc.pre(pairs.every(([name]) => name !== ''));
        const isTwice = new Set(pairs.map(([name]) => name)).size < pairs.length;
        if (isTwice) await expect(read(text, piece)).rejects.toMatchObject({ status: 400 });
        else expect(await read(text, piece)).toEqual(pairs);
      },
    );
    await fc.assert(isReadRight, { numRuns: 1_000 });
  });

  it('of nothing but separators takes linear time', async () => {
    const reading = async () => expect(await read('&'.repeat(16_000_000))).toEqual([]);
    expect(await cpuMs(reading)).toBeLessThan(5_000);
  });
});
