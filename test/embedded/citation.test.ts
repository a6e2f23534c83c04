import { describe, expect, it } from 'vitest';
import { TEXT_PART } from '../../src/embedded/documents.js';
import type { PeerInstance } from '../../src/embedded/peer-instance.js';
import { openPeer, peerdoc, push, send } from './support.js';

interface CitationJson {
  readonly url: string;
  readonly urlhash: string;
  readonly title: string;
  readonly sentences: readonly { number: number; text: string; appearsIn: string[] }[];
  readonly citing: readonly { url: string; title: string; sentences: number }[];
  readonly similar: readonly { url: string; title: string; sentences: number }[];
  readonly more: boolean;
}

async function citation(peer: PeerInstance, parameters: Record<string, string>): Promise<CitationJson> {
  const query = new URLSearchParams(parameters);
  const response = await fetch(`${peer.url}/api/citation.json`, { method: 'POST', body: query });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  return (await response.json()) as CitationJson;
}

const visible = { commit: 'true' };
const BIRDS = 'This is a long enough sentence about the habits of northern sea birds in winter.';
const KEEPERS = 'Every keeper wrote notes about the weather & the ships that "passed" along the coast.';
const ONE = 'http://one.example/a.txt';
const TWO = 'http://two.example/b.txt';

describe('the citations of a document', () => {
  it('are its sentences and where else they stand, whatever lines, quotes and case they have there', async () => {
    const peer = await openPeer();
    const lines = `Notes\n\nsee below: ${KEEPERS.toUpperCase().replaceAll('"', '”').replace('WEATHER ', 'WEATHER\n   ')} End.`;
    await push(
      peer,
      [
        {
          url: ONE,
          data: `${BIRDS} ${KEEPERS} Short one. Only here is there this rather unusual sentence of some length.`,
        },
        { url: TWO, data: lines },
        {
          url: 'http://three.example/c.html',
          data: `<p>Ads</p><p>${BIRDS.replace('birds', '<b>birds</b>')}</p><p>KEEPERS wrote</p>`,
        },
      ],
      visible,
    );
    const cited = await citation(peer, { url: ONE });
    expect(cited.url).toBe(ONE);
    expect(cited.sentences.map(({ number, text }) => [number, text])).toEqual([
      [0, BIRDS],
      [1, KEEPERS],
      [2, 'Short one.'],
      [3, 'Only here is there this rather unusual sentence of some length.'],
    ]);
    expect(cited.sentences.map(({ appearsIn }) => appearsIn)).toEqual([
      ['http://three.example/c.html'],
      [TWO],
      [],
      [],
    ]);
    expect(cited.citing).toEqual([
      { url: TWO, title: 'Notes', sentences: 1 },
      { url: 'http://three.example/c.html', title: 'Ads', sentences: 1 },
    ]);
    expect(cited.similar).toEqual([]);
    expect(cited.more).toBe(false);
    expect(await citation(peer, { hash: cited.urlhash, url: 'http://nowhere.example/' })).toEqual(cited);
  });

  it('with filter are only the sentences that stand elsewhere, under the same numbers', async () => {
    const peer = await openPeer();
    await push(
      peer,
      [
        { url: ONE, data: `First. ${KEEPERS}` },
        { url: TWO, data: KEEPERS },
      ],
      visible,
    );
    const all = await citation(peer, { url: ONE, filter: 'false' });
    const filtered = await citation(peer, { url: ONE, filter: 'true' });
    expect(all.sentences.map(({ number }) => number)).toEqual([0, 1]);
    expect(filtered).toEqual({ ...all, sentences: [all.sentences[1]] });
  });

  it.each([
    ['German', 'Die Größe der Überraschung war, daß die Bäume am 3. Mai z. B. schon blühten!'],
    [
      'Chinese',
      '人工智能正在改变世界各地人们的生活方式和工作方式，许多专家认为这种变化才刚刚开始，未来还会更加深刻。',
    ],
    ['Japanese', 'この港町では毎年冬になると北の海から渡ってくる海鳥の群れを多くの人々が見に来るのです。'],
    ['Russian', 'Каждую зиму в этот портовый город прилетают стаи морских птиц с далёкого севера.'],
    ['Arabic', 'في كل شتاء تصل أسراب الطيور البحرية من الشمال البعيد إلى هذه المدينة الساحلية؟'],
    [
      'of marks',
      'He said: <b>\'Never & "ever" — 5 > 3\'</b>; [so] {what}/\\ * OR NEAR(it) AND NOT col: end^2.',
    ],
  ])('are found in any script: %s', async (_, sentence) => {
    const peer = await openPeer();
    const before = '前の文です。Eine andere Zeile.';
    await push(
      peer,
      [
        { url: ONE, data: sentence },
        { url: TWO, data: `${before}\n\n${sentence} ${before}` },
        { url: 'http://three.example/', data: [...sentence].reverse().join('') },
      ],
      visible,
    );
    const { sentences, citing } = await citation(peer, { url: ONE });
    expect(sentences).toEqual([{ number: 0, text: sentence, appearsIn: [TWO] }]);
    expect(citing).toEqual([expect.objectContaining({ url: TWO, sentences: 1 })]);
  });

  it('do not take the same words in another order, or of two sentences, for the sentence', async () => {
    const peer = await openPeer();
    const sentence = 'The quiet harbour master counted seventeen painted boats before noon.';
    await push(
      peer,
      [
        { url: ONE, data: sentence },
        { url: TWO, data: 'The quiet harbour master counted seventeen. Painted boats before noon.' },
        {
          url: 'http://h/order',
          data: 'Before noon the quiet harbour master counted seventeen painted boats.',
        },
        { url: 'http://h/less', data: 'The quiet harbour master counted seventeen painted boats before.' },
        { url: 'http://h/title', data: `# ${sentence}` },
      ],
      visible,
    );
    expect((await citation(peer, { url: ONE })).citing.map(({ url }) => url)).toEqual(['http://h/title']);
  });

  it('leave out sentences of less than 40 characters', async () => {
    const peer = await openPeer();
    const data = `${'A'.repeat(20)} ${'b'.repeat(17)}. ${'C'.repeat(20)} ${'d'.repeat(18)}.`;
    await push(
      peer,
      [
        { url: ONE, data },
        { url: TWO, data },
      ],
      visible,
    );
    const { sentences } = await citation(peer, { url: ONE });
    expect(sentences.map(({ text, appearsIn }) => [text.length, appearsIn])).toEqual([
      [39, []],
      [40, [TWO]],
    ]);
  });

  it('count as similar from ch common sentences on another host, ten unless said', async () => {
    const peer = await openPeer();
    const sentences = Array.from(
      { length: 10 },
      (_, n) => `Sentence number${n} is about lighthouse keepers and their lamps.`,
    );
    await push(
      peer,
      [
        { url: ONE, data: sentences.join(' ') },
        { url: 'http://one.example/copy.txt', data: sentences.join(' ') },
        { url: 'http://nine.example/', data: sentences.slice(1).join(' ') },
        { url: 'http://ten.example/', data: sentences.toReversed().join(' ') },
        { url: 'http://ten.example:8080/', data: sentences.slice(8).join(' ') },
      ],
      visible,
    );
    const similar = async (ch: Record<string, string>): Promise<string[]> =>
      (await citation(peer, { url: ONE, ...ch })).similar.map(({ url, sentences }) => `${sentences} ${url}`);
    expect(await similar({})).toEqual(['10 http://ten.example/']);
    expect(await similar({ ch: '9' })).toEqual(['10 http://ten.example/', '9 http://nine.example/']);
    expect(await similar({ ch: '1' })).toHaveLength(3);
    expect(await similar({ ch: '11' })).toEqual([]);
    expect((await citation(peer, { url: ONE })).citing.map(({ sentences }) => sentences)).toEqual([
      10, 10, 9, 2,
    ]);
  });

  it('follow a document that changed, and one that changed what it cites', async () => {
    const peer = await openPeer();
    await push(
      peer,
      [
        { url: ONE, data: BIRDS },
        { url: TWO, data: BIRDS },
      ],
      visible,
    );
    await push(peer, [{ url: TWO, data: KEEPERS }], visible);
    expect((await citation(peer, { url: ONE })).citing).toEqual([]);
    await push(peer, [{ url: ONE, data: KEEPERS }], visible);
    expect((await citation(peer, { url: ONE })).sentences).toEqual([
      { number: 0, text: KEEPERS, appearsIn: [TWO] },
    ]);
  });

  it('are found across the parts in which a long text is kept', async () => {
    const peer = await openPeer();
    const filler = (length: number): string => 'a b. '.repeat(Math.ceil(length / 5)).slice(0, length);
    const items = Array.from({ length: 12 }, (_, n) => ({
      url: `http://h/${n}`,
      data: `${filler(TEXT_PART - 100 + 9 * n)} ${KEEPERS} End.`,
    }));
    await push(peer, [{ url: ONE, data: KEEPERS }, ...items], visible);
    const { sentences } = await citation(peer, { url: ONE });
    expect(sentences[0]?.appearsIn).toHaveLength(12);
  });

  it('go up to 100 documents a sentence and 1,000 sentences, and say that there is more', async () => {
    const peer = await openPeer();
    const copies = Array.from({ length: 130 }, (_, n) => ({ url: `http://h${n}/`, data: BIRDS }));
    const long = Array.from(
      { length: 1_200 },
      (_, n) => `Line ${n} of a very long book about the sea and its many lights.`,
    );
    await push(peer, [{ url: ONE, data: BIRDS }, { url: TWO, data: long.join('\n') }, ...copies], visible);
    const { sentences, citing } = await citation(peer, { url: ONE });
    expect([sentences[0]?.appearsIn.length, citing.length]).toEqual([100, 100]);
    const book = await citation(peer, { url: TWO });
    expect([book.sentences.length, book.more]).toEqual([1_000, true]);
  });
});

describe('a request for citations', () => {
  it('for a document that is not there is answered 404, in the form asked for', async () => {
    const peer = await openPeer();
    for (const [form, type] of [
      ['html', /^text\/html/],
      ['json', /^application\/json/],
    ] as const) {
      for (const query of ['url=http://nowhere.example/', 'hash=AAAAAAAAAAAA', 'hash=%22%00']) {
        const answer = await send(peer, `/api/citation.${form}?${query}`);
        expect([answer.status, answer.headers['content-type']]).toEqual([404, expect.stringMatching(type)]);
      }
    }
  });

  it.each(['', 'url=', 'url=nonsense', `url=${ONE}&filter=yes`, `url=${ONE}&ch=ten`, `url=${ONE}&ch=-1`])(
    'that names no document or says nonsense is refused: %s',
    async (query) => {
      const peer = await openPeer();
      await push(peer, [{ url: ONE, data: BIRDS }], visible);
      expect((await send(peer, `/api/citation.json?${query}`)).status).toBe(400);
    },
  );

  it('is answered as a page that people can read and programs as well, with nothing of the text taken for markup', async () => {
    const peer = await openPeer();
    const text = `<script>alert(1)</script> & "more" \u0001 of this in a sentence that is long enough to cite.`;
    await push(
      peer,
      [
        { url: ONE, data: text },
        { url: 'http://two.example/?a=1&b="<', data: text },
      ],
      visible,
    );
    const page = await send(peer, `/api/citation.html?url=${ONE}&ch=1`);
    expect(page.body).not.toContain('<script>');
    expect(page.body).toContain(
      '<td>&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;more&quot; of this in a sentence that is long enough to cite.</td>' +
        '<td><a href="http://two.example/?a=1&amp;b=%22%3C" rel="noreferrer">http://two.example/?a=1&amp;b=%22%3C</a></td>',
    );
    expect(page.body).toContain('<dt>similar</dt><dd><table>');
    expect(page.body).toMatch(/<\/html>\n$/);
    const json = await send(peer, `/api/citation.html?url=${ONE}`, {
      headers: { accept: 'application/json' },
    });
    expect(JSON.parse(json.body)).toEqual(await citation(peer, { url: ONE }));
  });

  it('is answered while others wait in line, and by nobody who is gone', async () => {
    const peer = await openPeer();
    const book = Array.from(
      { length: 100 },
      (_, n) => `Line ${n} of a very long book about the sea and its many lights.`,
    ).join('\n');
    await push(
      peer,
      [
        { url: ONE, data: book },
        { url: TWO, data: book },
      ],
      visible,
    );
    const gone = new AbortController();
    const lost = Array.from({ length: 5 }, () =>
      fetch(`${peer.url}/api/citation.json?url=${ONE}`, { signal: gone.signal }),
    );
    const kept = [citation(peer, { url: ONE }), citation(peer, { url: TWO })];
    expect(await peerdoc(peer, ONE)).toMatchObject({ url: ONE });
    gone.abort();
    await Promise.allSettled(lost);
    expect((await Promise.all(kept)).map(({ citing }) => citing)).toEqual([
      [expect.objectContaining({ url: TWO, sentences: 100 })],
      [expect.objectContaining({ url: ONE, sentences: 100 })],
    ]);
  });
});
