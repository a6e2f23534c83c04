import { describe, expect, it } from 'vitest';
import { yacy } from '../../src/peer/dialects/yacy.js';
import { readPushResults } from '../../src/peer/push.js';
import { answerOf, realAnswer, refusalOf } from './support.js';

const D0 = 'http://push2.example.org/d0.txt';
const D2 = 'http://push2.example.org/d2.txt';
const A = 'https://docs.example.org/a.txt';
const URLS = [A, 'https://docs.example.org/b%20%C3%A4.txt'];
const OK = { ok: true };
const no = (message: string) => ({ ok: false, message });

const itemsOf = (urls: readonly string[]) =>
  urls.map((url) => ({ url, collection: 'c', data: Buffer.alloc(0) }));
const read = (body: string | Buffer, urls: readonly string[] = URLS) =>
  readPushResults(answerOf(body), itemsOf(urls));

it.each([
  ['push.json', ['http://push3.example.org/e1.txt'], [OK]],
  [
    'push-one-refused.json',
    [D0, 'foo://host/x.txt', D2],
    [OK, no('unknown protocol: foo://host/x.txt'), OK],
  ],
  ['push-unescaped-quote.json', [D0, 'http://push2.example.org/q"uo<te>.txt', D2], [OK, OK, OK]],
  ['push.html', [D0, 'not a url', D2], [OK, OK, OK]],
])('an answer of a real peer is read: %s', (name, urls, results) => {
  expect(read(realAnswer(name), urls)).toEqual(results);
});

const ITEMS =
  '<r><s><item>0</item><success>true</success></s><s><item>1</item><success>false</success><message>no</message></s></r>';
const HTML_ITEMS =
  '<table><tr><th>Item<th>Success<th>Message<tr><td>0<td>ok<td><tr><td>1<td>fail<td>no</table>';
const failed = (message: string) => `{"item-0":{"item":0,"success":false,"message":"${message}"}}`;

it.each<[string, string | Buffer, readonly object[], string[]?]>([
  ['items in XML', ITEMS, [OK, no('no')]],
  ['items in an HTML table', `<?a b?><!-- c -->${HTML_ITEMS}`, [OK, no('no')]],
  [
    'a URL that is escaped another way',
    '[{"item":0,"success":true},{"item":1,"url":"HTTPS://docs.example.org:443/b ä.txt","success":true}]',
    [OK, OK],
  ],
  [
    'another URL, which is not success',
    '{"item-0":{"item":0,"url":"https://o.example/x","success":true}}',
    [no('the peer answered for another URL: https://o.example/x')],
    [A],
  ],
  [
    'a missing item, which is not success',
    '{"item-1":{"item":"1","success":"true"}}',
    [no('the peer did not answer for this item'), OK],
  ],
  [
    'two words about one item, which are not success',
    '[{"item":0,"success":false,"message":"2nd"},{"item":0,"success":true},{"item":1,"success":true}]',
    [no('2nd'), OK],
  ],
  ['success of all', '{"count":2,"successall":"true"}', [OK, OK]],
  ['success of all in a list', '[{"count":2,"successall":"true"}]', [OK, OK]],
  ['plain lines with colons', 'count: 2\nsuccessall: true\n', [OK, OK]],
  ['plain lines with equals signs', 'count=2\r\nsuccessall = true\r\n\r\ncountfail=0', [OK, OK]],
  [
    'plain lines about several items that all succeeded',
    'count: 2\nsuccessall: true\nitem: 0\nsuccess: true\nitem: 1\nsuccess: true',
    [OK, OK],
  ],
  [
    'a refusal in plain lines',
    'successall: false\n\nitem: 0\nurl: https://docs.example.org/a.txt\nsuccess: false\nmessage: no: it is full',
    [no('no: it is full')],
    [A],
  ],
  ['a byte order mark', `\ufeff${failed('größer')}`, [no('größer')], [A]],
  ['ISO 8859-1 where it is no UTF-8', Buffer.from(failed('größer'), 'latin1'), [no('größer')], [A]],
  [
    'characters that JSON forbids',
    failed('\\u00e4').replace('{', '{"note":"a\tb\u0001\n",'),
    [no('ä')],
    [A],
  ],
])('%s is read', (_, body, results, urls) => {
  expect(read(body, urls)).toEqual(results);
});

const BOMB =
  '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]><push><message>&b;</message></push>';
const PAGE = realAnswer('push.html').toString();

it.each<[string, string | Buffer, string?]>([
  ['nothing', '', 'an empty answer'],
  ['an answer that did not see the items', realAnswer('push-no-count.json'), 'does not say'],
  ['an item too many', realAnswer('push-count-too-high.json')],
  [
    'a contradiction',
    '{"successall":"true","item-1":{"item":"1","success":"true"}}',
    'does not say',
  ],
  [
    'two values of one name',
    '{"items":[{"item":0,"success":"true" "success":"false","url":"a"b"}]}',
  ],
  [
    'an unknown word',
    '{"item-0":{"item":0,"success":"perhaps"},"item-1":{"item":1,"success":"true"}}',
  ],
  ['too few counted', '{"count":1,"successall":"true"}'],
  ['some failed, and not which', '{"count":2,"countsuccess":1,"countfail":1}'],
  ['plain lines that count otherwise', 'count: 1\nsuccessall: true'],
  ['plain lines of several, and not which failed', 'count: 2\nsuccessall: false'],
  [
    'plain lines about several items, and not about all',
    'item: 0\nsuccess: true\nitem: 1\nsuccess: true',
  ],
  [
    'plain lines with a sentence between them',
    'count: 2\nsuccessall: true\nThe queue is full!',
    'does not say',
  ],
  ['half a JSON', '{"count":"2","successall":"true"', 'breaks off'],
  ['half a page', PAGE.slice(0, PAGE.indexOf('</table>')), 'breaks off'],
  [
    'a page of Jetty',
    '<html><body><h2>HTTP ERROR 500</h2><dl><dt>success<dd>true</dl></body></html>',
  ],
  ['nested lists', `${'['.repeat(1_000)}${']'.repeat(1_000)}`, 'nested too deeply'],
  [
    'nested lists in text that is mended',
    `{"a":"b"c",${'"d":['.repeat(10_000)}`,
    'nested too deeply',
  ],
  ['millions of values', `{"x":[${'{},'.repeat(5_500_000)}{}]}`, 'has too many values'],
  ['nested elements', '<a>'.repeat(100_000), 'nested too deeply'],
  ['entities of its own', BOMB, 'declares entities'],
])('%s is no answer', async (_, body, words = '') => {
  const refusal = await refusalOf(() => read(body));
  expect(refusal).toMatch(/^PEER_ANSWER http:\/\/peer.example.org\/api\/push_p.html/);
  expect(refusal).toContain(words);
});

it('JSON with unescaped quotes is repaired up to a length, and refused beyond it', async () => {
  const quoting = (length: number) =>
    `{"note":"a "quote" in ${'x'.repeat(length)}","count":"2","successall":"true"}`;
  expect(read(quoting(100_000))).toEqual([OK, OK]);
  expect(await refusalOf(() => read(quoting(600_000)))).toContain('cannot be read');
});

it('a hostile answer is refused at once, however long it is', async () => {
  const odd = [
    '<!-- a -->',
    ' ',
    '"',
    '{"',
    '":',
    '<?x ?>',
    '\\"',
    'at (',
    '&#',
    '<!doctype ',
    '= : ',
    'a:',
    'a ',
  ];
  const texts = odd.map((text) => text.repeat(20_000));
  for (const text of texts.flatMap((each) => [each, `<${each}`, `{"a":"${each}`]))
    expect(await refusalOf(() => read(text))).toMatch(/^PEER_ANSWER/);
});

describe('the answer of YaCy', () => {
  interface ResultOfItem {
    readonly url?: string;
    readonly success?: boolean;
    readonly message?: string;
  }

  /** Writes an answer as the template of YaCy does: nothing is escaped. */
  function answer(results: readonly ResultOfItem[], more: Readonly<Record<string, unknown>> = {}) {
    const failed = results.filter(({ success }) => success === false).length;
    const counted = {
      count: results.length,
      all: failed === 0,
      success: results.length - failed,
      fail: failed,
    };
    const { count, all, success, fail } = { ...counted, ...more };
    const shown = results.map(
      ({ url = 'http://x/a.txt', success: ok = true, message = 'http://x/solr' }, n) =>
        `"item-${n}":{\n "item":"${n}",\n "url":"${url}",\n "success": "${ok}",\n "message": "${message}"\n},\n`,
    );
    return answerOf(
      `{\n"count":"${count}",\n"successall": "${all}",\n${shown.join('')}"countsuccess":${success},\n"countfail":${fail}\n}`,
    );
  }
  const two = itemsOf(['http://x/a.txt', 'http://x/b.txt']);

  it.each(['a"b', "'http://'", 'a\t\nb', '"success"', 'say "no", and go', '\\x'])(
    'is read item by item, though nothing is escaped: %j',
    (odd) => {
      const results = answer([
        { url: `http://x/${odd}` },
        { success: false, message: `no ${odd} again` },
      ]);
      const refused = no(expect.stringContaining('no '));
      expect(yacy.pushResults(results, itemsOf([`http://x/${odd}`, 'http://x/b']))).toEqual([
        OK,
        refused,
      ]);
    },
  );

  it.each<[readonly ResultOfItem[], Readonly<Record<string, unknown>>?]>([
    [[{}]],
    [[{}, {}, {}]],
    [[{}, {}], { count: 1 }],
    [[{}, {}], { fail: 1 }],
    [[{}, {}], { all: false }],
    [[{}, { success: false }], { all: true }],
    [[{}, { success: false }], { success: 2, fail: 0 }],
  ])('is no success if its counts are inconsistent: %j %j', async (results, more) => {
    expect(await refusalOf(() => yacy.pushResults(answer(results, more), two))).toMatch(
      /^PEER_ANSWER/,
    );
  });

  it('is no success if it breaks off anywhere or is no JSON; for no items it has no results', async () => {
    const whole = answer([{}, {}]).body;
    expect(yacy.pushResults(answerOf(whole), two)).toEqual([OK, OK]);
    for (let end = 0; end < whole.length - 1; end += 1)
      expect(() => yacy.pushResults(answerOf(whole.subarray(0, end)), two)).toThrowError();
    const xml = '<r><count>2</count><successall>true</successall></r>';
    for (const body of ['{}', xml])
      expect(await refusalOf(() => yacy.pushResults(answerOf(body), two))).toMatch(/^PEER_ANSWER/);
    expect(yacy.pushResults(answer([]), [])).toEqual([]);
  });
});
