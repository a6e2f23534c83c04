import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Citation, type CitationQuery, readCitation } from '../../src/peer/citation.js';
import { answerOf, realAnswer, refusalOf } from './support.js';

const URL = 'https://docs.example.org/a.txt';
const OTHER = 'https://else.example.net/b.txt';
const EMPTY = { sentences: [], citing: [], similar: [] };

const read = (body: string | Buffer, query: CitationQuery = { url: URL }) =>
  readCitation(answerOf(body), query);

describe('citations, as a real peer shows them', () => {
  it('are sentences with where else they stand, and who cites how much', () => {
    const url = 'http://cite.example.org/one.txt';
    const two = 'http://cite2.example.net/two.txt';
    const three = 'http://cite3.example.com/three.txt';
    const citation = read(realAnswer('citation.html'), { url });
    expect(citation).toMatchObject({
      ...{ url, similar: [] },
      citing: [
        { url: two, sentences: 2 },
        { url: three, sentences: 1 },
      ],
    });
    expect(citation?.sentences.map(({ number, appearsIn }) => [number, ...appearsIn])).toEqual([
      ...[[0, two], [1, two, three], [2], [3], [4]],
    ]);
    expect(citation?.sentences.map(({ text }) => text).slice(2)).toEqual([
      "Only in the first document there is this rather unusual and long sentence about bold & 'quoted'.",
      'marks.',
      'Short one.',
    ]);
  });

  it('name similar documents', () => {
    const citation = read(realAnswer('citation-similar.html'), { url: 'http://keeper-notes.org/one.txt' });
    expect(citation?.similar).toEqual([{ url: 'http://mirror-site.net/two.txt' }]);
    expect(citation?.sentences[3]?.text).toBe('& amp; in plain text which makes this sentence long.');
  });

  it('do not exist for a hash that it does not know', () => {
    expect(read(realAnswer('citation-unknown-hash.html'), { hash: 'AAAAAAAAAAAA' })).toBeUndefined();
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
  ['another page with lists', '<html><h1>Welcome to the router</h1><dl><dt>0</dt><dd>a</dd></dl></html>'],
  ['a failure', realAnswer('error-500.html')],
  ['citations of another hash', '{"urlhash":"x","sentences":[]}', { hash: 'y' }],
  ['another document', `{"url":"${OTHER}","sentences":[]}`],
  ['another document on a page', `<h1>Document Citations for <a href="${OTHER}">a</a></h1><dl></dl>`],
])('%s is never an empty citation, and is shown', async (_, body, query) => {
  const begin = body.toString().trim().slice(0, 12).replaceAll('\n', '\\n');
  const refusal = await refusalOf(() => read(body, query));
  expect(refusal).toMatch(/^PEER_ANSWER /);
  expect(refusal).toContain(begin);
});

it('a page is read that neither escapes nor closes what the document says', () => {
  const page = `<h1>Document Citations for<br><a href="${URL}">a</a></h1><dl>
    <dt>0</dt><dd>Some <b>bold & <i>text<br/>appears in: <a href="${OTHER}">else.example.net</a></dd>
    <dt>1</dt><dd>It appears in: a book, see <a href="/x">x</a>.</dd></dl>`;
  expect(read(page)?.sentences).toEqual([
    { number: 0, text: 'Some bold & text', appearsIn: [OTHER] },
    { number: 1, text: 'It appears in: a book, see x.', appearsIn: [] },
  ]);
});

describe('citations in every form', () => {
  const word = fc
    .string({ unit: fc.constantFrom(...'aä"\'<>&\\/,:;{}[]=ש日😀1'), minLength: 1, maxLength: 8 })
    .filter((text) => !/^(\[\]|&\w+;)$/.test(text));
  const text = fc.array(word, { minLength: 1, maxLength: 8 }).map((words) => words.join(' '));
  const url = fc.webUrl();
  const title = fc.option(text, { nil: undefined });
  const other = fc.record({ url, title, sentences: fc.option(fc.nat(1000), { nil: undefined }) });
  const citations = fc.record<Citation>({
    url: fc.constant(URL),
    urlhash: fc.constant('He4fSbqdOZpQ'),
    title,
    sentences: fc
      .array(fc.record({ text, appearsIn: fc.array(url, { maxLength: 3 }) }), { maxLength: 5 })
      .map((sentences) => sentences.map((sentence, number) => ({ number, ...sentence }))),
    citing: fc.array(other, { maxLength: 4 }),
    similar: fc.array(other, { maxLength: 4 }),
    more: fc.option(fc.boolean(), { nil: undefined }),
  });
  /** What a page shows of it. */
  const onPage = ({ sentences, citing, similar }: Citation): Citation => ({
    url: URL,
    sentences,
    citing: citing.map((each) => ({ url: each.url, sentences: each.sentences ?? 1 })),
    similar: similar.map((each) => ({ url: each.url })),
  });
  const whole = (citation: Citation) => citation;
  const at = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

  it.each([
    ['JSON', (citation: Citation) => JSON.stringify(citation), whole],
    ['a page', pageOf, onPage],
  ])('are read as they were written, and are none wherever they break off: %s', (_, write, shown) => {
    fc.assert(
      fc.property(citations, at, (citation, where) => {
        const body = write(citation).trimEnd();
        expect(read(body)).toEqual(shown(citation));
        const part = body.slice(0, Math.floor(where * body.length));
        expect(() => read(part)).toThrowError(expect.objectContaining({ code: 'PEER_ANSWER' }));
      }),
      { numRuns: 200 },
    );
  });
});

function escaped(value: string): string {
  return value.replace(/[<>&"]/g, (c) => `&#${c.charCodeAt(0)};`);
}

function pageOf({ url = '', sentences, citing, similar }: Citation): string {
  const link = (to: string, text: string) => `<a href="${escaped(to)}">${escaped(text)}</a>`;
  const all = sentences.map(({ number, text, appearsIn }) => {
    const where = appearsIn.map((each) => link(each, 'host')).join(' ');
    return `<dt>${number}</dt><dd>${escaped(text)}${where && `<br/>appears in: ${where}`}</dd>`;
  });
  const citers = citing.map(
    (each) =>
      `<dt>${link(each.url, each.url)}</dt><dd>makes ${each.sentences ?? 1} citations: of ${escaped(url)}</dd>`,
  );
  const likes = similar.map((each) => `<li>${link(each.url, each.url)}</li>`).join('');
  return `<!DOCTYPE html><html><body><h1>Document Citations for<br>${link(url, url)}</h1>
${likes && `<h3>Similar documents from different hosts:</h3><ul>${likes}</ul>`}
<dl>${all.join('\n')}</dl><dl>${citers.join('\n')}</dl></body></html>`;
}
