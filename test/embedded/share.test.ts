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
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PeerOptions } from '../../src/embedded/peer-instance.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { ask, basic, Connection, openPeer, type Parameters, rawRequest, send } from './support.js';

type Files = Readonly<Record<string, string | Buffer>>;
type Parts = readonly (readonly [name: string, content: string, filename?: string])[];
const TYPE = 'multipart/form-data; boundary=xYx';

function put(folder: string, files: Files): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
}

/** A peer with these files in its folder of shares. */
async function sharing(files: Files = {}, options: Partial<PeerOptions> = {}) {
  const dir = temporaryDirectory();
  const folder = join(dir, 'shares');
  put(folder, files);
  const peer = await openPeer({ dir, ...options });
  const get = (parameters: Parameters, headers: Parameters = {}) =>
    send(peer, `/api/share.html?${new URLSearchParams(parameters)}`, { headers });
  const list = async (parameters: Parameters = {}) =>
    (await send(peer, `/api/share.json?${new URLSearchParams(parameters)}`)).json();
  const names = async (parameters: Parameters = {}): Promise<string[]> =>
    (await list(parameters)).shares.map(({ c, data }: Parameters) => `${c}:${data}`);
  const upload = (parts: Parts, headers: Parameters = { authorization: basic(peer) }) =>
    send(peer, '/api/share.json', {
      method: 'POST',
      headers: { 'content-type': TYPE, ...headers },
      body: multipart(parts),
    });
  return { peer, dir, folder, get, list, names, upload };
}

function multipart(parts: Parts): string {
  const texts = parts.map(([name, content, filename]) => {
    const file =
      filename === undefined ? '' : `; filename="${filename}"\r\nContent-Type: application/x`;
    return `--xYx\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${content}\r\n`;
  });
  return `${texts.join('')}--xYx--\r\n`;
}

describe('a shared object', () => {
  it('is a file, answered unchanged on every path, by GET and POST', async () => {
    const bytes = Buffer.from([0, 255, 13, 10, 60, 128]);
    const path = 'sub folder/ö & "x".bin';
    const { peer, get } = await sharing({
      [`group/${path}`]: bytes,
      'top.csv': 'a,b\n',
      'empty.txt': '',
    });
    const got = await get({ c: 'group', data: path });
    expect([got.status, got.bytes]).toEqual([200, bytes]);
    expect(got.headers).toMatchObject({
      'content-length': '6',
      'content-type': 'application/octet-stream',
    });
    const accept = { accept: 'application/json' };
    for (const form of ['html', 'json'])
      expect(
        (await ask(peer, `/api/share.${form}`, { c: 'group', data: path }, accept)).bytes,
      ).toEqual(bytes);
    expect((await get({ data: `group/${path}` })).bytes).toEqual(bytes);
    const top = await get({ data: 'top.csv' });
    expect([top.headers['content-type'], top.body]).toEqual(['text/csv', 'a,b\n']);
    const head = await send(peer, '/api/share.html?data=top.csv', { method: 'HEAD' });
    expect([head.status, head.headers['content-length']]).toEqual([200, '4']);
    expect((await get({ data: 'empty.txt' })).headers['content-length']).toBe('0');
  });

  it('that is missing is answered 404, in the requested form', async () => {
    const { peer } = await sharing({ 'g/x': 'x' });
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

  it('is not sent again to a client that has it, and always sent whole', async () => {
    const { folder, get } = await sharing({ 'a.txt': 'abcdefghij' });
    const at = new Date('2026-01-02T03:04:05.678Z');
    utimesSync(join(folder, 'a.txt'), at, at);
    const last = 'Fri, 02 Jan 2026 03:04:05 GMT';
    const { headers } = await get({ data: 'a.txt' });
    expect(headers['last-modified']).toBe(last);
    for (const [status, asked] of [
      [304, { 'if-modified-since': last }],
      [304, { 'if-none-match': `"x", W/${headers.etag}` }],
      [200, { 'if-modified-since': 'Fri, 02 Jan 2026 03:04:04 GMT' }],
      [200, { 'if-none-match': '"x"', 'if-modified-since': last }],
      [200, { range: 'bytes=3-5' }],
    ] as [number, Parameters][]) {
      const again = await get({ data: 'a.txt' }, asked);
      expect([again.status, again.body]).toEqual([status, status === 304 ? '' : 'abcdefghij']);
    }
  });

  it('of a type that a browser would run is only offered for download, and no object may run', async () => {
    const odd = 'ü"; x=\'1.html';
    const run = ['page.html', 'image.SVG', 'script.js', 'feed.xml', 'unknown'];
    const names = [...run, 'photo.png', 'notes.txt', odd];
    const { get } = await sharing(
      Object.fromEntries(names.map((name) => [name, '<script>alert(1)</script>'])),
    );
    const offered = async (data: string) => (await get({ data })).headers['content-disposition'];
    for (const name of run) expect(await offered(name)).toMatch(`attachment; filename="${name}"`);
    for (const name of ['photo.png', 'notes.txt'])
      expect(await offered(name)).toMatch(`inline; filename="${name}"`);
    expect(await offered(odd)).toBe(
      `attachment; filename="___ x__1.html"; filename*=UTF-8''%C3%BC%22%3B%20x%3D%271.html`,
    );
    for (const data of names)
      expect((await get({ data })).headers).toMatchObject({
        'content-security-policy': expect.stringMatching(/^sandbox; default-src 'none'/),
        'x-content-type-options': 'nosniff',
      });
  });

  it('needs no credentials unless requireAuth is set', async () => {
    const { peer, get } = await sharing({ 'a.txt': 'x' }, { requireAuthEverywhere: true });
    expect((await get({ data: 'a.txt' })).status).toBe(401);
    expect((await get({ data: 'a.txt' }, { authorization: basic(peer) })).status).toBe(200);
  });

  it('that changes while it is read is never sent as a mixture of two versions', async () => {
    const { peer, folder, get } = await sharing({ big: Buffer.alloc(16_000_000, 'a') });
    const got = await fetch(`${peer.url}/api/share.html?data=big`);
    put(folder, { big: Buffer.alloc(16_000_000, 'b') });
    await expect(got.arrayBuffer()).rejects.toThrow();
    expect((await get({ data: 'big' })).bytes.indexOf('a')).toBe(-1);
  });

  it('of 200 MB streams from disk in constant memory', async () => {
    const { peer, folder } = await sharing({ huge: '' });
    execFileSync('truncate', ['-s', '200M', join(folder, 'huge')]);
    const before = process.memoryUsage().rss;
    let [most, size] = [0, 0];
    for await (const chunk of (await fetch(`${peer.url}/api/share.html?data=huge`)).body ?? []) {
      size += chunk.length;
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
    const { get } = await sharing({ top: 'x', 'g/x': 'x' });
    expect((await get(c === '' ? { data } : { c, data })).status).toBe(400);
  });

  it('by a link to a file or folder, by anything but a file, or to a hidden file', async () => {
    const { dir, folder, get, names } = await sharing({
      'real/x': 'x',
      '.a.txt.Xy12': 'half',
      '.git/config': 'x',
    });
    symlinkSync(join(dir, 'admin-password'), join(folder, 'link'));
    symlinkSync(dir, join(folder, 'linked'));
    symlinkSync(join(folder, 'real'), join(folder, 'inside'));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/f`), Buffer.from([0xff])]), 'x');
    put(folder, { 'back\\slash': 'x' });
    for (const data of [
      'link',
      'linked/admin-password',
      'inside/x',
      'pipe',
      'real',
      '.a.txt.Xy12',
      '.git/config',
    ])
      expect([data, (await get({ data })).status]).toEqual([data, 404]);
    expect((await get({ c: '.git', data: 'config' })).status).toBe(404);
    expect(await names()).toEqual(['real:x']);
  });

  it('except that the folder itself may be a link', async () => {
    const [dir, elsewhere] = [temporaryDirectory(), temporaryDirectory()];
    symlinkSync(elsewhere, join(dir, 'shares'));
    const { get } = await sharing({}, { dir });
    put(elsewhere, { 'g/x': 'here' });
    expect((await get({ c: 'g', data: 'x' })).body).toBe('here');
  });
});

describe('the list of shared objects', () => {
  it('lists them in order, of one group or all, in both forms', async () => {
    const files = Object.fromEntries(
      ['b/2', 'b/1', 'b/deep/er/<3>', 'a', 'c/&'].map((name) => [name, name]),
    );
    const { peer, folder, list, names } = await sharing(files);
    const at = new Date('2026-01-02T03:04:05.678Z');
    utimesSync(join(folder, 'a'), at, at);
    const url = `${peer.url}/api/share.html`;
    const lastModified = '2026-01-02T03:04:05.678Z';
    const { more, shares } = await list();
    expect([more, shares[0]]).toEqual([
      false,
      { c: '', data: 'a', size: 1, lastModified, url: `${url}?data=a` },
    ]);
    expect(await names()).toEqual([':a', 'b:1', 'b:2', 'b:deep/er/<3>', 'c:&']);
    expect(await names({ c: 'b' })).toEqual(['b:1', 'b:2', 'b:deep/er/<3>']);
    const { body } = await send(peer, '/api/share.html');
    const link = `<a href="${url}?c=b&amp;data=deep%2Fer%2F%3C3%3E">deep/er/&lt;3&gt;</a>`;
    expect(body).toContain(`${link}</td><td>b</td><td>13 B</td>`);
    expect(body).toContain('<td>2026-01-02 03:04 UTC</td>');
    expect(body).toMatch(/enctype="multipart\/form-data".*<\/html>\n$/s);
  });

  it('is limited, and says so; an empty one says so too', async () => {
    const { folder, list, peer } = await sharing();
    const shown = async () => (await send(peer, '/api/share.html')).body;
    expect(await shown()).toContain('No shared objects yet.');
    execFileSync('sh', ['-c', 'seq 10001 | xargs touch'], { cwd: folder });
    const { shares, more } = await list();
    expect([shares.length, more]).toEqual([10_000, true]);
    expect(await shown()).toContain('More than 10,000 files');
  });
});

describe('an upload', () => {
  it('creates an object or replaces the old one', async () => {
    const { folder, get, upload } = await sharing();
    const [data, content] = ['reports/ö 1.csv', 'a,b\r\n--xY\r\n'];
    const first = await upload([
      ['data', content, data],
      ['c', 'gruppe'],
    ]);
    expect([first.status, first.json().shares]).toMatchObject([
      200,
      [{ c: 'gruppe', data, size: 11 }],
    ]);
    expect(readFileSync(join(folder, 'gruppe', data), 'utf8')).toBe(content);
    await upload([
      ['c', 'gruppe'],
      ['data', '', data],
    ]);
    expect((await get({ c: 'gruppe', data })).body).toBe('');
    expect((await upload([['data', 'x', 'top']])).json().shares).toMatchObject([
      { c: '', data: 'top' },
    ]);
    expect(readdirSync(folder).sort()).toEqual(['gruppe', 'top']);
  });

  it('never changes the old object, which a reader may have open', async () => {
    const { folder, upload } = await sharing({ 'a.txt': 'the old object' });
    const reader = await open(join(folder, 'a.txt'));
    await upload([['data', 'new', 'a.txt']]);
    expect(await reader.readFile('utf8')).toBe('the old object');
    await reader.close();
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('new');
  });

  it('needs the administrator, and is refused to pages of other sites', async () => {
    const { peer, folder, upload } = await sharing();
    expect((await upload([['data', 'x', 'x']], {})).status).toBe(401);
    const elsewhere = { authorization: basic(peer), origin: 'http://evil.example' };
    expect((await upload([['data', 'x', 'x']], elsewhere)).status).toBe(403);
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each(['../out', '/etc/out', 'a/../../out', '..', '', '.hidden', 'a\\\\b', 'g/.x/y'])(
    'cannot be named %j',
    async (filename) => {
      const { dir, folder, upload } = await sharing();
      expect([400, 404]).toContain((await upload([['data', 'x', filename]])).status);
      expect([readdirSync(folder), existsSync(join(dir, 'out'))]).toEqual([[], false]);
    },
  );

  it.each([
    ['nothing', []],
    ['no file', [['c', 'g']]],
    ['another part', [['file', 'x', 'x']]],
    [
      'two files',
      [
        ['data', 'x', 'x'],
        ['data', 'y', 'y'],
      ],
    ],
    [
      'a group with a slash',
      [
        ['data', 'x', 'x'],
        ['c', '../g'],
      ],
    ],
    [
      'a long group',
      [
        ['data', 'x', 'x'],
        ['c', 'g'.repeat(2_000)],
      ],
    ],
  ] as [string, Parts][])('with %s is refused, and leaves no file', async (_, parts) => {
    const { folder, upload } = await sharing();
    expect((await upload(parts)).status).toBe(400);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('follows no link, and replaces no file by a folder', async () => {
    const { dir, folder, upload } = await sharing({ file: 'x', 'g/x': 'x' });
    symlinkSync(dir, join(folder, 'linked'));
    for (const name of ['linked/out', 'file/x', 'g'])
      expect([name, (await upload([['data', 'x', name]])).status]).toEqual([name, 409]);
    expect([existsSync(join(dir, 'out')), readdirSync(folder).sort()]).toEqual([
      false,
      ['file', 'g', 'linked'],
    ]);
  });

  it('that is aborted leaves no file, and keeps the old object', async () => {
    const { peer, folder } = await sharing({ x: 'old' });
    const head = `POST /api/share.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic(peer)}\r\nConnection: close\r\nContent-Type: ${TYPE}\r\n`;
    const body = multipart([['data', 'new'.repeat(100_000), 'x']]);
    const cut = body.slice(0, -20);
    const answer = await rawRequest(peer, `${head}Content-Length: ${cut.length}\r\n\r\n${cut}`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    const half = `${head}Content-Length: ${body.length}\r\n\r\n${body.slice(0, 100_000)}`;
    const { socket } = new Connection(peer, half);
    await until(() => readdirSync(folder).length === 2, 'it is being written');
    socket.destroy();
    await until(() => readdirSync(folder).join() === 'x', 'what was begun is removed');
    expect(readFileSync(join(folder, 'x'), 'utf8')).toBe('old');
  });

  it('that a kill interrupted is removed at the next start', async () => {
    const { folder } = await sharing({ '.upload-0123456789abcdef.tmp': 'half', '.mine': 'kept' });
    expect(readdirSync(folder)).toEqual(['.mine']);
  });

  it('larger than the limit of a push is streamed to disk', async () => {
    const { peer, folder } = await sharing({}, { maxBody: 100_000 });
    const content = Buffer.alloc(20_000_000, 'abc');
    const body = new FormData();
    body.set('data', new Blob([content]), 'big.bin');
    const headers = { authorization: basic(peer) };
    const answer = await fetch(`${peer.url}/api/share.html`, { method: 'POST', body, headers });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
    expect(readFileSync(join(folder, 'big.bin')).equals(content)).toBe(true);
  });
});
