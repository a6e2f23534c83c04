import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { until } from '../support/wait.js';
import { basic, openPeer, peerdoc, push, pushForm, search, send } from './support.js';

const url = 'https://files.example.org/inbox/note.md';

describe('a push', () => {
  it('is answered per item, and shows up in peerdoc with everything that is known of it', async () => {
    const peer = await openPeer();
    const data = '# Tea — notes\n\nGreen tea for two.\n';
    const before = Date.now();
    const answer = await push(peer, [{ url, data, collection: 'inbox, notes' }]);
    expect(answer).toEqual({
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
    await until(async () => (await peerdoc(peer, url)) !== undefined, 'visible');
    const shown = await peerdoc(peer, url);
    expect(shown).toMatchObject({
      url,
      urlhash: expect.stringMatching(/^[\w-]{12}$/),
      title: 'Tea — notes',
      collections: ['inbox', 'notes'],
      size: Buffer.byteLength(data),
      words: 6,
      digest: createHash('sha256').update(data).digest('hex'),
    });
    expect(shown?.loadDate).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Date.parse(shown?.loadDate ?? '')).toBeGreaterThanOrEqual(before);
    expect(shown?.lastModified).toBe(shown?.loadDate);
  });

  it('shows the old version, or nothing, until it is indexed', async () => {
    const peer = await openPeer({ commitEveryMs: 600_000 });
    await push(peer, [{ url, data: 'old version', collection: 'c' }], { synchronous: 'true' });
    const old = await peerdoc(peer, url);
    await push(peer, [
      { url, data: 'new version of it', collection: 'c' },
      { url: 'http://h/other', data: 'x', collection: 'c' },
    ]);
    expect(await peerdoc(peer, url)).toEqual(old);
    expect(await peerdoc(peer, 'http://h/other')).toBeUndefined();
    expect((await send(peer, '/')).body).toContain('1 document, 2 waiting to be indexed');
  });

  it.each(['synchronous', 'commit'])('with %s=true is visible when it is answered', async (parameter) => {
    const peer = await openPeer({ commitEveryMs: 600_000 });
    await push(peer, [{ url, data: 'hello', collection: 'c' }], { [parameter]: 'true' });
    expect((await peerdoc(peer, url))?.size).toBe(5);
    expect((await search(peer, { query: 'hello' })).total).toBe(1);
  });

  it('says of each item what is wrong with it, and takes the others', async () => {
    const peer = await openPeer();
    const answer = await push(
      peer,
      [
        { url: 'http://h/0', data: 'good', collection: 'c' },
        { data: 'no url', collection: 'c' },
        { url: 'not a url', data: 'x', collection: 'c' },
        { url: 'http://h/3', collection: 'c' },
        { url: 'http://h/4', data: 'x', collection: 'y'.repeat(200) },
        { url: 'http://h/5', data: 'good too' },
        { url: `http://h/${'a'.repeat(17_000)}`, data: 'x', collection: 'c' },
      ],
      { commit: 'true' },
    );
    expect(answer).toMatchObject({ count: '7', successall: 'false', countsuccess: 2, countfail: 5 });
    const messages = [1, 2, 3, 4, 6].map((n) => answer[`item-${n}`]?.message);
    expect(messages).toEqual([
      'url-1 is missing',
      expect.stringContaining('cannot be parsed'),
      'data-3 is missing',
      expect.stringContaining('collection-4 has to be'),
      expect.stringContaining('longer than 16384 bytes'),
    ]);
    expect((await peerdoc(peer, 'http://h/0'))?.collections).toEqual(['c']);
    expect((await peerdoc(peer, 'http://h/5'))?.collections).toEqual(['user']);
    expect(await peerdoc(peer, 'http://h/4')).toBeUndefined();
  });

  it('without count takes the items that are there; with a count it answers for that many', async () => {
    const peer = await openPeer();
    const items = pushForm([
      { url: 'http://h/0', data: 'a' },
      { url: 'http://h/1', data: 'b' },
    ]);
    items.delete('count');
    const of = async (form: URLSearchParams): Promise<Record<string, unknown>> =>
      (await (
        await fetch(`${peer.url}/api/push_p.json`, {
          method: 'POST',
          headers: { authorization: basic(peer) },
          body: form,
        })
      ).json()) as Record<string, unknown>;
    expect(await of(items)).toMatchObject({ count: '2', countsuccess: 2 });
    items.set('count', '1');
    expect(await of(items)).toMatchObject({ count: '1', countsuccess: 1 });
    items.set('count', '3');
    expect(await of(items)).toMatchObject({ count: '3', countsuccess: 2, countfail: 1, successall: 'false' });
    expect(await of(new URLSearchParams())).toEqual({
      count: '0',
      successall: 'true',
      countsuccess: 0,
      countfail: 0,
    });
  });

  it('is taken as GET, and as multipart with fields or files, byte for byte', async () => {
    const peer = await openPeer();
    const data = 'Grüße\r\n=&%41+😀\n';
    const headers = { authorization: basic(peer) };
    const query = pushForm([{ url: 'http://h/get', data }], { commit: 'true' });
    expect((await send(peer, `/api/push_p.json?${query}`, { headers })).status).toBe(200);
    const form = new FormData();
    form.set('count', '2');
    form.set('url-0', 'http://h/field');
    form.set('data-0', data);
    form.set('url-1', 'http://h/file');
    form.set('data-1', new File([data], 'x.txt', { type: 'text/plain' }));
    form.set('commit', 'true');
    const answer = await fetch(`${peer.url}/api/push_p.json`, { method: 'POST', headers, body: form });
    expect(await answer.json()).toMatchObject({ countsuccess: 2 });
    const digest = createHash('sha256').update(data).digest('hex');
    expect((await peerdoc(peer, 'http://h/get'))?.digest).toBe(digest);
    expect((await peerdoc(peer, 'http://h/file'))?.digest).toBe(digest);
    // A form's text field has its line ends made CRLF by whoever encodes it, not by the peer.
    expect((await peerdoc(peer, 'http://h/field'))?.size).toBe(
      Buffer.byteLength(data.replace(/\r?\n/g, '\r\n')),
    );
  });

  it('is answered as HTML with the same fields, everything escaped', async () => {
    const peer = await openPeer();
    const headers = { authorization: basic(peer), 'content-type': 'application/x-www-form-urlencoded' };
    const body = pushForm([
      { url: 'http://h/?a=1&b=<i>"\'', data: 'x' },
      { url: '<script>alert(1)</script>\u0001', data: 'x' },
    ]).toString();
    const html = await send(peer, '/api/push_p.html', { method: 'POST', headers, body });
    expect(html.body).toContain('<dt>successall</dt><dd>false</dd>');
    expect(html.body).toContain('<dt>countsuccess</dt><dd>1</dd>');
    expect(html.body).toContain('<dd>The URL holds control characters.</dd>');
    expect(html.body).not.toContain('<script');
  });

  it('keeps bytes that are not UTF-8 out', async () => {
    const peer = await openPeer();
    const answer = await send(peer, '/api/push_p.json', {
      method: 'POST',
      headers: { authorization: basic(peer), 'content-type': 'application/x-www-form-urlencoded' },
      body: 'url-0=http://h/&data-0=%FF%FE',
    });
    expect(JSON.parse(answer.body)).toMatchObject({ 'item-0': { message: 'data-0 is not UTF-8 text' } });
  });
});

describe('peerdoc', () => {
  it('finds a document by url in any spelling, and by urlhash', async () => {
    const peer = await openPeer();
    await push(peer, [{ url: 'http://Example.org:80/a b', data: 'x' }], { commit: 'true' });
    const shown = await peerdoc(peer, 'http://example.org/a%20b');
    expect(shown?.url).toBe('http://example.org/a%20b');
    const byHash = await send(peer, `/api/peerdoc.json?urlhash=${shown?.urlhash}`);
    expect(JSON.parse(byHash.body)).toEqual(shown);
  });

  it('answers 404 in the form asked for, where a document is not there', async () => {
    const peer = await openPeer();
    for (const [form, sign] of [
      ['json', '"status": 404'],
      ['html', '<h1>Not Found</h1>'],
    ]) {
      const answer = await send(peer, `/api/peerdoc.${form}?url=http://h/none`);
      expect(answer.status).toBe(404);
      expect(answer.body).toContain(sign);
      expect(answer.body).toContain('This document is not in the index.');
    }
    expect((await send(peer, '/api/peerdoc.json?urlhash=AAAAAAAAAAAA')).status).toBe(404);
    expect((await send(peer, '/api/peerdoc.json')).status).toBe(400);
    expect((await send(peer, '/api/peerdoc.json?url=nonsense')).status).toBe(400);
  });

  it('is readable as HTML, with the text where it is asked for', async () => {
    const peer = await openPeer();
    await push(peer, [{ url, data: '# <b>Tea</b> & co\nmore </pre> text', collection: 'a,b' }], {
      commit: 'true',
    });
    const html = (await send(peer, `/api/peerdoc.html?url=${url}`)).body;
    expect(html).toContain('<dt>size</dt><dd>34</dd>');
    expect(html).not.toContain('<pre>');
    const withText = (await send(peer, `/api/peerdoc.html?url=${url}&html=true`)).body;
    expect(withText).toContain('more &lt;/pre&gt; text</pre>');
  });
});
