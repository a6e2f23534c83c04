import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fingerprintNow } from '../../src/content/file-reader.js';
import { NO_PROGRAMS } from '../../src/content/helpers/programs.js';
import { MatchCount } from '../../src/embedded/matches.js';
import { parseQuery } from '../../src/embedded/query-parser.js';
import { TextSections } from '../../src/embedded/text-sections.js';
import { systemClock } from '../../src/lib/clock.js';
import { fileStat } from '../../src/lib/file.js';
import { Yielder } from '../../src/lib/slices.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import { extractDocument } from '../../src/uplink/document-text.js';
import { pdf } from '../content/documents.js';
import { cpuMs } from '../support/cpu.js';
import { temporaryDirectory } from '../support/temp.js';
import { type Peer, peerWith, send } from './support.js';

const URL_OF_PDF = 'file:///papers/a.pdf';
const FILLER = 'nothing to see in this line of the text, which goes on for a while\n';

interface Shown {
  readonly status: string;
  /** The text around the current match; undefined if there is none. */
  readonly current: string | undefined;
  readonly marks: number;
  readonly body: string;
  /** Follows the link to the match before or after. */
  follow(rel: 'prev' | 'next'): Promise<Shown>;
}

async function opened(peer: Peer, path: string): Promise<Shown> {
  const { body } = await send(peer, path.replace(/#.*/, ''));
  const text = body.replaceAll(/<mark class="[^>]*>|<mark id="match"[^>]*>/g, '<mark>');
  const at = body.indexOf('<mark id="match"');
  const after = body.slice(at).replaceAll(/<[^>]*>/g, '');
  return {
    status: /<p role="status">(.*?)</.exec(body)?.[1] ?? '',
    current: at === -1 ? undefined : after.slice(0, 20),
    marks: text.split('<mark').length - 1,
    body,
    follow: (rel) => {
      const href = new RegExp(`<a rel="${rel}" href="([^"]*)"`).exec(body)?.[1] ?? '';
      expect(href).toMatch(/#match$/);
      return opened(peer, href.replaceAll('&amp;', '&'));
    },
  };
}

/** Opens the first result of a query. */
async function firstResult(peer: Peer, query: string): Promise<Shown> {
  const { body } = await send(peer, `/?${new URLSearchParams({ query })}`);
  const href = /<li>\n<h2 dir="auto"><a href="([^"]*)"/.exec(body)?.[1] ?? '';
  return opened(peer, href.replaceAll('&amp;', '&'));
}

function page(url: string, query: string, more = ''): string {
  return `/document?${new URLSearchParams({ url, query })}${more}`;
}

describe('the page of a document', () => {
  it('walks through the places of a word with its signs only', async () => {
    const peer = await peerWith({ 'http://h/1': `Vitamin C.\n${FILLER}In C++ and c++17.` });
    const { body, current, marks, status } = await opened(peer, page('http://h/1', 'C++'));
    expect([status, current, marks]).toEqual([
      'Match 1 of 2',
      expect.stringMatching(/^C\+\+ and c/),
      2,
    ]);
    expect(body).toMatch(/>C\+\+<\/mark> and <mark [^>]*>c\+\+<\/mark>17/);
  });

  it('opens at the first match, says how many there are, and links lead from one to the next', async () => {
    const text = `Tea one.\n${FILLER.repeat(2_000)}Tea two.\n${FILLER.repeat(2_000)}Tea three.`;
    const peer = await peerWith({ 'http://h/1': text });
    const first = await opened(peer, page('http://h/1', 'tea'));
    expect(first).toMatchObject({
      status: 'Match 1 of 3',
      current: expect.stringMatching(/^Tea one/),
    });
    const second = await first.follow('next');
    expect(second).toMatchObject({
      status: 'Match 2 of 3',
      current: expect.stringMatching(/^Tea two/),
    });
    const third = await second.follow('next');
    expect(third).toMatchObject({
      status: 'Match 3 of 3',
      current: expect.stringMatching(/^Tea three/),
    });
    expect((await third.follow('next')).status).toBe('Match 1 of 3');
    expect((await third.follow('prev')).status).toBe('Match 2 of 3');
    expect((await first.follow('prev')).status).toBe('Match 3 of 3');
  });

  it('takes neighbouring words of the query for one match, and the same word twice for two', async () => {
    const peer = await peerWith({
      'http://h/1': 'Green tea. Tea, tea! green\n\nteas and green   tea',
    });
    const shown = await opened(peer, page('http://h/1', 'green tea'));
    expect(shown.status).toBe('Match 1 of 4');
    expect(shown.body.match(/class="current"/g)).toHaveLength(2);
  });

  it('finds the words that are cut by the parts of a stored text', async () => {
    const fill = (bytes: number) => 'x '.repeat(bytes / 2);
    const peer = await peerWith({
      'http://h/1': `${fill(65_530)}lighthouse ${fill(65_536)}`,
      'http://h/2': `${'ü '.repeat(21_844)}  Bärenhöhle`,
      'http://h/3': `${fill(65_536)}harbour ${fill(100)}`,
    });
    expect((await opened(peer, page('http://h/3', 'harbour'))).status).toBe('Match 1 of 1');
    expect((await opened(peer, page('http://h/1', 'lighthouse'))).status).toBe('Match 1 of 1');
    const umlauts = await opened(peer, page('http://h/2', 'barenhohle'));
    expect([umlauts.status, umlauts.current]).toEqual([
      'Match 1 of 1',
      expect.stringMatching(/^Bärenhöhle/),
    ]);
  });

  it('marks as many words as it counts, in every spelling and script', async () => {
    const words = [
      'Brücke',
      'BRU\u0308CKE',
      'bruecke',
      'ﬁnden',
      '茶を飲む',
      'ＦＩＮＤＥＮ',
      'brück\u00ade',
    ];
    const text = words.map((word) => `${FILLER.repeat(300)}${word} `).join('');
    const peer = await peerWith({ 'http://h/1': text });
    for (const [query, count] of [
      ['brücke', 4],
      ['finden', 2],
      ['茶', 1],
      ['brück*', 4],
    ] as const)
      expect((await opened(peer, page('http://h/1', query))).status).toBe(`Match 1 of ${count}`);
  });

  it('says so if the words are only in the title, and shows other forms of them', async () => {
    const peer = await peerWith({
      'http://h/1.html': '<title>Tea</title>Something to drink.',
      'http://h/2.txt': 'Two leases of a flat.',
    });
    const titled = await opened(peer, page('http://h/1.html', 'tea'));
    expect(titled.body).toContain('No match in the text.');
    const other = await opened(peer, page('http://h/2.txt', 'lease'));
    expect([other.status, other.current]).toEqual([
      'Match 1 of 1',
      expect.stringMatching(/^leases of a flat/),
    ]);
    expect(other.body).toContain('Only other forms of the words.');
  });

  it('opens at the compounds of the words by which the search found it', async () => {
    const peer = await peerWith({
      'http://h/1.txt': `Stromrechnung mit Ratenzahlung ${FILLER.repeat(1_500)}`,
      'http://h/2.txt': 'Alle Rechnungen',
      'http://h/3.html': '<title>Abrechnung</title>Vorabrechnung',
    });
    const query = 'rechnung zahlung';
    const shown = await firstResult(peer, query);
    expect([shown.status, shown.current]).toEqual([
      'Match 1 of 2',
      expect.stringMatching(/^Stromrechnung/),
    ]);
    expect((await shown.follow('next')).status).toBe('Match 2 of 2');
    expect(shown.body).toMatch(/forms=true[^"]*part=1">More text/);
    // Nothing else has the whole vocabulary read.
    const other = await opened(peer, page('http://h/1.txt', query));
    expect(other.body).toContain('No match in the text.');
    expect((await firstResult(peer, 'abrechnung')).body).toContain('No match in the text.');
  });

  it('opens at the words that a question was answered by, as the result shows them', async () => {
    const text = `What this is about: the flat.\n${FILLER}The notice period of the lease is long.`;
    const peer = await peerWith({ 'http://h/1': text });
    const query = 'what is the notice period of my lease';
    const { body } = await send(peer, `/?${new URLSearchParams({ query })}`);
    expect(body).toContain('<mark>notice</mark>');
    const shown = await opened(peer, page('http://h/1', query));
    expect([shown.status, shown.current, shown.marks]).toEqual([
      'Match 1 of 2',
      expect.stringMatching(/^notice period of/),
      3,
    ]);
  });

  it('shows the first match and the last text for a number that is too small or too large', async () => {
    const peer = await peerWith({ 'http://h/1': `tea\n${FILLER.repeat(1_500)}coffee` });
    expect((await opened(peer, page('http://h/1', 'tea', '&match=0'))).status).toBe('Match 1 of 1');
    for (const query of ['tea', '']) {
      const { body } = await opened(peer, page('http://h/1', query, '&part=900000'));
      expect(body).toContain('Part 2 of the text');
      expect(body).toContain('coffee</div>');
      expect(body).not.toContain('More text');
    }
  });

  it('shows a section without a current match, and links to the matches around it', async () => {
    const text = `tea\n${FILLER.repeat(1_500)}tea\n${FILLER.repeat(1_500)}`;
    const peer = await peerWith({ 'http://h/1': text });
    const section = await opened(peer, page('http://h/1', 'tea', '&part=1'));
    expect(section).toMatchObject({ status: '2 matches', current: undefined });
    expect((await section.follow('prev')).status).toBe('Match 1 of 2');
    expect((await section.follow('next')).status).toBe('Match 2 of 2');
    expect((await opened(peer, page('http://h/1', 'tea', '&match=999'))).status).toBe(
      'Match 2 of 2',
    );
    expect((await send(peer, page('http://h/1', 'tea', '&match=x'))).status).toBe(400);
  });

  it('escapes what it shows around its marks', async () => {
    const peer = await peerWith({ 'http://h/1': '<b>tea</b> & <mark id="match">' });
    const { body } = await opened(peer, page('http://h/1', '"tea" <script>'));
    expect(body).toContain(
      '&lt;b&gt;<mark id="match" class="current" aria-current="true" data-match="1">tea</mark>&lt;/b&gt; &amp; &lt;mark',
    );
    expect(body).not.toContain('<script>"');
    expect(body).not.toMatch(/data-address="[^"]*<script/);
  });
});

/** Number of pages in a text of several MB: 2,400 in a text of 7 MB. */
const PAGES = 2_400;
const long = (word: string) =>
  Array.from(
    { length: PAGES },
    (_, i) => `Page number ${i + 1}\n${FILLER.repeat(42)}${i % 100 === 99 ? `${word} ${i}\n` : ''}`,
  ).join('\f');

describe('the page of a document of 2,400 pages', () => {
  it('is made in little time, wherever the match is, and counts all of them', async () => {
    const peer = await peerWith({ 'http://h/long.txt': `${long('tea')} ${FILLER} coffee` });
    await opened(peer, page('http://h/long.txt', 'warm'));
    const used = await cpuMs(async () => {
      expect((await opened(peer, page('http://h/long.txt', 'tea'))).status).toMatch(/^Match 1 of/);
    });
    expect(used).toBeLessThan(300);
    const { body } = await send(peer, page('http://h/long.txt', 'tea').replace('?', '.json?'));
    expect(JSON.parse(body)).toMatchObject({ matches: 24, matchesAreExact: true, total: '24' });
    expect((await opened(peer, page('http://h/long.txt', 'tea'))).status).toBe('Match 1 of 24');
    const last = await opened(peer, page('http://h/long.txt', 'coffee'));
    expect(last.current).toMatch(/^coffee/);
  });

  it('is counted once for several requests at the same time', async () => {
    const parts = Array.from({ length: 4 }, () => 'tea or coffee '.repeat(1_000));
    const costOf = async (requests: number): Promise<number> => {
      const count = new MatchCount(parseQuery('tea').highlights);
      const documents = { textPart: (_: number, part: number) => parts[part] };
      const goOn = () =>
        count.goOn(new TextSections(documents, 1), () => false, new Yielder(systemClock));
      await Promise.all(Array.from({ length: requests }, goOn));
      expect(count.matches).toBe(4_000);
      return count.cost;
    };
    expect(await costOf(5)).toBe(await costOf(1));
  });

  it('says that it did not count all of very many matches', async () => {
    const peer = await peerWith({ 'http://h/1': 'tea or '.repeat(200_000) });
    const { body } = await send(peer, page('http://h/1', 'tea').replace('?', '.json?'));
    expect(JSON.parse(body)).toMatchObject({ matchesAreExact: false, total: 'more than 10,000' });
    const last = await opened(peer, page('http://h/1', 'tea', '&match=10000'));
    expect(last.status).toBe('Match 10,000 of more than 10,000');
    const beyond = await opened(peer, page('http://h/1', 'tea', '&part=20'));
    expect(beyond.body).toContain('<mark>tea</mark>');
  });
});

/** Returns the page that a peer in this dialect gets of a file. */
async function sentAs(bytes: Uint8Array, dialect: 'standard' | 'yacy'): Promise<string> {
  const file = join(temporaryDirectory(), 'a.pdf');
  writeFileSync(file, bytes);
  const found = fingerprintNow({ file, stat: fileStat(statSync(file)) });
  if (found.kind !== 'version') throw new Error(`the file is ${found.kind}`);
  const { content: rules } = DIALECTS[dialect];
  const { version } = found;
  const order = { file, version, rules, wanted: 'text', programs: NO_PROGRAMS } as const;
  const answer = await extractDocument(order);
  if (answer.kind !== 'extracted') throw new Error(`it is ${answer.kind}`);
  return Buffer.from(answer.page?.bytes ?? []).toString();
}

describe('the pages of a PDF', () => {
  it('are known in the embedded peer: each match has its page', async () => {
    const sent = await sentAs(pdf('green tea', '', 'no leaf', 'more tea'), 'standard');
    const peer = await peerWith({ [URL_OF_PDF]: sent });
    const first = await opened(peer, page(URL_OF_PDF, 'tea'));
    expect(first.status).toBe('Match 1 of 2 · page 1 of 4');
    const second = await first.follow('next');
    expect(second.status).toBe('Match 2 of 2 · page 4 of 4');
    const begins = [...second.body.matchAll(/<span class="page-begin">(.*?)<\/span>/g)];
    expect(begins.map(([, label]) => label)).toEqual(['Page 2', 'Page 3', 'Page 4']);
    expect(second.body).toContain('<dt>Pages</dt><dd>4</dd>');
    // The form feeds are not part of any word or snippet.
    const found = await send(peer, '/search.json?query=leaf');
    expect(found.json().items[0].snippet).toBe('green tea no leaf more tea');
  });

  it('do not include files that are attached, which come after the last page', async () => {
    const html =
      '<p>tea</p><hr class="peersync-page-end"><p></p><hr class="peersync-page-end"><p>attached tea</p>';
    const peer = await peerWith({ [URL_OF_PDF]: `<!doctype html>${html}` });
    const first = await opened(peer, page(URL_OF_PDF, 'tea'));
    expect(first.status).toBe('Match 1 of 2 · page 1 of 2');
    expect((await first.follow('next')).status).toBe('Match 2 of 2');
    expect(first.body).toContain('Attached files</span>');
  });

  it('are not told of other texts with form feeds, whose meaning is not known', async () => {
    const peer = await peerWith({
      'http://h/a.c': 'tea\n\fmore tea',
      'http://h/a.html': '<p>tea\f tea',
    });
    expect((await opened(peer, page('http://h/a.c', 'tea'))).status).toBe('Match 1 of 2');
    const { body } = await opened(peer, page('http://h/a.c', 'tea'));
    expect(body).toContain('<span class="page-begin"></span>');
    expect(body).not.toContain('\ufffd');
    expect((await opened(peer, page('http://h/a.html', 'tea'))).body).not.toContain(
      'class="page-begin"',
    );
  });

  it('are not sent to a YaCy', async () => {
    const bytes = pdf('green tea', 'more tea');
    expect(await sentAs(bytes, 'standard')).toContain('<hr class="peersync-page-end">');
    expect(await sentAs(bytes, 'yacy')).toContain('<p>green tea<br>\n<br>\nmore tea</p>');
  });
});
