import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normaliseUrl } from '../../src/embedded/content.js';
import { DocumentStore } from '../../src/embedded/documents.js';
import { findDocuments } from '../../src/embedded/find.js';
import { parseQuery } from '../../src/embedded/query-parser.js';
import { highlighted, snippetOf } from '../../src/embedded/snippets.js';
import { symbolTermsOf, symbolWordsAt, writtenWord } from '../../src/embedded/symbol-words.js';
import { placedWords } from '../../src/embedded/words.js';
import { temporaryDirectory } from '../support/temp.js';
import { names, openDatabase, peerWith, search, send } from './support.js';

/** Returns the symbol words of a text as they are written, but in small letters. */
function symbolWords(text: string): string {
  return symbolTermsOf(text).map(writtenWord).join(' ');
}

describe('a symbol word', () => {
  it.each([
    ['C++, C# and F#; g++ (notepad++) A+', 'c++ c# f# g++ notepad++ a+'],
    ['.NET (#tag) "@name" `.gitignore` |#a| **.b**', '.net #tag @name .gitignore #a .b'],
    ['~/.bashrc and node_modules/@types/node', '.bashrc @types'],
    ['C++17, std=c++20', 'c++ c++'],
    ['#c++ is both', '#c++ c++'],
    ['C/C++ C++/CLI', 'c++ c++'],
    ['#Größe Ü++', '#grosse u++'],
    ['中文C++和.NET', 'c++ .net'],
    ['Ｃ＋＋', 'c++'],
    ['1++ #1234 .5 18+', '1++ #1234 .5 18+'],
  ])('is found in %s', (text, found) => {
    expect(symbolWords(text)).toBe(found);
  });

  it.each([
    ['a heading', '# Title\n## Part'],
    ['an address', 'a@b.example, mail user@host'],
    ['a version, a number or a name', 'v1.2 192.168.1.2 node.js ASP.NET'],
    ['a sum or a chord', 'a+b 1+1 c#d Ctrl+C'],
    ['an operator', '++i --j a ++ b # @ .'],
    ['a call', 'f().then x[0].y a?.b $.ajax'],
    ['an ellipsis', '...rest ..parent'],
    ['a rule', '+------+++++ a++++++'],
    ['the target of a link', '[Usage](#usage) [x](.github/x)'],
    ['a fragment', 'page.html#part'],
    ['a long word', `#${'a'.repeat(65)} ${'a'.repeat(65)}++`],
  ])('is not %s: %s', (_, text) => {
    expect(symbolWords(text)).toBe('');
  });

  it('is found at the same places of a text as in the index', () => {
    const part = fc.constantFrom(...'aZ9é中 .#@+++("`]*/:😀_-)', '\u00a0', 'ß', 'word');
    const text = fc.array(part, { maxLength: 24 }).map((parts) => parts.join(''));
    const isSame = fc.property(text, (any) => {
      const placed = [...placedWords(any)].flatMap((word) => [...symbolWordsAt(any, word)]);
      expect(placed.map(({ word }) => word)).toEqual(symbolTermsOf(any));
      for (const { end, start, word } of placed)
        expect(symbolTermsOf(any.slice(start, end))[0]).toBe(word);
    });
    fc.assert(isSame, { numRuns: 2_000 });
  });
});

describe('a search for a symbol word', () => {
  const corpus = {
    'http://h/cpp.txt': 'Notes\nThe C++ compiler and C++ programming',
    'http://h/c.txt': 'Letters\nThe c of programming, and vitamin C',
    'http://h/sharp.txt': 'C# at work\nThe cash register is written in C#',
    'http://h/dotnet.txt': 'Runtime\nThe .NET framework and the Entity.Core library',
    'http://h/net.txt': 'Fishing\nThe net framework of a boat',
    'http://h/tag.txt': 'Paper\nWhat is to do #Taxes',
    'http://h/taxes.txt': 'Letter\nCouncil taxes are due, says taxes@council.example',
    'http://h/node.txt': 'Server\nIt runs on node.js, and/or on @ada by a/b tests',
    'http://h/nodejs.txt': 'Other\nA node of js or b',
    'http://h/%23plan.txt': 'Days\nnothing of it',
  };
  it.each([
    ['finds it alone', 'C++', 'cpp.txt'],
    ['finds it in small letters', 'c++', 'cpp.txt'],
    ['finds it with a number sign', 'c#', 'sharp.txt'],
    ['finds it with a full stop', '.NET', 'dotnet.txt'],
    ['finds it with an at sign', '@Ada', 'node.txt'],
    ['finds a tag', '#taxes', 'tag.txt'],
    ['finds it in the name of a file', '#plan', '#plan.txt'],
    ['finds it in titles', 'title:C#', 'sharp.txt'],
    ['does not find it elsewhere if it is asked for in titles', 'title:#taxes', ''],
    ['finds it beside other words', '.net entity', 'dotnet.txt'],
    ['excludes it', 'programming -C++', 'c.txt'],
    ['excludes it by NOT', 'taxes NOT #taxes', 'taxes.txt'],
    ['finds alternatives', 'C# OR C++ OR F#', 'cpp.txt sharp.txt'],
    ['finds it in parentheses', '(C++ OR .NET) -programming', 'dotnet.txt'],
    ['finds it in a phrase', '"C++ programming"', 'cpp.txt'],
    ['finds it in a phrase that begins otherwise', '"the .NET framework"', 'dotnet.txt'],
    ['finds nothing for a phrase with another one', '"the #net framework"', ''],
    ['takes it as a prefix', '#tax*', 'tag.txt'],
    ['finds it in quotes', '"#taxes"', 'tag.txt'],
  ])('%s: %s', async (_, query, found) => {
    const peer = await peerWith(corpus);
    const { corrected, items } = await search(peer, { query });
    const exact = corrected === undefined ? items : [];
    expect(
      exact
        .map(({ url }) => decodeURIComponent(url.slice(9)))
        .sort()
        .join(' '),
    ).toBe(found);
  });

  it.each([
    ['the word without a sign', 'taxes', 'tag.txt taxes.txt'],
    ['a letter', 'c programming', 'c.txt cpp.txt'],
    ['a phrase', '"the net framework"', 'dotnet.txt net.txt'],
    ['a name with a full stop inside', 'node.js', 'node.txt'],
    ['a term with a slash', 'a/b', 'node.txt'],
    ['an address', 'taxes@council.example', 'taxes.txt'],
    ['a pattern for names', '*.txt net', 'dotnet.txt net.txt'],
  ])('leaves plain words as they are: %s: %s', async (_, query, found) => {
    const peer = await peerWith(corpus);
    expect(await names(peer, { query })).toBe(found);
    expect((await search(peer, { query })).corrected).toBeUndefined();
  });

  it.each([
    ['F#', 'vitamin F', 'F', 'f.txt'],
    ['taxes+ due', 'taxes due', 'taxes due', 'f.txt'],
    ['.nett', 'the net', '.nett', ''],
    ['"@vitamin f"', 'vitamin F', '"vitamin f"', 'f.txt'],
    ['(#vitamin OR F#) -C#', 'vitamin F', '(vitamin OR F) -C#', 'f.txt'],
  ])('says that no document has it: %s', async (query, text, corrected, found) => {
    const peer = await peerWith({ 'http://h/f.txt': `Paper\n${text}` });
    const answer = await search(peer, { query });
    if (found === '') expect(answer.corrected).not.toBe(corrected);
    else expect(answer.corrected).toBe(corrected);
    expect(answer.items.length).toBe(1);
    const { body } = await send(peer, `/?${new URLSearchParams({ query })}`);
    expect(body).toContain(', which is similar');
  });

  it('takes plain words before it leaves words out', async () => {
    const peer = await peerWith({
      'http://h/1': 'a plan of 18+ things',
      'http://h/2': 'node 18 is out',
    });
    const { corrected, items, without } = await search(peer, { query: 'node 18+' });
    expect([corrected, without, items.map(({ url }) => url)]).toEqual([
      'node 18',
      undefined,
      ['http://h/2'],
    ]);
  });

  it('keeps it if another word is left out', async () => {
    const { corrected, items, without } = await search(await peerWith(corpus), {
      query: 'C# squirrelmail',
    });
    expect([corrected, without, items.map(({ url }) => url)]).toEqual([
      undefined,
      ['squirrelmail'],
      ['http://h/sharp.txt'],
    ]);
  });

  it.each([
    ['c', undefined, 'c.txt cpp.txt sharp.txt'],
    ['c+', undefined, 'cpp.txt'],
    ['C++', undefined, 'cpp.txt'],
    ['.N', undefined, 'dotnet.txt'],
    ['.ne', undefined, 'dotnet.txt'],
    ['#t', undefined, 'tag.txt'],
    ['counci', undefined, 'taxes.txt'],
    ['#counci', 'counci', 'taxes.txt'],
    ['programming+', 'programming', 'c.txt cpp.txt'],
    ['programming .ne', undefined, ''],
  ])('is exact while %s is being typed', async (query, corrected, found) => {
    const answer = await search(await peerWith(corpus), { query, typing: 'true' });
    const shown = answer.items.map(({ url }) => url.slice(9)).sort();
    if (found !== '') expect([answer.corrected, shown.join(' ')]).toEqual([corrected, found]);
    else expect([answer.corrected, answer.without].some(Boolean) || shown.length === 0).toBe(true);
  });

  it('has no symbol words in corrections and other forms of words', async () => {
    const peer = await peerWith({
      'http://h/1': 'paper #invoice++ @bignotepad',
      'http://h/2': 'paper @leases',
    });
    expect((await search(peer, { query: 'invoize' })).corrected).toBe('invoice');
    expect((await search(peer, { query: 'lease' })).items.length).toBe(1);
    const { otherForms, items } = await search(peer, { query: 'notepad' });
    expect([otherForms, items.length]).toEqual([1, 1]);
    const { body } = await send(peer, '/?query=notepad');
    expect(body).toContain('@<mark>bignotepad</mark>');
  });

  it('finds no characters for private use that a text has', async () => {
    const mark = (text: string) =>
      symbolTermsOf(text)
        .join('')
        .replace(/^./u, (first) => first);
    const peer = await peerWith({
      'http://h/1': `paper ${mark('c++')} and ${mark('#tag')}`,
      'http://h/2': 'paper with C++',
    });
    expect(await names(peer, { query: 'C++' })).toBe('2');
    expect((await search(peer, { query: '#tag' })).corrected).toBe('tag');
    const { items } = await search(peer, { query: mark('c++') });
    expect(items.length).toBe(2);
  });

  it('does not count symbol words twice', async () => {
    const peer = await peerWith({ 'http://h/1.txt': 'one C++ #three' });
    expect((await send(peer, '/?query=one')).body).toContain('3 words');
  });

  it('finds what it means, for any documents', () => {
    const words = ['c', 'c++', 'c#', '.net', 'net', '#tag', 'tag', '@tag', 'x.net', 'a+b', 'c++17'];
    const documents = fc.array(fc.array(fc.constantFrom(...words), { maxLength: 5 }), {
      minLength: 1,
      maxLength: 6,
    });
    const asked = fc.constantFrom('c++', 'c#', '.net', '#tag', '@tag');
    const database = openDatabase(temporaryDirectory());
    const store = new DocumentStore(database);
    const request = { collection: '', offset: 0, limit: 100 };
    const isRight = fc.property(
      documents,
      asked,
      fc.option(asked),
      fc.boolean(),
      (texts, first, second, isExcluded) => {
        const urls = texts.map((_, n) => normaliseUrl(`http://h/${n}`));
        for (const [n, text] of texts.entries())
          store.index({
            url: urls[n] ?? normaliseUrl('http://h/'),
            collections: ['x'],
            loadDate: n,
            data: Buffer.from(`paper\n${text.join(' ')}`),
          });
        const has = (text: readonly string[], word: string) =>
          text.includes(word) || (word === 'c++' && text.includes('c++17'));
        const query = `${first}${second === null ? '' : ` ${isExcluded ? '-' : ''}${second}`}`;
        const expected = urls.filter((_, n) => {
          const text = texts[n] ?? [];
          return has(text, first) && (second === null || has(text, second) !== isExcluded);
        });
        const { corrected, found, without } = findDocuments(
          { ...request, query },
          { database, documents: store },
        );
        if (expected.length === 0)
          expect(found.length === 0 || corrected !== undefined || without !== undefined).toBe(true);
        else {
          expect(found.map(({ url }) => url).sort(), query).toEqual(expected.sort());
          expect([corrected, without]).toEqual([undefined, undefined]);
        }
        store.remove(urls);
      },
    );
    fc.assert(isRight, { numRuns: 300 });
    database.close();
  });
});

describe('the highlights of a symbol word', () => {
  const marked = (text: string, query: string) => highlighted(text, parseQuery(query).highlights);
  it.each([
    ['C++', 'C and C++ and c++.', 'C and <mark>C++</mark> and <mark>c++</mark>.'],
    ['C++ ', 'C++17 of C', '<mark>C++</mark>17 of C'],
    ['.NET', 'net, ASP.NET (.NET)', 'net, ASP.NET (<mark>.NET</mark>)'],
    ['#tag', 'tag #tag', 'tag <mark>#tag</mark>'],
    ['tag', 'tag #tag', '<mark>tag</mark> #<mark>tag</mark>'],
    ['#größe', '#Groesse #Größe', '<mark>#Groesse</mark> <mark>#Größe</mark>'],
    ['"C++ code"', 'C++ code', '<mark>C++</mark> <mark>code</mark>'],
  ])('mark all of it: %s in %s', (query, text, shown) => {
    expect(marked(text, query)).toBe(shown);
  });

  it('mark all of it in title and snippet of a result', async () => {
    const peer = await peerWith({
      'http://h/1.md': `# All of C#\n\n${'filler c '.repeat(200)}\n\n## Part\n\nHere is **C#** at work`,
    });
    const { body } = await send(peer, '/?query=C%23');
    expect(body).toContain('All of <mark>C#</mark></a>');
    expect(body).toMatch(/Here is <mark>C#<\/mark> at work/);
  });

  it.each([
    ['C++', 'a C++ compiler'],
    ['.net', 'the .NET runtime'],
    ['C++', 'a C++17 compiler'],
    ['#größe', 'tagged #Größe'],
  ])('choose the place of a snippet: %s in %s', (query, text) => {
    const filler = 'filler c net. '.repeat(100);
    const { highlights } = parseQuery(query);
    expect(snippetOf(`${filler}${text} ${filler}`, highlights)?.text).toContain(text);
  });
});
