import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normaliseUrl } from '../../src/embedded/content.js';
import { DocumentStore } from '../../src/embedded/documents.js';
import { parseQuery } from '../../src/embedded/query-parser.js';
import { relaxed } from '../../src/embedded/relax.js';
import { temporaryDirectory } from '../support/temp.js';
import { openDatabase, peerWith, search, send } from './support.js';

describe('a query that no document answers whole', () => {
  const corpus = {
    'http://h/lease': 'Lease of a flat. The period of notice is three months.',
    'http://h/car': 'Lease of a car. The period is two years.',
    'http://h/mail': 'The mail server and its webmail',
    'http://h/vertrag': 'Die Kündigungsfrist der Wohnung beträgt drei Monate.',
    'http://h/invoice': 'invoice 4711 of March',
  };
  it.each([
    ['the word that no document has', 'mail squirrelmail', 'mail', ['squirrelmail']],
    ['a word that every text has, and says so', 'you mail', 'mail', ['you']],
    ['as few words as possible', 'lease notice webmail', 'lease', ['webmail']],
    ['the most frequent of the words', 'lease webmail', 'mail', ['lease']],
    ['no number', 'invoice 4712', '', undefined],
    ['no phrase', '"lease of mail" server', '', undefined],
    ['nothing that is excluded', 'mail squirrelmail -webmail', '', undefined],
  ])('leaves out %s: %s', async (_, query, found, without) => {
    const peer = await peerWith(corpus);
    const answer = await search(peer, { query });
    expect([answer.items.map(({ url }) => url.slice(9)).join(' '), answer.without]).toEqual([
      found,
      without,
    ]);
  });

  it.each([
    ['where is squirrelmail', 'every text has the other words'],
    ['teadx', 'only an identifier is similar'],
  ])('finds nothing for %s, because %s', async (query) => {
    const peer = await peerWith({ ...corpus, 'http://h/id': 'tead4 is where it is' });
    expect((await search(peer, { query })).total).toBe(0);
  });

  it('keeps a finished word finished', async () => {
    const peer = await peerWith({ ...corpus, 'http://h/box': 'a mailbox' });
    for (const query of ['squirrelmail mail ', 'mail squirrelmai']) {
      const { items, without } = await search(peer, { query, typing: 'true' });
      expect([without?.length, items.map(({ url }) => url)]).toEqual([1, ['http://h/mail']]);
    }
  });

  it('keeps a word with a hyphen that is written as one', async () => {
    const peer = await peerWith({ 'http://h/1': 'wifi at home' });
    const { total, without } = await search(peer, { query: 'wi-fi squirrelmail' });
    expect([total, without]).toEqual([1, ['squirrelmail']]);
  });

  it('says on the page what was left out', async () => {
    const peer = await peerWith(corpus);
    const { body } = await send(peer, '/?query=mail+squirrelmail');
    expect(body).toContain('>1 result, without squirrelmail<');
  });

  it.each([
    ['what is the notice period of my lease', 'lease'],
    ['where is my invoice', 'invoice'],
    ['Wie lange ist die Kündigungsfrist meiner Wohnung', 'vertrag'],
  ])('is found as a question without the words that every text has: %s', async (query, found) => {
    const { items } = await search(await peerWith(corpus), { query });
    expect(items[0]?.url).toBe(`http://h/${found}`);
  });

  it.each([
    ['in the first letter', 'bebmail', 'webmail'],
    ['with a first letter too many', 'xinvoice', 'invoice'],
    ['without the first letter', 'nvoice', 'invoice'],
    ['with swapped first letters', 'nivoice', 'invoice'],
    ['in a word of four letters', 'liase', 'lease'],
    ['swapped in a word of four letters', 'falt', 'flat'],
    ['in quotes', '"perod of notice"', '"period of notice"'],
    ['in a word with hyphens', 'perod-of-notice', 'period-of-notice'],
    ['in a group', '(perod OR nothingatall) notice', '(period OR nothingatall) notice'],
  ])('is corrected %s: %s', async (_, query, corrected) => {
    expect((await search(await peerWith(corpus), { query })).corrected).toBe(corrected);
  });
});

describe('a question', () => {
  it('is answered by the words that tell documents apart, and says so', async () => {
    const peer = await peerWith({
      'http://h/timeout': 'timeout runs a command with a time limit',
      'http://h/shell': 'how can it run: a command and a limit of time',
    });
    const found = async (query: string) => {
      const { items, keywords } = await search(peer, { query });
      return [items.map(({ url }) => url.slice(9)).sort(), keywords];
    };
    expect(await found('how can it limit time of command')).toEqual([
      ['shell', 'timeout'],
      ['limit', 'time', 'command'],
    ]);
    // Others have to be found as they are.
    expect(await found('limit and time of command')).toEqual([['shell'], undefined]);
    expect(await found('how time limit command')).toEqual([['shell'], undefined]);
    expect((await send(peer, '/?query=how+can+it+limit+command')).body).toContain(
      '1–2 of 2 results with limit, command<',
    );
  });

  it('is answered first by the documents with all of its words', async () => {
    const others = Array.from({ length: 15 }, (_, n) => [`http://h/${n}`, 'crimes of the hague']);
    const peer = await peerWith({
      ...Object.fromEntries(others),
      'http://h/all': `was war of crimes in the hague, ${'and more of it '.repeat(3)}`,
      'http://h/more': 'nothing else',
    });
    const { items, total } = await search(peer, { query: 'was war crimes hague' });
    expect([total, items[0]?.url]).toEqual([16, 'http://h/all']);
  });
});

describe('a word that no document has', () => {
  const corpus = {
    'http://h/router': 'the wi-fi of the house; a note book',
    'http://h/wiki': 'a wiki about bicycles: its bicycle of wood',
  };
  it.each([
    ['as two words that stand side by side', 'wifi', 'wi-fi', 'router'],
    ['as two words before a similar one', 'notebook', 'note-book', 'router'],
    ['as a similar one with two other letters', 'bycicle', 'bicycle', 'wiki'],
    ['as a similar one if the two are not side by side', 'wika', 'wiki', 'wiki'],
  ])('is taken %s: %s', async (_, query, corrected, found) => {
    const answer = await search(await peerWith(corpus), { query });
    expect([answer.corrected, answer.items[0]?.url.slice(9)]).toEqual([corrected, found]);
  });

  it('is left out rather than a word that documents have', async () => {
    const documents = { 'http://h/bread': 'bake the bread', 'http://h/policy': 'an insurance' };
    const { corrected, items, without } = await search(await peerWith(documents), {
      query: 'insurance bike',
    });
    expect([corrected, without, items.map(({ url }) => url)]).toEqual([
      undefined,
      ['bike'],
      ['http://h/policy'],
    ]);
  });

  it('is not corrected to a shorter word by two letters in seven', async () => {
    const peer = await peerWith({ 'http://h/1': 'Denis was here' });
    expect((await search(peer, { query: 'dentist' })).total).toBe(0);
  });

  it('is not corrected if nearly every text has it', async () => {
    const peer = await peerWith({ 'http://h/log': 'the log of the house: lease' });
    const { corrected, without } = await search(peer, { query: 'long lease' });
    expect([corrected, without]).toEqual([undefined, ['long']]);
  });
});

describe('leaving out words', () => {
  const WORDS = ['ape', 'bee', 'cat', 'dog', 'eel', 'fox'];

  it('leaves out as few as possible, for any documents and query', () => {
    const documents = fc.array(fc.subarray(WORDS), { maxLength: 12 });
    const query = fc.record({
      words: fc.shuffledSubarray(WORDS, { minLength: 1 }),
      quoted: fc.integer({ min: 0, max: 6 }),
    });
    const property = fc.property(documents, query, (texts, { quoted, words }) => {
      const database = openDatabase(temporaryDirectory());
      const store = new DocumentStore(database);
      for (const [n, text] of texts.entries())
        store.index({
          url: normaliseUrl(`http://h/${n}.txt`),
          collections: [],
          loadDate: n,
          data: Buffer.from(text.join(' and ')),
        });
      const isKept = (i: number): boolean => i === quoted;
      const written = words.map((word, i) => (isKept(i) ? `"${word}"` : word)).join(' ');
      const answer = relaxed(parseQuery(written), database);
      database.close();

      const shared = texts
        .filter((text) => words.every((word, i) => !isKept(i) || text.includes(word)))
        .map((text) => words.filter((word) => text.includes(word)).length);
      const most = Math.max(0, ...shared);
      if (most < Math.ceil(words.length / 2)) {
        expect(answer).toBeUndefined();
        return;
      }
      const kept = answer?.query.terms.flatMap((term) => term.words) ?? [];
      expect(kept.length).toBe(most);
      expect(texts.some((text) => kept.every((word) => text.includes(word)))).toBe(true);
      expect([...kept, ...(answer?.removed.flatMap((term) => term.words) ?? [])].sort()).toEqual(
        [...words].sort(),
      );
    });
    fc.assert(property, { numRuns: 100 });
  });
});
