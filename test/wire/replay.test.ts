import { describe, expect, it } from 'vitest';
import type { PeerClient, PeerError } from '../../src/index.js';
import type { ShareStream } from '../../src/peer/share.js';
import { clientOf } from '../peer/support.js';
import { ReplayPeer, type Script } from './replay-peer.js';

/** Replays the recorded answers of a YaCy 1.92, byte for byte. */

async function replaying(script: Script, dialect: 'yacy' | 'auto' = 'yacy') {
  const peer = await ReplayPeer.start(script);
  const client = clientOf(peer.url, { dialect, credentials: { username: 'admin', password: 'x' } });
  return { peer, client };
}

const DOCUMENT = 'http://push3.example.org/g6.html';
const CITED = 'http://cite.example.org/one.txt';
const PUSH = 'POST /api/push_p.json';

const items = (...urls: readonly string[]) =>
  urls.map((url) => ({ url, collection: 'c', data: Buffer.from('Gulls sleep on one leg.') }));

async function pushed(recording: string, ...urls: readonly string[]) {
  const { client } = await replaying({
    'GET /api/push_p.json': 'auth_digest_ok_nc1',
    [PUSH]: recording,
  });
  return await client.push(items(...urls));
}

async function contentOf({ chunks, ...share }: ShareStream) {
  const pieces: Uint8Array[] = [];
  for await (const chunk of chunks) pieces.push(chunk);
  return { ...share, content: Buffer.concat(pieces).toString() };
}

describe('the dialect', () => {
  it('is yacy if the page for documents is that of YaCy, and unknown if the peer has neither page', async () => {
    const { peer, client } = await replaying(
      { 'GET /api/yacydoc.xml': 'yacydoc_xml_unknown_url' },
      'auto',
    );
    expect([client.dialect, await client.detect(), client.dialect]).toEqual([
      undefined,
      'yacy',
      'yacy',
    ]);
    expect(peer.lines.toSorted()).toEqual(['GET /api/peerdoc.html', 'GET /api/yacydoc.xml']);
    const other = await replaying({}, 'auto');
    await expect(other.client.detect()).rejects.toMatchObject({ code: 'PEER_ANSWER' });
    expect(other.client.dialect).toBeUndefined();
  });
});

describe('a push', () => {
  const ONE = 'http://push2.example.org/d0.txt';
  const OK = { ok: true };
  const refused = (message: string) => ({ ok: false, message: expect.stringContaining(message) });

  it.each([
    ['push_e_sync', [ONE], [OK]],
    // The quote makes the answer no JSON.
    ['push_d_bad_quote', [ONE, 'http://push2.example.org/q"uo<te>.txt', ONE], [OK, OK, OK]],
    [
      'push_d_bad_proto',
      [ONE, 'foo://push2.example.org/d1.txt', ONE],
      [OK, refused('unknown protocol'), OK],
    ],
    ['push_d_bad_empty', [ONE, 'http://', ONE], [OK, refused("URL not parseable: 'http://'"), OK]],
  ])('is answered for each item: %s', async (recording, urls, results) => {
    expect((await pushed(recording, ...urls)).results).toEqual(results);
  });

  const UNREAD = { code: 'PEER_ANSWER', delivered: 'yes' };
  const FAILED = { code: 'PEER_FAILED', status: 500 };

  it.each([
    ['that says that it took more than was sent', 'push_c_count_bigger_than_items_rh', UNREAD],
    ['that took none, with success', 'push_c_nocount', UNREAD],
    ['to a request that was not understood', 'err_mp_truncated', UNREAD],
    ['as a page', 'push_d_bad_html', UNREAD],
    ['that is empty', 'yacydoc_json_known_url', UNREAD],
    ['of a page that failed at once', 'push_urlenc_json', FAILED],
    ['of a page that failed in the middle', 'push_batch_async_missing_rh_mid', FAILED],
  ])('is not accepted by an answer %s', async (_, recording, error) => {
    await expect(pushed(recording, ONE)).rejects.toMatchObject(error);
  });

  it('waits until Digest has proved the password', async () => {
    const { peer, client } = await replaying({
      'GET /api/push_p.json': ['auth_no_auth', 'auth_digest_ok_nc1'],
      [PUSH]: 'push_ok_multipart_base64_field',
    });
    await client.push(items('http://push.example.org/b6.txt'));
    expect(peer.lines).toEqual(['GET /api/push_p.json', 'GET /api/push_p.json', PUSH]);
    expect(peer.requests[2]?.head).toMatch(
      /^authorization: Digest username="admin", .*nc=00000002/im,
    );
    expect(peer.requests.map(({ head }) => head).join('\n')).not.toMatch(/^referer:/im);
  });

  it('is refused without sending documents if the password is wrong', async () => {
    const script = { 'GET /api/push_p.json': ['auth_no_auth', 'auth_digest_wrong_password'] };
    const { peer, client } = await replaying(script);
    await expect(client.push(items(ONE))).rejects.toMatchObject({ code: 'PEER_AUTH' });
    expect(peer.lines).not.toContain(PUSH);
  });
});

describe('a missing object', () => {
  const DOC = 'POST /api/yacydoc.xml';
  const CITATION = 'POST /api/citation.html';
  const ASK = {
    [DOC]: (client: PeerClient) => client.peerdoc({ url: DOCUMENT }),
    [CITATION]: (client: PeerClient) => client.citation({ url: CITED }),
    'POST /Tables_p.xml': (client: PeerClient) => client.tables.read({ table: 'nosuch' }),
    'GET /share/dump/nope.xml.gz': (client: PeerClient) =>
      client.share({ data: 'nope.xml.gz', c: 'dump' }, contentOf),
    'GET /share/': (client: PeerClient) => client.shares(),
  };

  it.each<[keyof typeof ASK, string, unknown]>([
    [DOC, 'yacydoc_xml_unknown_url', undefined],
    [DOC, 'err_404', 'PEER_REFUSED'],
    [DOC, 'yacydoc_json_known_url', 'PEER_ANSWER'],
    [CITATION, 'citation_unknown_url', undefined],
    [CITATION, 'citation_fresh_4s', undefined],
    [CITATION, 'citation_none', undefined],
    [CITATION, 'citation_unknown_hash', undefined],
    [CITATION, 'push_urlenc_json', 'PEER_FAILED'],
    [CITATION, 'err_404', 'PEER_REFUSED'],
    ['POST /Tables_p.xml', 'Tables_p_unknown', undefined],
    ['POST /Tables_p.xml', 'Tables_p_list_xml', undefined],
    ['GET /share/dump/nope.xml.gz', 'share_dl__share_dump_nope_xml_gz', undefined],
    ['GET /share/', 'err_404', []],
    // The page of `dump/` in the place of its parent: its links lead elsewhere, and are none of
    // this directory.
    ['GET /share/', 'share_dl__share_dump_', []],
  ])('is told from a failure: %s: %s', async (line, recording, expected) => {
    const { client } = await replaying({
      'GET /Tables_p.xml': 'Tables_p_unknown',
      [line]: recording,
    });
    const outcome = await ASK[line](client).catch(({ code }: PeerError) => code);
    expect(outcome).toEqual(expected);
  });
});

describe('a document', () => {
  it.each([
    ['yacydoc_xml_known_url', { url: DOCUMENT }],
    ['yacydoc_xml_post', { url: 'HTTP://PUSH3.example.org/./g6.html' }],
    ['yacydoc_xml_known_hash', { urlhash: 'He4fSbqdOZpQ' }],
  ])('is read: %s', async (recording, query) => {
    const { client } = await replaying({ 'POST /api/yacydoc.xml': recording });
    const at = Date.parse('2026-11-21T03:26:19Z');
    expect(await client.peerdoc(query)).toMatchObject({
      url: 'url' in query ? query.url : DOCUMENT,
      urlhash: 'He4fSbqdOZpQ',
      title: 'My Title g6',
      size: 260,
      words: 26,
      collections: ['c3'],
      lastModified: at,
      loadDate: at,
    });
  });

  it('is looked up with a lower-case host and without the fragment, as its hash requires', async () => {
    const script = { 'POST /api/yacydoc.xml': 'yacydoc_xml_unknown_url' };
    const { peer, client } = await replaying({
      ...script,
      'POST /api/citation.html': 'citation_unknown_url',
    });
    const query = { url: 'HTTP://Files.Example.ORG/A b.txt#part' };
    for (const ask of [() => client.peerdoc(query), () => client.citation(query)]) await ask();
    const sent = 'url=http%3A%2F%2Ffiles.example.org%2FA%2520b.txt';
    expect(peer.requests.map(({ body }) => String(body))).toEqual([sent, sent]);
  });
});

describe('citations', () => {
  it.each([
    ['citation_url', CITED, []],
    ['citation_filter_true', CITED, []],
    ['citation_similar_ch1', 'http://keeper-notes.org/one.txt', ['http://mirror-site.net/two.txt']],
  ])('are read: %s', async (recording, url, similar) => {
    const { client } = await replaying({ 'POST /api/citation.html': recording });
    const citation = await client.citation({ url });
    expect(citation?.url).toBe(url);
    expect(citation?.sentences.some(({ appearsIn }) => appearsIn.length > 0)).toBe(true);
    expect(citation?.citing.length).toBeGreaterThan(0);
    expect(citation?.similar.map((each) => each.url)).toEqual(similar);
  });
});

describe('tables', () => {
  const CHANGE = {
    'GET /api/table_p.html': 'table_unknown',
    'GET /Tables_p.xml': 'Tables_p_unknown',
  };
  const LIST = {
    'GET /Tables_p.html': 'Tables_p_list_html',
    'POST /Tables_p.html': 'Tables_p_list_html',
  };
  const READ = { 'POST /Tables_p.xml': 'Tables_p_xml_special' };
  const KEY = 'é<x>&"k';
  const SPECIAL = `<b>&amp; "q" 'a' é日本😀\nline2\r\nline3\ttab ]]> % + =;,`;
  const NOT_DONE = { code: 'PEER_NOT_DONE' };
  const bodies = (peer: ReplayPeer) =>
    peer.requests
      .filter(({ line }) => line === 'POST /api/table_p.html')
      .map(({ body }) => String(body));

  it('are read with short keys, odd columns and every text as it is', async () => {
    const { peer, client } = await replaying({ ...CHANGE, ...READ });
    const table = await client.tables.read({ table: 'wiretest' });
    expect(table?.columns).toEqual(['note', 'name', 'other', KEY]);
    expect(table?.rows.map(({ pk }) => pk)).toEqual([
      '000000000001',
      'row1',
      'row2',
      'row4',
      'row5',
      'sp',
    ]);
    expect(table?.rows[5]?.cells.get(KEY)).toBe(SPECIAL);
    expect(peer.requests.at(-1)?.body.toString()).toBe('table=wiretest&count=all');
  });

  it('are changed by one small request per row, and read back', async () => {
    const script = { ...CHANGE, ...READ, 'POST /api/table_p.html': 'table_commitrow_special' };
    const { peer, client } = await replaying(script);
    const cells = new Map([
      ['name', SPECIAL],
      [KEY, SPECIAL],
    ]);
    const [row] = await client.tables.set('wiretest', [{ pk: 'sp', cells }]);
    expect(row?.cells.get('name')).toBe(SPECIAL);
    expect(bodies(peer)).toEqual([
      expect.stringMatching(/^table=wiretest&commitrow=1&count=1&pk=sp&col_name=/),
    ]);
  });

  it('whose rows are deleted are read back too, in one pass', async () => {
    const script = { ...CHANGE, ...READ, 'POST /api/table_p.html': 'table_deleterows' };
    const { peer, client } = await replaying(script);
    expect(await client.tables.deleteRows('wiretest', ['abcdefghijkl', 'other'])).toHaveLength(2);
    await expect(client.tables.deleteRows('wiretest', ['row1'])).rejects.toMatchObject(NOT_DONE);
    expect(bodies(peer)[0]).toBe(
      'table=wiretest&count=1&deleterows=1&item_0=pk_abcdefghijkl&item_1=pk_other',
    );
    expect(peer.lines.filter((line) => line === 'POST /Tables_p.xml')).toHaveLength(2);
  });

  it('that are dropped are verified in the list of tables', async () => {
    const script = { ...CHANGE, ...LIST, 'POST /api/table_p.html': 'table_deletetable' };
    const { client } = await replaying(script);
    const all = [
      '../../x',
      'UPPER',
      'a b',
      'pkcounter',
      'with/slash',
      'stats',
      'é',
      'robots',
      'api',
    ];
    expect(await client.tables.drop('wt2')).toEqual(all);
    await expect(client.tables.drop('api')).rejects.toMatchObject(NOT_DONE);
  });

  it('are not changed under a key of more than 12 bytes, which the peer would cut', async () => {
    const { peer, client } = await replaying({});
    const long = { code: 'PEER_KEY', delivered: 'no' };
    const rows = ['short', 'ééééééé'].map((pk) => ({ pk, cells: new Map() }));
    await expect(client.tables.set('t', rows)).rejects.toMatchObject(long);
    await expect(client.tables.deleteRows('t', ['short', 'abcdefghijklm'])).rejects.toMatchObject(
      long,
    );
    expect(peer.requests).toEqual([]);
  });
});

it('a shared file arrives unchanged', async () => {
  const data = 'dump/yacy_dump_r1_ts.xml.gz';
  const { client } = await replaying({
    [`GET /share/${data}`]: 'share_dl__share_dump_yacy_dump_r1_ts_xml_gz',
  });
  const peerAt = Date.parse('2026-11-21T03:38:15Z');
  const expected = { content: 'raw text payload', size: 16, type: 'application/gzip', peerAt };
  expect(await client.share({ data }, contentOf)).toMatchObject(expected);
});
