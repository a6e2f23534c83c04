import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { PeerInstance } from '../../src/embedded/peer-instance.js';
import { temporaryDirectory } from '../support/temp.js';
import { basic, openPeer, rawRequest, send } from './support.js';

interface ShareJson {
  readonly c: string;
  readonly data: string;
  readonly size: number;
  readonly lastModified: string;
}

/** A peer and its folder of shares. */
async function openShares(): Promise<{ peer: PeerInstance; dir: string; folder: string }> {
  const dir = temporaryDirectory();
  const peer = await openPeer({ dir });
  return { peer, dir, folder: join(dir, 'shares') };
}

function put(folder: string, name: string, content: string | Buffer): void {
  mkdirSync(join(folder, name, '..'), { recursive: true });
  writeFileSync(join(folder, name), content);
}

/** One connection a request: a peer that closes waits a while for connections that are kept. */
function ask(
  peer: PeerInstance,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
  body = '',
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const sent = request(new URL(path, peer.url), { method, headers, agent: false }, (answer) => {
      const headers = Object.entries(answer.headers).map(([name, value]): [string, string] => [
        name,
        String(value),
      ]);
      const content = answer.statusCode === 304 ? null : (Readable.toWeb(answer) as ReadableStream);
      resolve(new Response(content, { status: answer.statusCode ?? 0, headers }));
    });
    sent.on('error', reject).end(body);
  });
}

function get(
  peer: PeerInstance,
  parameters: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<Response> {
  return ask(peer, `/api/share.html?${new URLSearchParams(parameters)}`, headers);
}

async function list(
  peer: PeerInstance,
  parameters: Record<string, string> = {},
): Promise<{ shares: ShareJson[]; more: boolean }> {
  const response = await ask(peer, `/api/share.json?${new URLSearchParams(parameters)}`);
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  return (await response.json()) as { shares: ShareJson[]; more: boolean };
}

function multipart(parts: readonly { name: string; filename?: string; content: string | Buffer }[]): {
  headers: Record<string, string>;
  body: Buffer;
} {
  const pieces = parts.flatMap(({ name, filename, content }) => [
    Buffer.from(
      `--xYx\r\nContent-Disposition: form-data; name="${name}"${filename === undefined ? '' : `; filename="${filename}"\r\nContent-Type: application/octet-stream`}\r\n\r\n`,
    ),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ]);
  return {
    headers: { 'content-type': 'multipart/form-data; boundary=xYx' },
    body: Buffer.concat([...pieces, Buffer.from('--xYx--\r\n')]),
  };
}

async function upload(
  peer: PeerInstance,
  parts: Parameters<typeof multipart>[0],
  headers: Record<string, string> = { authorization: basic(peer) },
) {
  const sent = multipart(parts);
  const answer = await send(peer, '/api/share.json', {
    method: 'POST',
    headers: { ...sent.headers, ...headers },
    body: sent.body,
  });
  return { ...answer, json: JSON.parse(answer.body) as { shares: ShareJson[]; message?: string } };
}

describe('a shared object', () => {
  it('is a file, answered as it is on every path and by GET and POST alike', async () => {
    const { peer, folder } = await openShares();
    const bytes = Buffer.from([0, 255, 13, 10, 60, 128]);
    put(folder, 'group/sub folder/ö & "x".bin', bytes);
    put(folder, 'top.csv', 'a,b\n');
    const parameters = { c: 'group', data: 'sub folder/ö & "x".bin' };
    const got = await get(peer, parameters);
    expect(got.status).toBe(200);
    expect(Buffer.from(await got.arrayBuffer())).toEqual(bytes);
    expect(got.headers.get('content-length')).toBe('6');
    expect(got.headers.get('content-type')).toBe('application/octet-stream');
    for (const form of ['html', 'json']) {
      const body = new URLSearchParams(parameters).toString();
      const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' };
      const posted = await ask(peer, `/api/share.${form}`, headers, 'POST', body);
      expect(Buffer.from(await posted.arrayBuffer())).toEqual(bytes);
    }
    const top = await get(peer, { data: 'top.csv' });
    expect([top.headers.get('content-type'), await top.text()]).toEqual(['text/csv', 'a,b\n']);
    expect(await (await get(peer, { data: 'group/sub folder/ö & "x".bin' })).arrayBuffer()).toHaveProperty(
      'byteLength',
      6,
    );
    const head = await ask(peer, '/api/share.html?data=top.csv', {}, 'HEAD');
    expect([head.status, head.headers.get('content-length')]).toEqual([200, '4']);
  });

  it('may be empty', async () => {
    const { peer, folder } = await openShares();
    put(folder, 'empty.txt', '');
    expect((await get(peer, { data: 'empty.txt' })).headers.get('content-length')).toBe('0');
  });

  it('that is not there is answered 404, in the form asked for', async () => {
    const { peer, folder } = await openShares();
    put(folder, 'g/x', 'x');
    for (const query of [
      'data=nope',
      'c=g&data=nope',
      'c=nope&data=x',
      'c=nope',
      'data=g',
      'c=g&data=x/y',
      'c=g/x',
    ]) {
      const answer = await send(peer, `/api/share.json?${query}`);
      expect([query, answer.status]).toEqual([query, query === 'c=g/x' ? 400 : 404]);
      expect(answer.headers['content-type']).toMatch(/^application\/json/);
    }
  });

  it('is not sent again to who has it', async () => {
    const { peer, folder } = await openShares();
    put(folder, 'a.txt', 'one');
    const at = new Date('2026-01-02T03:04:05.678Z');
    utimesSync(join(folder, 'a.txt'), at, at);
    const first = await get(peer, { data: 'a.txt' });
    const lastModified = first.headers.get('last-modified') ?? '';
    expect(lastModified).toBe('Fri, 02 Jan 2026 03:04:05 GMT');
    const etag = first.headers.get('etag') ?? '';
    for (const headers of [{ 'if-modified-since': lastModified }, { 'if-none-match': `"x", W/${etag}` }]) {
      const again = await get(peer, { data: 'a.txt' }, headers as Record<string, string>);
      expect([again.status, await again.text()]).toEqual([304, '']);
    }
    const older = { 'if-modified-since': 'Fri, 02 Jan 2026 03:04:04 GMT' };
    expect((await get(peer, { data: 'a.txt' }, older)).status).toBe(200);
    expect(
      (await get(peer, { data: 'a.txt' }, { 'if-none-match': '"x"', 'if-modified-since': lastModified }))
        .status,
    ).toBe(200);
  });

  it('is sent whole also where a part of it is asked for', async () => {
    const { peer, folder } = await openShares();
    put(folder, 'a.txt', 'abcdefghij');
    const got = await get(peer, { data: 'a.txt' }, { range: 'bytes=3-5' });
    expect([got.status, await got.text()]).toEqual([200, 'abcdefghij']);
  });

  it('of a kind that a browser would run is only offered for download, and none may run', async () => {
    const { peer, folder } = await openShares();
    for (const [name, kind] of [
      ['page.html', 'attachment'],
      ['image.SVG', 'attachment'],
      ['script.js', 'attachment'],
      ['feed.xml', 'attachment'],
      ['unknown', 'attachment'],
      ['photo.png', 'inline'],
      ['notes.txt', 'inline'],
    ] as const) {
      put(folder, name, '<script>alert(1)</script>');
      const { headers } = await get(peer, { data: name });
      expect(headers.get('content-disposition')).toMatch(new RegExp(`^${kind}; filename="${name}"`));
      expect(headers.get('content-security-policy')).toMatch(/^sandbox; default-src 'none'/);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
    put(folder, 'ü"; x=\'1.html', 'x');
    expect((await get(peer, { data: 'ü"; x=\'1.html' })).headers.get('content-disposition')).toBe(
      `attachment; filename="___ x__1.html"; filename*=UTF-8''%C3%BC%22%3B%20x%3D%271.html`,
    );
  });

  it('is open to everybody, unless the peer wants credentials for everything', async () => {
    const dir = temporaryDirectory();
    const peer = await openPeer({ dir, requireAuthEverywhere: true });
    put(join(dir, 'shares'), 'a.txt', 'x');
    expect((await get(peer, { data: 'a.txt' })).status).toBe(401);
    expect((await get(peer, { data: 'a.txt' }, { authorization: basic(peer) })).status).toBe(200);
  });

  it('that changes while it is read breaks off, so that nobody takes a mixture for it', async () => {
    const { peer, folder } = await openShares();
    put(folder, 'big', Buffer.alloc(16_000_000, 'a'));
    const got = await get(peer, { data: 'big' });
    put(folder, 'big', Buffer.alloc(16_000_000, 'b'));
    await expect(got.arrayBuffer().then(({ byteLength }) => byteLength)).rejects.toThrow();
    expect(Buffer.from(await (await get(peer, { data: 'big' })).arrayBuffer()).indexOf('a')).toBe(-1);
  });

  it('of 200 MB streams from disk in constant memory', async () => {
    const { peer, folder } = await openShares();
    put(folder, 'huge.bin', '');
    execFileSync('truncate', ['-s', '200M', join(folder, 'huge.bin')]);
    const before = process.memoryUsage().rss;
    let most = 0;
    let size = 0;
    const { body } = await get(peer, { data: 'huge.bin' });
    for await (const chunk of body ?? []) {
      size += (chunk as Uint8Array).length;
      most = Math.max(most, process.memoryUsage.rss() - before);
    }
    expect(size).toBe(209_715_200);
    expect(most).toBeLessThan(100_000_000);
  });
});

describe('no name leads out of the folder of shares', () => {
  it.each([
    ['', '../admin-password'],
    ['..', 'admin-password'],
    ['', '..'],
    ['g', '../../admin-password'],
    ['', '/etc/passwd'],
    ['', 'g//x'],
    ['', './top'],
    ['g/..', 'top'],
    ['', '..\\admin-password'],
    ['', 'top\0.txt'],
    ['', 'a\nb'],
    ['', 'x'.repeat(300)],
    ['', 'a/'.repeat(100)],
  ])('%j %j', async (c, data) => {
    const { peer, folder } = await openShares();
    put(folder, 'top', 'x');
    put(folder, 'g/x', 'x');
    const query = new URLSearchParams(c === '' ? { data } : { c, data });
    const answer = await send(peer, `/api/share.json?${query}`);
    expect(answer.status).toBe(400);
  });

  it('by a link, to a file or of a folder, nor by what is no file', async () => {
    const { peer, dir, folder } = await openShares();
    put(folder, 'real/x', 'x');
    symlinkSync(join(dir, 'admin-password'), join(folder, 'link'));
    symlinkSync(dir, join(folder, 'linked'));
    symlinkSync(join(folder, 'real'), join(folder, 'inside'));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    for (const data of ['link', 'linked/admin-password', 'inside/x', 'pipe', 'real'])
      expect([data, (await get(peer, { data })).status]).toEqual([data, 404]);
    expect((await list(peer)).shares.map(({ c, data }) => `${c}:${data}`)).toEqual(['real:x']);
  });

  it('to hidden files, which others may still be writing', async () => {
    const { peer, folder } = await openShares();
    put(folder, '.a.txt.Xy12', 'half');
    put(folder, '.git/config', 'x');
    expect((await get(peer, { data: '.a.txt.Xy12' })).status).toBe(404);
    expect((await get(peer, { c: '.git', data: 'config' })).status).toBe(404);
    expect((await list(peer)).shares).toEqual([]);
  });

  it('but the folder itself may be a link', async () => {
    const dir = temporaryDirectory();
    const elsewhere = temporaryDirectory();
    symlinkSync(elsewhere, join(dir, 'shares'));
    const peer = await openPeer({ dir });
    put(elsewhere, 'g/x', 'here');
    expect(await (await get(peer, { c: 'g', data: 'x' })).text()).toBe('here');
  });
});

describe('the list of shared objects', () => {
  it('names them in order, of one group or all, in each form', async () => {
    const { peer, folder } = await openShares();
    for (const name of ['b/2', 'b/1', 'b/deep/er/<3>', 'a', 'c/&']) put(folder, name, name);
    const at = new Date('2026-01-02T03:04:05.678Z');
    utimesSync(join(folder, 'a'), at, at);
    const all = await list(peer);
    expect(all.more).toBe(false);
    expect(all.shares[0]).toEqual({
      ...{ c: '', data: 'a', size: 1, lastModified: '2026-01-02T03:04:05.678Z' },
      url: `${peer.url}/api/share.html?data=a`,
    });
    expect(all.shares.map(({ c, data }) => [c, data])).toEqual([
      ['', 'a'],
      ['b', '1'],
      ['b', '2'],
      ['b', 'deep/er/<3>'],
      ['c', '&'],
    ]);
    expect((await list(peer, { c: 'b' })).shares.map(({ data }) => data)).toEqual(['1', '2', 'deep/er/<3>']);
    const html = await (await ask(peer, '/api/share.html')).text();
    expect(html).toContain('<td>deep/er/&lt;3&gt;</td><td>13</td>');
    expect(html).toContain(`<a href="${peer.url}/api/share.html?c=b&amp;data=deep%2Fer%2F%3C3%3E"`);
    expect(html).toContain('enctype="multipart/form-data"');
    expect(html).toMatch(/<\/html>\n$/);
  });

  it('of very many is cut, and says so', async () => {
    const { peer, folder } = await openShares();
    execFileSync('sh', ['-c', 'seq 10001 | xargs touch'], { cwd: folder });
    const { shares, more } = await list(peer);
    expect([shares.length, more]).toEqual([10_000, true]);
  });

  it('leaves out what cannot be named', async () => {
    const { peer, folder } = await openShares();
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x66, 0xff])]), 'x');
    put(folder, 'back\\slash', 'x');
    expect(await list(peer)).toEqual({ shares: [], more: false });
  });
});

describe('an upload', () => {
  it('puts an object in its place, new or instead of the old, for the administrator', async () => {
    const { peer, folder } = await openShares();
    const first = await upload(peer, [
      { name: 'data', filename: 'reports/ö 1.csv', content: 'a,b\r\n--xY\r\n' },
      { name: 'c', content: 'gruppe' },
    ]);
    expect(first.status).toBe(200);
    expect(first.json.shares).toEqual([
      expect.objectContaining({ c: 'gruppe', data: 'reports/ö 1.csv', size: 11 }),
    ]);
    expect(readFileSync(join(folder, 'gruppe/reports/ö 1.csv'), 'utf8')).toBe('a,b\r\n--xY\r\n');
    await upload(peer, [
      { name: 'c', content: 'gruppe' },
      { name: 'data', filename: 'reports/ö 1.csv', content: '' },
    ]);
    expect(await (await get(peer, { c: 'gruppe', data: 'reports/ö 1.csv' })).text()).toBe('');
    const top = await upload(peer, [{ name: 'data', filename: 'top', content: 'x' }]);
    expect(top.json.shares).toEqual([expect.objectContaining({ c: '', data: 'top' })]);
    expect(readdirSync(folder).sort()).toEqual(['gruppe', 'top']);
  });

  it('is for the administrator only, and not for pages of other sites', async () => {
    const { peer, folder } = await openShares();
    const parts = [{ name: 'data', filename: 'x', content: 'x' }];
    expect((await upload(peer, parts, {})).status).toBe(401);
    const elsewhere = { authorization: basic(peer), origin: 'http://evil.example' };
    expect((await upload(peer, parts, elsewhere)).status).toBe(403);
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each(['../out', '/etc/out', 'a/../../out', '..', '', '.hidden', 'a\\\\b', 'g/.x/y'])(
    'cannot be named %j',
    async (filename) => {
      const { peer, dir, folder } = await openShares();
      const { status } = await upload(peer, [{ name: 'data', filename, content: 'x' }]);
      expect([400, 404]).toContain(status);
      expect([readdirSync(folder), existsSync(join(dir, 'out'))]).toEqual([[], false]);
    },
  );

  it.each([
    ['nothing', []],
    ['no file', [{ name: 'c', content: 'g' }]],
    ['another part', [{ name: 'file', filename: 'x', content: 'x' }]],
    [
      'two files',
      [
        { name: 'data', filename: 'x', content: 'x' },
        { name: 'data', filename: 'y', content: 'y' },
      ],
    ],
    [
      'a group with a slash',
      [
        { name: 'data', filename: 'x', content: 'x' },
        { name: 'c', content: '../g' },
      ],
    ],
    [
      'a long group',
      [
        { name: 'data', filename: 'x', content: 'x' },
        { name: 'c', content: 'g'.repeat(2_000) },
      ],
    ],
  ])('with %s is refused and leaves nothing', async (_, parts) => {
    const { peer, folder } = await openShares();
    expect((await upload(peer, parts)).status).toBe(400);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('goes over no link and over no file that stands where a folder should be', async () => {
    const { peer, dir, folder } = await openShares();
    symlinkSync(dir, join(folder, 'linked'));
    put(folder, 'file', 'x');
    put(folder, 'g/x', 'x');
    for (const filename of ['linked/out', 'file/x', 'g']) {
      const { status } = await upload(peer, [{ name: 'data', filename, content: 'x' }]);
      expect([filename, status]).toEqual([filename, 409]);
    }
    expect(existsSync(join(dir, 'out'))).toBe(false);
    expect(readdirSync(folder).sort()).toEqual(['file', 'g', 'linked']);
  });

  it('that breaks off leaves nothing, and the old object stays', async () => {
    const { peer, folder } = await openShares();
    put(folder, 'x', 'old');
    const head = `POST /api/share.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic(peer)}\r\nConnection: close\r\n`;
    const { headers, body } = multipart([{ name: 'data', filename: 'x', content: 'new'.repeat(100_000) }]);
    const cut = body.subarray(0, -20).toString();
    const answer = await rawRequest(
      peer,
      `${head}Content-Type: ${headers['content-type']}\r\nContent-Length: ${cut.length}\r\n\r\n${cut}`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    const { hostname, port } = new URL(peer.url);
    const client = connect(Number(port), hostname);
    const type = `Content-Type: ${headers['content-type']}\r\n`;
    client.write(`${head}${type}Content-Length: ${body.length}\r\n\r\n`);
    client.write(body.subarray(0, 100_000));
    await expect.poll(() => readdirSync(folder).length).toBe(2);
    client.destroy();
    await expect.poll(() => readdirSync(folder)).toEqual(['x']);
    expect(readFileSync(join(folder, 'x'), 'utf8')).toBe('old');
  });

  it('that a kill broke off is tidied away at the next start', async () => {
    const dir = temporaryDirectory();
    put(join(dir, 'shares'), '.upload-0123456789abcdef.tmp', 'half');
    put(join(dir, 'shares'), '.mine', 'kept');
    await openPeer({ dir });
    expect(readdirSync(join(dir, 'shares'))).toEqual(['.mine']);
  });

  it('larger than what a push may be streams to disk', async () => {
    const dir = temporaryDirectory();
    const peer = await openPeer({ dir, maxBody: 100_000 });
    const content = Buffer.alloc(20_000_000, 'abc');
    const form = new FormData();
    form.set('data', new Blob([content]), 'big.bin');
    const answer = await fetch(`${peer.url}/api/share.html`, {
      method: 'POST',
      body: form,
      headers: { authorization: basic(peer) },
    });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(readFileSync(join(dir, 'shares/big.bin')).equals(content)).toBe(true);
  });
});
