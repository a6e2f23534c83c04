import { describe, expect, it } from 'vitest';
import { distinctWords, peerWith, search, send } from './support.js';

/** Returns the last parts of the URLs of the results, in order. */
async function found(documents: Readonly<Record<string, string>>, query: string) {
  const { items, otherForms } = await search(await peerWith(documents), { query });
  return [items.map(({ url }) => url.replace(/.*\//, '')).join(' '), otherForms];
}

describe('documents with a compound of a word', () => {
  const corpus = {
    'http://h/1': 'ein Mietvertrag, und noch ein Mietvertrag',
    'http://h/2': 'alle Verträge',
    'http://h/3': 'ein Vertrag',
    'http://h/4': 'die Miete',
  };

  it('follow those with the word, and those with inflected forms of it', async () => {
    expect(await found(corpus, 'Vertrag')).toEqual(['3 2 1', 2]);
    expect(await found(corpus, 'Verträge')).toEqual(['2 3 1', 2]);
    expect(await found(corpus, '"Vertrag"')).toEqual(['3', undefined]);
  });

  it('are counted, and paged through without a gap', async () => {
    const peer = await peerWith(corpus);
    const pages = await Promise.all(
      ['0', '1', '2', '3'].map((offset) => search(peer, { query: 'Vertrag', offset, limit: '1' })),
    );
    expect(pages.map(({ items }) => items.map(({ url }) => url.slice(9)).join())).toEqual([
      '3',
      '2',
      '1',
      '',
    ]);
    expect(pages.map(({ total }) => total)).toEqual([3, 3, 3, 3]);
  });

  it('are newest first if that is asked for, below the others', async () => {
    const dated = (day: string, words: string) =>
      `<html><meta name="date" content="${day}"><title>T</title>${words}`;
    const peer = await peerWith({
      'http://h/1': dated('2001-01-01', 'Miete: ein Mietvertrag'),
      'http://h/2': dated('2003-01-01', 'ein Mietvertrag'),
      'http://h/3': dated('1999-01-01', 'ein Vertrag'),
    });
    const { items } = await search(peer, { query: 'Vertrag', sort: 'date' });
    expect(items.map(({ url }) => url.slice(9))).toEqual(['3', '2', '1']);
  });

  it('do not follow more than 100 others', async () => {
    const many = Array.from({ length: 100 }, (_, n) => [`http://h/many${n}`, 'ein Vertrag']);
    const counts = [98, 99, 100].map(async (count) => {
      const peer = await peerWith({ ...Object.fromEntries(many.slice(0, count)), ...corpus });
      const { otherForms, total } = await search(peer, { query: 'Vertrag' });
      return [total, otherForms];
    });
    expect(await Promise.all(counts)).toEqual([
      [101, 2],
      [101, 1],
      [101, undefined],
    ]);
  });

  it('lead to a page that opens at the compound', async () => {
    const peer = await peerWith(corpus);
    const { body } = await send(peer, '/?query=Vertrag');
    expect(body).toContain('1–3 of 3 results, 2 of them with other forms of the words');
    const links = [...body.matchAll(/<a href="(\/document\?[^"#]*)/g)].map(([, link]) => link);
    const page = await send(peer, links[2]?.replaceAll('&amp;', '&') ?? '');
    expect(page.body).toMatch(/ein <mark id="match"[^>]*>Mietvertrag<\/mark>/);
  });

  it('are found by the first search, however long it takes to list the words', async () => {
    const many = { 'http://h/many': distinctWords(20_000).join(' ') };
    expect(await found({ ...corpus, ...many }, 'Vertrag')).toEqual(['3 2 1', 2]);
  });
});

describe('a compound', () => {
  it.each([
    ['two words', 'paper', 'newspaper', 'news'],
    ['a stem and a word', 'vertrag', 'Mietvertrag', 'Miete'],
    ['words with letters between them', 'vertrag', 'Verlagsvertrag', 'Verlag'],
    ['a word and the first part', 'vertrag', 'Vertragsstrafe', 'Strafe'],
    ['inflected words', 'vertrag', 'Mietverträgen', 'Miete'],
    ['a word and an inflected one', 'vertrag', 'Vertragsstrafen', 'Strafe'],
    ['three words', 'vertrag', 'Mietvertragsentwurf', 'Miete Entwurf'],
    ['a frequent word and one like an ending', 'table', 'timetable', 'time', 'time', 'time'],
  ])('may be %s: %s in %s', async (_, word, compound, ...others) => {
    const texts = [word, compound, ...others];
    const documents = Object.fromEntries(texts.map((text, n) => [`http://h/${n}`, text]));
    expect(await found(documents, word)).toEqual(['0 1', 1]);
  });

  it.each([
    ['table', 'suitable', 'suit sui'],
    ['table', 'executable', 'execu'],
    ['import', 'important', 'ant'],
    ['import', 'importance', 'ance'],
    ['leader', 'leadership', 'ship'],
    ['nation', 'combination', 'combi'],
    ['voice', 'invoice', 'in'],
    ['stand', 'Verstand', 'ver'],
    ['vertrag', 'Zervertrag', 'anderes'],
    ['vertrag', 'Vertragabc', 'anderes'],
  ])('with %s is not %s', async (word, other, others) => {
    const documents = { 'http://h/1': word, 'http://h/2': other, 'http://h/3': others };
    expect(await found(documents, word)).toEqual(['1', undefined]);
  });

  it.each([
    ['miete', 'Kaltmiete', '1'],
    ['miete', 'Mietebuch', '1'],
    ['table', 'suitable', ''],
    ['import', 'important', ''],
    ['import', 'importance', ''],
    ['nation', 'combination', ''],
    ['voice', 'invoice', ''],
  ])('may have an unknown part if nothing else is found: %s in %s', async (word, other, names) => {
    const otherForms = names === '' ? undefined : 1;
    expect(await found({ 'http://h/1': other }, word)).toEqual([names, otherForms]);
  });
});
