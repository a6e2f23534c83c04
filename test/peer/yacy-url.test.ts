import { describe, expect, it } from 'vitest';
import { yacy } from '../../src/peer/dialects.js';
import { answerOf, realAnswer } from './answers.js';

describe('a URL for YaCy', () => {
  it.each([
    ['HTTP://Files.Example.ORG/A', 'http://files.example.org/A'],
    ['http://x.org/a#part', 'http://x.org/a'],
    ['http://x.org/"q".txt', 'http://x.org/%22q%22.txt'],
    ['http://x.org/%c3%BC?b=1&a=%7E', 'http://x.org/%c3%BC?b=1&a=%7E'],
    ['file:///srv/a b.txt', 'file:///srv/a%20b.txt'],
    ['no url', 'no url'],
  ])('%s is sent as %s', (url, sent) => {
    expect(yacy.sentUrl(url)).toBe(sent);
  });

  it.each([
    ['http://x.org/a/b', 'http://x.org//a///b'],
    ['http://x.org/a/b?c=//d', 'http://x.org/a//b?c=//d'],
    ['http://x.org/a%20b', 'http://x.org/a b'],
    ['file:///srv/notes/ü b.txt', 'file:///srv/notes/%C3%BC%20b.txt'],
    ['http://x.org/', 'http://x.org'],
  ])('is shown as %s where %s was sent', (shown, sent) => {
    const answer = answerOf(JSON.stringify({ url: shown, urlhash: 'He4fSbqdOZpQ' }));
    expect(yacy.peerdocOf(answer, { url: sent })).toMatchObject({ url: sent });
  });

  it.each([
    ['http://x.org/a', 'http://x.org/b'],
    ['http://x.org/a?c=/d', 'http://x.org/a?c=//d'],
    ['http://x.org/a/', 'http://x.org/a'],
    ['http://y.org/a', 'http://x.org/a'],
  ])('%s is another than %s', (shown, sent) => {
    const answer = answerOf(JSON.stringify({ url: shown, urlhash: 'He4fSbqdOZpQ' }));
    expect(() => yacy.peerdocOf(answer, { url: sent })).toThrow('another document');
  });

  it('that YaCy collapsed is that of the document that was asked for', () => {
    const url = 'http://push3.example.org//g6.html';
    expect(yacy.peerdocOf(answerOf(realAnswer('peerdoc.xml')), { url })?.url).toBe(url);
    const other = { url: 'http://push3.example.org/g7.html' };
    expect(() => yacy.peerdocOf(answerOf(realAnswer('peerdoc.xml')), other)).toThrowError(
      expect.objectContaining({ code: 'PEER_ANSWER' }),
    );
  });
});

describe('a change of a table', () => {
  const typeOf = async (value: string, columns: number) =>
    (
      await yacy.tables.changeBody(
        Array.from({ length: columns }, (_, n) => ({ name: `col_${n}`, value })),
        'http://x.org/api/table_p.html',
      )
    ).type.split(';', 1)[0];

  it('is a form while it is small, and multipart beyond what YaCy takes as a form', async () => {
    expect(await typeOf('x', 10)).toBe('application/x-www-form-urlencoded');
    expect(await typeOf('x'.repeat(200_000), 1)).toBe('multipart/form-data');
    expect(await typeOf('ü'.repeat(40_000), 1)).toBe('multipart/form-data');
    expect(await typeOf('x', 1_000)).toBe('multipart/form-data');
  });
});
