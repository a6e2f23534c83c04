import { describe, expect, it } from 'vitest';
import { readPushResults } from '../../src/peer/push.js';
import { answerOf, realAnswer } from './answers.js';

const REAL = ['d0', 'd1', 'd2'].map((name) => `http://push2.example.org/${name}.txt`);
const URLS = ['https://docs.example.org/a.txt', 'https://docs.example.org/b%20%C3%A4.txt'];
const OK = { ok: true };

const read = (body: string | Buffer, urls: readonly string[] = URLS) =>
  readPushResults(
    answerOf(body),
    urls.map((url) => ({ url, collection: 'c', data: Buffer.alloc(0) })),
  );
/** The code and the sentence of the error. */
function refusalOf(body: string | Buffer, urls: readonly string[] = URLS): string {
  try {
    return `no error: ${JSON.stringify(read(body, urls))}`;
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return `${code} ${message}`;
  }
}

describe('an answer to a push, of a real peer', () => {
  it('in JSON', () => {
    expect(read(realAnswer('push.json'), ['http://push3.example.org/e1.txt'])).toEqual([OK]);
  });

  it('in JSON with one item refused, in its own words', () => {
    const urls = [REAL[0] ?? '', 'foo://host/x.txt', REAL[2] ?? ''];
    expect(read(realAnswer('push-one-refused.json'), urls)).toEqual([
      OK,
      { ok: false, message: 'unknown protocol: foo://host/x.txt' },
      OK,
    ]);
  });

  it('in JSON that is none, because a URL with a quote stands in it as it is', () => {
    const urls = [REAL[0] ?? '', 'http://push2.example.org/q"uo<te>.txt', REAL[2] ?? ''];
    expect(read(realAnswer('push-unescaped-quote.json'), urls)).toEqual([OK, OK, OK]);
  });

  it('in HTML', () => {
    expect(read(realAnswer('push.html'), [REAL[0] ?? '', 'not a url', REAL[2] ?? ''])).toEqual([OK, OK, OK]);
  });

  it('that did not see the items is no success, though it says so', () => {
    expect(refusalOf(realAnswer('push-no-count.json'))).toMatch(
      /^PEER_ANSWER .*does not say whether it accepted/,
    );
  });

  it('that speaks of an item too many is no success', () => {
    expect(refusalOf(realAnswer('push-count-too-high.json'), ['http://push2.example.org/c3.txt'])).toMatch(
      /^PEER_ANSWER/,
    );
  });

  it.each(['error-500.html', 'error-404.html'])(
    'that is an error page is no success, whatever its status: %s',
    (name) => {
      expect(refusalOf(realAnswer(name))).toMatch(/^PEER_ANSWER /);
    },
  );

  it('of another page is no success', () => {
    expect(refusalOf(realAnswer('share.html'))).toMatch(/^PEER_ANSWER/);
  });
});

describe('results for single items', () => {
  it.each([
    [
      'XML',
      `<push><successall>false</successall><item><number>0</number><url>${URLS[0]}</url><success>true</success></item><item><number>1</number><success>false</success><message>no</message></item></push>`,
    ],
    [
      'a bare JSON list',
      JSON.stringify([
        { item: 1, status: 'error', message: 'no' },
        { item: 0, status: 'ok' },
      ]),
    ],
    [
      'an HTML table',
      `<table><tr><th>Item<th>Success<th>Message<tr><td>0<td>ok<td><tr><td>1<td>fail<td>no</table>`,
    ],
  ])('are read from %s', (_, body) => {
    expect(read(body)).toEqual([OK, { ok: false, message: 'no' }]);
  });

  it('count for their own URL only', () => {
    const body = { item: { number: 0, url: 'https://docs.example.org/other.txt', success: true } };
    expect(read(JSON.stringify(body), [URLS[0] ?? ''])).toEqual([
      { ok: false, message: 'the peer answered for another URL: https://docs.example.org/other.txt' },
    ]);
  });

  it('count for a URL that is escaped another way', () => {
    const body = [{ item: 1, url: 'HTTPS://docs.example.org:443/b ä.txt', success: true }];
    expect(read(JSON.stringify(body))[1]).toEqual(OK);
  });

  it('that are missing are not success', () => {
    expect(read('{"item-1":{"item":"1","success":"true"}}')).toEqual([
      { ok: false, message: 'the peer did not answer for this item' },
      OK,
    ]);
  });

  it('that do not fit what is said of all are no answer', () => {
    expect(refusalOf('{"successall":"true","item-1":{"item":"1","success":"true"}}')).toMatch(
      /^PEER_ANSWER .*does not say whether/,
    );
  });

  it('that say two things of one item are not success', () => {
    const body = [
      { item: 0, success: true },
      { item: 0, success: false, message: 'second' },
      { item: 1, success: true },
    ];
    expect(read(JSON.stringify(body))).toEqual([{ ok: false, message: 'second' }, OK]);
    expect(refusalOf('{"items":[{"item":0,"success":"true" "success":"false","url":"a"b"}]}')).toMatch(
      /^PEER_ANSWER/,
    );
  });

  it('in a word that is not known are no answer', () => {
    expect(
      refusalOf('{"item-0":{"item":0,"success":"perhaps"},"item-1":{"item":1,"success":"true"}}'),
    ).toMatch(/^PEER_ANSWER .*does not say whether/);
  });
});

describe('one result for all', () => {
  it.each([
    ['successall', '{"count":2,"successall":"true"}'],
    ['counts', '{"count":"2","countsuccess":2,"countfail":0}'],
    ['counts in XML', '<push><count>2</count><countsuccess>2</countsuccess></push>'],
    ['a field in HTML', '<html><body><dl><dt>successall</dt><dd>true</dd></dl></body></html>'],
    [
      'a row in HTML',
      '<table><tr><td>count</td><td>2</td></tr><tr><td>successall</td><td>true</td></tr></table>',
    ],
    ['a word', 'OK\n'],
    ['a word', 'accepted.'],
  ])('is accepted: %s', (_, body) => {
    expect(read(body)).toEqual([OK, OK]);
  });

  it.each([
    ['too few were counted', '{"count":1,"successall":"true"}'],
    ['too few succeeded', '{"count":2,"countsuccess":1,"successall":"true"}'],
    ['some failed, and not which', '{"count":2,"countsuccess":1,"countfail":1}'],
    ['it failed, and not for which', '{"successall":"false","message":"no"}'],
    ['it says both', '{"success":true,"status":"fail","a":"b"c"}\n{'],
    ['text that is more than a word', 'OK, but please log in'],
    ['a form', '<html><body><h1>Push</h1><form><input name="count"></form></body></html>'],
    ['a status that is no result', '{"status":"starting"}'],
    ['only a count', '{"count":2}'],
  ])('is not accepted: %s', (_, body) => {
    expect(refusalOf(body)).toMatch(/^PEER_ANSWER http:\/\/peer.example.org\/api\/push_p.html/);
  });

  it('is refused, in the peer’s words, where there was one item or all failed', () => {
    expect(read('{"success":false,"message":"disk full"}', ['https://docs.example.org/a.txt'])).toEqual([
      { ok: false, message: 'disk full' },
    ]);
    expect(read('{"count":2,"countsuccess":0,"countfail":2,"reason":"read only"}')).toEqual([
      { ok: false, message: 'read only' },
      { ok: false, message: 'read only' },
    ]);
  });
});

describe('no answer', () => {
  it.each([
    ['nothing', ''],
    ['blanks', ' \r\n '],
    ['{}', '{}\n'],
    ['[]', '[]'],
    ['empty XML', '<push/>'],
    ['an empty page', '<html><head></head><body></body></html>'],
  ])('is what is empty: %s', (_, body) => {
    expect(refusalOf(body)).toMatch(/^PEER_ANSWER .*(gave an empty answer|does not say)/);
  });

  const WHOLE = realAnswer('push.html').toString();
  it.each([
    ['JSON', '{"count":"2","successall":"true"', /breaks off/],
    ['JSON in a text', '{"count":"2","successall":"true","item-0":{"url":"http://x', /breaks off/],
    ['XML', '<push><count>2</count><successall>true</successall>', /breaks off/],
    ['HTML', WHOLE.slice(0, WHOLE.indexOf('</table>')), /breaks off/],
    ['HTML after its lists', WHOLE.slice(0, WHOLE.indexOf('</body>')), /breaks off/],
  ])('is what ends too early: %s', (_, body, why) => {
    expect(refusalOf(body)).toMatch(why);
  });

  it.each([
    ['Java', 'java.lang.NullPointerException\n\tat push_p.respond(push_p.java:88)\nsuccess: true'],
    ['Python', 'Traceback (most recent call last):\n  File "x.py"\nok: true'],
    ['an error title', '<html><head><title>Error 500 Server Error</title></head><body>ok</body></html>'],
    ['Jetty', '<html><body><h2>HTTP ERROR 500</h2><dl><dt>success</dt><dd>true</dd></dl></body></html>'],
  ])('is what tells of a failure inside: %s', (_, body) => {
    expect(refusalOf(body)).toMatch(/^PEER_ANSWER /);
  });

  it('is what nests without end', () => {
    expect(refusalOf('['.repeat(100_000))).toMatch(/^PEER_ANSWER/);
    expect(refusalOf('{"a":'.repeat(100_000))).toMatch(/^PEER_ANSWER/);
    expect(refusalOf(`${'['.repeat(1_000)}${']'.repeat(1_000)}`)).toMatch(/nested too deeply/);
    expect(refusalOf('<a>'.repeat(100_000))).toMatch(/nested too deeply/);
    expect(refusalOf('<div>'.repeat(100_000))).toMatch(/nested too deeply/);
  });

  it('is what declares entities of its own, which may expand without end', () => {
    const bomb = `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;">]><push><message>&c;</message></push>`;
    expect(refusalOf(bomb)).toMatch(/^PEER_ANSWER .*declares entities/);
  });

  it('is told of at once, however long and odd it is', () => {
    const oddities = [
      '<!-- a -->',
      ' ',
      '\n',
      '"',
      '{"',
      '":',
      '<?x ?>',
      '\\"',
      'at (',
      '&#',
      '<!doctype ',
      '= : ',
    ];
    const texts = oddities
      .map((text) => text.repeat(60_000))
      .flatMap((text) => [text, `<${text}`, `{"a":"${text}`]);
    for (const text of texts) expect(refusalOf(text)).toMatch(/^PEER_ANSWER/);
  });
});

describe('characters', () => {
  it('are read as UTF-8, and else as ISO 8859-1', () => {
    const body = '{"success":false,"message":"größer ü"}';
    const refused = [{ ok: false, message: 'größer ü' }];
    expect(read(body, ['https://docs.example.org/'])).toEqual(refused);
    expect(read(`\ufeff${body}`, ['https://docs.example.org/'])).toEqual(refused);
    const old = Buffer.from(body, 'latin1');
    expect(read(old, ['https://docs.example.org/'])).toEqual(refused);
  });

  it('that XML and JSON forbid do not hinder', () => {
    expect(
      read('<r><count>2</count><successall>true</successall><note>\u0000\u0001\ufffe</note></r>'),
    ).toEqual([OK, OK]);
    expect(read('{"count":2,"successall":true,"note":"a\tb\u0001\n"}')).toEqual([OK, OK]);
  });
});
