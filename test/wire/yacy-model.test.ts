import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { deflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { until } from '../support/wait.js';
import { lenientBase64 } from './yacy/base64.js';
import { exchange, parseResponse, type Response, recorded } from './yacy/exchange.js';
import { parse } from './yacy/parser.js';
import { ascii85 } from './yacy/pdf-files.js';
import { RECORDED, timing } from './yacy/timing.js';
import { hashOf, normalUrl, takes } from './yacy/urls.js';
import { YacyModel, type YacyOptions } from './yacy/yacy-model.js';

/**
 * The model that scenarios run against is worth what it has in common with a real peer: what was recorded of one is asked
 * of the model again.
 */

/** A model whose time stands still until the test moves it. */
class Peer {
  time = 0;
  private constructor(public model: YacyModel) {}

  static async start(options: YacyOptions = {}): Promise<Peer> {
    let peer: Peer | undefined;
    const now = () => peer?.time ?? 0;
    peer = new Peer(await YacyModel.start({ address: '192.0.2.2:8090', now, ...options }));
    return peer;
  }

  /** Asks what was asked when the exchange was recorded, with another token where it had one. */
  replay(name: string, token = ''): Promise<Response> {
    const request = recorded(name).request.toString('latin1');
    const asked = request.replace(/(transactionToken=)[\da-f]{40}/, `$1${token}`);
    return exchange(this.model.url, Buffer.from(token === '' ? request : asked, 'latin1'));
  }

  /** The token that deletions need. */
  async token(): Promise<string> {
    return (await this.get('/IndexControlURLs_p.html')).headers['x-yacy-transaction-token'] ?? '';
  }

  /** What the page that deletes says after a post, or its status and why. */
  async delete(parameters: Readonly<Record<string, string>>): Promise<string> {
    const answer = await this.#post('/IndexControlURLs_p.html', parameters);
    if (answer.status !== 200) return `${answer.status} ${answer.reason}`;
    return /<p>(.*)<\/p>/.exec(answer.body.toString())?.[1] ?? '';
  }

  get(target: string, headers = ''): Promise<Response> {
    return exchange(this.model.url, Buffer.from(`GET ${target} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`));
  }

  push(parameters: Readonly<Record<string, string>>): Promise<Response> {
    return this.#post('/api/push_p.json', { count: '1', 'responseHeader-0': '', ...parameters });
  }

  /** Pushes a document of this host. */
  put(name: string, text: string, more: Readonly<Record<string, string>> = {}): Promise<Response> {
    return this.push({ 'url-0': at(name), 'data-0$file': base64(text), ...more });
  }

  #post(target: string, parameters: Readonly<Record<string, string>>): Promise<Response> {
    const body = new URLSearchParams(parameters).toString();
    const head = `POST ${target} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n`;
    const type = 'Content-Type: application/x-www-form-urlencoded\r\n\r\n';
    return exchange(this.model.url, Buffer.from(head + type + body));
  }
}

const at = (name: string): string => `http://x.example/${name}`;
const SOON = { synchronous: 'true' };
const AT_ONCE = { commit: 'true' };
const TEXT = { 'contentType-0': 'text/plain' };

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** What is the same in every answer to the same question. */
function comparable({ status, reason, headers, body }: Response) {
  const { date, expires, 'last-modified': modified, ...rest } = headers;
  const challenge = rest['www-authenticate']?.replace(/nonce="[^"]{32}"/, 'nonce');
  return {
    status,
    reason,
    headers: { ...rest, ...(challenge === undefined ? {} : { 'www-authenticate': challenge }) },
    body: body.toString(),
    dated: [date, expires, modified].map((value) => value !== undefined),
  };
}

const SAME_TO_THE_BYTE = [
  ...['push_a_urlenc_with_rh', 'push_b_mp_onefile_ascii', 'push_b_mp_twofiles'],
  ...['push_ok_multipart_base64_field', 'push_c_count_bigger_than_items_rh', 'push_c_nocount'],
  ...['push_d_bad_empty', 'push_d_bad_proto', 'push_d_bad_quote'],
  ...['push_e_sync', 'push_f_commit', 'push_g_ct_lm_rfc1123'],
  ...['err_mp_truncated', 'err_404'],
  ...['yacydoc_xml_unknown_url', 'yacydoc_json_known_url'],
  ...['share_dl__share_dump_nope_xml_gz'],
  ...['Tables_p_list_xml', 'Tables_p_unknown'],
  ...['table_commitrow_xml'],
  ...['auth_8090_referer_foreign'],
  ...['delete_by_get', 'delete_no_token'],
];

describe('the model answers as the peer did', () => {
  it.each(SAME_TO_THE_BYTE)('%s', async (name) => {
    const peer = await Peer.start();
    const answer = await peer.replay(name);
    expect(comparable(answer)).toEqual(comparable(parseResponse(recorded(name).response)));
  });

  it.each(['auth_no_auth', 'auth_basic_ok', 'auth_digest_nc1024'])('%s, with a password', async (name) => {
    const peer = await Peer.start({ password: 'secret' });
    const answer = await peer.replay(name);
    expect(comparable(answer)).toEqual(comparable(parseResponse(recorded(name).response)));
  });

  it.each([
    'push_urlenc_json',
    'push_batch_async_missing_rh_mid',
    'push_batch_sync_rejected_mid',
    'citation_unknown_url',
    'Tables_p_unknown_commit',
  ])('%s, but for the lower end of the stack', async (name) => {
    const peer = await Peer.start();
    const upper = ({ status, reason, headers, body }: Response) => ({
      status,
      reason,
      type: headers['content-type'],
      connection: headers.connection,
      body: body.toString().split('(YaCyDefaultServlet.java:314)')[0],
    });
    const answer = await peer.replay(name);
    expect(upper(answer)).toEqual(upper(parseResponse(recorded(name).response)));
  });

  it.each(['delete_token_get', 'delete_ok', 'delete_unknown', 'delete_by_hash_unknown'])(
    '%s, but for the most of its page, which no program reads',
    async (name) => {
      const peer = await Peer.start();
      const token = await peer.token();
      const shape = ({ status, reason, headers, body }: Response) => ({
        status,
        reason,
        type: headers['content-type'],
        token: headers['x-yacy-transaction-token']?.replace(/[\da-f]/g, 'x'),
        title: /<title>YaCy '.*'(.*)<\/title>/.exec(body.toString())?.[1],
      });
      const answer = await peer.replay(name, token);
      expect(shape(answer)).toEqual(shape(parseResponse(recorded(name).response)));
    },
  );

  it('shows a document in the form in which the peer showed it', async () => {
    const peer = await Peer.start();
    await peer.push({
      'url-0': 'http://push3.example.org/g6.html',
      'collection-0': 'c3',
      'contentType-0': 'text/html',
      'data-0$file': base64('<title>My Title g6</title>Some words.'),
    });
    peer.time = 60;
    const masked = (response: Response) =>
      response.body
        .toString()
        .replace(/(<(dc:date|yacy:\w+|dc:format.extent)>)[^<]*/g, '$1')
        .replace(/(yacy:urlhash:)[\w-]{12}/g, '$1');
    for (const name of ['yacydoc_xml_known_url', 'yacydoc_xml_post']) {
      const answer = await peer.replay(name);
      expect(masked(answer)).toBe(masked(parseResponse(recorded(name).response)));
      expect(answer.body.toString()).toMatch(/<dc:date>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ</);
      expect(answer.body.toString()).toMatch(/<yacy:loaddate>\w{3} \w{3} \d\d \d\d:\d\d:\d\d UTC \d{4}</);
      expect(answer.body.toString()).toMatch(/urlhash:[\w-]{12}</);
    }
  });

  it('writes tables, and reads them, as the peer did', async () => {
    const peer = await Peer.start();
    const set = (row: string) => peer.get(`/api/table_p.html?table=wiretest&commitrow=1&${row}`);
    await set('pk=row1&col_note=hello&col_name=first');
    await peer.replay('table_commitrow_post');
    await set('pk=row2&col_note=updated+only+note');
    await set('col_name=nopk&col_other=x');
    await peer.replay('table_commitrow_xml');
    await set('pk=row5&col_name=multipart&col_note=mp+%C3%A9%E6%97%A5%E6%9C%AC');
    await peer.replay('table_commitrow_special');
    const rows = (response: Response) =>
      response.body
        .toString()
        .split('</row>')
        .map((row) =>
          row
            .split(/(?=<cell )/)
            .map((cell) => cell.trim())
            .sort(),
        );
    const answer = await peer.replay('Tables_p_xml_special');
    expect(rows(answer)).toEqual(rows(parseResponse(recorded('Tables_p_xml_special').response)));
  });

  it('lists its tables among the options of a page', async () => {
    const peer = await Peer.start();
    for (const name of ['../../x', 'UPPER', 'a b', 'with/slash', 'é']) {
      await peer.get(`/api/table_p.html?table=${encodeURIComponent(name)}&commitrow=1&pk=a&col_a=b`);
    }
    const options = (response: Response) =>
      [...response.body.toString().matchAll(/<option value="(.*?)".*?<\/option>/g)].map(([, name]) => name);
    const answer = await peer.replay('Tables_p_list_html');
    const asked = options(parseResponse(recorded('Tables_p_list_html').response));
    expect(options(answer).toSorted()).toEqual(asked.toSorted());
  });

  it('lists and hands out what it shares as the peer did', async () => {
    const peer = await Peer.start();
    const modified = Date.parse('2026-11-21T03:37:40.700Z');
    peer.model.share.put('dump/yacy_dump_r1_ts.xml.gz', 'raw text payload', modified);
    peer.model.share.put('dump/yacy_dump_u1_ts.xml.gz', '0123456789', modified);
    peer.model.share.put('dump/yacy_dump_x_ts.xml.gz', 'abc', modified);
    for (const name of ['share_dl__share_dump_', 'share_dl__share_dump_yacy_dump_r1_ts_xml_gz']) {
      const answer = await peer.replay(name);
      expect(comparable(answer)).toEqual(comparable(parseResponse(recorded(name).response)));
    }
    const since = (at: string) =>
      peer.get('/share/dump/yacy_dump_r1_ts.xml.gz', `If-Modified-Since: Sat, 21 Nov 2026 ${at} GMT\r\n`);
    expect((await since('03:37:40')).status).toBe(304);
    expect((await since('03:37:39')).status).toBe(200);
  });

  it('shows citations in the form in which the peer showed them', async () => {
    const peer = await Peer.start();
    const bird = 'This is a long enough sentence about the habits of northern sea birds in winter.';
    const other = 'Another quite long sentence that appears in both of the documents for citation tests.';
    const documents = {
      'cite.example.org/one.txt': `${bird} ${other} Short.`,
      'cite2.example.net/two.txt': `${bird} And more. ${other}`,
      'cite3.example.com/three.txt': other,
    };
    for (const [url, text] of Object.entries(documents)) {
      await peer.push({ 'url-0': `http://${url}`, 'data-0$file': base64(text), commit: 'true' });
      peer.time += RECORDED.commitPause;
    }
    const listed = (response: Response) =>
      response.body.toString().match(/<dt>.*?<\/dt><dd>.*?(citations: of \S*?<|<\/dd>)/g);
    const answer = await peer.replay('citation_filter_true');
    expect(listed(answer)).toEqual(listed(parseResponse(recorded('citation_filter_true').response)));
    expect(listed(await peer.replay('citation_unknown_hash'))).toBeNull();
  });
});

describe('the model does what the peer did', () => {
  it.each([
    ['push_a_urlenc_with_rh', 'a2', { size: 0, words: 0, text: '' }],
    ['push_b_mp_onefile_ascii', 'b2', { size: 101, text: 'http push example org b2 txt' }],
    ['push_b_mp_twofiles', 'b5', { size: 135, text: expect.stringContaining('uniquewordb5') }],
    ['push_ok_multipart_base64_field', 'b6', { size: 135, text: expect.stringContaining('uniquewordb6') }],
    ['push_g_ct_lm_rfc1123', 'g1', { lastModified: Date.parse('1994-11-15T12:45:26Z') }],
  ])('%s: what is indexed', async (name, document, expected) => {
    const peer = await Peer.start();
    await peer.replay(name);
    const url = peer.model.served[0]?.urls.find((each) => each.endsWith(`/${document}.txt`)) ?? '';
    expect(peer.model.kept(url)).toMatchObject(expected);
  });

  it.each(['push_batch_async_missing_rh_mid', 'push_batch_sync_rejected_mid'])(
    '%s: what came before the failure stays',
    async (name) => {
      const peer = await Peer.start();
      await peer.replay(name);
      const urls = peer.model.served[0]?.urls ?? [];
      expect(urls.map((url) => peer.model.kept(url) !== undefined)).toEqual([true, false, false]);
    },
  );

  it('shows a document, takes it back, and shows it again, or at once when an unknown hash is asked for', async () => {
    const peer = await Peer.start();
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
    await peer.get('/api/citation.html?hash=AAAAAAAAAAAA');
    expect(peer.model.shown(at('b.txt'))).toBeDefined();
  });

  describe('one of U+0001-U+0007, …', () => {
    it('loses the whole text; the document is shown, with its size', async () => {
      const peer = await Peer.start();
      await peer.put('notes/log.txt', '\u001b[1mred\u001b[0m', SOON);
      const lost = { text: 'http x example notes log txt', words: 6, size: 11 };
      expect(peer.model.kept(at('notes/log.txt'))).toMatchObject(lost);
      expect(peer.model.search('red')).toEqual([]);
    });
  });

  it.each([
    ['text', 'a.txt', 'one two I am 3 at 10', 7],
    ['text that is lost as a tag', 'a.txt', '<one two', 0],
    ['no parser', 'a.bin', 'one two', 5],
    ['nothing', 'a.bin', '', 0],
  ])('counts the words of a document: %s', async (_, name, text, words) => {
    const peer = await Peer.start();
    await peer.put(name, text, SOON);
    const answer = await peer.get(`/api/yacydoc.xml?url=${at(name)}`);
    expect(answer.body.toString()).toContain(`<yacy:words>${words}</yacy:words>`);
  });

  describe('U+FFFE or U+FFFF in one document', () => {
    const kept = (peer: Peer, names: readonly string[]) =>
      names.map((name) => peer.model.kept(at(name))?.text);
    const PDF = '%PDF-1.4\n4 0 obj\n<< >>\nstream\n<FEFF0041FFFF> Tj\nendstream\nendobj\n%%EOF\n';

    it.each([
      ...['\ufffe', '\uffff', '&#65535;', '&#xfffe;', '&amp;#xFFFF;', '&#-1;', '&#131071;'],
      ...['<title>a&#65535;</title>b', PDF],
    ])('loses every document of the update: %j', async (text) => {
      const peer = await Peer.start();
      const name = text === PDF ? 'poison.pdf' : 'poison.txt';
      await peer.put('before.txt', 'before');
      const answer = await peer.put(name, text);
      await peer.put('behind.txt', 'behind');
      expect(answer.body.toString()).toContain('"successall": "true"');
      peer.time = 60;
      expect(peer.model.shown(at(name))).toBeDefined();
      expect(kept(peer, ['before.txt', name, 'behind.txt'])).toEqual([undefined, undefined, undefined]);
      peer.time = 60_000;
      expect(peer.model.search('before')).toEqual([]);
    });

    it.each(['&#65535', '&#1114111000000;', '\u{1fffe}\u{1ffff}'])(
      'is not what looks like it: %j',
      async (text) => {
        const peer = await Peer.start();
        await peer.put('a.txt', text);
        expect(kept(peer, ['a.txt'])).toEqual([expect.anything()]);
      },
    );

    it('loses no document of another update, and no older version', async () => {
      const peer = await Peer.start();
      const { indexed, buffered, commit } = RECORDED;
      await peer.put('old', 'old', TEXT);
      await peer.put('poison', 'harmless', TEXT);
      peer.time += indexed + buffered + commit;
      await peer.put('earlier', 'earlier', TEXT);
      peer.time += indexed + buffered;
      await peer.put('old', 'new', TEXT);
      await peer.put('poison', 'poison \uffff', TEXT);
      peer.time += indexed + buffered;
      await peer.put('later', 'later', TEXT);
      const names = ['old', 'poison', 'earlier', 'later'];
      const expected = ['old', 'harmless', 'earlier', 'later'];
      expect(kept(peer, names)).toEqual(expected);
      peer.time += indexed + buffered + commit;
      expect(names.map((name) => peer.model.shown(at(name))?.text)).toEqual(expected);
    });

    it('is in an update of its own after a commit', async () => {
      const peer = await Peer.start();
      await peer.put('a.txt', 'a', AT_ONCE);
      await peer.put('b.txt', 'poison \uffff', AT_ONCE);
      await peer.put('c.txt', 'c', SOON);
      await peer.get('/api/citation.html?hash=AAAAAAAAAAAA');
      expect(kept(peer, ['a.txt', 'b.txt', 'c.txt'])).toEqual(['a', undefined, 'c']);
    });
  });

  describe('IndexControlURLs_p.html', () => {
    const url = at('a.txt');
    const later = RECORDED.buffered + RECORDED.commit;
    const isShown = (peer: Peer) => peer.model.shown(url) !== undefined;
    const pushed = async () => {
      const peer = await Peer.start();
      await peer.put('a.txt', 'word', AT_ONCE);
      peer.time += RECORDED.commitPause;
      const transactionToken = await peer.token();
      const remove = (more: Readonly<Record<string, string>> = {}) =>
        peer.delete({ transactionToken, urlstring: url, urldelete: 'Delete URL', ...more });
      return { peer, remove, transactionToken };
    };

    it.each<[string, Readonly<Record<string, string>>, string, boolean]>([
      ['URL in the index', {}, `Removed URL ${url}`, true],
      ['URL not in the index', { urlstring: at('b') }, `Removed URL ${at('b')}`, false],
      ['no token', { transactionToken: '' }, '400 Missing transaction token.', false],
      ['wrong token', { transactionToken: '0'.repeat(40) }, '400 Invalid transaction token.', false],
    ])('%s', async (name, more, said, gone) => {
      const { peer, remove } = await pushed();
      if (name === 'no token') expect(await peer.delete({ urlstring: url, urldelete: 'x' })).toBe(said);
      else expect(await remove(more)).toBe(said);
      peer.time += later;
      expect(isShown(peer)).toBe(!gone);
    });

    it.each([
      ['unknown hash', 'AAAAAAAAAAAA', 'No Entry for URL hash AAAAAAAAAAAA; nothing deleted.', false],
      ['known hash', hashOf(url), `Removed URL ${url}`, true],
    ])('%s', async (_, urlhash, said, gone) => {
      const { peer, transactionToken } = await pushed();
      expect(await peer.delete({ transactionToken, urlhash, urlhashdelete: 'x' })).toBe(said);
      peer.time += later;
      expect(isShown(peer)).toBe(!gone);
    });

    it('GET instead of POST', async () => {
      const { peer, transactionToken } = await pushed();
      const query = new URLSearchParams({ transactionToken, urlstring: url, urldelete: 'x' });
      expect(await peer.get(`/IndexControlURLs_p.html?${query}`)).toMatchObject({ status: 405 });
      peer.time += later;
      expect(isShown(peer)).toBe(true);
    });

    it('has one token for many posts, until the process ends, and for administrators', async () => {
      const peer = await Peer.start({ timing: timing(1, { start: 0 }) });
      const token = await peer.token();
      expect(token).toMatch(/^[\da-f]{40}$/);
      for (const urlstring of [at('a'), at('b')]) {
        const said = await peer.delete({ transactionToken: token, urlstring, urldelete: 'x' });
        expect(said).toBe(`Removed URL ${urlstring}`);
      }
      expect(await peer.token()).toBe(token);
      await peer.model.stop();
      await peer.model.restart();
      expect(await peer.token()).not.toBe(token);
      const locked = await Peer.start({ password: 'secret' });
      expect(await locked.get('/IndexControlURLs_p.html')).toMatchObject({ status: 401 });
      expect(await locked.token()).toBe('');
    });

    it('shows the document until the next commit, 16 s later, and then no more', async () => {
      const { peer, remove } = await pushed();
      await remove();
      const start = peer.time;
      const shownAfter = (ms: number) => {
        peer.time = start + ms;
        return isShown(peer);
      };
      expect([0, 1_300, 15_000, later - 1].every(shownAfter)).toBe(true);
      expect([later, 18_000, 60_000].some(shownAfter)).toBe(false);
      expect(peer.model.search('word')).toEqual([]);
    });

    it('deletes with a commit that comes sooner, and deletes nothing that is pushed afterwards', async () => {
      const { peer, remove } = await pushed();
      await remove();
      expect(peer.model.kept(url)).toBeUndefined();
      await peer.get('/api/citation.html?hash=AAAAAAAAAAAA');
      expect(isShown(peer)).toBe(false);
      await peer.put('a.txt', 'again', SOON);
      peer.time += later;
      expect(peer.model.shown(url)?.text).toBe('again');
    });

    it('deletes though the update of that moment is refused', async () => {
      const { peer, remove } = await pushed();
      await remove();
      await peer.put('b.txt', '\uffff', SOON);
      peer.time += later;
      expect(isShown(peer)).toBe(false);
    });
  });

  it('has one processor, for which pushes and look-ups stand in line', async () => {
    const peer = await Peer.start({ timing: timing(1, { perDocument: 20, perLookUp: 10 }) });
    const start = performance.now();
    const done: string[] = [];
    const when = async (name: string, answer: Promise<Response>, asked: number) => {
      expect((await answer).status).toBe(200);
      done.push(name);
      expect(performance.now() - start).toBeGreaterThanOrEqual(asked - 1);
    };
    const arrived = (requests: number) =>
      until(() => peer.model.served.length === requests, 'the request arrived');
    const two = when('push', peer.push({ 'url-0': at('a'), 'url-1': at('b') }), 40);
    await arrived(1);
    const one = when('look-up', peer.get(`/api/yacydoc.xml?url=${at('a')}`), 50);
    await arrived(2);
    const last = when('push again', peer.push({ 'url-0': at('c') }), 70);
    expect(peer.model.shown('http://x.example/a')).toBeUndefined();
    await Promise.all([two, one, last]);
    expect(done).toEqual(['push', 'look-up', 'push again']);
  });

  it('does not process what waited for its processor when it crashed', async () => {
    const peer = await Peer.start({ timing: timing(1, { perDocument: 50, start: 0 }) });
    const pushed = peer.put('a.txt', 'a');
    await until(() => peer.model.served.length === 1, 'the push arrived');
    await peer.model.crash();
    await peer.model.restart();
    await peer.put('b.txt', 'b');
    expect(await pushed).toMatchObject({ status: Number.NaN });
    expect(peer.model.kept(at('a.txt'))).toBeUndefined();
    expect(peer.model.kept(at('b.txt'))).toBeDefined();
  });

  it('loses in a crash what it had not handed to the index, and nothing in an orderly stop', async () => {
    const peer = await Peer.start({ timing: timing(1, { start: 5 }) });
    const push = (name: string) => peer.put(name, 'a', TEXT);
    await push('before');
    peer.time = 5_000;
    await push('just before');
    await peer.model.crash();
    const kept = () => ['before', 'just before', 'stop'].map((name) => peer.model.shown(at(name)));
    expect(kept()).toEqual([expect.anything(), undefined, undefined]);
    await peer.model.restart();
    await push('stop');
    await peer.model.stop();
    expect(kept()).toEqual([expect.anything(), undefined, expect.anything()]);
  });

  it('refuses connections while it starts, and is then where it was', async () => {
    const peer = await Peer.start({ timing: timing(1, { start: 100 }) });
    await peer.model.crash();
    const started = peer.model.restart();
    await expect(peer.get('/')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await started;
    expect((await peer.get('/api/yacydoc.xml')).status).toBe(200);
  });

  it('closes a connection that was silent for too long, and answers half a request then', async () => {
    const peer = await Peer.start({ timing: timing(1, { idle: 300 }) });
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
    expect(await talk('POST /api/push_p.json HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nc')).toMatch(
      /^HTTP\/1.1 200 OK.*\r\n\r\n\{\}\n$/s,
    );
  });

  it('lets a nonce in for 60 s, each count once', async () => {
    const peer = await Peer.start({ password: 'yacypw' });
    const md5 = (text: string) => createHash('md5').update(text).digest('hex');
    const challengeOf = (response: Response) => response.headers['www-authenticate'] ?? '';
    const challenge = challengeOf(await peer.get('/api/push_p.json'));
    const [, realm = ''] = /realm="([^"]*)"/.exec(challenge) ?? [];
    const [, nonce = ''] = /nonce="([^"]*)"/.exec(challenge) ?? [];
    const ask = async (count: number, password = 'yacypw') => {
      const nc = count.toString(16).padStart(8, '0');
      const uri = '/api/push_p.json';
      const secret = md5(`admin:${realm}:${password}`);
      const response = md5(`${secret}:${nonce}:${nc}:c:auth:${md5(`GET:${uri}`)}`);
      const header = `Digest username="admin", realm="${realm}", nonce="${nonce}", uri="${uri}", algorithm=MD5, response="${response}", qop=auth, nc=${nc}, cnonce="c"`;
      const answer = await peer.get(uri, `Authorization: ${header}\r\n`);
      return `${answer.status}${/stale=\w+/.exec(challengeOf(answer)) ?? ''}`;
    };
    expect(await ask(1)).toBe('200');
    expect(await ask(1)).toBe('401stale=false');
    expect(await ask(7)).toBe('200');
    expect(await ask(3)).toBe('200');
    expect(await ask(8, 'wrong')).toBe('401stale=false');
    expect(await ask(1_024)).toBe('401stale=true');
    peer.time = 59_000;
    expect(await ask(9)).toBe('200');
    peer.time = 62_000;
    expect(await ask(10)).toBe('401stale=true');
  });
});

describe('the model reads', () => {
  it.each([
    ['a < b and c > d', 'a d'],
    ['one <b>two</b> <!-- x --> three', 'one two three'],
    ['1 &lt; 2 is lost', '1'],
    ['# Title\n\n*marks* stay', '# Title *marks* stay'],
    ['kept <script>not</script>', 'kept'],
  ])('plain text as if it were HTML: %j', (text, expected) => {
    expect(parse(at('a'), 'text/plain', Buffer.from(text))?.text).toBe(expected);
  });

  it.each([
    ['a tag', 'a<b>W</b>', 'a W'],
    ['a `>`', 'a>W ->e y', 'aW -e y'],
    ['a tag in entities', '&lt;b&gt;W&lt;/b&gt;', 'W'],
    ['decimal, with zeros', '&#00060;b&#062;W', 'W'],
    ['hexadecimal, with zeros', '&#X0003C;b&#X3e;W', 'W'],
    ['decoded twice', '&amp;lt;b&amp;gt;W gr&amp;uuml;n', 'W grün'],
    ['a lone `&lt;`', 'a &lt; W end', 'a'],
    ['entities', 'gr&uuml;n B&#228;r &copy; a&nbsp;W', 'grün Bär © a W'],
    [
      'what stays as it is',
      '‹a› "b" \'c\' 😀 東京 a\u00adb\u200bc\ufffdd',
      '‹a› "b" \'c\' 😀 東京 a\u00adb\u200bc\ufffdd',
    ],
    ['U+0008, tab, LF, VT, FF, CR: blanks', 'a\bb\tc\nd\ve\ff\rg', 'a b c d e f g'],
    ['U+007F-U+009F: nothing', 'a\x7fb\x80c\x85d\x9fe', 'abcde'],
    ['U+FEFF at the start: a character', '\ufeffW', '\ufeffW'],
    ['source: nothing is decoded where no `;` follows', 'R&D, AT&amp;T &uuml W', 'R&D, AT&T &uuml W'],
    ['source: what is no entity is dropped up to the next `;`', 'R&D costs; more', 'R more'],
    ['source: an entity ends with its run of text', 'R&D <b>costs; more</b>', 'R&D costs; more'],
    ['source: names are case sensitive, of Latin-1', 'a &LT; &UUML; &hellip; W', 'a W'],
    ['source: a number is cut to 16 bits', '&#65601; &#x10042;', 'A B'],
    ['source: a control character of an entity is a blank', 'a&#1;b&#27;c', 'a b c'],
    ['source: a `>` makes up for a `<` behind it', 'a &gt; b &lt; W end', 'a b W end'],
  ])('plain text and HTML as section 10 says: %s: %j', (_, text, expected) => {
    for (const type of ['text/plain', 'text/html'])
      expect(parse(at('a'), type, Buffer.from(text))?.text).toBe(expected);
  });

  it.each([0, 1, 7, 14, 27, 31])('U+0001-U+0007, … or NUL: U+00%i loses the whole text', (code) => {
    expect(parse(at('a'), 'text/plain', Buffer.from(`a W${String.fromCharCode(code)} end`))).toBeUndefined();
  });

  it('a PDF that is text by its source or by its words, as it is pushed', () => {
    const line = Buffer.from('feff0041004200ffffff', 'hex').toString('hex');
    const wordsOf = (content: string, filter: string, type: string) => {
      const file = `%PDF-1.4\n4 0 obj\n<< /Filter ${filter} >>\nstream\n${content}endstream\nendobj\n%%EOF\n`;
      return parse(at('a'), type, Buffer.from(file, 'latin1'))?.text;
    };
    const packed = ascii85(deflateSync('BT (one \\344) Tj T* <74776f> Tj ET'));
    const filters = '[ /ASCII85Decode /FlateDecode ]';
    expect(wordsOf(packed, filters, 'application/pdf')).toBe('one \u00e4 two');
    expect(wordsOf(packed, filters, 'text/plain')).toContain('4 0 obj');
    expect(wordsOf(packed, filters, 'text/plain')).not.toContain('one');
    expect(wordsOf(`<${line}> Tj\n`, '', 'application/pdf')).toBe('AB\u00ff\uffff');
    expect(wordsOf('broken', filters, 'application/pdf')).toBeUndefined();
  });

  it('charsets, PDF, and nothing of Markdown, JSON and unknown types', () => {
    const latin = parse(
      'http://x.example/a',
      'text/plain; charset=ISO-8859-1',
      Buffer.from('\u00e9t\u00e9', 'latin1'),
    );
    expect(latin?.text).toBe('\u00e9t\u00e9');
    const pdf =
      '%PDF-1.4\n1 0 obj\n<< /Length 9 >>\nstream\nBT (Hello \\(you\\)) Tj ET\nendstream\nendobj\n%%EOF\n';
    expect(parse('http://x.example/a.pdf', undefined, Buffer.from(pdf))?.text).toBe('Hello (you)');
    expect(parse('http://x.example/a.pdf', undefined, Buffer.from(pdf.slice(0, 40)))).toBeUndefined();
    for (const type of ['text/markdown', 'application/json', 'application/octet-stream', '']) {
      expect(parse(at('a'), type, Buffer.from('words'))).toBeUndefined();
    }
  });

  it('text that is not base64 as garbage, but text that is not ASCII as it is', () => {
    expect(lenientBase64('Hello, this is text.')).toHaveLength(15);
    expect(lenientBase64('Hällo')).toEqual(Buffer.from('Hällo'));
    expect(lenientBase64('SGVsbG8=').toString()).toBe('Hello');
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

  it('which documents its network takes', () => {
    const addresses = ['localhost', '127.0.0.1', '192.168.1.4', 'vault.local'];
    const local = ['file:///srv/a', ...addresses.map((host) => `http://${host}/`)];
    const global = ['http://example.org/', 'https://nowhere.cc/', 'http://home.arpa/', 'ftp://example.org/'];
    for (const url of local.map(normalUrl))
      expect([takes('global', url), takes('local', url)]).toEqual([false, true]);
    for (const url of global.map(normalUrl))
      expect([takes('global', url), takes('local', url)]).toEqual([true, false]);
  });
});
