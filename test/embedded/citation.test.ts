import { describe, expect, it } from 'vitest';
import { MAX_SENTENCE_CHARS, sentencesOf } from '../../src/embedded/citations.js';
import { TEXT_PART_BYTES } from '../../src/embedded/documents.js';
import { answered, type Parameters, type Peer, peerdoc, peerWith, push, send } from './support.js';

interface Citing {
  readonly url: string;
  readonly title: string;
  readonly sentences: number;
}

interface CitationJson {
  readonly url: string;
  readonly urlhash: string;
  readonly sentences: readonly { number: number; text: string; appearsIn: string[] }[];
  readonly citing: readonly Citing[];
  readonly similar: readonly Citing[];
  readonly more: boolean;
}

const citation = (peer: Peer, url: string, parameters: Parameters = {}): Promise<CitationJson> =>
  answered(peer, '/api/citation.json', { url, ...parameters });

const BIRDS = 'This is a long enough sentence about the habits of northern sea birds in winter.';
const KEEPERS =
  'Every keeper wrote notes about the weather & the ships that "passed" along the coast.';
const ONE = 'http://one.example/a.txt';
const TWO = 'http://two.example/b.txt';
const THREE = 'http://three.example/c.html';

describe('the citations of a document', () => {
  it('list its sentences and the documents that have them, regardless of line breaks, quotes and case', async () => {
    const shouted = KEEPERS.toUpperCase().replaceAll('"', '”').replace('WEATHER ', 'WEATHER\n   ');
    const only = 'Only here is there this rather unusual sentence of some length.';
    const peer = await peerWith({
      [ONE]: `${BIRDS} ${KEEPERS} Short one. ${only}`,
      [TWO]: `Notes\n\nsee below: ${shouted} End.`,
      [THREE]: `<p>Ads</p><p>${BIRDS.replace('birds', '<b>birds</b>')}</p><p>KEEPERS wrote</p>`,
    });
    const cited = await citation(peer, ONE);
    expect(cited).toMatchObject({
      url: ONE,
      sentences: [
        { number: 0, text: BIRDS, appearsIn: [THREE] },
        { number: 1, text: KEEPERS, appearsIn: [TWO] },
        { number: 2, text: 'Short one.', appearsIn: [] },
        { number: 3, text: only, appearsIn: [] },
      ],
      citing: [
        { url: TWO, title: 'Notes', sentences: 1 },
        { url: THREE, title: 'Ads', sentences: 1 },
      ],
      similar: [],
      more: false,
    });
    expect(await citation(peer, 'http://nowhere.example/', { hash: cited.urlhash })).toEqual(cited);
    const filtered = await citation(peer, ONE, { filter: 'true' });
    expect(filtered).toEqual({ ...cited, sentences: cited.sentences.slice(0, 2) });
  });

  it.each([
    ['German', 'Die Größe der Überraschung war, daß die Bäume am 3. Mai z. B. schon blühten!'],
    [
      'Chinese',
      '人工智能正在改变世界各地人们的生活方式和工作方式，许多专家认为这种变化才刚刚开始，未来还会更加深刻。',
    ],
    [
      'Japanese',
      'この港町では毎年冬になると北の海から渡ってくる海鳥の群れを多くの人々が見に来るのです。',
    ],
    ['Russian', 'Каждую зиму в этот портовый город прилетают стаи морских птиц с далёкого севера.'],
    ['Arabic', 'في كل شتاء تصل أسراب الطيور البحرية من الشمال البعيد إلى هذه المدينة الساحلية؟'],
    [
      'of marks',
      'He said: <b>\'Never & "ever" — 5 > 3\'</b>; [so] {what}/\\ * OR NEAR(it) AND NOT col: end^2.',
    ],
  ])('are found in any script: %s', async (_, sentence) => {
    const before = '前の文です。Eine andere Zeile.';
    const peer = await peerWith({
      [ONE]: sentence,
      [TWO]: `${before}\n\n${sentence} ${before}`,
      [THREE]: [...sentence].reverse().join(''),
    });
    const { sentences, citing } = await citation(peer, ONE);
    expect(sentences).toEqual([{ number: 0, text: sentence, appearsIn: [TWO] }]);
    expect(citing).toMatchObject([{ url: TWO, sentences: 1 }]);
  });

  it('do not include the same words in another order, or across two sentences', async () => {
    const sentence = 'The quiet harbour master counted seventeen painted boats before noon.';
    const peer = await peerWith({
      [ONE]: sentence,
      [TWO]: 'The quiet harbour master counted seventeen. Painted boats before noon.',
      'http://h/order': 'Before noon the quiet harbour master counted seventeen painted boats.',
      'http://h/less': 'The quiet harbour master counted seventeen painted boats before.',
      'http://h/title': `# ${sentence}`,
    });
    expect((await citation(peer, ONE)).citing.map(({ url }) => url)).toEqual(['http://h/title']);
  });

  it('leave out sentences shorter than 40 characters', async () => {
    const data = `${'A'.repeat(20)} ${'b'.repeat(17)}. ${'C'.repeat(20)} ${'d'.repeat(18)}.`;
    const { sentences } = await citation(await peerWith({ [ONE]: data, [TWO]: data }), ONE);
    expect(sentences.map(({ text, appearsIn }) => [text.length, appearsIn])).toEqual([
      [39, []],
      [40, [TWO]],
    ]);
  });

  it('call a document on another host similar from ch common sentences, 10 by default', async () => {
    const texts = Array.from(
      { length: 10 },
      (_, n) => `Sentence number${n} is about lighthouse keepers and their lamps.`,
    );
    const peer = await peerWith({
      [ONE]: texts.join(' '),
      'http://one.example/copy.txt': texts.join(' '),
      'http://nine.example/': texts.slice(1).join(' '),
      'http://ten.example/': texts.toReversed().join(' '),
      'http://ten.example:8080/': texts.slice(8).join(' '),
    });
    const similar = async (ch: Parameters): Promise<string[]> =>
      (await citation(peer, ONE, ch)).similar.map(({ url, sentences }) => `${sentences} ${url}`);
    expect(await similar({})).toEqual(['10 http://ten.example/']);
    expect(await similar({ ch: '9' })).toEqual([
      '10 http://ten.example/',
      '9 http://nine.example/',
    ]);
    expect(await similar({ ch: '1' })).toHaveLength(3);
    expect(await similar({ ch: '11' })).toEqual([]);
    expect((await citation(peer, ONE)).citing.map(({ sentences }) => sentences)).toEqual([
      10, 10, 9, 2,
    ]);
  });

  it('change when the document or a citing document changes', async () => {
    const peer = await peerWith({ [ONE]: BIRDS, [TWO]: BIRDS });
    await push(peer, { [TWO]: KEEPERS });
    expect((await citation(peer, ONE)).citing).toEqual([]);
    await push(peer, { [ONE]: KEEPERS });
    expect((await citation(peer, ONE)).sentences).toEqual([
      { number: 0, text: KEEPERS, appearsIn: [TWO] },
    ]);
  });

  it('are found across the parts in which a long text is stored', async () => {
    const filler = (length: number): string =>
      'a b. '.repeat(Math.ceil(length / 5)).slice(0, length);
    const long = Array.from({ length: 12 }, (_, n) => [
      `http://h/${n}`,
      `${filler(TEXT_PART_BYTES - 100 + 9 * n)} ${KEEPERS} End.`,
    ]);
    const { sentences } = await citation(
      await peerWith({ [ONE]: KEEPERS, ...Object.fromEntries(long) }),
      ONE,
    );
    expect(sentences[0]?.appearsIn).toHaveLength(12);
  });

  it('are limited to 100 documents a sentence and 1,000 sentences, and say that there is more', async () => {
    const copies = Array.from({ length: 130 }, (_, n) => [`http://h${n}/`, BIRDS]);
    const book = Array.from(
      { length: 1_200 },
      (_, n) => `Line ${n} of a very long book about the sea and its lights.`,
    );
    const peer = await peerWith({
      [ONE]: BIRDS,
      [TWO]: book.join('\n'),
      ...Object.fromEntries(copies),
    });
    const { sentences, citing } = await citation(peer, ONE);
    expect([sentences[0]?.appearsIn.length, citing.length]).toEqual([100, 100]);
    const { sentences: lines, more } = await citation(peer, TWO);
    expect([lines.length, more]).toEqual([1_000, true]);
  });
});

describe('a request for citations', () => {
  it('for a missing document, or with invalid parameters, is refused in the requested form', async () => {
    const peer = await peerWith({ [ONE]: BIRDS });
    for (const [status, queries] of [
      [404, ['url=http://nowhere.example/', 'hash=AAAAAAAAAAAA', 'hash=%22%00']],
      [
        400,
        [
          '',
          'url=',
          'url=nonsense',
          `url=${ONE}&filter=yes`,
          `url=${ONE}&ch=ten`,
          `url=${ONE}&ch=-1`,
        ],
      ],
    ] as const)
      for (const query of queries)
        for (const form of ['html', 'json']) {
          const { status: given, headers } = await send(peer, `/api/citation.${form}?${query}`);
          expect([query, given, headers['content-type']]).toEqual([
            query,
            status,
            expect.stringContaining(form),
          ]);
        }
  });

  it('is answered as a page for people and programs, with the text escaped', async () => {
    const text = `<script>alert(1)</script> & "more" \u0001 of this in a sentence that is long enough to cite.`;
    const peer = await peerWith({ [ONE]: text, 'http://two.example/?a=1&b="<': text });
    const page = await send(peer, `/api/citation.html?url=${ONE}&ch=1`);
    expect(page.body).not.toContain('<script>');
    expect(page.body).toContain(
      '>&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;more&quot; of this in a sentence that is long enough to cite.</td>' +
        '<td><a href="/document?url=http%3A%2F%2Ftwo.example%2F%3Fa%3D1%26b%3D%2522%253C">http://two.example/?a=1&amp;b=&quot;&lt;</a></td>',
    );
    expect(page.body).toMatch(
      /<h2>Similar documents.* 1 sentence or more in common<\/h2>\n<ul .*<\/html>\n$/s,
    );
    const headers = { accept: 'application/json' };
    const json = await send(peer, `/api/citation.html?url=${ONE}`, { headers });
    expect(json.json()).toEqual(await citation(peer, ONE));
  });

  it('is answered as a page with names, paths, a link back, and a word for an empty list', async () => {
    const file = 'file:///notes/green%20tea.md';
    const peer = await peerWith({ [ONE]: `${BIRDS} Short one. ${KEEPERS}`, [file]: BIRDS });
    const { urlhash } = await citation(peer, ONE);
    const { body } = await send(peer, `/api/citation.html?hash=${urlhash}`);
    const text = body
      .replace(/^.*<main[^>]*>|<\/main>.*$/gs, '')
      .replace(/<button.*?<\/button>/g, '')
      .replace(/<[^>]+>/g, ' ')
      .replace(/\s+/g, ' ');
    expect(text).toContain('Sentences of 40 characters or more count.');
    expect(text).toContain('/notes/green tea.md · 1 sentence in common');
    expect(text).toContain('on other hosts, with 10 sentences or more in common none Sentences');
    expect(text).toContain(`1 ${BIRDS} /notes/green tea.md 2 Short one. too short 3`);
    expect(body).toContain(`<a href="/document?urlhash=${urlhash}">← Document</a>`);
    expect(body).not.toMatch(/appearsIn|urlhash<|href="file:/);
    const [, page = ''] = /href="(\/document\?url=[^"]+)"/.exec(body) ?? [];
    expect((await send(peer, page)).status).toBe(200);
  });

  it('is answered one at a time, and stops when its client is gone', async () => {
    const book = Array.from(
      { length: 100 },
      (_, n) => `Line ${n} of a very long book about the sea and its lights.`,
    ).join('\n');
    const peer = await peerWith({ [ONE]: book, [TWO]: book });
    const gone = new AbortController();
    const url = `${peer.url}/api/citation.json?url=${ONE}`;
    const lost = Array.from({ length: 5 }, () => fetch(url, { signal: gone.signal }));
    const kept = [citation(peer, ONE), citation(peer, TWO)];
    expect(await peerdoc(peer, ONE)).toMatchObject({ url: ONE });
    gone.abort();
    await Promise.allSettled(lost);
    const citing = (await Promise.all(kept)).map((each) => each.citing);
    expect(citing).toMatchObject([[{ url: TWO, sentences: 100 }], [{ url: ONE, sentences: 100 }]]);
  });
});

describe('a text is cut into sentences', () => {
  // Each sentence of the text ends at a bar.
  it.each([
    ['One ends here.| Two asks?| Three cries!| Four'],
    ['Es war am 3. Oktober, z. B. in Köln.| „Schön war es.“ Danach kam Schnee.'],
    ['今天下雨了。|你带伞了吗？|“带了！”|他说。'],
    ['It costs 3.5 euros, e.g. at noon.| Then more.'],
    ['He said "Stop."| Then he left (at once!)| Nobody saw.'],
    ['Well…| Perhaps...| Who knows?!|  Nobody.'],
    [' \n\t \n\n '],
    // At blank lines and items of lists, while a line may break within a sentence.
    [
      '# A heading|\n\nA sentence that goes on.| Another|\n\t\n- one item|\n- another item|\n1. first\n',
    ],
    // At every line where there are no blank lines, as in what was HTML.
    ['A heading|\nA paragraph.| Its end|\nThe next'],
  ])('at their ends: %j', (marked) => {
    const sentences = marked.split('|').map((sentence) => sentence.trim());
    const text = marked
      .replaceAll('|', '')
      .replace('that goes', 'that\r\ngoes')
      .replace('another item', 'another\n  item');
    expect([...sentencesOf(text)]).toEqual(sentences.filter((sentence) => sentence !== ''));
  });

  it.each([
    [
      'with blank lines',
      'Before it.\n\n| a | b |\n|---|:-:|\n| One. Two. | 2 |\n\nAfter it.\n\n---\n\nAt last.',
    ],
    ['without', 'Before it.\n| a | b |\n|---|:-:|\n| One. Two. | 2 |\nAfter it.\n---\nAt last.'],
    ['of another form', 'Before it.\n\na | b\n--- | ---\nOne. | 2\n\nAfter it.\n\n***\n\nAt last.'],
  ])('without rows and rules of tables, in a text %s', (_, text) => {
    expect([...sentencesOf(text)]).toEqual(['Before it.', 'After it.', 'At last.']);
  });

  it('at a line with a bar that is no row of a table', () => {
    expect([...sentencesOf('Either a | or b.\nA line after it.\n| no table')]).toEqual([
      'Either a | or b.',
      'A line after it.',
      '| no table',
    ]);
  });

  it('of limited length, without losing text', () => {
    const words = Array.from({ length: 20_000 }, (_, n) => `word${n}`).join(' ');
    const sentences = [...sentencesOf(words)];
    expect(sentences.join(' ')).toBe(words);
    expect(Math.max(...sentences.map((s) => s.length))).toBeLessThanOrEqual(MAX_SENTENCE_CHARS);
    const faces = [...sentencesOf('😀'.repeat(35_001))];
    expect(faces.join('')).toBe('😀'.repeat(35_001));
    expect(faces.every((face) => /^(?:😀)+$/u.test(face))).toBe(true);
  });

  it('in a time that is linear in its length', () => {
    const texts = [
      ' \n'.repeat(40_000),
      '. '.repeat(40_000),
      'a.'.repeat(40_000),
      `.${'"'.repeat(65_536)}`,
    ];
    for (const text of ['.'.repeat(65_536), '"'.repeat(65_536), ...texts])
      [...sentencesOf(text.repeat(2))];
  }, 20_000);
});
