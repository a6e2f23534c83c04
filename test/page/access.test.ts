import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { INDEX, PageAtWork } from './page-at-work.js';

const TOKEN = 'a long and secret token';
const PROTECTED = [
  '/',
  '/api/status',
  '/api/live',
  '/api/why?path=/x',
  '/api/items',
  '/metrics',
  '/readyz',
  '/nothing',
];

describe('without a token, the page', () => {
  it('is there for every name of this machine', async () => {
    const page = await PageAtWork.start();
    for (const name of ['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]']) {
      expect(await page.rawStatus('GET / HTTP/1.1', `Host: ${name}:${page.port}`)).toBe(200);
    }
  });

  it.each(['evil.example', 'localhost', 'localhost:1', 'localhost.evil.example:PORT', ''])(
    'answers nothing to the name "%s", which may be that of a page of the web that leads here',
    async (name) => {
      const page = await PageAtWork.start();
      const host = `Host: ${name.replace('PORT', String(page.port))}`;
      for (const path of ['/', '/api/status', '/metrics', '/healthz', '/assets/main.js', '/nothing']) {
        expect(await page.rawStatus(`GET ${path} HTTP/1.1`, host)).toBe(403);
      }
    },
  );

  it('lets a program change something that says it sends JSON', async () => {
    const page = await PageAtWork.start();
    expect((await page.post('/api/rescan')).status).toBe(200);
    expect(page.asked).toEqual(['rescan all']);
  });

  it('makes no answer of the API for another page', async () => {
    const page = await PageAtWork.start();
    for (const site of ['cross-site', 'same-site', 'same-origin', 'none']) {
      const headers = { 'sec-fetch-site': site };
      const status = async (path: string) => (await page.fetch(path, { headers })).status;
      expect([site, await status('/api/status')]).toEqual([site, site.includes('site') ? 403 : 200]);
      // A link that leads here is no harm.
      expect(await status('/')).toBe(200);
    }
  });

  it('lets itself change something', async () => {
    const page = await PageAtWork.start();
    const own = { origin: `http://127.0.0.1:${page.port}`, 'sec-fetch-site': 'same-origin' };
    expect((await page.post('/api/rescan', {}, own)).status).toBe(200);
    expect((await page.post('/api/rescan', {}, { origin: own.origin })).status).toBe(200);
  });

  it.each([
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://127.0.0.1:1' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'application/jsonp' },
  ])('lets no other page change anything: %j', async (headers) => {
    const page = await PageAtWork.start();
    for (const path of ['/api/retry', '/api/rescan', '/api/pause', '/api/mirrors/run']) {
      const answer = await page.post(path, { all: true }, headers);
      expect(answer.status).toBe(403);
      expect(await answer.json()).toMatchObject({
        error: { code: expect.stringMatching(/FOREIGN_ORIGIN|NOT_JSON/) },
      });
    }
    expect(page.asked).toEqual([]);
  });
});

describe('with a token, the page', () => {
  it('keeps everything to itself but that it is alive, its sign-in and its files', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    for (const path of PROTECTED) {
      const answer = await page.fetch(path);
      expect([path, answer.status]).toEqual([path, path === '/' ? 303 : 401]);
    }
    for (const path of ['/api/retry', '/api/rescan', '/sign-out'])
      expect((await page.post(path)).status).toBe(401);
    expect(page.asked).toEqual([]);
    expect((await page.fetch('/')).headers.get('location')).toBe('/sign-in');
    for (const path of ['/healthz', '/sign-in', '/assets/main.js'])
      expect((await page.fetch(path)).status).toBe(200);
  });

  it.each([
    '/assets/../api/status',
    '/assets/%2e%2e/api/status',
    '//api/status',
    '/healthz/../api/status',
    '/%61pi/status',
  ])('is not talked into showing more by the path %s', async (path) => {
    const page = await PageAtWork.start({ token: TOKEN });
    const answer = await page.raw(`GET ${path} HTTP/1.1\r\nHost: x\r\nconnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 (401|404) /);
    expect(answer).not.toContain('"folders"');
  });

  it('is open to who shows the token, by whatever name it is asked', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    for (const path of ['/', '/api/status', '/metrics'])
      expect((await page.fetch(path, { headers: { authorization: `Bearer ${TOKEN}` } })).status).toBe(200);
    expect(
      await page.rawStatus(
        'GET /api/status HTTP/1.1',
        'Host: status.example',
        `Authorization: bearer ${TOKEN}`,
      ),
    ).toBe(200);
    for (const wrong of [`Bearer ${TOKEN}x`, 'Bearer ', `Basic ${TOKEN}`, TOKEN])
      expect((await page.fetch('/api/status', { headers: { authorization: wrong } })).status).toBe(401);
  });

  it('takes a token of any letters', async () => {
    const page = await PageAtWork.start({ token: 'schlüssel €' });
    const bytes = Buffer.from('schlüssel €').toString('latin1');
    expect((await page.fetch('/api/status', { headers: { authorization: `Bearer ${bytes}` } })).status).toBe(
      200,
    );
    const body = new URLSearchParams({ token: 'schlüssel €' });
    const form = await page.fetch('/sign-in', { method: 'POST', body });
    expect(form.headers.get('location')).toBe('/');
  });

  it('signs in by its form, for a session that is not the token', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    const form = await page.fetch('/sign-in', {
      method: 'POST',
      body: new URLSearchParams({ token: TOKEN }),
    });
    expect([form.status, form.headers.get('location')]).toEqual([303, '/']);
    const set = form.headers.get('set-cookie') ?? '';
    expect(set).toMatch(/; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/);
    expect(set).not.toContain(TOKEN);
    const cookie = set.split(';', 1)[0] ?? '';
    expect(await (await page.fetch('/', { headers: { cookie } })).text()).toBe(INDEX);
    const tampered = cookie.replace(/=\d/, (text) => `=${(Number(text[1]) + 1) % 10}`);
    expect((await page.fetch('/api/status', { headers: { cookie: tampered } })).status).toBe(401);
    // As many letters as a signature has, but more bytes.
    const foreign = cookie.replace(/\.\w+$/, `.${'é'.repeat(64)}`);
    expect((await page.fetch('/api/status', { headers: { cookie: foreign } })).status).toBe(401);
    expect(page.logged.filter(({ level }) => level === 'error')).toEqual([]);
    const out = await page.post('/sign-out', {}, { cookie });
    expect(out.headers.get('set-cookie')).toMatch(/=; Path=\/; Max-Age=0;/);
  });

  it('gives a session that travels by TLS alone where a server in front was asked by TLS', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    const headers = { 'x-forwarded-proto': 'https' };
    const form = await page.fetch('/sign-in', {
      method: 'POST',
      body: new URLSearchParams({ token: TOKEN }),
      headers,
    });
    const set = form.headers.get('set-cookie') ?? '';
    expect(set).toMatch(
      /^__Host-peersync_\d+=[^;]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/,
    );
    const cookie = set.split(';', 1)[0] ?? '';
    expect((await page.fetch('/api/status', { headers: { cookie } })).status).toBe(200);
    const both = `${cookie.slice('__Host-'.length).replace(/=.*/, '=old')}; ${cookie}`;
    expect((await page.fetch('/api/status', { headers: { cookie: both } })).status).toBe(200);
    const out = await page.post('/sign-out', {}, { cookie, ...headers });
    expect(out.headers.get('set-cookie')).toMatch(/^__Host-\S+=; .*; Secure$/);
  });

  it('says at the form that a token was wrong', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    const form = await page.fetch('/sign-in', { method: 'POST', body: new URLSearchParams({ token: 'x' }) });
    expect([form.status, form.headers.get('location')]).toEqual([303, '/sign-in#wrong']);
    expect(form.headers.get('set-cookie')).toBeNull();
    const other = { 'sec-fetch-site': 'cross-site' };
    const body = new URLSearchParams({ token: TOKEN });
    expect((await page.fetch('/sign-in', { method: 'POST', body, headers: other })).status).toBe(403);
  });

  it('signs in by a link with the token, which does not stay in the address', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    const link = await page.fetch(`/?token=${encodeURIComponent(TOKEN)}`);
    expect(link.status).toBe(200);
    expect(await link.text()).toContain('url=/"');
    const cookie = (link.headers.get('set-cookie') ?? '').split(';', 1)[0] ?? '';
    expect((await page.fetch('/api/status', { headers: { cookie } })).status).toBe(200);
    expect((await page.fetch('/?token=x')).headers.get('location')).toBe('/sign-in#wrong');
    const signedIn = await page.fetch('/?token=x', { headers: { cookie } });
    expect(signedIn.headers.get('location')).toBe('/sign-in#wrong');
  });

  it('tries no token that another page brings along, which would shut out who has the right one', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    for (const what of ['image', 'iframe', 'script', 'empty', 'image']) {
      const headers = { 'sec-fetch-dest': what, 'sec-fetch-site': 'cross-site' };
      const answer = await page.fetch('/?token=x', { headers });
      expect([answer.status, answer.headers.get('location')]).toEqual([303, '/sign-in']);
    }
    const link = `/?token=${encodeURIComponent(TOKEN)}`;
    expect((await page.fetch(link, { headers: { 'sec-fetch-dest': 'document' } })).status).toBe(200);
  });

  it('ends a session after its time, and with another token', async () => {
    const clock = new FakeClock(Date.now());
    const page = await PageAtWork.start({ token: TOKEN, clock });
    const link = await page.fetch(`/?token=${encodeURIComponent(TOKEN)}`);
    const cookie = (link.headers.get('set-cookie') ?? '').split(';', 1)[0] ?? '';
    const status = async () => (await page.fetch('/api/status', { headers: { cookie } })).status;
    await clock.advance(29 * 86_400_000);
    expect(await status()).toBe(200);
    await clock.advance(2 * 86_400_000);
    expect(await status()).toBe(401);
  });

  it('is open to the right token whatever others guess, and slow and short with who guesses', async () => {
    const clock = new FakeClock();
    const page = await PageAtWork.start({ token: TOKEN, clock });
    const tryToken = async (token: string) =>
      (await page.fetch('/api/status', { headers: { authorization: `Bearer ${token}` } })).status;
    const answered: number[] = [];
    const guesses = Array.from({ length: 40 }, async (_, i) => answered.push(await tryToken(`guess ${i}`)));
    await until(() => clock.waiting >= 40, 'all guesses wait');
    expect(await tryToken(TOKEN)).toBe(200);
    const body = new URLSearchParams({ token: TOKEN });
    const form = await page.fetch('/sign-in', { method: 'POST', body });
    expect(form.headers.get('location')).toBe('/');
    expect(answered).toEqual([]);
    await clock.advance(500);
    await Promise.all(guesses);
    expect(new Set(answered)).toEqual(new Set([401]));
    expect(page.logged.filter(({ level }) => level === 'warn')).toHaveLength(1);
    expect(JSON.stringify(page.logged)).not.toContain('guess 1');
  });

  it('needs JSON and its own origin from who is signed in, too', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    const authorization = `Bearer ${TOKEN}`;
    expect((await page.post('/api/rescan', {}, { authorization, origin: 'http://127.0.0.1:1' })).status).toBe(
      403,
    );
    expect((await page.post('/api/rescan', '', { authorization, 'content-type': 'text/plain' })).status).toBe(
      403,
    );
    expect((await page.post('/api/rescan', {}, { authorization })).status).toBe(200);
  });
});

describe('the page under attack', () => {
  it('serves others while one address holds as many half requests as it can', async () => {
    const page = await PageAtWork.start();
    const held = Array.from({ length: 300 }, () => page.connect());
    for (const socket of held)
      socket.on('error', () => {}).write(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${page.port}\r\n`);
    await Promise.all(held.map((socket) => once(socket, 'connect')));
    const headers = { connection: 'close' };
    const asked = request(page.page.url ?? '', { localAddress: '127.0.0.2', headers });
    const [answer] = (await once(asked.end(), 'response')) as [IncomingMessage];
    expect(answer.resume().statusCode).toBe(200);
    for (const socket of held) socket.destroy();
  });

  it('does not open to others with a token that is soon guessed', async () => {
    const page = await PageAtWork.start({ listen: '0.0.0.0:0', token: 'fifteen letters' }, { opens: false });
    const said = () => page.logged.find(({ level }) => level === 'warn')?.message;
    await until(() => said() !== undefined || page.page.url !== undefined, 'it is decided');
    expect([page.page.url, said()]).toEqual([undefined, expect.stringContaining('at least 16 characters')]);
  });
});

describe('every answer of the page', () => {
  it('forbids what the page does not need', async () => {
    const page = await PageAtWork.start();
    for (const path of ['/', '/assets/main.js', '/api/status', '/metrics', '/nothing']) {
      const { headers } = await page.fetch(path);
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).toContain("default-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain('unsafe');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('access-control-allow-origin')).toBeNull();
    }
  });

  it('is bounded in what it takes', async () => {
    const page = await PageAtWork.start();
    const big = JSON.stringify({ paths: ['x'.repeat(70_000)] });
    const answer = await page.post('/api/retry', big);
    expect([answer.status, await answer.json()]).toMatchObject([413, { error: { code: 'TOO_LARGE' } }]);
    expect((await page.fetch(`/api/why?path=/${'x'.repeat(17_000)}`)).status).toBe(413);
    const host = `Host: 127.0.0.1:${page.port}`;
    expect(await page.rawStatus('GET / HTTP/1.1', host, `x: ${'y'.repeat(40_000)}`)).toBe(431);
    expect(await page.rawStatus('nonsense')).toBe(400);
  });

  it('is in two sentences where it is an error, and never shows the program', async () => {
    const page = await PageAtWork.start();
    for (const [path, status] of [
      ['/nothing', 404],
      ['/%zz', 400],
      [`/assets/${'x'.repeat(200)}`, 400],
      ['/api/items?limit=0', 400],
      ['/api/why?path=%00', 400],
      ['/api/why?path=%zz', 400],
    ] as const) {
      const answer = await page.fetch(path);
      const text = await answer.text();
      expect([path, answer.status]).toEqual([path, status]);
      expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'self'/);
      expect(JSON.parse(text)).toEqual({
        error: {
          code: expect.any(String),
          message: expect.stringMatching(/\.$/),
          hint: expect.stringMatching(/\.$/),
        },
      });
      expect(text).not.toMatch(/ {4}at |node_modules|\.ts|\.js/);
    }
    const broken = await page.post('/api/retry', '{"all":');
    expect([broken.status, await broken.json()]).toMatchObject([400, { error: { code: 'BAD_REQUEST' } }]);
  });
});
