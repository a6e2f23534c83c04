import { describe, expect, it } from 'vitest';
import type { ShareStream } from '../../src/index.js';
import { clientOf } from '../peer/servers.js';
import { ReplayPeer, type Script } from './replay-peer.js';

/** What the client makes of the answers that a YaCy 1.92 gave, byte for byte. */

async function replaying(script: Script) {
  const peer = await ReplayPeer.start(script);
  const client = clientOf(peer.url, { dialect: 'yacy', credentials: { username: 'admin', password: 'x' } });
  return { peer, client };
}

function items(...urls: readonly string[]) {
  return urls.map((url) => ({ url, collection: 'c', data: Buffer.from('Gulls sleep on one leg.') }));
}

async function pushed(recording: string, ...urls: readonly string[]) {
  const { client } = await replaying({
    'GET /api/push_p.json': 'auth_digest_ok_nc1',
    'POST /api/push_p.json': recording,
  });
  return await client.push(items(...urls));
}

async function contentOf({ chunks }: ShareStream): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const chunk of chunks) pieces.push(chunk);
  return Buffer.concat(pieces).toString();
}

describe('the dialect', () => {
  it('is yacy where the page for documents is that of YaCy', async () => {
    const peer = await ReplayPeer.start({ 'GET /api/yacydoc.xml': 'yacydoc_xml_unknown_url' });
    const client = clientOf(peer.url, { dialect: 'auto' });
    expect(client.dialect).toBeUndefined();
    expect(await client.detect()).toBe('yacy');
    expect(client.dialect).toBe('yacy');
    expect([...peer.lines].sort()).toEqual(['GET /api/peerdoc.html', 'GET /api/yacydoc.xml']);
  });

  it('is unknown where the peer has neither page', async () => {
    const peer = await ReplayPeer.start({});
    const client = clientOf(peer.url, { dialect: 'auto' });
    await expect(client.detect()).rejects.toMatchObject({ code: 'PEER_ANSWER' });
    expect(client.dialect).toBeUndefined();
  });
});

describe('a push', () => {
  const OK = { ok: true };

  it.each([
    ['push_ok_multipart_base64_field', 'http://push.example.org/b6.txt'],
    ['push_e_sync', 'http://push2.example.org/e1.txt'],
    ['push_f_commit', 'http://push2.example.org/f1.txt'],
  ])('is accepted: %s', async (recording, url) => {
    expect((await pushed(recording, url)).results).toEqual([OK]);
  });

  it('of three is accepted though a quote in a URL makes the answer no JSON', async () => {
    const { results } = await pushed(
      'push_d_bad_quote',
      'http://push2.example.org/d0.txt',
      'http://push2.example.org/q"uo<te>.txt',
      'http://push2.example.org/d2.txt',
    );
    expect(results).toEqual([OK, OK, OK]);
  });

  it('of three says which one was refused, in the words of the peer', async () => {
    const bad = [
      'http://push2.example.org/d0.txt',
      'foo://push2.example.org/d1.txt',
      'http://push2.example.org/d2.txt',
    ];
    const { results } = await pushed('push_d_bad_proto', ...bad);
    expect(results).toEqual([OK, { ok: false, message: expect.stringContaining('unknown protocol') }, OK]);
    const empty = await pushed('push_d_bad_empty', ...bad);
    expect(empty.results[1]).toEqual({ ok: false, message: "URL not parseable: 'http://'" });
  });

  it.each([
    ['that says that it took more items than were sent', 'push_c_count_bigger_than_items_rh'],
    ['that took none, with success', 'push_c_nocount'],
    ['to a request that was not understood', 'err_mp_truncated'],
    ['as a page', 'push_d_bad_html'],
    ['that is empty', 'yacydoc_json_known_url'],
  ])('is not accepted by an answer %s', async (_, recording) => {
    await expect(pushed(recording, 'http://push.example.org/a.txt')).rejects.toMatchObject({
      code: 'PEER_ANSWER',
      delivered: 'yes',
    });
  });

  it.each(['push_urlenc_json', 'push_batch_async_missing_rh_mid', 'push_batch_sync_rejected_mid'])(
    'fails where the peer fails: %s',
    async (recording) => {
      await expect(pushed(recording, 'http://push.example.org/a.txt')).rejects.toMatchObject({
        code: 'PEER_FAILED',
        status: 500,
      });
    },
  );
});

describe('access', () => {
  it('is proved by Digest, before a document travels', async () => {
    const { peer, client } = await replaying({
      'GET /api/push_p.json': ['auth_no_auth', 'auth_digest_ok_nc1'],
      'POST /api/push_p.json': 'push_ok_multipart_base64_field',
    });
    await client.push(items('http://push.example.org/b6.txt'));
    expect(peer.lines).toEqual(['GET /api/push_p.json', 'GET /api/push_p.json', 'POST /api/push_p.json']);
    expect(peer.requests[2]?.head).toMatch(/^authorization: Digest username="admin", .*nc=00000002/im);
    expect(peer.requests.map(({ head }) => head).join('\n')).not.toMatch(/^referer:/im);
  });

  it('that is refused with a right Digest is refused for good, and no document travels', async () => {
    const { peer, client } = await replaying({
      'GET /api/push_p.json': ['auth_no_auth', 'auth_digest_wrong_password'],
      'POST /api/push_p.json': 'push_ok_multipart_base64_field',
    });
    await expect(client.push(items('http://push.example.org/b6.txt'))).rejects.toMatchObject({
      code: 'PEER_AUTH',
    });
    expect(peer.lines).not.toContain('POST /api/push_p.json');
  });
});

describe('a document', () => {
  const url = 'http://push3.example.org/g6.html';

  it.each([
    ['yacydoc_xml_known_url', { url }],
    ['yacydoc_xml_post', { url: 'HTTP://PUSH3.example.org/./g6.html' }],
    ['yacydoc_xml_known_hash', { urlhash: 'He4fSbqdOZpQ' }],
  ])('is read: %s', async (recording, query) => {
    const { client } = await replaying({ 'POST /api/yacydoc.xml': recording });
    expect(await client.peerdoc(query)).toMatchObject({
      url: 'url' in query ? query.url : url,
      urlhash: 'He4fSbqdOZpQ',
      title: 'My Title g6',
      size: 260,
      words: 26,
      collections: ['c3'],
      lastModified: Date.parse('2026-11-21T03:26:19Z'),
      loadDate: Date.parse('2026-11-21T03:26:19Z'),
    });
  });

  it('that is not there is undefined, though the peer answers with a record', async () => {
    const { client } = await replaying({ 'POST /api/yacydoc.xml': 'yacydoc_xml_unknown_url' });
    expect(await client.peerdoc({ url })).toBeUndefined();
  });

  it('is not said to be absent by a peer that has no such page, or gives it empty', async () => {
    const other = await replaying({});
    await expect(other.client.peerdoc({ url })).rejects.toMatchObject({ code: 'PEER_REFUSED', status: 404 });
    const empty = await replaying({ 'POST /api/yacydoc.xml': 'yacydoc_json_known_url' });
    await expect(empty.client.peerdoc({ url })).rejects.toMatchObject({ code: 'PEER_ANSWER' });
  });

  it('is asked for under a lower-case host, without its fragment: another hash would not be found', async () => {
    const { peer, client } = await replaying({ 'POST /api/yacydoc.xml': 'yacydoc_xml_unknown_url' });
    await client.peerdoc({ url: 'HTTP://Files.Example.ORG/A b.txt#part' });
    expect(peer.requests[0]?.body.toString()).toBe('url=http%3A%2F%2Ffiles.example.org%2FA%2520b.txt');
  });
});

describe('citations', () => {
  const asked = async (recording: string, url: string) =>
    (await replaying({ 'POST /api/citation.html': recording })).client.citation({ url });

  it.each(['citation_url', 'citation_filter_true'])('are read: %s', async (recording) => {
    const citation = await asked(recording, 'http://cite.example.org/one.txt');
    expect(citation?.url).toBe('http://cite.example.org/one.txt');
    expect(citation?.sentences.some(({ appearsIn }) => appearsIn.length > 0)).toBe(true);
    expect(citation?.citing.length).toBeGreaterThan(0);
  });

  it('show similar documents on other hosts', async () => {
    const citation = await asked('citation_similar_ch1', 'http://keeper-notes.org/one.txt');
    expect(citation?.similar.map(({ url }) => url)).toContain('http://mirror-site.net/two.txt');
  });

  it.each(['citation_unknown_url', 'citation_fresh_4s', 'citation_none', 'citation_unknown_hash'])(
    'are undefined where the peer has no such document: %s',
    async (recording) => {
      expect(await asked(recording, 'http://nope.example.org/')).toBeUndefined();
    },
  );

  it('are not said to be absent by a failure elsewhere, or by a peer without that page', async () => {
    await expect(asked('push_urlenc_json', 'http://nope.example.org/')).rejects.toMatchObject({
      code: 'PEER_FAILED',
    });
    await expect(asked('err_404', 'http://nope.example.org/')).rejects.toMatchObject({
      code: 'PEER_REFUSED',
    });
  });
});

describe('tables', () => {
  const CHANGE = { 'GET /api/table_p.html': 'table_unknown', 'GET /Tables_p.xml': 'Tables_p_unknown' };
  const KEY = 'é<x>&"k';
  const SPECIAL = `<b>&amp; "q" 'a' é日本😀\nline2\r\nline3\ttab ]]> % + =;,`;

  it('are listed by the choices of the page, without the numbers of rows', async () => {
    const { client } = await replaying({
      'GET /Tables_p.html': 'Tables_p_list_html',
      'POST /Tables_p.html': 'Tables_p_list_html',
    });
    expect(await client.tables.list()).toEqual([
      '../../x',
      'UPPER',
      'a b',
      'pkcounter',
      'with/slash',
      'stats',
      'é',
      'robots',
      'api',
    ]);
  });

  it('are read with short keys, odd columns and every text as it is', async () => {
    const { peer, client } = await replaying({ ...CHANGE, 'POST /Tables_p.xml': 'Tables_p_xml_special' });
    const table = await client.tables.read({ table: 'wiretest' });
    expect(table?.columns).toEqual(['note', 'name', 'other', KEY]);
    expect(table?.rows.map(({ pk }) => pk)).toEqual(['000000000001', 'row1', 'row2', 'row4', 'row5', 'sp']);
    expect(table?.rows[5]?.cells.get(KEY)).toBe(SPECIAL);
    expect(peer.requests.at(-1)?.body.toString()).toBe('table=wiretest&count=all');
  });

  it.each(['Tables_p_unknown', 'Tables_p_list_xml'])(
    'that are not there are undefined: %s',
    async (recording) => {
      const { client } = await replaying({ ...CHANGE, 'POST /Tables_p.xml': recording });
      expect(await client.tables.read({ table: 'nosuch' })).toBeUndefined();
    },
  );

  it('are changed by one small request a row, and read back', async () => {
    const { peer, client } = await replaying({
      ...CHANGE,
      'POST /api/table_p.html': 'table_commitrow_special',
      'POST /Tables_p.xml': 'Tables_p_xml_special',
    });
    const row = {
      pk: 'sp',
      cells: new Map([
        ['name', SPECIAL],
        [KEY, SPECIAL],
      ]),
    };
    expect((await client.tables.set('wiretest', [row]))[0]?.cells.get('name')).toBe(SPECIAL);
    const sent = peer.requests.filter(({ line }) => line === 'POST /api/table_p.html');
    expect(sent).toHaveLength(1);
    expect(sent[0]?.body.toString()).toMatch(/^table=wiretest&commitrow=1&count=1&pk=sp&col_name=/);
  });

  it('whose rows are deleted are read back too, in one pass', async () => {
    const { peer, client } = await replaying({
      ...CHANGE,
      'POST /api/table_p.html': 'table_deleterows',
      'POST /Tables_p.xml': 'Tables_p_xml_special',
    });
    expect(await client.tables.deleteRows('wiretest', ['abcdefghijkl', 'other'])).toHaveLength(2);
    await expect(client.tables.deleteRows('wiretest', ['row1'])).rejects.toMatchObject({
      code: 'PEER_NOT_DONE',
    });
    const bodies = peer.requests.map(({ line, body }) => `${line} ${body}`);
    expect(bodies).toContain(
      'POST /api/table_p.html table=wiretest&count=1&deleterows=1&item_0=pk_abcdefghijkl&item_1=pk_other',
    );
    expect(peer.lines.filter((line) => line === 'POST /Tables_p.xml')).toHaveLength(2);
  });

  it('that are dropped are looked for in the list', async () => {
    const script = {
      ...CHANGE,
      'POST /api/table_p.html': 'table_deletetable',
      'GET /Tables_p.html': 'Tables_p_list_html',
      'POST /Tables_p.html': 'Tables_p_list_html',
    };
    const { client } = await replaying(script);
    expect(await client.tables.drop('wt2')).not.toContain('wt2');
    await expect(client.tables.drop('api')).rejects.toMatchObject({ code: 'PEER_NOT_DONE' });
  });

  it('are not changed under a key that the peer would cut', async () => {
    const { peer, client } = await replaying({});
    const long = { code: 'PEER_KEY', delivered: 'no' };
    await expect(
      client.tables.set('t', [
        { pk: 'short', cells: new Map() },
        { pk: 'ééééééé', cells: new Map() },
      ]),
    ).rejects.toMatchObject(long);
    await expect(client.tables.deleteRows('t', ['abcdefghijklm'])).rejects.toMatchObject(long);
    expect(peer.requests).toEqual([]);
  });
});

describe('shared files', () => {
  const NAME = 'dump/yacy_dump_r1_ts.xml.gz';
  const PATH = `GET /share/${NAME}`;

  it('come as they are', async () => {
    const { client } = await replaying({ [PATH]: 'share_dl__share_dump_yacy_dump_r1_ts_xml_gz' });
    const share = await client.share({ data: NAME }, async (stream) => ({
      ...stream,
      content: await contentOf(stream),
    }));
    expect(share).toMatchObject({ content: 'raw text payload', size: 16, type: 'application/gzip' });
    expect(share?.peerAt).toBe(Date.parse('2026-11-21T03:38:15Z'));
  });

  it('that are not there are undefined', async () => {
    const { client } = await replaying({ 'GET /share/dump/nope.xml.gz': 'share_dl__share_dump_nope_xml_gz' });
    expect(await client.share({ data: 'nope.xml.gz', c: 'dump' }, contentOf)).toBeUndefined();
  });

  it('of a directory are listed by its page', async () => {
    const { client } = await replaying({ 'GET /share/': 'share_dl__share_dump_' });
    // The page of `dump/` in the place of its parent: its links lead elsewhere, and are none of this directory.
    expect(await client.shares()).toEqual([]);
  });

  it('that are not there are an empty list', async () => {
    const { client } = await replaying({});
    expect(await client.shares()).toEqual([]);
  });
});
