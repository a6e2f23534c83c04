import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Citation, type CitationQuery, readCitation } from '../../src/peer/citation.js';
import { answerOf, realAnswer } from './answers.js';

const URL = 'https://docs.example.org/a.txt';
const OTHER = 'https://else.example.net/b.txt';

const read = (body: string | Buffer, query: CitationQuery = { url: URL }, status = 200) =>
  readCitation(answerOf(body, { status }), query);

function refusalOf(body: string | Buffer, query?: CitationQuery): unknown {
  try {
    return read(body, query);
  } catch (error) {
    return error;
  }
}

describe('citations, as a real peer shows them', () => {
  it('are sentences with where else they stand, and who cites how much', () => {
    const url = 'http://cite.example.org/one.txt';
    const two = 'http://cite2.example.net/two.txt';
    const three = 'http://cite3.example.com/three.txt';
    const first = 'This is a long enough sentence about the habits of northern sea birds in winter.';
    const second = 'Another quite long sentence that appears in both of the documents for citation tests.';
    expect(read(realAnswer('citation.html'), { url })).toEqual({
      url,
      sentences: [
        { number: 0, text: first, appearsIn: [two] },
        { number: 1, text: second, appearsIn: [two, three] },
        {
          number: 2,
          text: "Only in the first document there is this rather unusual and long sentence about bold & 'quoted'.",
          appearsIn: [],
        },
        { number: 3, text: 'marks.', appearsIn: [] },
        { number: 4, text: 'Short one.', appearsIn: [] },
      ],
      citing: [
        { url: two, sentences: 2 },
        { url: three, sentences: 1 },
      ],
      similar: [],
    });
  });

  it('are only the cited ones where those were asked for', () => {
    const { sentences } = read(realAnswer('citation-filtered.html'), {
      url: 'http://cite.example.org/one.txt',
    }) ?? { sentences: [] };
    expect(sentences.map(({ number }) => number)).toEqual([0, 1]);
  });

  it('name similar documents', () => {
    const citation = read(realAnswer('citation-similar.html'), { url: 'http://keeper-notes.org/one.txt' });
    expect(citation?.similar).toEqual([{ url: 'http://mirror-site.net/two.txt' }]);
    expect(citation?.sentences[3]).toEqual({
      number: 3,
      text: '& amp; in plain text which makes this sentence long.',
      appearsIn: [],
    });
  });

  it('do not exist for a hash that it does not know', () => {
    expect(read(realAnswer('citation-unknown-hash.html'), { hash: 'AAAAAAAAAAAA' })).toBeUndefined();
  });
});

describe('an answer about citations', () => {
  it('may say that there are none', () => {
    const empty = { sentences: [], citing: [], similar: [] };
    expect(read('{"sentences":[],"citing":[],"similar":[]}')).toMatchObject(empty);
    expect(read(`{"url":"${URL}","sentences":[]}`)).toMatchObject({ url: URL, ...empty });
    expect(read('<citation><sentences/><citing/><similar/></citation>')).toMatchObject(empty);
    expect(read(`<h1>Document Citations for <a href="${URL}">a</a></h1><dl></dl>`)).toMatchObject(empty);
  });

  it.each([
    ['JSON', '{"error":"no such document"}', 200],
    ['JSON', '{"found":false}', 200],
    ['XML', '<citation><error>document not found</error></citation>', 200],
  ])('may say that there is no such document, by %s: %s', (_, body, status) => {
    expect(read(body, undefined, status)).toBeUndefined();
  });

  it.each([
    ['nothing', ''],
    ['blanks', ' \n'],
    ['no list', '{}'],
    ['another record', '{"url":"https://docs.example.org/a.txt","title":"A"}'],
    ['a page without lists', '<html><body><h1>Document Citations for x</h1></body></html>'],
    ['another page with lists', '<html><h1>Welcome</h1><dl><dt>0</dt><dd>a</dd></dl></html>'],
    ['JSON that breaks off', '{"sentences":[{"number":0,"text":"A'],
    ['XML that breaks off', '<citation><sentences><sentence number="0"><text>A'],
    ['a page that breaks off', '<h1>Document Citations for a</h1><dl><dt>0</dt><dd>A sent'],
    ['a page for people that says so', '<p>The document was not found.</p>'],
    ['a text that says so', 'unknown document\n'],
    ['a failure', realAnswer('error-500.html')],
  ])('with %s is never an empty citation', (_, body) => {
    expect(refusalOf(body)).toMatchObject({ code: 'PEER_ANSWER' });
  });

  it('shows its first bytes where it cannot be read', () => {
    expect(refusalOf('<html><h1>Welcome to the router</h1></html>')).toMatchObject({
      code: 'PEER_ANSWER',
      firstBytes: expect.stringContaining('Welcome to the router'),
    });
  });

  it('about another document is none', () => {
    const message = expect.stringContaining('another document');
    expect(refusalOf(`{"url":"${OTHER}","sentences":[]}`)).toMatchObject({ code: 'PEER_ANSWER', message });
    expect(refusalOf('{"urlhash":"b","sentences":[]}', { hash: 'a' })).toMatchObject({ message });
    expect(refusalOf('{"urlhash":"a","sentences":[]}', { hash: 'a' })).toMatchObject({ urlhash: 'a' });
  });

  it('may spell the URL in its own way', () => {
    expect(read('{"url":"HTTPS://docs.example.org:443/a.txt","sentences":[]}')).toBeDefined();
  });

  it('says when a document is longer than what was compared', () => {
    expect(read('{"sentences":[],"more":true}')?.more).toBe(true);
    expect(read('<citation><sentences/><more>false</more></citation>')?.more).toBe(false);
  });

  it('is read from a page that neither escapes nor closes what the document says', () => {
    const page = `<h1>Document Citations for<br><a href="${URL}">a</a></h1><dl>
      <dt>0</dt><dd>Some <b>bold & <i>text<br/>appears in: <a href="${OTHER}">else.example.net</a></dd>
      <dt>1</dt><dd>It appears in: a book, see <a href="/x">x</a>.</dd></dl>`;
    expect(read(page)?.sentences).toEqual([
      { number: 0, text: 'Some bold & text', appearsIn: [OTHER] },
      { number: 1, text: 'It appears in: a book, see x.', appearsIn: [] },
    ]);
  });
});

describe('citations in every form', () => {
  const word = fc
    .string({ unit: fc.constantFrom(...'aä"\'<>&\\/,:;{}[]=ש日😀1'), minLength: 1, maxLength: 8 })
    .filter((text) => !/^(\[\]|&\w+;)$/.test(text));
  const text = fc.array(word, { minLength: 1, maxLength: 8 }).map((words) => words.join(' '));
  const url = fc.webUrl().filter((each) => each !== '');
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

  it.each([
    ['JSON', (citation: Citation) => JSON.stringify(citation)],
    ['XML', xmlOf],
  ])('are read from %s as they were written', (_, write) => {
    fc.assert(
      fc.property(citations, (citation) => {
        expect(read(write(citation))).toEqual(citation);
      }),
    );
  });

  it.each([
    ['JSON', (citation: Citation) => JSON.stringify(citation)],
    ['XML', xmlOf],
    ['a page', pageOf],
  ])('are none where they break off, wherever that is: %s', (_, write) => {
    fc.assert(
      fc.property(
        citations,
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (citation, at) => {
          const whole = write(citation).trimEnd();
          const part = whole.slice(0, Math.floor(at * whole.length));
          expect(refusalOf(part)).toMatchObject({ code: 'PEER_ANSWER' });
        },
      ),
      { numRuns: 300 },
    );
  });

  it('are read from a page as far as it shows them', () => {
    fc.assert(
      fc.property(citations, ({ sentences, citing, similar }) => {
        const citation = { url: URL, urlhash: undefined, title: undefined, sentences, citing, similar };
        const shown = read(pageOf(citation));
        expect(shown?.sentences).toEqual(sentences);
        expect(shown?.similar).toEqual(similar.map((each) => ({ url: each.url })));
        expect(shown?.citing).toEqual(
          citing.map((each) => ({ url: each.url, sentences: each.sentences ?? 1 })),
        );
      }),
    );
  });
});

function escaped(value: string | number | boolean): string {
  return String(value).replace(/[<>&"]/g, (c) => `&#${c.charCodeAt(0)};`);
}

function element(name: string, value: string | number | boolean | undefined): string {
  return value === undefined ? '' : `<${name}>${escaped(value)}</${name}>`;
}

function xmlOf({ url, urlhash, title, sentences, citing, similar, more }: Citation): string {
  const all = sentences.map(
    ({ number, text, appearsIn }) =>
      `<sentence number="${number}"><text>${escaped(text)}</text>` +
      `${appearsIn.map((each) => element('appearsIn', each)).join('')}</sentence>`,
  );
  const lists = Object.entries({ citing, similar }).map(([name, documents]) => {
    const each = documents.map(
      (document) =>
        `<document>${element('url', document.url)}${element('title', document.title)}` +
        `${element('sentences', document.sentences)}</document>`,
    );
    return `<${name}>\n${each.join('\n')}\n</${name}>`;
  });
  return (
    `<?xml version="1.0"?>\n<citation>${element('url', url)}${element('urlhash', urlhash)}` +
    `${element('title', title)}<sentences>\n${all.join('\n')}\n</sentences>${lists.join('')}` +
    `${element('more', more)}</citation>`
  );
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
