import { connect, Server } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { prefersJson } from '../../src/embedded/server.js';
import { until } from '../support/wait.js';
import { basic, openPeer, peerdoc, push, rawRequest, send } from './support.js';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

describe('the pages of the administrator', () => {
  it('ask everybody to sign in, also on loopback, also where there is no such page', async () => {
    const peer = await openPeer();
    for (const path of [
      '/api/push_p.json',
      '/api/push%5Fp.json',
      '/api/nope_p.xml',
      '/Tables_p.html',
      '/api/table_p.json?table=t&commitrow=1',
    ]) {
      const answer = await send(peer, path);
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toMatch(/^Basic realm=/);
    }
    expect((await send(peer, '/api/nope_p.xml', { headers: { authorization: basic(peer) } })).status).toBe(
      404,
    );
  });

  it('open to the right user and password alone; who guesses is slowed down, and nobody else with them', async () => {
    const peer = await openPeer();
    const of = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });
    const right = `admin:${peer.credentials.password}`;
    const began = performance.now();
    const guesses = ['admin:', `root:${peer.credentials.password}`, `${right}x`, 'admin'].map(
      async (text) => {
        expect((await send(peer, '/api/push_p.json', { headers: of(text) })).status).toBe(401);
        return performance.now() - began;
      },
    );
    expect((await send(peer, '/api/push_p.json', { headers: of(right) })).status).toBe(200);
    const took = performance.now() - began;
    const slow = await Promise.all(guesses);
    expect(Math.min(...slow)).toBeGreaterThan(took);
    expect(Math.min(...slow)).toBeGreaterThanOrEqual(490);
    const digest = { authorization: `Digest username="admin", response="${'0'.repeat(32)}"` };
    expect((await send(peer, '/api/push_p.json', { headers: digest })).status).toBe(401);
  });

  it('are not changed by a page of another site, even with the password', async () => {
    const peer = await openPeer();
    const authorization = basic(peer);
    for (const headers of [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
    ]) {
      const answer = await send(peer, '/api/push_p.json?url-0=http://h/&data-0=x', {
        headers: { authorization, ...headers } as Record<string, string>,
      });
      expect(answer.status).toBe(403);
    }
    const own = { authorization, origin: peer.url, 'sec-fetch-site': 'same-origin' };
    expect((await send(peer, '/api/push_p.json', { headers: own })).status).toBe(200);
  });

  it('are all pages, where that is asked for', async () => {
    const peer = await openPeer({ requireAuthEverywhere: true });
    for (const path of ['/', '/search.json', '/api/peerdoc.json?url=http://h/', '/nope']) {
      expect((await send(peer, path)).status).toBe(401);
      expect((await send(peer, path, { headers: { authorization: basic(peer) } })).status).not.toBe(401);
    }
  });
});

describe('a request', () => {
  it('for another host is refused, which keeps rebound names out', async () => {
    const peer = await openPeer();
    const { port } = new URL(peer.url);
    for (const host of [
      'evil.example',
      `evil.example:${port}`,
      'localhost.evil.example',
      '10.0.0.1',
      '127.0.0.1.evil',
    ])
      expect((await send(peer, '/', { headers: { host } })).status).toBe(403);
    for (const host of ['localhost', `LOCALHOST:${port}`, `127.0.0.1:${port}`, '[::1]'])
      expect((await send(peer, '/', { headers: { host } })).status).toBe(200);
  });

  it('is answered also after the listener failed to take another', async () => {
    const listen = vi.spyOn(Server.prototype, 'listen');
    const peer = await openPeer();
    const [server] = listen.mock.contexts as Server[];
    listen.mockRestore();
    server?.emit('error', new Error('accept ENFILE'));
    expect((await send(peer, '/')).status).toBe(200);
  });

  it('has every answer guarded against what browsers may be made to do', async () => {
    const peer = await openPeer();
    for (const path of ['/', '/nope', '/search.json', '/api/push_p.html']) {
      const { headers } = await send(peer, path);
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'; .*frame-ancestors 'none'$/);
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['cache-control']).toBe('no-store');
      expect(headers['referrer-policy']).toBe('same-origin');
    }
  });

  it('to an endpoint is answered in JSON where that is preferred, whatever the end of its address says', async () => {
    const peer = await openPeer();
    const headers = { authorization: basic(peer), accept: 'application/json' };
    for (const path of ['push_p', 'peerdoc', 'citation', 'share', 'table_p'].map(
      (name) => `/api/${name}.html`,
    )) {
      const preferred = await send(peer, path, { headers });
      expect([path, preferred.headers['content-type']]).toEqual([path, 'application/json; charset=utf-8']);
      JSON.parse(preferred.body);
      const any = await send(peer, path, { headers: { ...headers, accept: '*/*' } });
      expect([path, any.headers['content-type']]).toEqual([path, 'text/html; charset=utf-8']);
    }
  });

  it('is a page also where a parameter ends like an address of JSON', async () => {
    const peer = await openPeer();
    const headers = { authorization: basic(peer) };
    for (const path of [
      '/?query=package.json',
      '/Tables_p.html?table=prices.json',
      '/api/peerdoc.html?url=http://h/a.json',
    ])
      expect((await send(peer, path, { headers })).headers['content-type']).toBe('text/html; charset=utf-8');
  });

  it('to search by a program that prefers JSON is answered in JSON', async () => {
    const peer = await openPeer();
    const { body } = await send(peer, '/?query=x', { headers: { accept: 'application/json' } });
    expect(JSON.parse(body)).toMatchObject({ query: 'x', total: 0 });
  });

  it('for nothing there is, or by a wrong method, is told so in the form asked for', async () => {
    const peer = await openPeer();
    for (const path of [
      '/nope',
      '/../../etc/passwd',
      '/%2e%2e/admin-password',
      '/api/push_',
      '//evil.example/',
      '/admin-password',
    ])
      expect((await send(peer, path)).status).toBe(404);
    expect((await send(peer, '/%zz')).status).toBe(400);
    const wrong = await send(peer, '/api/peerdoc.json', { method: 'DELETE' });
    expect([wrong.status, wrong.headers.allow]).toEqual([405, 'GET, HEAD, POST']);
    expect(JSON.parse(wrong.body)).toMatchObject({ status: 405 });
    const head = await send(peer, '/', { method: 'HEAD' });
    expect([head.status, head.body]).toEqual([200, '']);
    expect(
      (await send(peer, '/api/push_p.json', { method: 'HEAD', headers: { authorization: basic(peer) } }))
        .status,
    ).toBe(405);
  });

  it.each([
    ['count=abc', /count has to be a number/],
    ['count=10001', /count has to be a number from 0 to 10000/],
    ['synchronous=1', /synchronous can only be true/],
    ['data-0=a&data-0=b', /data-0 comes twice/],
    [`${'n'.repeat(300)}=1`, /name is longer/],
    [`${'n'.repeat(3_000)}=1`, /name is longer/],
    [Array.from({ length: 40_000 }, (_, n) => `x${n}=1`).join('&'), /more than 30010 parameters/],
  ])('that makes no sense is refused with the reason (%#)', async (body, reason) => {
    const peer = await openPeer();
    const headers = { ...FORM, authorization: basic(peer) };
    const answer = await send(peer, '/api/push_p.json', { method: 'POST', headers, body });
    expect(answer.status).toBe(400);
    expect((JSON.parse(answer.body) as { message: string }).message).toMatch(reason);
  });

  it.each([
    ['text/plain', {}, 415],
    ['application/json', {}, 415],
    ['multipart/form-data', {}, 415],
    ['application/x-www-form-urlencoded', { 'content-encoding': 'gzip' }, 415],
    ['multipart/form-data; boundary=', {}, 400],
    ['multipart/form-data; boundary=xx', {}, 400],
  ] as const)('with a body that cannot be read is refused (%s %j)', async (type, more, status) => {
    const peer = await openPeer();
    const headers = { authorization: basic(peer), 'content-type': type, ...more };
    const body = '--xx\r\nContent-Disposition: form-data; name="data-0"\r\n\r\nhalf of it';
    const answer = await send(peer, '/api/push_p.json', { method: 'POST', headers, body });
    expect([answer.status, (JSON.parse(answer.body) as { status: number }).status]).toEqual([status, status]);
  });

  it('that is no HTTP, or has too large a head, is answered and cut', async () => {
    const peer = await openPeer();
    expect(await rawRequest(peer, 'nonsense\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /);
    expect(await rawRequest(peer, `GET / HTTP/1.1\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431 /,
    );
    expect(await rawRequest(peer, 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('that does not come to its end in time is answered or not, and its connection ends', async () => {
    const peer = await openPeer({ timeouts: { headers: 200, idle: 400 } });
    expect(await rawRequest(peer, 'GET / HTT')).toMatch(/^HTTP\/1\.1 408 /);
    const head = `POST /api/peerdoc.json HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${FORM['content-type']}\r\n`;
    expect(await rawRequest(peer, `${head}Content-Length: 100\r\n\r\nurl=`)).not.toContain(' 200 ');
  });

  it('that is only half there ends, also where its client keeps the connection open', async () => {
    const peer = await openPeer({ timeouts: { headers: 200 } });
    const socket = connect({ port: Number(new URL(peer.url).port), host: '127.0.0.1', allowHalfOpen: true });
    let isCut = false;
    socket.on('error', () => {
      isCut = true;
    });
    socket.resume().write('GET / HTT');
    await until(() => {
      if (!isCut) socket.write('P');
      return isCut;
    }, 'the peer has let the connection go');
  });

  it.each([
    ['head', 'POST /api/peerdoc.json HTTP/1.1\r\nHost: localhost\r\n'],
    ['body', 'POST /api/peerdoc.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nurl='],
  ])('is answered although others hold all connections by half a %s', async (_, half) => {
    const peer = await openPeer({ timeouts: { headers: 1_000 } });
    const port = Number(new URL(peer.url).port);
    const held = Array.from({ length: 512 }, () => {
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      socket.on('error', () => undefined).resume();
      socket.write(half);
      return socket;
    });
    await until(async () => {
      const answer = await fetch(`${peer.url}/search.json`).catch(() => undefined);
      return answer?.status === 200;
    }, 'another is served');
    for (const socket of held) socket.destroy();
  });

  it('may take long for its body as long as that goes on', async () => {
    const peer = await openPeer({ timeouts: { idle: 2_000 } });
    const { port } = new URL(peer.url);
    const piece = 'x'.repeat(70_000);
    const pieces = 15;
    const begin = 'url-0=http://h/long&commit=true&data-0=';
    const socket = connect(Number(port), '127.0.0.1');
    let answer = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
    });
    socket.on('error', () => undefined);
    socket.write(
      `POST /api/push_p.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: ${basic(peer)}\r\n` +
        `Content-Type: ${FORM['content-type']}\r\nContent-Length: ${begin.length + pieces * piece.length}\r\n\r\n${begin}`,
    );
    for (let n = 0; n < pieces; n += 1) {
      await new Promise((resolve) => setTimeout(resolve, 350));
      socket.write(piece);
    }
    await until(() => answer !== '', 'the push is answered');
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    socket.destroy();
  });

  it('whose body never comes after a refusal gives its connection back', async () => {
    const peer = await openPeer({ timeouts: { idle: 100 } });
    expect(
      await rawRequest(peer, 'POST /nope HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf'),
    ).toMatch(/^HTTP\/1\.1 404 /);
  });

  it('whose body goes on and on after a refusal is cut', async () => {
    const peer = await openPeer({ timeouts: { drain: 200 } });
    const socket = connect({ port: Number(new URL(peer.url).port), host: '127.0.0.1', allowHalfOpen: true });
    let [answer, isCut] = ['', false];
    socket.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
    });
    for (const event of ['end', 'error'])
      socket.on(event, () => {
        isCut = true;
      });
    socket.write('POST /api/push_p.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n');
    await until(() => {
      if (!isCut) socket.write('x');
      return isCut;
    }, 'the peer has let the connection go');
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    socket.destroy();
  });

  it('that is broken off leaves nothing behind', async () => {
    const peer = await openPeer();
    const { port } = new URL(peer.url);
    const head = `POST /api/push_p.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic(peer)}\r\nContent-Type: ${FORM['content-type']}\r\n`;
    await Promise.all(
      Array.from(
        { length: 20 },
        () =>
          new Promise<void>((resolve) => {
            const socket = connect(Number(port), '127.0.0.1', () => {
              socket.write(`${head}Content-Length: 60000000\r\n\r\nurl-0=http://h/&data-0=half`, () =>
                socket.destroy(),
              );
            });
            socket.on('close', () => resolve());
          }),
      ),
    );
    expect(await push(peer, [{ url: 'http://h/whole', data: 'x' }], { commit: 'true' })).toMatchObject({
      countsuccess: 1,
    });
    expect(await peerdoc(peer, 'http://h/')).toBeUndefined();
  });
});

describe('a body over the limit', () => {
  const maxBody = 100_000;

  it('is refused with 413 by its declared length, before any of it is read', async () => {
    const peer = await openPeer({ maxBody });
    const head = `POST /api/push_p.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic(peer)}\r\nConnection: close\r\n`;
    const answer = await rawRequest(peer, `${head}Content-Length: 100001\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toContain('larger than 100000 bytes');
  });

  it.each([FORM['content-type'], 'multipart/form-data; boundary=xx'])(
    'is refused with 413 while it comes in chunks, and the answer can be read (%s)',
    async (type) => {
      const peer = await openPeer({ maxBody });
      const authorization = basic(peer);
      let sent = 0;
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          sent += 65_536;
          const part = '--xx\r\nContent-Disposition: form-data; name="data-0"\r\n\r\n';
          const start = type === FORM['content-type'] ? 'data-0=' : part;
          const lead = sent === 65_536 ? start : '';
          controller.enqueue(Buffer.from(`${lead}${'a'.repeat(65_536)}`));
          if (sent > 8_000_000) controller.close();
        },
      });
      const init = { method: 'POST', headers: { authorization, 'content-type': type }, body, duplex: 'half' };
      const answer = await fetch(`${peer.url}/api/push_p.json`, init as RequestInit);
      expect(answer.status).toBe(413);
      expect(await answer.json()).toMatchObject({ message: expect.stringContaining('100000 bytes') });
    },
  );

  it('is read on, so that a client that only listens when it has sent all gets the answer', async () => {
    const peer = await openPeer({ maxBody });
    const head = `POST /api/push_p.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic(peer)}\r\n`;
    const body = 'a'.repeat(30_000_000);
    const next = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
    const answer = await rawRequest(peer, `${head}Content-Length: ${body.length}\r\n\r\n${body}${next}`);
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
  });

  it('does not hold for one that just fits', async () => {
    const peer = await openPeer({ maxBody });
    const fits = `url-0=http://h/&commit=true&data-0=`.padEnd(maxBody, 'a');
    const headers = { ...FORM, authorization: basic(peer) };
    const answer = await send(peer, '/api/push_p.json', { method: 'POST', headers, body: fits });
    expect(JSON.parse(answer.body)).toMatchObject({ countsuccess: 1 });
    expect((await send(peer, '/api/push_p.json', { method: 'POST', headers, body: `${fits}a` })).status).toBe(
      413,
    );
  });

  it('is small for pages that only answer questions', async () => {
    const peer = await openPeer();
    const body = `url=http://h/${'a'.repeat(70_000)}`;
    expect((await send(peer, '/api/peerdoc.json', { method: 'POST', headers: FORM, body })).status).toBe(413);
  });
});

describe('large bodies that come at once', () => {
  it('are taken one after the other, so that one of them is in memory', async () => {
    const peer = await openPeer({ maxBody: 2_000_000 });
    const pushes = Array.from({ length: 6 }, (_, n) =>
      push(peer, [{ url: `http://h/${n}`, data: `${n} `.padEnd(1_800_000, 'a ') }], { commit: 'true' }),
    );
    for (const answer of await Promise.all(pushes)) expect(answer.countsuccess).toBe(1);
  });
});

describe('a page is asked for as JSON', () => {
  it.each([
    'application/json',
    'application/json, */*;q=0.1',
    'application/json, text/plain, */*',
    'application/json, text/html',
  ])('by %s', (accept) => expect(prefersJson(accept)).toBe(true));

  it.each([
    undefined,
    '',
    '*/*',
    'application/*',
    'text/html, application/json',
    'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  ])('but not by %s', (accept) => expect(prefersJson(accept)).toBe(false));
});
