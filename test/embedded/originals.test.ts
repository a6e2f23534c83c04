import { once } from 'node:events';
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { appendFile, open, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { DaemonFacts, NotIndexedFiles, SoughtWord } from '../../src/embedded/daemon-link.js';
import { streamOf } from '../../src/embedded/file-body.js';
import type { PeerInstance } from '../../src/embedded/peer-instance.js';
import { openPeerInstance } from '../../src/embedded/peer-instance.js';
import type { Encoding } from '../../src/lib/file.js';
import { silentLogger } from '../../src/lib/logger.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { deferred, until } from '../support/wait.js';
import { basic, Connection, driver, openPeer, push, rawRequest, search, send } from './support.js';

/** More than the system takes for a client that reads nothing. */
const LARGE = 24 * 2 ** 20;
const NOTHING: NotIndexedFiles = { files: [], total: 0, totalIsExact: true };

/** Connects a daemon that opens the files of this directory, and pushes their documents. */
async function connect(peer: PeerInstance, files: Readonly<Record<string, string>>) {
  const directory = temporaryDirectory();
  const urls: string[] = [];
  const asked: (readonly SoughtWord[] | undefined)[] = [];
  const daemon = {
    directory,
    urls,
    asked,
    encoding: 'utf-8' as Encoding,
    notIndexed: NOTHING,
    /** What each question waits for before a file is opened. */
    hold: Promise.resolve(),
    /** Number of files that were opened. */
    opened: 0,
    path: (name: string) => join(directory, name),
    urlOf: (name: string) => `file://${directory}/${encodeURIComponent(name)}`,
    /** The files of the directory that this process has open. */
    get open(): number {
      const links = readdirSync('/proc/self/fd').map((fd) => {
        const link = `/proc/self/fd/${fd}`;
        return existsSync(link) ? readlinkSync(link) : '';
      });
      return links.filter((path) => path.startsWith(directory)).length;
    },
  };
  for (const [name, text] of Object.entries(files)) await writeFile(daemon.path(name), text);
  const documents = Object.keys(files).map((name) => [daemon.urlOf(name), `tea in ${name}`]);
  await push(peer, Object.fromEntries(documents) as Record<string, string>);
  const facts: DaemonFacts = {
    openOriginal: async (url) => {
      urls.push(url);
      await daemon.hold;
      const name = decodeURIComponent(basename(url));
      if (name === 'away.txt')
        return { kind: 'refused', status: 409, message: 'It is away. Wait.' };
      const handle = await open(daemon.path(name));
      daemon.opened += 1;
      const stat = await handle.stat();
      const { encoding } = daemon;
      return { kind: 'opened', handle, name, stat, sha256: 'a'.repeat(64), encoding };
    },
    aboutResults: async ({ urls: shown, words }) => {
      asked.push(words);
      const originals = shown.map((url) => !url.includes('away'));
      return { originals, notIndexed: words && daemon.notIndexed };
    },
  };
  peer.connect(facts);
  return daemon;
}

async function setUp(files: Readonly<Record<string, string>>) {
  const peer = await openPeer();
  const daemon = await connect(peer, files);
  const pathOf = (name: string) => `/original?${new URLSearchParams({ url: daemon.urlOf(name) })}`;
  const get = (name: string, headers: Readonly<Record<string, string>> = {}) =>
    send(peer, pathOf(name), { headers });
  return { peer, daemon, pathOf, get };
}

async function peerWithClock() {
  const clock = new FakeClock();
  const options = { dir: temporaryDirectory(), port: 0, driver: driver.name };
  const peer = await openPeerInstance(options, clock, silentLogger);
  afterwards('test', async () => {
    const closed = peer.close();
    await clock.advance(5_000);
    await closed;
  });
  return { clock, peer };
}

describe('the original of a document', () => {
  it('is answered as it is, with headers that keep it from acting as a page', async () => {
    const { daemon, get, pathOf, peer } = await setUp({ 'tea.txt': 'Grüner Tee' });
    const { body, headers, status } = await get('tea.txt');
    expect([status, body]).toEqual([200, 'Grüner Tee']);
    expect(headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'content-disposition': `inline; filename="tea.txt"; filename*=UTF-8''tea.txt`,
      'content-length': '11',
      'content-security-policy': expect.stringMatching(/^sandbox; default-src 'none';/),
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-store',
    });
    const head = await send(peer, pathOf('tea.txt'), { method: 'HEAD' });
    expect([head.status, head.body, head.headers['content-length']]).toEqual([200, '', '11']);
    await until(() => daemon.open === 0, 'all files are closed');
  });

  it.each([
    ['a.pdf', 'application/pdf'],
    ['a.PNG', 'image/png'],
    ['a.jpeg', 'image/jpeg'],
    ['a.md', 'text/plain; charset=utf-8'],
  ])('is shown in the browser if it is of a type that runs nothing: %s', async (name, type) => {
    const { get } = await setUp({ [name]: '<script>alert(1)</script>' });
    const { headers } = await get(name);
    expect(headers['content-type']).toBe(type);
    expect(headers['content-disposition']).toMatch(/^inline;/);
  });

  it.each(['a.html', 'a.xhtml', 'a.svg', 'a.xml', 'a.docx', 'a.js', 'a', 'a.constructor', 'pdf'])(
    'is a download if it is of any other type, such as a page with a script: %s',
    async (name) => {
      const { get } = await setUp({ [name]: '<script>alert(1)</script>' });
      const { body, headers } = await get(name);
      expect(body).toBe('<script>alert(1)</script>');
      expect(headers['content-type']).toBe('application/octet-stream');
      expect(headers['content-disposition']).toMatch(/^attachment;/);
    },
  );

  it('is a text in its own encoding, and a download if that is not known', async () => {
    const { daemon, get } = await setUp({ 'a.txt': 'x' });
    daemon.encoding = 'koi8-u';
    expect((await get('a.txt')).headers['content-type']).toBe('text/plain; charset=koi8-u');
    daemon.encoding = 'unknown-8bit';
    expect((await get('a.txt')).headers['content-type']).toBe('application/octet-stream');
  });

  it('has a name that adds no header and shows its invisible characters', async () => {
    const name = 'x\r\nSet-Cookie: a=b\r\n\r\n"<\u202efdp.txt';
    const { get } = await setUp({ [name]: 'x' });
    const { body, headers } = await get(name);
    expect([body, headers['set-cookie']]).toEqual(['x', undefined]);
    const disposition = String(headers['content-disposition']);
    expect(disposition).toMatch(/^inline; filename="[\w .()-]+"; filename\*=UTF-8''[\w.%~-]+$/);
    expect(decodeURIComponent(disposition.split("''")[1] ?? '')).toBe(
      'x\\x0d\\x0aSet-Cookie: a=b\\x0d\\x0a\\x0d\\x0a"<\\u202efdp.txt',
    );
  });

  it('is answered in parts, unless the parts are of another version', async () => {
    const { get } = await setUp({ 'a.txt': '0123456789' });
    const part = async (range: string, more: Readonly<Record<string, string>> = {}) => {
      const { body, headers, status } = await get('a.txt', { range, ...more });
      return [status, body, headers['content-range']];
    };
    expect(await part('bytes=2-4')).toEqual([206, '234', 'bytes 2-4/10']);
    expect(await part('bytes=7-')).toEqual([206, '789', 'bytes 7-9/10']);
    expect(await part('bytes=-2')).toEqual([206, '89', 'bytes 8-9/10']);
    expect(await part('bytes=5-99')).toEqual([206, '56789', 'bytes 5-9/10']);
    expect(await part('bytes=10-')).toEqual([416, expect.anything(), 'bytes */10']);
    expect(await part('bytes=-0')).toEqual([416, expect.anything(), 'bytes */10']);
    const whole = [200, '0123456789', undefined];
    for (const range of ['bytes=4-2', 'bytes=0-1,3-4', 'bytes=-', 'lines=1-2'])
      expect(await part(range)).toEqual(whole);
    const { etag = '' } = (await get('a.txt')).headers;
    expect(await part('bytes=2-4', { 'if-range': etag })).toEqual([206, '234', 'bytes 2-4/10']);
    expect(await part('bytes=2-4', { 'if-range': '"other"' })).toEqual(whole);
  });

  it('is opened by no page of another site, by no other method, and for no URL that is not indexed', async () => {
    const { daemon, get, pathOf, peer } = await setUp({ 'a.txt': 'x' });
    for (const site of ['cross-site', 'same-site'])
      expect((await get('a.txt', { 'sec-fetch-site': site })).status).toBe(403);
    expect((await get('a.txt', { origin: 'http://evil.example' })).status).toBe(403);
    expect((await get('a.txt', { host: 'evil.example' })).status).toBe(403);
    expect((await send(peer, pathOf('a.txt'), { method: 'POST' })).status).toBe(405);
    for (const url of ['file:///etc/passwd', daemon.urlOf('b.txt'), '/etc/passwd', 'x'])
      expect((await send(peer, `/original?${new URLSearchParams({ url })}`)).status).toBe(
        url.startsWith('file:') ? 404 : 400,
      );
    expect((await send(peer, '/original')).status).toBe(400);
    expect(daemon.urls).toEqual([]);
    for (const site of ['same-origin', 'none'])
      expect((await get('a.txt', { 'sec-fetch-site': site })).status).toBe(200);
  });

  it('needs the administrator if everything does', async () => {
    const peer = await openPeer({ requireAuthEverywhere: true });
    const daemon = await connect(peer, { 'a.txt': 'x' });
    const path = `/original?${new URLSearchParams({ url: daemon.urlOf('a.txt') })}`;
    expect((await send(peer, path)).status).toBe(401);
    expect(daemon.urls).toEqual([]);
    const headers = { authorization: basic(peer) };
    expect((await send(peer, path, { headers })).body).toBe('x');
  });

  it('is refused with the reason of the daemon, and by a peer without a daemon', async () => {
    const { get, peer } = await setUp({ 'away.txt': 'x' });
    const refused = await get('away.txt', { accept: 'application/json' });
    expect([refused.status, refused.json().message]).toEqual([409, 'It is away. Wait.']);
    const alone = await openPeer();
    await push(alone, { 'http://h/a.txt': 'tea' });
    const answer = await send(alone, '/original?url=http%3A%2F%2Fh%2Fa.txt');
    expect([answer.status, answer.body]).toEqual([404, expect.stringContaining('runs alone')]);
    expect((await send(peer, '/document?query=tea&url=http%3A%2F%2Fh%2Fa')).status).toBe(404);
  });

  it('that changes while it is sent is not sent to its end', async () => {
    const { daemon, pathOf, peer } = await setUp({ 'a.txt': 'x'.repeat(LARGE) });
    const request = `GET ${pathOf('a.txt')} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
    const client = new Connection(peer, request);
    client.socket.pause();
    await until(() => daemon.open === 1, 'it is being sent');
    await appendFile(daemon.path('a.txt'), 'more');
    client.socket.resume();
    await client.closed;
    const [head = '', body = ''] = client.answer.split('\r\n\r\n');
    expect(head).toContain(`content-length: ${LARGE}`);
    expect(body.length).toBeLessThan(LARGE);
    await until(() => daemon.open === 0, 'it is closed');
    expect(await rawRequest(peer, request)).toMatch(/x{1000}more$/);
  });

  it('is open for a bounded number of clients, and closed when they go', async () => {
    const { daemon, get, pathOf, peer } = await setUp({ 'a.txt': 'x'.repeat(LARGE) });
    const request = `GET ${pathOf('a.txt')} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    const clients = Array.from({ length: 50 }, () => {
      const client = new Connection(peer, request);
      client.socket.once('data', () => client.socket.pause());
      return client;
    });
    await until(() => clients.every(({ answer }) => answer !== ''), 'all are answered');
    const refused = clients.filter(({ answer }) => answer.startsWith('HTTP/1.1 503'));
    expect([refused.length, daemon.open]).toEqual([18, 32]);
    expect((await get('a.txt')).headers['retry-after']).toBe('5');
    for (const { socket } of clients) socket.destroy();
    await until(() => daemon.open === 0, 'all are closed');
    expect((await get('a.txt')).bytes.length).toBe(LARGE);
    await until(() => daemon.open === 0, 'the last one is closed');
  });

  it('is closed if the client went away before it was opened', async () => {
    const { daemon, get, pathOf, peer } = await setUp({ 'a.txt': 'x'.repeat(LARGE) });
    const hold = deferred();
    daemon.hold = hold.promise;
    const request = `GET ${pathOf('a.txt')} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    const clients = Array.from({ length: 32 }, () => new Connection(peer, request));
    await until(() => daemon.urls.length === 32, 'the daemon was asked');
    expect((await get('a.txt')).status).toBe(503);
    for (const { socket } of clients) socket.destroy();
    hold.resolve();
    await until(async () => (await get('a.txt')).status === 200, 'there is room again');
    await until(() => daemon.open === 0, 'all are closed');
  });

  it('is closed for a client that takes nothing for half a minute', async () => {
    const { clock, peer } = await peerWithClock();
    const daemon = await connect(peer, { 'a.txt': 'x'.repeat(LARGE) });
    const path = `/original?${new URLSearchParams({ url: daemon.urlOf('a.txt') })}`;
    const client = new Connection(peer, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    client.socket.pause();
    await until(() => daemon.open === 1, 'it is being sent');
    const before = clock.elapsed();
    await until(async () => {
      await clock.advance(1_000);
      return daemon.open === 0;
    }, 'it is closed');
    expect(clock.elapsed() - before).toBeGreaterThan(29_000);
  });
});

describe('a file that the daemon does not open soon', () => {
  it('is refused after ten seconds, is counted no longer, and is closed when it is opened', async () => {
    const { clock, peer } = await peerWithClock();
    const daemon = await connect(peer, { 'a.txt': 'x' });
    const path = `/original?${new URLSearchParams({ url: daemon.urlOf('a.txt') })}`;
    const hung = deferred();
    daemon.hold = hung.promise;
    let answered = 0;
    const answers = Array.from({ length: 32 }, async () => {
      const { body, status } = await send(peer, path, { headers: { accept: 'application/json' } });
      answered += 1;
      return `${status} ${body}`;
    });
    await until(() => daemon.urls.length === 32, 'the daemon was asked');
    await clock.advance(9_000);
    expect(answered).toBe(0);
    await clock.advance(1_000);
    for (const answer of await Promise.all(answers))
      expect(answer).toMatch(/^503 .*not opened within 10 seconds/s);
    daemon.hold = Promise.resolve();
    expect((await send(peer, path)).body).toBe('x');
    hung.resolve();
    await until(() => daemon.opened === 33, 'all are opened');
    await until(() => daemon.open === 0, 'all are closed');
  });
});

describe('the body of a file', () => {
  it.each([1, 2, 3])('waits for the client with each of %i chunks', async (count) => {
    const path = join(temporaryDirectory(), 'a');
    await writeFile(path, 'x'.repeat(4 * count));
    const waits: boolean[] = [];
    const body = streamOf({
      handle: await open(path),
      start: 0,
      length: 4 * count,
      chunkBytes: 4,
      isUnchanged: () => Promise.resolve(true),
      onWait: (isWaiting) => waits.push(isWaiting),
    });
    for (let chunk = 1; chunk <= count; chunk += 1) {
      await once(body, 'readable');
      expect([waits.length, waits.at(-1)]).toEqual([2 * chunk - 1, true]);
      body.read();
    }
    const closed = once(body, 'close');
    body.resume();
    await closed;
    expect(waits.at(-1)).toBe(true);
  });
});

describe('the results', () => {
  it('lead to the originals that the daemon has', async () => {
    const { daemon, pathOf, peer } = await setUp({ 'a & b.txt': 'x', 'away.txt': 'x' });
    const link = `<a href="${pathOf('a & b.txt')}"`;
    for (const path of [
      '/?query=tea',
      `/document?${new URLSearchParams({ url: daemon.urlOf('a & b.txt') })}`,
    ]) {
      const { body } = await send(peer, path);
      expect(body.split('Open original').length, path).toBe(2);
      expect(body, path).toContain(link);
    }
    const { items } = await search(peer, { query: 'tea' });
    expect(items.map((item) => [basename(item.url), 'original' in item]).sort()).toEqual([
      ['a%20%26%20b.txt', true],
      ['away.txt', false],
    ]);
  });

  const FILES: NotIndexedFiles = {
    files: [
      {
        path: '/home/<b>/scan.pdf',
        status: 'skipped',
        code: 'NO_OCR',
        reason: 'It is a scan.',
        hint: 'Run `peersync check`.',
        command: 'peersync why /home/scan.pdf',
      },
    ],
    total: 3,
    totalIsExact: false,
  };

  it('are followed by files that are not searchable and have the words in their names', async () => {
    const { daemon, peer } = await setUp({ 'a.txt': 'x' });
    daemon.notIndexed = FILES;
    const { body } = await send(peer, '/?query=scan');
    expect(body).toContain('Nothing found for scan.');
    expect(body).toContain('<code>/home/&lt;b&gt;/scan.pdf</code> – skipped: It is a scan.');
    expect(body).toContain('Run <code>peersync check</code>.');
    expect(body).toContain('<code>peersync why /home/scan.pdf</code>');
    expect(body).toContain('2 more files with these words.');
    expect(body).toContain('Not all names of files that are not searchable were compared.');
    const { files, total } = FILES;
    const answer = await search(peer, { query: 'scan' });
    expect(answer).toMatchObject({
      total: 0,
      notIndexed: files,
      notIndexedTotal: total,
      notIndexedTotalIsExact: false,
    });
    daemon.notIndexed = { ...NOTHING, totalIsExact: false };
    expect((await send(peer, '/?query=scan')).body).toContain('Not all names of files');
    daemon.notIndexed = NOTHING;
    expect(await search(peer, { query: 'scan' })).not.toHaveProperty('notIndexed');
    expect((await send(peer, '/?query=scan')).body).not.toContain('<section');
  });

  it.each<[string, Readonly<Record<string, string>>, string | undefined]>([
    ['all words', { query: 'Scan PDF' }, 'scan pdf'],
    ['the pieces of a term', { query: 'scan.pdf' }, 'scan pdf'],
    ['a prefix while it is typed', { query: 'tax sca', typing: 'true' }, 'tax sca*'],
    ['no prefix after that', { query: 'tax sca' }, 'tax sca'],
    ['a prefix that was asked for', { query: 'sca*' }, 'sca*'],
    ['all spellings', { query: 'Brücke' }, 'brucke|bruecke'],
    ['the telling words of a question', { query: 'where is the bill of my trip' }, 'bill trip'],
    ['one Chinese character', { query: '茶' }, '茶'],
    ['no few letters', { query: 'te', typing: 'true' }, undefined],
    ['nothing for a filter', { query: 'scan type:pdf' }, undefined],
    ['nothing for a word to leave out', { query: 'scan -pdf' }, undefined],
    ['nothing for a choice', { query: 'scan OR pdf' }, undefined],
    ['nothing in a collection', { query: 'scan', collection: 'notes' }, undefined],
    ['nothing on a later page', { query: 'scan', offset: '10' }, undefined],
    ['nothing without words', { query: '' }, undefined],
  ])('are compared with names by %s', async (_, parameters, expected) => {
    const { daemon, peer } = await setUp({ 'a.txt': 'x' });
    await search(peer, parameters);
    const words = daemon.asked.at(-1)?.map(({ isPrefix, spellings }) => {
      const all = spellings.toSorted().join('|');
      return isPrefix ? `${all}*` : all;
    });
    expect(words?.join(' ')).toBe(expected);
  });

  it('are answered without the daemon if it does not answer soon, or fails', async () => {
    const peer = await openPeer();
    await push(peer, { 'http://h/a.txt': 'tea' });
    const facts: DaemonFacts = {
      openOriginal: () => Promise.reject(new Error('no')),
      aboutResults: () => new Promise(() => {}),
    };
    peer.connect(facts);
    expect((await search(peer, { query: 'tea' })).total).toBe(1);
    peer.connect({ ...facts, aboutResults: () => Promise.reject(new Error('no')) });
    expect((await search(peer, { query: 'tea' })).total).toBe(1);
    expect((await send(peer, '/original?url=http%3A%2F%2Fh%2Fa.txt')).status).toBe(500);
  });
});
