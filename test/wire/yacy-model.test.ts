import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { beforeEach, describe, expect, it } from 'vitest';
import { until } from '../support/wait.js';
import { exchange, parseResponse, type Response, recorded } from './yacy/exchange.js';
import { parse } from './yacy/parser.js';
import { hexPdfOf, pdfOf, poisonPdfOf } from './yacy/pdf-files.js';
import { RECORDED, timing } from './yacy/timing.js';
import { hashOf, type Network, normalUrl, takes } from './yacy/urls.js';
import { YacyModel, type YacyOptions } from './yacy/yacy-model.js';

/**
 * The model that scenarios run against is worth what it has in common with a real peer: what was
 * recorded of one is asked of the model again.
 */

type Fields = Readonly<Record<string, string>>;

/** A model whose time stands still until the test moves it. */
class TimedModel {
  time = 0;
  private constructor(readonly model: YacyModel) {}

  static async start(options: YacyOptions = {}): Promise<TimedModel> {
    let peer: TimedModel | undefined;
    const now = () => peer?.time ?? 0;
    peer = new TimedModel(await YacyModel.start({ address: '192.0.2.2:8090', now, ...options }));
    return peer;
  }

  /**
   * Asks what was asked when the exchange was recorded, with the token of this peer where it had
   * one.
   */
  async replay(name: string): Promise<Response> {
    const request = recorded(name).request.toString('latin1');
    const token = /transactionToken=[\da-f]{40}/;
    const asked = token.test(request)
      ? request.replace(token, `transactionToken=${await this.token()}`)
      : request;
    return exchange(this.model.url, Buffer.from(asked, 'latin1'));
  }

  get(target: string, headers = ''): Promise<Response> {
    return exchange(
      this.model.url,
      Buffer.from(`GET ${target} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`),
    );
  }

  post(target: string, fields: Fields): Promise<Response> {
    const body = new URLSearchParams(fields).toString();
    const head = `POST ${target} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n`;
    const type = 'Content-Type: application/x-www-form-urlencoded\r\n\r\n';
    return exchange(this.model.url, Buffer.from(head + type + body));
  }

  /** Pushes a document of this host. */
  put(name: string, text: string, more: Fields = {}): Promise<Response> {
    const data = Buffer.from(text).toString('base64');
    const item = { 'url-0': at(name), 'data-0$file': data, 'responseHeader-0': '' };
    return this.post('/api/push_p.json', { count: '1', ...item, ...more });
  }

  /** The token that deletions need; empty for who is not let in. */
  async token(): Promise<string> {
    return (await this.get(DELETION)).headers['x-yacy-transaction-token'] ?? '';
  }

  /** Posts to the page that deletes. Returns its message, or its status and the reason. */
  async delete(fields: Fields): Promise<string> {
    const answer = await this.post(DELETION, fields);
    if (answer.status !== 200) return `${answer.status} ${answer.reason}`;
    return /<p>(.*)<\/p>/.exec(answer.body.toString())?.[1] ?? '';
  }

  texts(...names: readonly string[]) {
    return names.map((name) => this.model.kept(at(name))?.text);
  }
}

const DELETION = '/IndexControlURLs_p.html';
const UNKNOWN_HASH = '/api/citation.html?hash=AAAAAAAAAAAA';
const at = (name: string): string => `http://x.example/${name}`;
const SOON = { synchronous: 'true' };
const AT_ONCE = { commit: 'true' };
const TEXT = { 'contentType-0': 'text/plain' };
const DUMP = 'dump/yacy_dump_r1_ts.xml.gz';

let peer: TimedModel;
beforeEach(async () => {
  peer = await TimedModel.start();
});

/** Returns the parts of an answer that do not depend on the time. */
function whole({ status, reason, headers, body }: Response) {
  const { date, expires, 'last-modified': modified, ...rest } = headers;
  const challenge = rest['www-authenticate']?.replace(/nonce="[^"]{32}"/, 'nonce');
  const dated = [date, expires, modified].map((value) => value !== undefined);
  return {
    status,
    reason,
    headers: { ...rest, 'www-authenticate': challenge },
    body: String(body),
    dated,
  };
}

/** But for the lower end of the stack. */
function failure({ status, reason, headers, body }: Response) {
  const [upper] = String(body).split('(YaCyDefaultServlet.java:314)');
  return { status, reason, type: headers['content-type'], connection: headers.connection, upper };
}

/** But for the most of the page, which no program reads. */
function deletion({ status, reason, headers, body }: Response) {
  const token = headers['x-yacy-transaction-token']?.replace(/[\da-f]/g, 'x');
  const [, title] = /<title>YaCy '.*'(.*)<\/title>/.exec(String(body)) ?? [];
  return { status, reason, type: headers['content-type'], token, title };
}

/** But for its numbers and dates, of which the form is the same. */
function document({ body }: Response) {
  const form = (_: string, tag: string, value: string) =>
    tag + value.replace(/\d+/g, '0').replace(/\b[A-Z][a-z]{2}\b/g, 'Xxx');
  return String(body)
    .replace(/(<(?:dc:date|yacy:\w+|dc:format.extent)>)([^<]*)/g, form)
    .replace(/(yacy:urlhash:)[\w-]{12}/g, '$1');
}

/** But for the order of the columns. */
function table({ body }: Response) {
  const rows = String(body).split('</row>');
  return rows.map((row) =>
    row
      .split(/(?=<cell )/)
      .map((cell) => cell.trim())
      .sort(),
  );
}

const options = ({ body }: Response) =>
  [...String(body).matchAll(/<option value="(.*?)".*?<\/option>/g)].map(([, name]) => name).sort();
const links = ({ status, body }: Response) => [status, String(body).match(/HREF="[^"]*[^s]"/g)];

const indexed = () =>
  peer.put('', '<title>My Title g6</title>Some words.', {
    'url-0': 'http://push3.example.org/g6.html',
    'collection-0': 'c3',
    'contentType-0': 'text/html',
    ...SOON,
  });

const set = (name: string, row: string) =>
  peer.get(`/api/table_p.html?table=${encodeURIComponent(name)}&commitrow=1&${row}`);

async function filled(): Promise<void> {
  await set('wiretest', 'pk=row1&col_note=hello&col_name=first');
  await peer.replay('table_commitrow_post');
  await set('wiretest', 'pk=row2&col_note=updated+only+note');
  await set('wiretest', 'col_name=nopk&col_other=x');
  await peer.replay('table_commitrow_xml');
  await set('wiretest', 'pk=row5&col_name=multipart&col_note=mp+%C3%A9%E6%97%A5%E6%9C%AC');
  await peer.replay('table_commitrow_special');
}

async function named(): Promise<void> {
  for (const name of ['../../x', 'UPPER', 'a b', 'with/slash', 'é'])
    await set(name, 'pk=a&col_a=b');
}

function shared(): void {
  const modified = Date.parse('2026-11-21T03:37:40.700Z');
  for (const name of [DUMP, 'dump/yacy_dump_u1_ts.xml.gz', 'dump/yacy_dump_x_ts.xml.gz'])
    peer.model.share.put(name, 'raw text payload', modified);
}

async function locked(): Promise<void> {
  peer = await TimedModel.start({ password: 'secret' });
}

/** For each case: the compared part of the answers, the recordings, and the preparation. */
const CASES: readonly (readonly [(answer: Response) => unknown, string, (() => unknown)?])[] = [
  [
    whole,
    'push_a_urlenc_with_rh push_b_mp_onefile_ascii push_b_mp_twofiles push_ok_multipart_base64_field',
  ],
  [whole, 'push_c_count_bigger_than_items_rh push_c_nocount push_d_bad_empty push_d_bad_proto'],
  [
    whole,
    'push_d_bad_quote push_e_sync push_f_commit push_g_ct_lm_rfc1123 err_mp_truncated err_404',
  ],
  [whole, 'yacydoc_xml_unknown_url yacydoc_json_known_url share_dl__share_dump_nope_xml_gz'],
  [whole, 'Tables_p_list_xml Tables_p_unknown table_commitrow_xml auth_8090_referer_foreign'],
  [whole, 'delete_by_get delete_no_token'],
  [whole, 'auth_no_auth auth_basic_ok auth_digest_nc1024', locked],
  [whole, 'share_dl__share_dump_yacy_dump_r1_ts_xml_gz', shared],
  [links, 'share_dl__share_dump_', shared],
  [failure, 'push_urlenc_json push_batch_async_missing_rh_mid push_batch_sync_rejected_mid'],
  [failure, 'citation_unknown_url Tables_p_unknown_commit'],
  [deletion, 'delete_token_get delete_ok delete_unknown delete_by_hash_unknown'],
  [document, 'yacydoc_xml_known_url yacydoc_xml_post', indexed],
  [table, 'Tables_p_xml_special', filled],
  [options, 'Tables_p_list_html', named],
];

describe('the model answers as the peer did', () => {
  const each = CASES.flatMap(([same, names, before]) =>
    names.split(' ').map((name) => ({ name, same, before })),
  );

  it.each(each)('$name', async ({ name, same, before }) => {
    await before?.();
    expect(same(await peer.replay(name))).toEqual(same(parseResponse(recorded(name).response)));
  });
});

describe('the model behaves as the peer did', () => {
  it.each([
    ['push_a_urlenc_with_rh', 'a2', { size: 0, words: 0, text: '' }],
    ['push_b_mp_onefile_ascii', 'b2', { text: 'http push example org b2 txt' }],
    ['push_b_mp_twofiles', 'b5', { size: 135, text: expect.stringContaining('uniquewordb5') }],
    [
      'push_ok_multipart_base64_field',
      'b6',
      { size: 135, text: expect.stringContaining('uniquewordb6') },
    ],
    ['push_g_ct_lm_rfc1123', 'g1', { lastModified: Date.parse('1994-11-15T12:45:26Z') }],
    // Items before the failing one are kept.
    ['push_batch_async_missing_rh_mid', 0, [true, false, false]],
    ['push_batch_sync_rejected_mid', 0, [true, false, false]],
  ])('%s: what is indexed', async (name, item, expected) => {
    await peer.replay(name);
    const urls = peer.model.served[0]?.urls ?? [];
    if (item === 0) expect(urls.map((url) => peer.model.kept(url) !== undefined)).toEqual(expected);
    else
      expect(peer.model.kept(urls.find((url) => url.endsWith(`/${item}.txt`)) ?? '')).toMatchObject(
        expected,
      );
  });

  it.each([
    ['a.txt', 'one two I am 3 at 10', { words: 7 }],
    ['a.txt', '<one two', { words: 0 }],
    ['a.bin', 'one two', { words: 5 }],
    ['a.bin', '', { words: 0 }],
    // Section 10, row "one of U+0001-U+0007, …": the text is lost, the document is shown with its
    // size.
    ['notes/log.txt', '\u001b[1mred', { words: 6, size: 7, text: 'http x example notes log txt' }],
  ])('counts the words of a document: %s: %j', async (name, text, expected) => {
    await peer.put(name, text, SOON);
    expect(peer.model.kept(at(name))).toMatchObject(expected);
  });

  it('shows a document, hides it, and shows it again, or at once after a look-up of an unknown hash', async () => {
    const shown = (time: number) => {
      peer.time = time;
      return peer.model.shown(at('a.txt'))?.text;
    };
    await peer.put('a.txt', 'old');
    const times = [0, 50, 1_280, 1_300, 16_280, 16_300];
    expect(times.map(shown)).toEqual([undefined, 'old', 'old', undefined, undefined, 'old']);
    await peer.put('a.txt', 'new');
    expect([16_400, 18_000, 33_000].map(shown)).toEqual(['new', 'old', 'new']);
    await peer.put('b.txt', 'b');
    peer.time += 2_000;
    expect((await peer.get(`/api/citation.html?url=${at('b.txt')}`)).status).toBe(500);
    expect(peer.model.shown(at('b.txt'))).toBeUndefined();
    await peer.get(UNKNOWN_HASH);
    expect(peer.model.shown(at('b.txt'))).toBeDefined();
  });

  it('sends a shared file only to clients with an older one', async () => {
    shared();
    const since = async (time: string) =>
      (await peer.get(`/share/${DUMP}`, `If-Modified-Since: Sat, 21 Nov 2026 ${time} GMT\r\n`))
        .status;
    expect([await since('03:37:40'), await since('03:37:39')]).toEqual([304, 200]);
  });
});

describe('U+FFFE or U+FFFF in one document', () => {
  it.each([
    '\ufffe',
    '\uffff',
    '&#65535;',
    '&#xfffe;',
    '&amp;#xFFFF;',
    '&#-1;',
    '&#131071;',
    '<title>a&#65535;</title>b',
    poisonPdfOf('a'),
  ])('loses every document of the update: %j', async (text) => {
    const name = text.startsWith('%PDF') ? 'poison.pdf' : 'poison.txt';
    await peer.put('before.txt', 'before');
    const answer = await peer.put(name, text);
    await peer.put('behind.txt', 'behind');
    expect(answer.body.toString()).toContain('"successall": "true"');
    peer.time = 60;
    expect(peer.model.shown(at(name))).toBeDefined();
    expect(peer.texts('before.txt', name, 'behind.txt')).toEqual([undefined, undefined, undefined]);
    peer.time = 60_000;
    expect(peer.model.search('before')).toEqual([]);
  });

  it.each(['&#65535', '&#1114111000000;', '\u{1fffe}\u{1ffff}'])(
    'is distinguished from similar characters: %j',
    async (text) => {
      await peer.put('a.txt', text);
      expect(peer.texts('a.txt')).toEqual([expect.anything()]);
    },
  );

  it('loses no document of another update, and no older version', async () => {
    const { indexed, buffered, commit } = RECORDED;
    const put = async (documents: Fields, wait: number) => {
      for (const [name, text] of Object.entries(documents)) await peer.put(name, text, TEXT);
      peer.time += wait;
    };
    await put({ old: 'old', poison: 'harmless' }, indexed + buffered + commit);
    await put({ earlier: 'earlier' }, indexed + buffered);
    await put({ old: 'new', poison: 'poison \uffff' }, indexed + buffered);
    await put({ later: 'later' }, 0);
    const names = ['old', 'poison', 'earlier', 'later'];
    const expected = ['old', 'harmless', 'earlier', 'later'];
    expect(peer.texts(...names)).toEqual(expected);
    peer.time += indexed + buffered + commit;
    expect(names.map((name) => peer.model.shown(at(name))?.text)).toEqual(expected);
  });

  it('is in an update of its own after a commit', async () => {
    await peer.put('a.txt', 'a', AT_ONCE);
    await peer.put('b.txt', 'poison \uffff', AT_ONCE);
    await peer.put('c.txt', 'c', SOON);
    await peer.get(UNKNOWN_HASH);
    expect(peer.texts('a.txt', 'b.txt', 'c.txt')).toEqual(['a', undefined, 'c']);
  });
});

describe('a deletion', () => {
  const url = at('a.txt');
  const later = RECORDED.buffered + RECORDED.commit;
  const shownAfter = (ms: number) => {
    peer.time += ms;
    return peer.model.shown(url) !== undefined;
  };
  const byUrl = { urlstring: url, urldelete: 'Delete URL' };
  const remove = async (fields: Fields = byUrl) =>
    peer.delete({ transactionToken: await peer.token(), ...fields });
  beforeEach(async () => {
    await peer.put('a.txt', 'word', AT_ONCE);
    peer.time += RECORDED.commitPause;
  });

  it.each<[string, Fields, string, boolean]>([
    ['URL in the index', byUrl, `Removed URL ${url}`, true],
    ['URL not in the index', { ...byUrl, urlstring: at('b') }, `Removed URL ${at('b')}`, false],
    ['no token', { ...byUrl, transactionToken: '' }, '400 Missing transaction token.', false],
    [
      'wrong token',
      { ...byUrl, transactionToken: '0'.repeat(40) },
      '400 Invalid transaction token.',
      false,
    ],
    ['known hash', { urlhash: hashOf(url), urlhashdelete: 'x' }, `Removed URL ${url}`, true],
    [
      'unknown hash',
      { urlhash: 'AAAAAAAAAAAA', urlhashdelete: 'x' },
      'No Entry for URL hash AAAAAAAAAAAA; nothing deleted.',
      false,
    ],
  ])('%s', async (name, fields, status, gone) => {
    expect(name === 'no token' ? await peer.delete(byUrl) : await remove(fields)).toBe(status);
    expect(shownAfter(later)).toBe(!gone);
  });

  it('by GET is refused', async () => {
    const query = new URLSearchParams({ transactionToken: await peer.token(), ...byUrl });
    expect(await peer.get(`${DELETION}?${query}`)).toMatchObject({ status: 405 });
    expect(shownAfter(later)).toBe(true);
  });

  it('has one token for many posts, until the process ends, and for administrators', async () => {
    peer = await TimedModel.start({ timing: timing(1, { start: 0 }) });
    const token = await peer.token();
    expect(token).toMatch(/^[\da-f]{40}$/);
    for (const urlstring of [at('a'), at('b')])
      expect(await peer.delete({ ...byUrl, transactionToken: token, urlstring })).toBe(
        `Removed URL ${urlstring}`,
      );
    expect(await peer.token()).toBe(token);
    await peer.model.stop();
    await peer.model.restart();
    expect(await peer.token()).not.toBe(token);
    await locked();
    expect(await peer.get(DELETION)).toMatchObject({ status: 401 });
    expect(await peer.token()).toBe('');
  });

  it('hides the document at the next commit, 16 s later', async () => {
    await remove();
    expect([0, 1_300, 13_700, later - 15_001].map(shownAfter)).toEqual([true, true, true, true]);
    expect([1, 1_760, 42_000].map(shownAfter)).toEqual([false, false, false]);
    expect(peer.model.search('word')).toEqual([]);
  });

  it('takes effect with an earlier commit, and deletes nothing that is pushed afterwards', async () => {
    await remove();
    expect(peer.model.kept(url)).toBeUndefined();
    await peer.get(UNKNOWN_HASH);
    expect(shownAfter(0)).toBe(false);
    await peer.put('a.txt', 'again', SOON);
    peer.time += later;
    expect(peer.model.shown(url)?.text).toBe('again');
  });

  it('takes effect even if the update at that time is refused', async () => {
    await remove();
    await peer.put('b.txt', '\uffff', SOON);
    expect(shownAfter(later)).toBe(false);
  });
});

describe('the process and its connections', () => {
  it('lose in a crash documents that were not handed to the index, and nothing in an orderly stop', async () => {
    peer = await TimedModel.start({ timing: timing(1, { start: 5 }) });
    await peer.put('before', 'a', TEXT);
    peer.time = 5_000;
    await peer.put('just before', 'a', TEXT);
    await peer.model.crash();
    const kept = () =>
      ['before', 'just before', 'stop'].map((name) => peer.model.shown(at(name))?.text);
    expect(kept()).toEqual(['a', undefined, undefined]);
    await peer.model.restart();
    await peer.put('stop', 'a', TEXT);
    await peer.model.stop();
    expect(kept()).toEqual(['a', undefined, 'a']);
  });

  it('are refused while it starts, and accepted afterwards', async () => {
    peer = await TimedModel.start({ timing: timing(1, { start: 100 }) });
    await peer.model.crash();
    const started = peer.model.restart();
    await expect(peer.get('/')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await started;
    expect((await peer.get('/api/yacydoc.xml')).status).toBe(200);
  });

  it('end after a long silence; half a request is answered then', async () => {
    peer = await TimedModel.start({ timing: timing(1, { idle: 300 }) });
    const { hostname, port } = new URL(peer.model.url);
    const talk = async (text: string) => {
      const socket = connect(Number(port), hostname);
      let received = '';
      let closed = false;
      socket.on('data', (chunk) => {
        received += chunk;
      });
      socket.on('close', () => {
        closed = true;
      });
      socket.write(text);
      await until(() => closed || received !== '', 'the peer says something');
      socket.destroy();
      return received;
    };
    expect(await talk('')).toBe('');
    expect(
      await talk('POST /api/push_p.json HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nc'),
    ).toMatch(/^HTTP\/1.1 200 OK.*\r\n\r\n\{\}\n$/s);
  });

  it('accept a nonce for 60 s, and each count once', async () => {
    await locked();
    const md5 = (text: string) => createHash('md5').update(text).digest('hex');
    const challengeOf = (response: Response) => response.headers['www-authenticate'] ?? '';
    const challenge = challengeOf(await peer.get('/api/push_p.json'));
    const [, realm = ''] = /realm="([^"]*)"/.exec(challenge) ?? [];
    const [, nonce = ''] = /nonce="([^"]*)"/.exec(challenge) ?? [];
    const ask = async (time: number, count: number, password = 'secret') => {
      peer.time = time;
      const nc = count.toString(16).padStart(8, '0');
      const uri = '/api/push_p.json';
      const secret = md5(`admin:${realm}:${password}`);
      const response = md5(`${secret}:${nonce}:${nc}:c:auth:${md5(`GET:${uri}`)}`);
      const header = `Digest username="admin", realm="${realm}", nonce="${nonce}", uri="${uri}", algorithm=MD5, response="${response}", qop=auth, nc=${nc}, cnonce="c"`;
      const answer = await peer.get(uri, `Authorization: ${header}\r\n`);
      return `${answer.status}${/stale=\w+/.exec(challengeOf(answer)) ?? ''}`;
    };
    for (const [expected, ...asked] of [
      ['200', 0, 1],
      ['401stale=false', 0, 1],
      ['200', 0, 7],
      ['200', 0, 3],
      ['401stale=false', 0, 8, 'wrong'],
      ['401stale=true', 0, 1_024],
      ['200', 59_000, 9],
      ['401stale=true', 62_000, 10],
    ] as [string, number, number, string?][])
      expect([asked, await ask(...asked)]).toEqual([asked, expected]);
  });
});

describe('the model reads', () => {
  it.each([
    ['a<b>W</b>', 'a W'],
    ['a>W ->e y', 'aW -e y'],
    ['a < b and c > d', 'a d'],
    ['one <!-- x --> two <script>not</script> three', 'one two three'],
    ['# Title\n\n*marks* stay', '# Title *marks* stay'],
    ['&lt;b&gt;W&lt;/b&gt;', 'W'],
    ['&#00060;b&#062;W', 'W'],
    ['&#X0003C;b&#X3e;W', 'W'],
    ['&amp;lt;b&amp;gt;W gr&amp;uuml;n', 'W grün'],
    ['a &lt; W end', 'a'],
    ['gr&uuml;n B&#228;r &copy; a&nbsp;W', 'grün Bär © a W'],
    [
      '‹a› "b" \'c\' 😀 東京 a\u00adb\u200bc\ufffdd',
      '‹a› "b" \'c\' 😀 東京 a\u00adb\u200bc\ufffdd',
    ],
    ['a\bb\tc\nd\ve\ff\rg', 'a b c d e f g'],
    ['a\x7fb\x80c\x85d\x9fe', 'abcde'],
    ['\ufeffW', '\ufeffW'],
    // In the source of YaCy, an entity ends at the next `;` of its run of text, and is dropped
    // if it is unknown.
    ['R&D, AT&amp;T &uuml W', 'R&D, AT&T &uuml W'],
    ['R&D costs; more', 'R more'],
    ['R&D <b>costs; more</b>', 'R&D costs; more'],
    ['a &LT; &UUML; &hellip; W', 'a W'],
    ['&#65601; &#x10042;', 'A B'],
    ['a&#1;b&#27;c', 'a b c'],
    ['a &gt; b &lt; W end', 'a b W end'],
    // One of U+0001-U+0007, … or NUL loses the whole text.
    ...[0, 1, 7, 14, 27, 31].map((code) => [`a W${String.fromCharCode(code)} end`, undefined]),
  ])('plain text as if it were HTML, as section 10 says: %j: %j', (text = '', expected) => {
    for (const type of ['text/plain', 'text/html'])
      expect(parse(at('a'), type, Buffer.from(text))?.text).toBe(expected);
  });

  it.each([
    ['a', 'text/plain; charset=ISO-8859-1', '\u00e9t\u00e9', '\u00e9t\u00e9'],
    ['a.pdf', undefined, pdfOf('Hello'), 'Hello'],
    ['a', 'application/pdf', hexPdfOf('one \u00e4'), 'one \u00e4'],
    ['a', 'application/pdf', poisonPdfOf('A'), 'A \uffff'],
    ['a.pdf', undefined, pdfOf('Hello').slice(0, 40), undefined],
    ['a', 'text/markdown', 'words', undefined],
    ['a', 'application/json', 'words', undefined],
    ['a', 'application/octet-stream', 'words', undefined],
    ['a', '', 'words', undefined],
  ])('%s of type %s', (name, type, content, expected) => {
    expect(parse(at(name), type, Buffer.from(content, 'latin1'))?.text).toBe(expected);
  });

  it('no words of a PDF that is declared as text', () => {
    const text = parse(at('a'), 'text/plain', Buffer.from(hexPdfOf('one')))?.text;
    expect(text).toContain('4 0 obj');
    expect(text).not.toContain('one');
  });

  it.each([
    ['http://x.example/a b', 'http://x.example/a%20b', true],
    ['http://x.example:80/a#f', 'http://x.example/a', true],
    ['http://x.example/b/../a//c', 'http://x.example/a/c', true],
    ['http://x.example/ü', 'http://x.example/%C3%BC', true],
    ['http://bücher.example/', 'http://xn--bcher-kva.example', true],
    ['HTTP://x.example', 'x.example', true],
    ['file:///srv/a b.txt', 'file://localhost/srv/a%20b.txt', true],
    ['http://X.example/', 'http://x.example/', false],
    ['http://x.example/%c3%bc', 'http://x.example/%C3%BC', false],
    ['http://x.example/a+b', 'http://x.example/a%20b', false],
    ['http://x.example/a/', 'http://x.example/a', false],
    ['http://x.example/%7Ea', 'http://x.example/~a', false],
  ])('%s and %s: the same is %s', (one, other, same) => {
    expect(hashOf(normalUrl(one)) === hashOf(normalUrl(other))).toBe(same);
  });

  it('the documents that its network takes', () => {
    const taken = (url: string) =>
      ['local', 'global'].map((each) => takes(each as Network, normalUrl(url)));
    for (const host of ['localhost', '127.0.0.1', '192.168.1.4', 'vault.local'])
      expect([host, taken(`http://${host}/`)]).toEqual([host, [true, false]]);
    expect(taken('file:///srv/a')).toEqual([true, false]);
    for (const url of [
      'http://example.org/',
      'https://nowhere.cc/',
      'http://home.arpa/',
      'ftp://example.org/',
    ])
      expect([url, taken(url)]).toEqual([url, [false, true]]);
  });
});
