import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normaliseUrl } from '../../src/embedded/content.js';
import { DocumentStore } from '../../src/embedded/documents.js';
import { findDocuments } from '../../src/embedded/find.js';
import { parseQuery } from '../../src/embedded/query-parser.js';
import { temporaryDirectory } from '../support/temp.js';
import { names, openDatabase, peerWith, push, search, send } from './support.js';

describe('operators', () => {
  const corpus = {
    'http://h/tea': 'green tea',
    'http://h/milk': 'green milk',
    'http://h/both': 'milk tea',
    'http://h/coffee': 'black coffee, terms and conditions',
  };
  it.each([
    ['OR finds documents with any of the words', 'tea OR coffee', 'both coffee tea'],
    ['OR binds more strongly than a space', 'green tea OR milk', 'milk tea'],
    ['AND binds more strongly than OR', 'green AND tea OR coffee', 'coffee tea'],
    ['parentheses group', '(green tea) OR coffee', 'coffee tea'],
    ['parentheses may be spaced', '( green AND ( tea OR milk ) )', 'milk tea'],
    ['NOT excludes a word', 'milk NOT tea', 'milk'],
    ['NOT excludes a group', 'NOT (tea OR milk)', 'coffee'],
    ['a minus excludes a group', 'green -(tea OR coffee)', 'milk'],
    ['NOT excludes inside a group', '(milk NOT tea) OR coffee', 'coffee milk'],
    ['phrases and prefixes may be in groups', '"green tea" OR cof*', 'coffee tea'],
    ['in small letters, they are words', 'terms and', 'coffee'],
    ['without operands, they are ignored', 'OR tea AND', 'both tea'],
    ['a missing parenthesis is added', '(tea OR coffee', 'both coffee tea'],
    ['a function is a word', '(f(x) OR coffee)', 'coffee'],
    ['an operator may touch a parenthesis', 'milk NOT(tea OR coffee)', 'milk'],
    ['a phrase may have a parenthesis', '(green "b(") OR coffee', 'coffee'],
    ['a parenthesis too many is ignored', 'tea) OR coffee)', 'both coffee tea'],
  ])('%s: %s', async (_, query, found) => {
    expect(await names(await peerWith(corpus), { query })).toBe(found);
  });

  it('lose no word behind filters and parentheses', async () => {
    const { excluded, filters, terms } = parseQuery(
      'type:pdf (type:doc invoice) report) -draft site:a (site:b tea',
    );
    expect(terms.flatMap(({ words }) => words)).toEqual(['invoice', 'report', 'tea']);
    expect(excluded.flatMap(({ words }) => words)).toEqual(['draft']);
    expect(filters.length).toBe(2);
  });

  it('are words in small letters, also beside others', () => {
    const { terms } = parseQuery('not found and or Not null Title:or');
    expect(terms.map(({ words }) => words.join(' '))).toEqual([
      'found',
      'and',
      'or',
      'not',
      'null',
      'or',
    ]);
  });

  it('take up to 16 filters, each once, and the others as words', () => {
    const same = parseQuery(Array.from({ length: 50 }, () => 'type:image').join(' OR '));
    expect([same.filters.length, same.filters[0]?.values.length]).toEqual([1, 16]);
    const types = Array.from({ length: 20 }, (_, n) => `type:t${n}`);
    const { filters, misread } = parseQuery(types.join(' OR '));
    expect([filters[0]?.values.length, misread]).toEqual([32, types.slice(16)]);
  });

  it('find what they mean, for any expression', () => {
    const word = fc.constantFrom('ab', 'cd', 'ef', 'gh');
    type Expression =
      | { readonly word: string }
      | { readonly of: readonly Expression[]; readonly name: 'AND' | 'OR' | ' ' }
      | { readonly not: Expression; readonly with: string };
    const { expression } = fc.letrec<{ expression: Expression }>((tie) => ({
      expression: fc.oneof(
        { maxDepth: 3 },
        fc.record({ word }),
        fc.record({
          of: fc.array(tie('expression'), { minLength: 2, maxLength: 3 }),
          name: fc.constantFrom('AND' as const, 'OR' as const, ' ' as const),
        }),
        fc.record({ not: tie('expression'), with: word }),
      ),
    }));
    const written = (each: Expression): string => {
      if ('word' in each) return each.word;
      if ('not' in each) return `(${each.with} NOT ${written(each.not)})`;
      return `(${each.of.map(written).join(each.name === ' ' ? ' ' : ` ${each.name} `)})`;
    };
    const isTrue = (each: Expression, words: readonly string[]): boolean => {
      if ('word' in each) return words.includes(each.word);
      if ('not' in each) return words.includes(each.with) && !isTrue(each.not, words);
      const all = each.of.map((one) => isTrue(one, words));
      return each.name === 'OR' ? all.includes(true) : !all.includes(false);
    };
    const database = openDatabase(temporaryDirectory());
    const documents = new DocumentStore(database);
    const texts = Array.from({ length: 16 }, (_, n) =>
      ['ab', 'cd', 'ef', 'gh'].filter((_, bit) => (n >> bit) % 2 === 1),
    );
    for (const [n, words] of texts.entries())
      documents.index({
        url: normaliseUrl(`http://h/${n}`),
        collections: ['x'],
        loadDate: n,
        data: Buffer.from(words.join(' ')),
      });
    const request = { collection: '', offset: 0, limit: 100 };
    const isRight = fc.property(expression, (each) => {
      const query = written(each);
      const expected = texts.flatMap((words, n) => (isTrue(each, words) ? [`http://h/${n}`] : []));
      const result = findDocuments({ ...request, query }, { database, documents });
      if (expected.length === 0 && result.without !== undefined) return;
      expect(result.found.map(({ url }) => url).sort(), query).toEqual(expected.sort());
    });
    fc.assert(isRight, { numRuns: 500 });
    database.close();
  });
});

describe('filters beside operators', () => {
  const corpus = {
    'http://h/tea.md': 'green tea',
    'http://h/tea.txt': 'green tea',
    'http://h/tea.pdf': 'black tea',
    'http://h/milk.md': 'green milk',
  };
  it.each([
    ['NOT excludes by a filter', 'tea NOT type:pdf', 'tea.md tea.txt'],
    ['NOT before a filter is not of the next word', 'green NOT type:txt milk', 'milk.md'],
    ['a minus excludes by a filter', 'tea -site:h/tea.t', 'tea.md tea.pdf'],
    ['a minus excludes a collection', 'tea -collection:user', ''],
    ['OR stands between filters', 'tea type:pdf OR type:txt', 'tea.pdf tea.txt'],
    ['OR stands between collections', 'collection:user OR collection:x milk', 'milk.md'],
    ['OR between a word and a filter is AND', 'milk OR type:md', 'milk.md'],
    ['a filter is no alternative to what follows', 'type:md OR milk', 'milk.md'],
    ['a colon without a filter is of the word', 'note:tea', ''],
    ['no other object is a type', 'type:constructor', ''],
  ])('%s: %s', async (_, query, found) => {
    expect(await names(await peerWith(corpus), { query })).toBe(found);
  });

  it('are answered however deep they are', async () => {
    const peer = await peerWith(corpus);
    for (const [open, close] of [
      ['(tea NOT ', ')'],
      ['(tea OR (milk NOT ', '))'],
      ['(', ')'],
    ] as const)
      for (const depth of [5, 15, 200]) {
        const query = `${open.repeat(depth)}black${close.repeat(depth)}`;
        expect((await search(peer, { query })).total, query).toBeLessThan(5);
      }
  });
});

describe('a term of several pieces', () => {
  const corpus = {
    'http://h/login': 'the log-in page',
    'http://h/longer': 'the log-inspector',
    'http://h/log': 'a log of what is in it, and an install',
    'http://h/wifi': 'wifi at home',
    'http://h/address': 'the server 192.168.1.250 answers',
    'http://h/day': 'written on 2024-03-17',
    'http://h/month': 'written in 2024-03, seventeen things 17',
  };
  it.each([
    ['is a phrase', 'log-in', 'login'],
    ['may be written as one word', 'wi-fi', 'wifi'],
    ['finds nothing for a number that no document has', '192.168.1.254', ''],
    ['finds a date', '2024-03-17', 'day'],
  ])('%s: %s', async (_, query, found) => {
    expect(await names(await peerWith(corpus), { query })).toBe(found);
  });

  it('that is being typed is a beginning only where nothing has it as it is', async () => {
    const peer = await peerWith(corpus);
    const typing = 'true';
    expect(await names(peer, { query: 'log-in', typing })).toBe('login');
    const { prefix, items } = await search(peer, { query: 'log-i', typing });
    expect([prefix, items.map(({ url }) => url)]).toEqual([undefined, []]);
    const longer = await search(peer, { query: '192.168.1.25', typing });
    expect([longer.prefix, longer.total]).toEqual(['192.168.1.25', 1]);
    expect((await send(peer, '/?query=192.168.1.25&typing=true')).body).toContain(
      '1 result, none of which has 192.168.1.25 as it is',
    );
    expect((await search(peer, { query: '192.168.1.25' })).total).toBe(0);
  });
});

describe('other forms of a word', () => {
  const corpus = {
    'http://h/lease': 'one lease of a flat',
    'http://h/leases': 'many leases of flats',
    'http://h/vertrag': 'der Vertrag des Verlags',
    'http://h/miete': 'ein Mietvertrag',
    'http://h/zahn': 'die Zahnreinigung beim Arzt',
    'http://h/rat': 'a rat in the garden',
  };
  it.each([
    ['exact words first', 'leases', 'leases lease', 1],
    ['exact words first', 'lease', 'lease leases', 1],
    ['German plurals, and then compounds', 'Verträge', 'vertrag miete', 2],
    ['every word of a query', 'Verträge Verlag', 'vertrag', 1],
    ['words that contain it, where nothing else is found', 'reinigung', 'zahn', 1],
    ['two words written as one', 'Zahn Reinigung', 'zahn', 1],
    ['no words that only look alike', 'rates', '', undefined],
    ['none of a word in quotes', '"lease"', 'lease', undefined],
  ])('are found: %s: %s', async (_, query, found, otherForms) => {
    const answer = await search(await peerWith(corpus), { query });
    expect([answer.items.map(({ url }) => url.slice(9)).join(' '), answer.otherForms]).toEqual([
      found,
      otherForms,
    ]);
    expect(answer.total).toBe(answer.items.length);
  });

  it('of a word are found however many other words contain another one', async () => {
    const others = Array.from({ length: 60 }, (_, n) => {
      const word = `${String.fromCharCode(97 + (n % 26), 97 + Math.floor(n / 26))}`;
      return [1, 2, 3].map((i) => [`http://h/other${n}-${i}`, `ein Ver${word}stand`] as const);
    });
    const peer = await peerWith({ ...Object.fromEntries(others.flat()), ...corpus });
    await push(peer, { 'http://h/both': 'die Zahnreinigung am Stand' });
    const { items } = await search(peer, { query: 'reinigung stand' });
    expect(items.map(({ url }) => url)).toEqual(['http://h/both']);
  });

  it('are ordered by date if that is asked for', async () => {
    const page = (day: string, words: string) =>
      `<html><meta name="date" content="${day}"><title>T</title>${words}`;
    const peer = await peerWith({
      'http://h/old': page('1970-05-01', 'leases leases leases'),
      'http://h/new': page('1998-05-01', `leases ${'and other words '.repeat(9)}`),
      'http://h/exact': page('1960-05-01', 'one lease'),
    });
    const { items } = await search(peer, { query: 'lease', sort: 'date' });
    expect(items.map(({ url }) => url.slice(9))).toEqual(['exact', 'new', 'old']);
  });

  it('are announced and highlighted on the page, and paged through without a gap', async () => {
    const peer = await peerWith(corpus);
    const { body } = await send(peer, '/?query=leases');
    expect(body).toContain('1–2 of 2 results, 1 of them with other forms of the words');
    expect(body).toContain('<mark>lease</mark>');
    const pages = await Promise.all(
      ['0', '1'].map(async (offset) => search(peer, { query: 'leases', offset, limit: '1' })),
    );
    expect(pages.map(({ items }) => items.map(({ url }) => url))).toEqual([
      ['http://h/leases'],
      ['http://h/lease'],
    ]);
  });
});

describe('the links of a page whose query is still being typed', () => {
  it('take the last word as a prefix in a group, too', async () => {
    const peer = await peerWith({ 'http://h/1.md': 'invoices', 'http://h/2.txt': 'invoiced' });
    const { body } = await send(peer, '/?query=zebra+OR+invoi&typing=true&limit=1');
    expect(body).toContain('href="/?query=zebra+OR+invoi*&amp;offset=1&amp;limit=1"');
  });

  it('take the last word as a prefix', async () => {
    const peer = await peerWith({ 'http://h/1.md': 'invoices', 'http://h/2.txt': 'invoiced' });
    const { body } = await send(peer, '/?query=invoi&typing=true&limit=1');
    for (const shown of [
      'href="/?query=invoi*&amp;offset=1&amp;limit=1"',
      'query=type%3A.md+invoi*',
      '&amp;query=invoi*#match"><mark>invoices</mark>',
    ])
      expect(body).toContain(shown);
  });
});
