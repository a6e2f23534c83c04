import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Citation, type CitationQuery, readCitation } from '../../src/peer/citation.js';
import { answerOf, realAnswer, refusalOf } from './support.js';

const URL = 'https://docs.example.org/a.txt';
const OTHER = 'https://else.example.net/b.txt';
const ONE = 'http://cite.example.org/one.txt';
const EMPTY = { sentences: [], citing: [], similar: [] };

const read = (body: string | Buffer, query: CitationQuery = { url: URL }) =>
  readCitation(answerOf(body), query);

describe('citations, as a real peer shows them', () => {
  it('are sentences with the other documents that contain them, and the number of common sentences', () => {
    const two = 'http://cite2.example.net/two.txt';
    const three = 'http://cite3.example.com/three.txt';
    const citation = read(realAnswer('citation.html'), { url: ONE });
    expect(citation).toMatchObject({
      url: ONE,
      similar: [],
      citing: [
        { url: two, sentences: 2 },
        { url: three, sentences: 1 },
      ],
    });
    expect(citation?.sentences.map(({ number, appearsIn }) => [number, ...appearsIn])).toEqual([
      [0, two],
      [1, two, three],
      [2],
      [3],
      [4],
    ]);
    expect(citation?.sentences.map(({ text }) => text).slice(2)).toEqual([
      "Only in the first document there is this rather unusual and long sentence about bold & 'quoted'.",
      'marks.',
      'Short one.',
    ]);
  });

  it('name similar documents', () => {
    const citation = read(realAnswer('citation-similar.html'), {
      url: 'http://keeper-notes.org/one.txt',
    });
    expect(citation?.similar).toEqual([{ url: 'http://mirror-site.net/two.txt' }]);
    expect(citation?.sentences[3]?.text).toBe(
      '& amp; in plain text which makes this sentence long.',
    );
  });

  it('do not exist for a hash that the peer does not know', () => {
    expect(
      read(realAnswer('citation-unknown-hash.html'), { hash: 'AAAAAAAAAAAA' }),
    ).toBeUndefined();
  });
});

it.each([
  '{"sentences":[],"citing":[],"similar":[]}',
  `{"url":"${URL}","sentences":[]}`,
  `<h1>Document Citations for <a href="${URL}">a</a></h1><dl></dl>`,
])('no citations are read from %s', (body) => {
  expect(read(body)).toMatchObject(EMPTY);
});

it.each<[string, string | Buffer, CitationQuery?]>([
  ['an error', '{"error":"no such document"}'],
  ['a page without lists', '<html><body><h1>Document Citations for x</h1></body></html>'],
  [
    'another page with lists',
    '<html><h1>Welcome to the router</h1><dl><dt>0</dt><dd>a</dd></dl></html>',
  ],
  ['a failure', realAnswer('error-500.html')],
  ['citations of another hash', '{"urlhash":"x","sentences":[]}', { hash: 'y' }],
  ['another document', `{"url":"${OTHER}","sentences":[]}`],
  [
    'another document on a page',
    `<h1>Document Citations for <a href="${OTHER}">a</a></h1><dl></dl>`,
  ],
])('%s is an error that shows the answer, and never an empty citation', async (_, body, query) => {
  const begin = body.toString().trim().slice(0, 12).replaceAll('\n', '\\n');
  const refusal = await refusalOf(() => read(body, query));
  expect(refusal).toMatch(/^PEER_ANSWER /);
  expect(refusal).toContain(begin);
});

it('a page is read even if the text of the document in it is neither escaped nor closed', () => {
  const page = `<h1>Document Citations for<br><a href="${URL}">a</a></h1><dl>
    <dt>0</dt><dd>Some <b>bold & <i>text<br/>appears in: <a href="${OTHER}">else.example.net</a></dd>
    <dt>1</dt><dd>It appears in: a book, see <a href="/x">x</a>.</dd></dl>`;
  expect(read(page)?.sentences).toEqual([
    { number: 0, text: 'Some bold & text', appearsIn: [OTHER] },
    { number: 1, text: 'It appears in: a book, see x.', appearsIn: [] },
  ]);
});

it('citations are read as they were written, and an answer that breaks off anywhere is refused', () => {
  const odd = fc.string({ unit: fc.constantFrom(...'aä"\'<>&\\/,:;{}[]=ש日😀 1'), maxLength: 30 });
  const text = odd.map((words) => `a${words}b`);
  const title = fc.option(text, { nil: undefined });
  const url = text.map((words) => `https://else.example.net/${encodeURIComponent(words)}`);
  const appearsIn = fc.array(url, { maxLength: 3 });
  const other = fc.record({ url, title, sentences: fc.option(fc.nat(1000), { nil: undefined }) });
  const citations = fc.record<Citation>({
    url: fc.constant(URL),
    urlhash: fc.constant('He4fSbqdOZpQ'),
    title,
    sentences: fc.array(fc.record({ number: fc.nat(), text, appearsIn }), { maxLength: 5 }),
    citing: fc.array(other, { maxLength: 4 }),
    similar: fc.array(other, { maxLength: 4 }),
    more: fc.option(fc.boolean(), { nil: undefined }),
  });
  const at = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const none = expect.objectContaining({ code: 'PEER_ANSWER' });
  fc.assert(
    fc.property(citations, at, (citation, where) => {
      const body = JSON.stringify(citation);
      expect(read(body)).toEqual(citation);
      expect(() => read(body.slice(0, Math.floor(where * body.length)))).toThrowError(none);
    }),
  );
  const page = realAnswer('citation.html');
  const end = page.indexOf('</html>');
  for (let length = 0; length < end; length += 499)
    expect(() => read(page.subarray(0, length), { url: ONE })).toThrowError(none);
});
