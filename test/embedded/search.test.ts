import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { normaliseUrl } from '../../src/embedded/content.js';
import { DocumentStore } from '../../src/embedded/documents.js';
import { findDocuments } from '../../src/embedded/find.js';
import { Site } from '../../src/embedded/markup.js';
import type { PeerInstance } from '../../src/embedded/peer-instance.js';
import { parseQuery } from '../../src/embedded/query-parser.js';
import {
  bodyOf,
  highlighted,
  SnippetBudget,
  snippetAt,
  snippetOf,
} from '../../src/embedded/snippets.js';
import { countWords, fold, indexable, placedWords, wordsOf } from '../../src/embedded/words.js';
import { cpuMs } from '../support/cpu.js';
import { temporaryDirectory } from '../support/temp.js';
import {
  openDatabase,
  openPeer,
  type Parameters,
  peerdoc,
  peerWith,
  push,
  search,
  send,
} from './support.js';

describe('a search', () => {
  it('finds words regardless of case and accents, in any script, and phrases in their order', async () => {
    const peer = await peerWith({
      'http://h/1': 'Die Größe der Straße in Köln, Fuß\u00adball',
      'http://h/2': '検索エンジンと文書 한국어 문서',
      'http://h/3': 'हिन्दी में खोज 😀 emoji',
      'http://h/4': 'green tea, not tea green',
      'http://h/J%C3%A4nner%20plan.txt': 'nothing of it inside',
    });
    for (const [query, found] of [
      ['GROSSE strasse koln fussball', '1'],
      ['エンジン', '2'],
      ['ンエ', ''],
      ['한국', '2'],
      ['हिन्दी', '3'],
      ['"green tea"', '4'],
      ['"tea tea"', ''],
      ['jänner', 'J%C3%A4nner%20plan.txt'],
    ] as const) {
      const { items } = await search(peer, { query });
      expect([query, items.map(({ url }) => url.slice(9)).join()]).toEqual([query, found]);
    }
  });

  it('shows the text around the words, highlighted on the page and plain in JSON', async () => {
    const peer = await openPeer();
    const data = `${'filler '.repeat(60)} the <b>Größe</b> & more ${'filler '.repeat(60)}`;
    await push(peer, { 'http://h/1': data }, { collection: '<i>c</i>' });
    expect((await search(peer, { query: 'grosse' })).items).toMatchObject([
      {
        url: 'http://h/1',
        collections: ['<i>c</i>'],
        size: Buffer.byteLength(data),
        snippet: expect.stringMatching(/^… filler .* the <b>Größe<\/b> & more filler/),
      },
    ]);
    const page = (await send(peer, `/?query=${encodeURIComponent('größe')}`)).body;
    for (const shown of [
      'the &lt;b&gt;<mark>Größe</mark>&lt;/b&gt; &amp; more',
      '&lt;i&gt;c',
      '>1 result<',
    ])
      expect(page).toContain(shown);
  });

  it('shows help on the page only if nothing is found', async () => {
    const peer = await peerWith({ 'http://h/1': 'tea', 'http://h/2': 'tea' });
    const page = async (query: string) => (await send(peer, `/?query=${query}`)).body;
    const help = /<code>"two words"<\/code>.*<code>-word<\/code>.*<code>title:word<\/code>/;
    expect(await page('nothing-of-it')).toMatch(help);
    for (const query of ['', 'tea']) expect(await page(query)).not.toMatch(help);
    expect(await page('tea')).toContain('>1–2 of 2 results<');
  });

  it('finds the snippet of a word far inside a text', async () => {
    const far = 'filler '.repeat(20_000);
    const peer = await peerWith({ 'http://h/1': `${far}needle ${far}` });
    expect((await search(peer, { query: 'needle' })).items[0]?.snippet).toContain('needle');
  });

  it('answers any input', async () => {
    const peer = await peerWith({ 'http://h/1': 'a b x' });
    const words = '" "" "a a"b * a* ( NOT title:x NEAR(a {a} ^a -a 😀 % a+b'.split(' ');
    const odd = [
      'a AND',
      "'; DROP TABLE words",
      '\0',
      '\ud800',
      'a'.repeat(5_000),
      '"'.repeat(999),
    ];
    for (const query of [...words, ...odd]) {
      expect((await search(peer, { query })).total).toBeLessThanOrEqual(1);
      expect((await send(peer, `/?${new URLSearchParams({ query })}`)).status).toBe(200);
    }
    expect((await search(peer, { query: 'x' })).total).toBe(1);
  });

  it('escapes the query and the documents, and has no link that would run a script', async () => {
    const peer = await peerWith({ 'smb://host/share/x.txt': 'tea' });
    const typed = { query: '"><script>alert(1)</script>', collection: '\'"><img src=x>' };
    expect((await send(peer, `/?${new URLSearchParams(typed)}`)).body).not.toMatch(/<script|<img/);
    expect((await send(peer, '/?query=tea')).body).not.toContain('href="smb:');
  });

  it('links to the page of a document: its text with highlights, its metadata and its origin', async () => {
    const text = '<p>Grüner Tee &lt;script&gt; hot</p>';
    const data = `<!doctype html><html lang="de"><title><b>Tee</title><meta name="author" content="A <i>"><meta name="date" content="2024-05-01">${text}`;
    const urls = ['http://h/%3Cb%3E.html?a=%22', 'file:///notes/a%20b.html', 'smb://host/tea.html'];
    const peer = await peerWith(Object.fromEntries(urls.map((url) => [url, data])));
    const list = (await send(peer, '/?query=tee')).body;
    const links = [...list.matchAll(/<h2 dir="auto"><a href="(\/document\?[^"]+)"/g)].map(
      ([, href = '']) => href,
    );
    const pages = await Promise.all(
      links.map(
        async (href) =>
          (await send(peer, href.replaceAll('&amp;', '&').replace('#match', ''))).body,
      ),
    );
    expect(pages).toHaveLength(3);
    for (const page of pages) {
      expect(page).not.toMatch(/<script|<i>|<h1[^>]*><b>|href="(file|smb|javascript):/);
      for (const shown of [
        'class="current" aria-current="true" data-match="1">Tee</mark> &lt;script&gt; hot',
        '<dd>A &lt;i&gt;</dd>',
        '<dd>2024-05-01</dd>',
        '<dd>de</dd>',
      ])
        expect(page).toContain(shown);
    }
    const all = pages.join();
    expect(all).toContain(
      '<a href="http://h/%3Cb%3E.html?a=%22" rel="noreferrer">http://h/&lt;b&gt;.html?a=&quot;</a>',
    );
    expect(all).toContain('data-copy="/notes/a b.html"');
    expect((await send(peer, '/document?urlhash=none')).status).toBe(404);
  });

  it('shows a long text in parts', async () => {
    const peer = await peerWith({ 'http://h/1': `first ${'filler '.repeat(20_000)} last` });
    const partOf = async (part: number) =>
      (await send(peer, `/document?url=http://h/1&part=${part}`)).body;
    expect(await partOf(0)).toMatch(/>first filler.*part=1">More text/s);
    expect(await partOf(2)).toMatch(/part=1">← Text before.*last|last.*part=1">← Text before/s);
  });

  it('refuses invalid offsets and limits', async () => {
    const peer = await openPeer();
    for (const path of [
      '/?offset=-1',
      '/?offset=x',
      '/?limit=101',
      '/search.json?limit=1e3',
      '/?query=%FF',
    ])
      expect((await send(peer, path)).status).toBe(400);
  });
});

describe('a peer with 3,000 documents', () => {
  let peer: PeerInstance;
  beforeAll(async () => {
    peer = await openPeer({}, 'file');
    for (const [at, collection] of ['even', 'odd'].entries())
      for (let start = 0; start < 3_000; start += 200) {
        const documents = Array.from({ length: 100 }, (_, i) => {
          const n = start + 2 * i + at;
          const words = `unique${n} common ${n % 3 === 0 ? 'third ' : ''}${'filler '.repeat(30)}`;
          return [`http://h/${n}.md`, `# Note ${n}\n\n${words}`];
        });
        await push(peer, Object.fromEntries(documents), { collection });
      }
  });

  it('finds each document by a unique word', async () => {
    for (let n = 0; n < 3_000; n += 37) {
      const { total, items } = await search(peer, { query: `"unique${n}"` });
      expect([total, items[0]?.url]).toEqual([1, `http://h/${n}.md`]);
    }
  });

  it('counts the results, in a collection or in all, and pages through them without a gap', async () => {
    const totalOf = async (asked: Parameters) => (await search(peer, asked)).total;
    const even = { query: 'third', collection: 'even' };
    expect(await totalOf({ query: 'common' })).toBe(3_000);
    expect(await totalOf(even)).toBe(500);
    expect(await totalOf({ query: 'third', collection: 'nobody' })).toBe(0);
    const seen = new Set<string>();
    for (let offset = 0; offset < 500; offset += 100) {
      const { items } = await search(peer, { ...even, offset: String(offset), limit: '100' });
      for (const { url } of items) seen.add(url);
    }
    expect(seen.size).toBe(500);
  });

  it('shows the newest documents for an empty query', async () => {
    const { total, items } = await search(peer, { query: '', collection: 'odd' });
    expect([total, items[0]?.title]).toEqual([1_500, 'Note 2999']);
  });

  it('links from page to page on the search page', async () => {
    const page = (await send(peer, '/?query=third&collection=even&offset=490')).body;
    for (const shown of [
      '491–500 of 500 results in even',
      'rel="prev"',
      '<option value="even" selected>even</option>',
    ])
      expect(page).toContain(shown);
    expect(page).not.toContain('rel="next"');
    const next =
      /rel="next" href="([^"]+)"/.exec((await send(peer, '/?query=third')).body)?.[1] ?? '';
    expect((await send(peer, next.replaceAll('&amp;', '&'))).body).toContain(
      '11–20 of 1,000 results',
    );
  });
});

describe('words', () => {
  it.each([
    ['Größe', 'GROSSE'],
    ['\u00fcber', 'u\u0308ber'],
    ['Straße', 'STRASSE'],
    ['ﬁle', 'file'],
    ['Schiff\u00adfahrt', 'Schifffahrt'],
    ['ＡＢＣ１', 'abc1'],
    ['ΟΔΟΣ', 'οδος'],
    ['İstanbul', 'istanbul'],
    ['한국어', '한국어'.normalize('NFD')],
  ])('are equal regardless of accents, case and compatibility forms: %s', (a, b) => {
    expect(fold(a)).toBe(fold(b));
  });

  it('are single characters in scripts without spaces, and whole words with vowel signs in Hindi', () => {
    expect(wordsOf('検索 engine')).toEqual(['検', '索', 'engine']);
    expect(wordsOf('हिन्दी')).toHaveLength(1);
    expect([...placedWords('Fuß\u00adball')].map(({ word }) => word)).toEqual(['fussball']);
  });

  it('are counted as FTS5 counts them, also in long texts that are prepared in pieces', () => {
    expect(countWords(indexable('one, two_three — four! 検索 Größe'))).toBe(7);
    expect(countWords(indexable(Buffer.from('one,two three\n')))).toBe(3);
    expect(countWords(indexable('😀 … \0'))).toBe(0);
    expect(countWords(indexable('wörterbuch '.repeat(20_000)))).toBe(20_000);
  });

  const text = fc.string({ unit: 'grapheme', maxLength: 60 });

  it('are highlighted as they are indexed, and counted alike in documents and queries', () => {
    const isAlike = fc.property(text, (any) => {
      expect(countWords(indexable(any))).toBe(wordsOf(any).length);
      // A compatibility character may become several words; of an accent that stands alone nothing
      // is left.
      const normal = any.normalize('NFKC');
      const placed = [...placedWords(normal)].map(({ word }) => word).filter((word) => word !== '');
      expect(placed).toEqual(wordsOf(normal));
    });
    fc.assert(isAlike, { numRuns: 500 });
  });
});

type Term = ReturnType<typeof parseQuery>['terms'][number];

/** Whether a document of a title, a name and a body has what a term asks for. */
function has(fields: readonly string[][], term: Term): boolean {
  const { words, variants, isPrefix, isInTitle, joined } = term;
  const last = words.at(-1) ?? '';
  const isOpen = isPrefix && [...last].length > 1;
  const isIn = (before: readonly string[], ends: readonly string[], mayGoOn: boolean) =>
    (isInTitle ? fields.slice(0, 1) : fields).some((text) =>
      text.some((word, at) => {
        const isEnd = ends.some((end) => word === end || (mayGoOn && word.startsWith(end)));
        return isEnd && before.every((each, b) => text[at - before.length + b] === each);
      }),
    );
  if (words.length === 1) return isIn([], variants, isOpen);
  const isJoined = joined !== undefined && isIn([], [joined], isOpen);
  return isJoined || isIn(words.slice(0, -1), [last], isOpen);
}

describe('a query', () => {
  const corpus = {
    'https://h.org/a': '# Bridges\n\nThe Brücke of Köln, built by engineers',
    'https://h.org/b': '# Bruecken\n\nnothing else but a Bruecke',
    'https://h.org/c': '# React\n\nwrites interfaces with components',
    'https://h.org/d': '# Other\n\nreact to it; an interface in green tea',
    'https://other.org/e': '# Reading\n\n検索 文書 한국어, tea green',
    'file:///home/J%C3%A4nner/f.txt': 'filed internationally',
    'https://köln.de/dom/g': 'the cathedral',
  };
  it.each([
    ['takes the last word as a prefix, titles first', 'rea', 'c e d'],
    ['takes a longer last word as a prefix, whole words first', 'interface', 'd c'],
    ['takes a word with a space behind it as a whole word, which comes first', 'interface ', 'd c'],
    ['takes a word with a star as a prefix, at any position', 'int* gre', 'd'],
    ['takes the last word of several as a prefix', 'components int', 'c'],
    ['takes words in quotes as a phrase', '"green tea"', 'd'],
    ['excludes documents with -word', 'green -interface', 'e'],
    ['excludes -word from all documents if it is alone', '-tea', 'f.txt c b a g'],
    ['searches a word with two dashes, such as an option', '--react it', 'd'],
    ['finds umlauts from ae', 'bruecke', 'a b'],
    ['finds umlauts from plain letters', '"brucke"', 'a'],
    ['finds all spellings from plain letters', 'brucke', 'a b'],
    ['finds ae from umlauts', 'Brücke', 'a b'],
    ['restricts a word to titles by title:', 'title:react', 'c'],
    ['restricts a prefix to titles by title:', 'title:rea', 'c e'],
    ['filters by site:', 'tea site:other.org', 'e'],
    ['filters by site: with umlauts', 'site:Köln.de/dom', 'g'],
    ['finds nothing for an impossible site:', 'site:kö_%ln.de', ''],
    ['filters by url: with a scheme', 'url:https://H.org/', 'd c b a'],
    ['filters by url: of a file', 'url:file:///home/Jänner/', 'f.txt'],
    ['never takes a single syllable as a prefix', '하', ''],
    ['finds single characters', '索', 'e'],
    ['does not find characters in another order', '索検', ''],
    ['corrects an extra letter if nothing is found', 'componentss', 'c'],
    ['corrects swapped letters in one of several words', 'tea itnerface', 'd'],
    ['does not correct a short word', 'taes', ''],
    ['corrects a word in quotes', '"componentss"', 'c'],
  ])('%s: %s', async (_, query, urls) => {
    const peer = await peerWith(corpus);
    const { items } = await search(peer, { query, typing: 'true' });
    const found = items.map(({ url }) => url.replace(/.*\//, ''));
    expect((/first/.test(_) ? found : found.sort()).join(' ')).toBe(
      /first/.test(_) ? urls : urls.split(' ').sort().join(' '),
    );
  });

  const spellings = {
    'https://h.org/ae': '# One\n\nüber grüne Türen, schöne Brücken',
    'https://h.org/plain': '# Two\n\nueber gruene Tueren, schoene Bruecken',
    'https://h.org/york': '# Green gardens\n\nof New Yorkers',
    'https://h.org/yorkshire': '# Gardens\n\nnew and green, in Yorkshire',
  };
  it.each([
    ['über', 'ae plain'],
    ['über ', 'ae plain'],
    ['grün', 'ae plain'],
    ['türe', 'ae plain'],
    ['tuere', 'ae plain'],
    ['schoe', 'ae plain'],
    ['bruec', 'ae plain'],
    ['title:über', ''],
    ['"new york*"', 'york'],
    ['in-yorks', 'yorkshire'],
    ['of-york', ''],
    ['title:"green gard*"', 'york'],
    ['title:green-ga', 'york'],
    ['gardens -yorksh*', 'york'],
    ['gardens -yo* ', ''],
    ['gardens -newe* -"new york*"', 'yorkshire'],
    ['gardens -title:gre*', 'yorkshire'],
  ])('counts the results of all spellings of prefixes and phrases: %s', async (query, names) => {
    const peer = await peerWith(spellings);
    const { items, total, corrected } = await search(peer, { query, typing: 'true' });
    expect([
      items
        .map(({ url }) => url.slice(14))
        .sort()
        .join(' '),
      corrected,
    ]).toEqual([names, undefined]);
    expect(total).toBe(items.length);
  });

  it('is read up to its 32nd word, each word once, so that none takes long', () => {
    const long = ['a '.repeat(400), 'th* '.repeat(250), 'x y '.repeat(200)].map((query) =>
      parseQuery(query),
    );
    expect(long.map(({ terms }) => terms.length)).toEqual([1, 1, 2]);
    const many = Array.from({ length: 100 }, (_, n) => `w${n}`).join(' ');
    expect(parseQuery(many).terms).toHaveLength(32);
    expect(parseQuery(`-"${many}" "${many}"`).excluded.map(({ words }) => words.length)).toEqual([
      32,
    ]);
  });

  it('shows its correction, with the other terms as they were written', async () => {
    const peer = await peerWith(corpus);
    const { corrected } = await search(peer, { query: 'title:"bridges" enigneers* site:h.org' });
    expect(corrected).toBe('title:"bridges" engineers* site:h.org');
    expect((await search(peer, { query: 'engineers' })).corrected).toBeUndefined();
    expect((await send(peer, '/?query=enigneers')).body).toContain('for engineers');
  });

  it('is restricted to collections, and sorted by date on request', async () => {
    const peer = await openPeer();
    const page = (day: string) => `<html lang="de"><meta name="author" content="A. B.">
      <meta name="date" content="${day}"><title>T</title>tea`;
    await push(peer, { 'http://h/new.html': page('2026-01-02') }, { collection: 'x y' });
    await push(peer, { 'http://h/old.html': page('2020-01-02') }, { collection: 'z' });
    const urls = async (asked: Parameters) =>
      (await search(peer, asked)).items.map(({ url }) => url.slice(9));
    expect(await urls({ query: 'tea', sort: 'date' })).toEqual(['new.html', 'old.html']);
    expect(await urls({ query: 'tea collection:"x y"' })).toEqual(['new.html']);
    expect(await urls({ query: 'collection:z' })).toEqual(['old.html']);
    expect(await urls({ query: 'collection:z', collection: 'x y' })).toEqual([]);
    const expected = { author: 'A. B.', date: '2026-01-02T00:00:00.000Z', language: 'de' };
    expect((await search(peer, { query: 'collection:"x y"' })).items[0]).toMatchObject(expected);
    expect(await peerdoc(peer, 'http://h/new.html')).toMatchObject(expected);
  });

  it('of any words finds the documents with them, page by page, each once', () => {
    const stem = fc.constantFrom('bübebi', 'buebebi', 'bubebi', 'bebi', '検索bitte');
    const word = fc
      .tuple(stem, fc.integer({ min: 1, max: 7 }))
      .map(([all, end]) => all.slice(0, end));
    const words = fc.array(word, { minLength: 1, maxLength: 4 });
    const page = fc.record({ title: words, body: words, collection: fc.constantFrom('x', 'y') });
    const term = fc.record({
      words,
      form: fc.constantFrom('word', 'words-together', '"in quotes"'),
      isExcluded: fc.boolean(),
      isInTitle: fc.boolean(),
      hasStar: fc.boolean(),
    });
    const asked = fc.record({
      terms: fc.array(term, { minLength: 1, maxLength: 3 }),
      isTyped: fc.boolean(),
      collection: fc.constantFrom('', 'x'),
      sort: fc.constantFrom('rank', 'date'),
      limit: fc.integer({ min: 1, max: 9 }),
    });
    const pagesAndQuestions = fc.property(
      fc.array(page, { maxLength: 20 }),
      fc.array(asked),
      (pages, all) => {
        const database = openDatabase(temporaryDirectory());
        const documents = new DocumentStore(database);
        for (const [n, { title, body, collection }] of pages.entries())
          documents.index({
            url: normaliseUrl(`http://h/${n}.html`),
            collections: [collection],
            loadDate: n,
            data: Buffer.from(`<title>${title.join(' ')}</title>${body.join(' ')}`),
          });
        for (const { terms, isTyped, ...request } of all) {
          const written = terms.map(({ words, form, isExcluded, isInTitle, hasStar }) => {
            const star = hasStar ? '*' : '';
            const forms = {
              word: `${words[0]}${star}`,
              'words-together': `${words.join('-')}${star}`,
              '"in quotes"': `"${words.join(' ')}${star}"`,
            };
            return `${isExcluded ? '-' : ''}${isInTitle ? 'title:' : ''}${forms[form]}`;
          });
          const query = written.join(' ');
          const sought = parseQuery(query, isTyped);
          const matching = (terms: readonly Term[]) =>
            pages.flatMap(({ title, body, collection }, n) => {
              const fields = [title.join(' '), `${n} html`, body.join(' ')].map((text) =>
                wordsOf(text),
              );
              const isRight =
                terms.every((each) => has(fields, each)) &&
                !sought.excluded.some((each) => has(fields, each));
              return isRight && ['', collection].includes(request.collection)
                ? [`http://h/${n}.html`]
                : [];
            });
          // A phrase that is being typed is a beginning only if no document has it as it is.
          const exact = matching(
            sought.terms.map((each) =>
              each.isBeingTyped && each.words.length > 1 ? { ...each, isPrefix: false } : each,
            ),
          );
          const expected = exact.length > 0 ? exact : matching(sought.terms);
          const found: string[] = [];
          const ask = () =>
            findDocuments(
              { ...request, query, isTyping: isTyped, offset: found.length },
              { database, documents },
            );
          const isRepaired = ({ corrected, without }: ReturnType<typeof ask>) =>
            corrected !== undefined || without !== undefined;
          if (expected.length === 0 && isRepaired(ask())) continue;
          for (let result = ask(); ; result = ask()) {
            const { otherForms = 0, total } = result;
            // Documents with other forms of the words follow those with the words.
            if (expected.length === 0 && otherForms > 0) break;
            expect(isRepaired(result), query).toBe(false);
            expect(total - otherForms, query).toBe(expected.length);
            if (result.found.length === 0) break;
            found.push(...result.found.map(({ url }) => url));
          }
          expect(new Set(found).size, query).toBe(found.length);
          expect(found.slice(0, expected.length).sort(), query).toEqual(expected.sort());
        }
        database.close();
      },
    );
    fc.assert(pagesAndQuestions, { numRuns: 60 });
  });

  it('of any characters is answered', async () => {
    const database = openDatabase(temporaryDirectory());
    const deps = { database, documents: new DocumentStore(database) };
    const request = { collection: '', offset: 0, limit: 10 };
    const pieces = [
      ...'"*-( 検',
      'title:',
      'site:',
      'url:',
      'collection:',
      'ab',
      'abcd',
      '\ue000',
      '\ud800',
    ];
    const any = fc.array(
      fc.oneof(fc.constantFrom(...pieces), fc.string({ unit: 'binary', maxLength: 4 })),
    );
    fc.assert(
      fc.property(any, (parts) => {
        expect(findDocuments({ ...request, query: parts.join('') }, deps).total).toBe(0);
      }),
    );
    database.close();
  });
});

describe('a snippet', () => {
  it('highlights words as they are spelt in the text, and each character of a Chinese phrase', () => {
    const asked = parseQuery('GROSSE').highlights;
    const found = snippetOf(`${'filler '.repeat(100)}the Größe of <it>`, asked)?.text ?? '';
    expect(found).toMatch(/^… filler .*the Größe of <it>$/);
    expect(highlighted(found, asked)).toMatch(/ the <mark>Größe<\/mark> of &lt;it&gt;$/);
    const chinese = parseQuery('検索').highlights;
    const shown = highlighted(snippetOf('中文検索です', chinese)?.text ?? '', chinese);
    expect(shown).toBe('中文<mark>検</mark><mark>索</mark>です');
  });

  it('shows as many of the words as there are side by side, however they are spelt', () => {
    const filler = 'filler '.repeat(100);
    const text = `tea ${filler} tea in a Küche ${filler} Tea\u0308s, GRÜNER Tee und Kuchen ${filler} grun`;
    const shown = (query: string) => snippetOf(text, parseQuery(query).highlights);
    expect(shown('grüner tee kuchen')).toMatchObject({ words: 3 });
    expect(shown('gruner tee kuchen')?.text).toContain('GRÜNER Tee und Kuchen');
    expect(shown('tea kuche')?.text).toContain('tea in a Küche');
    expect(shown('tea')?.text).toMatch(/^tea filler/);
    expect(shown('uche')).toBeUndefined();
    // However often a word is repeated, the work follows the length of the text.
    const letters = 'a '.repeat(32_000);
    const asked = parseQuery(`"${'a '.repeat(32)}"`).highlights;
    expect(asked.words).toHaveLength(1);
    expect(snippetOf(letters, asked)).toMatchObject({ words: 1 });
    expect(snippetOf('a'.repeat(64_000), parseQuery('a'.repeat(900)).highlights)).toBeUndefined();
  });

  it('is looked for among all spellings only where the letters of a word are, at a higher cost', () => {
    const text = 'Kuchen '.repeat(9_000);
    const isHalfLeft = (query: string): boolean => {
      const budget = new SnippetBudget();
      expect(snippetOf(text, parseQuery(query).highlights, false, budget)).toBeUndefined();
      return budget.take('x'.repeat(500_000));
    };
    expect([isHalfLeft('tea'), isHalfLeft('uche')]).toEqual([true, false]);
    const asked = parseQuery('finden').highlights;
    const found = snippetOf(`${text}ＦＩＮＤＥＮ ${text}`, asked);
    expect(found?.text).toMatch(/^… Kuchen .*ＦＩＮＤＥＮ Kuchen/);
    const spent = new SnippetBudget();
    spent.take('x'.repeat(1_000_000));
    expect(snippetOf(`${text}Ｕche`, parseQuery('uche').highlights, false, spent)).toBeUndefined();
  });

  it('is missing if no word is found, and the start of the text replaces it', () => {
    expect(snippetOf('nothing here', parseQuery('else').highlights)).toBeUndefined();
    expect(snippetAt('short', 0)).toBe('short');
    expect(snippetAt('word '.repeat(200), 0)).toMatch(/^word .* …$/);
  });

  it('of Markdown has no syntax, front matter, title, or words that only a link address has', async () => {
    const note = `---\nkey: tea\n---\n# **Green** tea\n\n- [x] see [the *manual*](http://tea/) \`now\`
> [!TIP]\n> a_b_c |\n\n[![a\nbadge](http://b/)](http://c/) <img\n src="x"\n/>\n[ref]: http://tea/\nmore tea`;
    const body = bodyOf(note, 'Green tea', true);
    const line = 'see the manual now a_b_c a badge more tea';
    expect(snippetOf(body, parseQuery('tea ').highlights, true)?.text).toBe(line);
    expect(snippetAt(body, 0, true)).toBe(line);
    expect(snippetOf(body, parseQuery('key ').highlights, true)).toBeUndefined();
    expect(snippetOf('[x](http://only/)', parseQuery('only ').highlights, true)).toBeUndefined();
    expect(bodyOf('Green tea\nis hot', 'Green tea', false)).toBe('is hot');
    expect(bodyOf('Green tea\n', 'Green tea', false)).toBe('Green tea\n');
    expect(bodyOf('---\n\n# Real\n\n---\nbody', '', true)).toContain('# Real');
    for (const odd of [
      ...['*', '[', '<a ', '[a\n', ' ', '[a]: b'].map((mark) => mark.repeat(50_000)),
      `---\n${'a\n'.repeat(50_000)}`,
    ]) {
      expect(await cpuMs(() => snippetAt(bodyOf(odd, '', true), 0, true))).toBeLessThan(500);
    }
  });

  it('never cuts a surrogate pair', () => {
    const found = snippetOf(
      `${'😀'.repeat(100)} tea ${'😀'.repeat(300)}`,
      parseQuery('tea').highlights,
    )?.text;
    expect(found).not.toMatch(/\p{Cs}/u);
  });
});

describe('the pages of the peer', () => {
  const ODD = {
    'file:///in/invoice%E2%80%AEfdp.txt': 'tea with a mark of direction',
    'file:///in/line%0Abreak.txt': '…',
    'file:///in/line%20break.txt': '…',
    'https://h/zero%E2%80%8Bwidth.md': 'tea of the web',
  };

  it('show invisible characters of names as highlighted escapes, so that no name looks like another', async () => {
    const peer = await peerWith(ODD);
    const page = (await send(peer, '/')).body;
    expect(page).toContain('<code>/in/invoice<b class="written">\\u202e</b>fdp.txt</code>');
    expect(page).toContain('<code>/in/line<b class="written">\\x0a</b>break.txt</code>');
    expect(page).toContain('>line\\x0abreak.txt</a>');
    expect(page).toContain('>line break.txt</a>');
    expect(page).toContain('>https://h/zero%E2%80%8Bwidth.md</a>');
    const document = await send(peer, '/document?url=file:///in/line%250Abreak.txt');
    expect(document.body).toContain('<h1 dir="auto">line\\x0abreak.txt</h1>');
    // The name itself is copied.
    expect(document.body).toContain('data-copy="/in/line\nbreak.txt"');
  });

  it('show the size of a document, and label its dates', async () => {
    const peer = await peerWith({ 'http://h/1': `# Tea\n\n${'leaf '.repeat(1_200)}` });
    const page = (await send(peer, '/document?url=http://h/1&query=tea')).body;
    const facts = [...page.matchAll(/<dt>(.*?)<\/dt><dd>(.*?)<\/dd>/g)].map(
      ([, name, value]) => `${name}: ${value}`,
    );
    expect(facts).toEqual([
      'Collection: user',
      'Size as pushed: 5.9 KiB',
      'Words: 1,201',
      expect.stringMatching(/^File changed: \d{4}-\d\d-\d\d \d\d:\d\d UTC$/),
      expect.stringMatching(/^Last pushed: \d{4}-\d\d-\d\d \d\d:\d\d UTC$/),
      expect.stringMatching(/^sha256: <code>[0-9a-f]{64}<\/code>$/),
    ]);
    expect(page).toContain('>Documents with the same sentences</a>');
  });

  it('link from an unknown address to the search, and name the file of the password', async () => {
    const dir = temporaryDirectory();
    const peer = await openPeer({ dir });
    const unknown = await send(peer, '/nothing');
    expect(unknown.status).toBe(404);
    for (const shown of [
      '<h1>Nothing is here</h1>',
      '<a href="/">Go to the search page</a>',
      'rel="icon"',
    ])
      expect(unknown.body).toContain(shown);
    const closed = await send(peer, '/Tables_p.html');
    expect(closed.status).toBe(401);
    expect(closed.body).toContain(
      `The user is admin, and the password is in ${dir}/admin-password.`,
    );
    expect(closed.body).not.toContain(peer.credentials.password);
    expect((await send(peer, '/Tables_p.json')).json().message).toContain(`${dir}/admin-password`);
  });
});

it('a page allows only its own script, and links to the status page while that is open', () => {
  const site = new Site('p{}', 'run()', '<svg/>');
  const page = () => site.page({ title: '</title><script>', top: '', body: '' });
  const hash = (text: string) => createHash('sha256').update(text).digest('base64');
  expect(site.contentSecurityPolicy).toBe(
    `default-src 'none'; style-src 'sha256-${hash('p{}')}'; script-src 'sha256-${hash('run()')}'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  );
  expect(page().match(/<script>/g)).toHaveLength(1);
  expect(page()).not.toContain('Status');
  site.statusUrl = 'http://127.0.0.1:8385/';
  expect(page()).toContain('<a href="http://127.0.0.1:8385/" rel="noreferrer">Status</a>');
});
