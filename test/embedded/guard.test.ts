import { once } from 'node:events';
import { Server } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { prefersJson } from '../../src/embedded/server.js';
import { until } from '../support/wait.js';
import {
  ask,
  basic,
  Connection,
  FORM,
  openPeer,
  peerdoc,
  push,
  rawRequest,
  send,
} from './support.js';

const HTML = 'text/html; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';

describe('the pages of the administrator', () => {
  it('require credentials, also on loopback and for addresses without a page', async () => {
    const peer = await openPeer();
    const apis = ['push_p.json', 'push%5Fp.json', 'nope_p.xml', 'table_p.json?table=t&commitrow=1'];
    for (const path of [...apis.map((name) => `/api/${name}`), '/Tables_p.html']) {
      const answer = await send(peer, path);
      expect([answer.status, answer.headers['www-authenticate']]).toEqual([
        401,
        expect.stringMatching(/^Basic realm=/),
      ]);
    }
    expect((await ask(peer, '/api/nope_p.xml')).status).toBe(404);
  });

  it('open only to the right user and password, and slow down guessing without delaying the right one', async () => {
    const peer = await openPeer();
    const statusOf = async (authorization: string) =>
      (await send(peer, '/api/push_p.json', { headers: { authorization } })).status;
    const basicOf = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
    const right = `admin:${peer.credentials.password}`;
    const began = performance.now();
    const wrong = ['admin:', `root:${peer.credentials.password}`, `${right}x`, 'admin'];
    const guesses = wrong.map(async (text) => {
      expect(await statusOf(basicOf(text))).toBe(401);
      return performance.now() - began;
    });
    expect(await statusOf(basicOf(right))).toBe(200);
    expect(Math.min(...(await Promise.all(guesses)))).toBeGreaterThan(490);
    expect(await statusOf(`Digest username="admin", response="${'0'.repeat(32)}"`)).toBe(401);
  });

  it('cannot be changed by a page of another site, even with the password', async () => {
    const peer = await openPeer();
    const push = '/api/push_p.json?url-0=http://h/&data-0=x';
    const from = (headers: Record<string, string>) => ask(peer, push, {}, headers);
    expect((await from({ origin: 'http://evil.example' })).status).toBe(403);
    expect((await from({ origin: 'null' })).status).toBe(403);
    expect((await from({ 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await from({ 'sec-fetch-site': 'none', origin: 'http://evil.example' })).status).toBe(
      403,
    );
    expect((await from({ origin: peer.url, 'sec-fetch-site': 'same-origin' })).status).toBe(200);
    expect((await from({ origin: peer.url })).status).toBe(200);
  });

  it('include all pages if requireAuth is set', async () => {
    const peer = await openPeer({ requireAuthEverywhere: true });
    for (const path of ['/', '/search.json', '/api/peerdoc.json?url=http://h/', '/nope']) {
      expect((await send(peer, path)).status).toBe(401);
      expect((await send(peer, path, { headers: { authorization: basic(peer) } })).status).not.toBe(
        401,
      );
    }
  });
});

describe('a request', () => {
  it('for another host is refused, as protection from DNS rebinding', async () => {
    const peer = await openPeer();
    const { port } = new URL(peer.url);
    const statusOf = async (host: string) => [
      host,
      (await send(peer, '/', { headers: { host } })).status,
    ];
    for (const name of [
      'evil.example',
      `evil.example:${port}`,
      'localhost.evil.example',
      '10.0.0.1',
    ])
      expect(await statusOf(name)).toEqual([name, 403]);
    for (const name of ['localhost', `LOCALHOST:${port}`, `127.0.0.1:${port}`, '[::1]'])
      expect(await statusOf(name)).toEqual([name, 200]);
  });

  it('is answered also after the listener failed to accept a connection', async () => {
    const listen = vi.spyOn(Server.prototype, 'listen');
    const peer = await openPeer();
    const [server] = listen.mock.contexts as Server[];
    listen.mockRestore();
    server?.emit('error', new Error('accept ENFILE'));
    expect((await send(peer, '/')).status).toBe(200);
  });

  it('gets the security headers with every answer', async () => {
    const peer = await openPeer();
    for (const path of ['/', '/nope', '/search.json', '/api/push_p.html'])
      expect((await send(peer, path)).headers).toMatchObject({
        'content-security-policy': expect.stringMatching(
          /^default-src 'none'; .*frame-ancestors 'none'$/,
        ),
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
        'referrer-policy': 'same-origin',
      });
  });

  it('to an endpoint is answered in JSON if Accept prefers it, whatever the extension of its address', async () => {
    const peer = await openPeer();
    const typeOf = async (path: string, accept: string) =>
      (await ask(peer, path, {}, { accept })).headers['content-type'];
    for (const name of ['push_p', 'peerdoc', 'citation', 'share', 'table_p']) {
      expect([name, await typeOf(`/api/${name}.html`, 'application/json')]).toEqual([
        name,
        JSON_TYPE,
      ]);
      expect([name, await typeOf(`/api/${name}.html`, '*/*')]).toEqual([name, HTML]);
    }
    // The end of a parameter is not the end of an address.
    for (const path of ['/?query=package.json', '/Tables_p.html?table=prices.json'])
      expect(await typeOf(path, '*/*')).toBe(HTML);
    const found = await send(peer, '/?query=x', { headers: { accept: 'application/json' } });
    expect(found.json()).toMatchObject({ query: 'x', total: 0 });
  });

  it('for an unknown address, or with a wrong method, is refused in the requested form', async () => {
    const peer = await openPeer();
    const hidden = [
      '/../../etc/passwd',
      '/%2e%2e/admin-password',
      '/admin-password',
      '//evil.example/',
    ];
    for (const path of ['/nope', '/api/push_', ...hidden])
      expect((await send(peer, path)).status).toBe(404);
    expect((await send(peer, '/%zz')).status).toBe(400);
    const wrong = await send(peer, '/api/peerdoc.json', { method: 'DELETE' });
    expect([wrong.status, wrong.headers.allow, wrong.json().status]).toEqual([
      405,
      'GET, HEAD, POST',
      405,
    ]);
    const head = await send(peer, '/', { method: 'HEAD' });
    expect([head.status, head.body]).toEqual([200, '']);
    const headers = { authorization: basic(peer) };
    expect((await send(peer, '/api/push_p.json', { method: 'HEAD', headers })).status).toBe(405);
  });

  it.each([
    ['count=abc', /count has to be a number/],
    ['count=10001', /count has to be a number from 0 to 10000/],
    ['data-0=a&data-0=b', /data-0 comes twice/],
    [`${'n'.repeat(300)}=1`, /name is longer/],
    [`${'n'.repeat(3_000)}=1`, /name is longer/],
    [Array.from({ length: 40_011 }, (_, n) => `x${n}=1`).join('&'), /more than 40010 parameters/],
  ])('with invalid parameters is refused with the reason (%#)', async (body, reason) => {
    const answer = await ask(await openPeer(), '/api/push_p.json', new URLSearchParams(body));
    expect([answer.status, answer.json().message]).toEqual([400, expect.stringMatching(reason)]);
  });

  it.each([
    [415, 'text/plain', {}],
    [415, 'application/json', {}],
    [415, 'multipart/form-data', {}],
    [415, FORM['content-type'], { 'content-encoding': 'gzip' }],
    [400, 'multipart/form-data; boundary=', {}],
    [400, 'multipart/form-data; boundary=xx', {}],
  ])('with an unreadable body is refused with %d (%s %j)', async (status, type, more) => {
    const peer = await openPeer();
    const headers = { authorization: basic(peer), 'content-type': type, ...more };
    const body = '--xx\r\nContent-Disposition: form-data; name="data-0"\r\n\r\nhalf of it';
    const answer = await send(peer, '/api/push_p.json', { method: 'POST', headers, body });
    expect([answer.status, answer.json().status]).toEqual([status, status]);
  });

  it('that is not HTTP, or has too large a head, is answered, and its connection is closed', async () => {
    const peer = await openPeer();
    expect(await rawRequest(peer, 'nonsense\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /);
    const large = `GET / HTTP/1.1\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`;
    expect(await rawRequest(peer, large)).toMatch(/^HTTP\/1\.1 431 /);
    expect(await rawRequest(peer, 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 400 /,
    );
  });
});

const POST = 'POST /api/peerdoc.json HTTP/1.1\r\nHost: localhost\r\n';

describe('an incomplete request', () => {
  it('ends with its connection after the time limit', async () => {
    const peer = await openPeer({ timeouts: { headers: 200, idle: 400, drain: 200 } });
    expect(await rawRequest(peer, 'GET / HTT')).toMatch(/^HTTP\/1\.1 408 /);
    const half = `${POST}Content-Type: ${FORM['content-type']}\r\nContent-Length: 100\r\n\r\nurl=`;
    expect(await rawRequest(peer, half)).not.toContain(' 200 ');
    const refused = `${POST.replace('peerdoc', 'nope')}Content-Length: 100\r\n\r\nhalf`;
    expect(await rawRequest(peer, refused)).toMatch(/^HTTP\/1\.1 404 /);
  });

  it.each([
    ['head', 'GET / HTTP/1.1\r\nx: ', /^HTTP\/1\.1 408 /],
    [
      'body after a refusal',
      `${POST.replace('peerdoc', 'push_p')}Content-Length: 1000000\r\n\r\n`,
      /^\S+ 401 /,
    ],
  ])('ends, even if its client continues with its %s', async (_, half, answer) => {
    const peer = await openPeer({ timeouts: { headers: 200, drain: 200 } });
    const connection = new Connection(peer, half);
    await until(() => {
      if (!connection.isCut) connection.socket.write('x');
      return connection.isCut;
    }, 'the peer has let the connection go');
    expect(connection.answer).toMatch(answer);
  });

  it.each([
    ['head', POST],
    ['body', `${POST}Content-Length: 9\r\n\r\nurl=`],
  ])(
    'shuts nobody out, though all connections are held by half a %s; documents are indexed',
    async (_, half) => {
      const peer = await openPeer({ timeouts: { headers: 1_000 } });
      await push(peer, { 'http://h/': 'x' });
      for (let n = 0; n < 512; n += 1) new Connection(peer, half);
      const answer = () => peerdoc(peer, 'http://h/').catch(() => undefined);
      await until(async () => (await answer()) !== undefined, 'another is served');
    },
  );

  it('may take long for its body while bytes arrive', async () => {
    const peer = await openPeer({ timeouts: { headers: 1_000, idle: 2_000 } });
    const [begin, piece] = ['url-0=http://h/long&data-0=', 'x'.repeat(70_000)];
    const length = `Content-Length: ${begin.length + 9 * piece.length}\r\nConnection: close\r\n`;
    const head = `POST /api/push_p.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic(peer)}\r\n`;
    const type = `Content-Type: ${FORM['content-type']}\r\n`;
    const { socket, closed } = new Connection(peer, `${head}${type}${length}\r\n${begin}`);
    for (let n = 0; n < 9; n += 1) {
      await new Promise((resolve) => setTimeout(resolve, 350));
      socket.write(piece);
    }
    expect(await closed).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('that is aborted leaves nothing behind', async () => {
    const peer = await openPeer();
    const head = `POST /api/push_p.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic(peer)}\r\n`;
    const half = `Content-Type: ${FORM['content-type']}\r\nContent-Length: 60000000\r\n\r\nurl-0=http://h/&data-0=half`;
    for (let n = 0; n < 20; n += 1) {
      const { socket } = new Connection(peer, '');
      socket.write(head + half, () => socket.destroy());
      await once(socket, 'close');
    }
    expect(await push(peer, { 'http://h/whole': 'x' })).toMatchObject({
      countsuccess: 1,
    });
    expect(await peerdoc(peer, 'http://h/')).toBeUndefined();
  });
});

describe('a body over the limit', () => {
  const maxBody = 100_000;
  const headOf = (peer: Parameters<typeof basic>[0]) =>
    `POST /api/push_p.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic(peer)}\r\n`;

  it('is refused with 413 by its declared length, before it is read', async () => {
    const peer = await openPeer({ maxBody });
    const answer = await rawRequest(
      peer,
      `${headOf(peer)}Connection: close\r\nContent-Length: 100001\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 .*larger than 100000 bytes/s);
  });

  it.each([
    [FORM['content-type'], 'data-0='],
    [
      'multipart/form-data; boundary=xx',
      '--xx\r\nContent-Disposition: form-data; name="data-0"\r\n\r\n',
    ],
  ])(
    'is refused with 413 while it comes in chunks, and the answer can be read (%s)',
    async (type, begin) => {
      const peer = await openPeer({ maxBody, timeouts: { close: 100 } });
      let sent = 0;
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          controller.enqueue(Buffer.from(`${sent === 0 ? begin : ''}${'a'.repeat(65_536)}`));
          sent += 65_536;
          if (sent > 8_000_000) controller.close();
        },
      });
      const headers = { authorization: basic(peer), 'content-type': type };
      const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
      const answer = await fetch(`${peer.url}/api/push_p.json`, init);
      expect(answer.status).toBe(413);
      expect(await answer.json()).toMatchObject({
        message: expect.stringContaining('100000 bytes'),
      });
    },
  );

  it('is discarded to its end, so that a client that reads only afterwards gets the answer', async () => {
    const peer = await openPeer({ maxBody });
    const body = 'a'.repeat(30_000_000);
    const next = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
    const text = `${headOf(peer)}Content-Length: ${body.length}\r\n\r\n${body}${next}`;
    expect(await rawRequest(peer, text)).toMatch(/^HTTP\/1\.1 413 /);
  });

  it('does not include the limit itself, and is small for requests that only read', async () => {
    const peer = await openPeer({ maxBody });
    const post = (path: string, body: string) =>
      send(peer, path, { method: 'POST', headers: { ...FORM, authorization: basic(peer) }, body });
    const fits = `url-0=http://h/&commit=true&data-0=`.padEnd(maxBody, 'a');
    expect((await post('/api/push_p.json', fits)).json()).toMatchObject({ countsuccess: 1 });
    expect((await post('/api/push_p.json', `${fits}a`)).status).toBe(413);
    expect((await post('/api/peerdoc.json', `url=http://h/${'a'.repeat(70_000)}`)).status).toBe(
      413,
    );
  });

  it('is not the sum of simultaneous bodies, which are read one after the other', async () => {
    const peer = await openPeer({ maxBody: 2_000_000 });
    const pushes = Array.from({ length: 4 }, (_, n) =>
      push(peer, { [`http://h/${n}`]: `${n} `.padEnd(1_800_000, 'a ') }),
    );
    for (const answer of await Promise.all(pushes)) expect(answer.countsuccess).toBe(1);
  });
});

it.each([
  [true, 'application/json'],
  [true, 'application/json, */*;q=0.1'],
  [true, 'application/json, text/html'],
  [false, undefined],
  [false, '*/*'],
  [false, 'application/*'],
  [false, 'text/html, application/json'],
  [false, 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'],
])('JSON is preferred: %s by %s', (isPreferred, accept) =>
  expect(prefersJson(accept)).toBe(isPreferred),
);
