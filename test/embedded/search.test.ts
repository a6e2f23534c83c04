import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { openPeerInstance, type PeerInstance } from '../../src/embedded/peer-instance.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { type Item, openPeer, push, search, send } from './support.js';

describe('a search', () => {
  it('finds words whatever their case, accents and script, and phrases in their order', async () => {
    const peer = await openPeer();
    await push(
      peer,
      [
        { url: 'http://h/1', data: 'Die Größe der Straße in Köln', collection: 'de' },
        { url: 'http://h/2', data: '検索エンジンと文書 한국어 문서', collection: 'cjk' },
        { url: 'http://h/3', data: 'हिन्दी में खोज 😀 emoji', collection: 'in' },
        { url: 'http://h/4', data: 'green tea, not tea green', collection: 'en' },
        { url: 'http://h/reports/J%C3%A4nner%20plan.txt', data: 'nothing of it inside', collection: 'en' },
      ],
      { commit: 'true' },
    );
    const found = async (query: string): Promise<string[]> =>
      (await search(peer, { query })).items.map((item) => item.url.slice(9)).sort();
    expect(await found('GROSSE strasse koln')).toEqual(['1']);
    expect(await found('エンジン')).toEqual(['2']);
    expect(await found('ンエ')).toEqual([]);
    expect(await found('한국')).toEqual(['2']);
    expect(await found('हिन्दी')).toEqual(['3']);
    expect(await found('"green tea"')).toEqual(['4']);
    expect(await found('"tea tea"')).toEqual([]);
    expect(await found('green missing')).toEqual([]);
    expect(await found('jänner')).toEqual(['reports/J%C3%A4nner%20plan.txt']);
  });

  it('shows where the words stand, marked on the page and plain in JSON', async () => {
    const peer = await openPeer();
    const data = `${'filler '.repeat(60)} the <b>Größe</b> & more ${'filler '.repeat(60)}`;
    await push(peer, [{ url: 'http://h/1', data, collection: '<i>c</i>' }], { commit: 'true' });
    const { items } = await search(peer, { query: 'grosse' });
    expect(items[0]?.snippet).toMatch(/^… filler .* the <b>Größe<\/b> & more filler/);
    expect(items[0]).toMatchObject({
      url: 'http://h/1',
      collections: ['<i>c</i>'],
      size: Buffer.byteLength(data),
    });
    const page = (await send(peer, `/?query=${encodeURIComponent('größe')}`)).body;
    expect(page).toContain('the &lt;b&gt;<mark>Größe</mark>&lt;/b&gt; &amp; more');
    expect(page).toContain('&lt;i&gt;c&lt;/i&gt;');
    expect(page).toContain('1–1 of 1 result');
  });

  it('finds the snippet of a word that stands far inside', async () => {
    const peer = await openPeer();
    const data = `${'filler '.repeat(20_000)}needle ${'filler '.repeat(20_000)}`;
    await push(peer, [{ url: 'http://h/1', data }], { commit: 'true' });
    expect((await search(peer, { query: 'needle' })).items[0]?.snippet).toContain('needle');
  });

  it.each([
    '"',
    '""',
    '"a',
    'a"b',
    '*',
    'a*',
    '(',
    'a AND',
    'NOT',
    'title:x',
    'NEAR(a b)',
    '-a',
    '{a}',
    '^a',
    'a + b',
    "'; DROP TABLE words",
    '\0',
    '😀',
    '%',
    '\ud800',
    'a'.repeat(5_000),
    '"'.repeat(999),
  ])('survives whatever is typed: %j', async (query) => {
    const peer = await openPeer();
    await push(peer, [{ url: 'http://h/1', data: 'a b x' }], { commit: 'true' });
    expect((await search(peer, { query })).total).toBeLessThanOrEqual(1);
    expect((await send(peer, `/?${new URLSearchParams({ query })}`)).status).toBe(200);
    expect((await search(peer, { query: 'x' })).total).toBe(1);
  });

  it('never shows what was typed as markup', async () => {
    const peer = await openPeer();
    const typed = { query: '"><script>alert(1)</script>', collection: '\'"><img src=x>' };
    const page = (await send(peer, `/?${new URLSearchParams(typed)}`)).body;
    expect(page).not.toContain('<script');
    expect(page).not.toContain('<img');
  });

  it('shows no link that would run a script', async () => {
    const peer = await openPeer();
    await push(peer, [{ url: 'smb://host/share/x.txt', data: 'tea', collection: 'c' }], { commit: 'true' });
    expect((await send(peer, '/?query=tea')).body).not.toContain('href="smb:');
  });

  it('refuses pages that make no sense', async () => {
    const peer = await openPeer();
    for (const path of ['/?offset=-1', '/?offset=x', '/?limit=101', '/search.json?limit=1e3', '/?query=%FF'])
      expect((await send(peer, path)).status).toBe(400);
  });
});

describe('a peer with 3,000 documents', () => {
  const count = 3_000;
  let peer: PeerInstance;

  beforeAll(async () => {
    const dir = mkdtempSync(join(tmpdir(), 'peersync-'));
    const options = { dir, port: 0, commitEveryMs: 20, maxBody: 67_108_864 };
    peer = await openPeerInstance({ ...options, requireAuthEverywhere: false }, systemClock, silentLogger);
    for (let start = 0; start < count; start += 100) {
      const items = Array.from({ length: 100 }, (_, i): Item => {
        const n = start + i;
        const data = `# Note ${n}\n\nunique${n} common ${n % 3 === 0 ? 'third ' : ''}${'filler '.repeat(30)}`;
        return { url: `http://h/${n}.md`, data, collection: n % 2 === 0 ? 'even' : 'odd' };
      });
      await push(peer, items);
    }
    for (let waiting = true; waiting; )
      waiting = !(await send(peer, '/')).body.includes('3,000 documents, 0 waiting to be indexed');
    return async () => {
      await peer.close();
      rmSync(dir, { recursive: true });
    };
  });

  it('finds each by a word of its own', async () => {
    for (let n = 0; n < count; n += 37) {
      const { total, items } = await search(peer, { query: `unique${n}` });
      expect([total, items[0]?.url]).toEqual([1, `http://h/${n}.md`]);
    }
  });

  it('counts what it finds, in a collection or in all, and pages through it without a gap', async () => {
    expect((await search(peer, { query: 'common' })).total).toBe(3_000);
    const even = { query: 'third', collection: 'even' };
    expect((await search(peer, even)).total).toBe(500);
    const seen = new Set<string>();
    for (let offset = 0; offset < 500; offset += 100)
      for (const item of (await search(peer, { ...even, offset: String(offset), limit: '100' })).items)
        seen.add(item.url);
    expect(seen.size).toBe(500);
    expect((await search(peer, { query: 'third', collection: 'nobody' })).total).toBe(0);
  });

  it('shows the newest where nothing is asked for', async () => {
    const { total, items } = await search(peer, { query: '', collection: 'odd' });
    expect([total, items[0]?.title]).toEqual([1_500, 'Note 2999']);
  });

  it('leads from page to page on the search page', async () => {
    const page = (await send(peer, '/?query=third&collection=even&offset=490')).body;
    expect(page).toContain('491–500 of 500 results in even');
    expect(page).toContain('rel="prev"');
    expect(page).not.toContain('rel="next"');
    expect(page).toContain('<option value="even" selected>even</option>');
    const next = /rel="next" href="([^"]+)"/.exec((await send(peer, '/?query=third')).body)?.[1];
    expect((await send(peer, (next ?? '').replaceAll('&amp;', '&'))).body).toContain(
      '11–20 of 1,000 results',
    );
  });
});
