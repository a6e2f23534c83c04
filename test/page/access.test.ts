import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ApiError } from '../../src/page/guard.js';
import { State } from '../../src/state/state.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { INDEX, PageAtWork } from './page-at-work.js';

const TOKEN = 'a long and secret token';
const DAY_MS = 86_400_000;
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Returns the session cookie of an answer, as a browser sends it back. */
function cookieOf(answer: Response): string {
  return (answer.headers.get('set-cookie') ?? '').split(';', 1)[0] ?? '';
}

describe('without a token, the page', () => {
  it('answers under every name of this machine, and under no other', async () => {
    const page = await PageAtWork.start();
    for (const name of ['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]'])
      expect(await page.rawStatus('GET / HTTP/1.1', `Host: ${name}:${page.port}`)).toBe(200);
    const names = [
      'evil.example',
      'localhost',
      'localhost:1',
      `localhost.evil.example:${page.port}`,
      '',
    ];
    for (const host of names)
      for (const path of [
        '/',
        '/api/status',
        '/metrics',
        '/healthz',
        '/assets/main.js',
        '/nothing',
      ])
        expect([host, await page.rawStatus(`GET ${path} HTTP/1.1`, `Host: ${host}`)]).toEqual([
          host,
          403,
        ]);
  });

  it('answers no API request of another page, but links to the page work', async () => {
    const page = await PageAtWork.start();
    for (const [site, status] of [
      ['cross-site', 403],
      ['same-site', 403],
      ['same-origin', 200],
      ['none', 200],
    ] as const) {
      const headers = { 'sec-fetch-site': site };
      const statuses = [await page.status('/api/status', headers), await page.status('/', headers)];
      expect([site, ...statuses]).toEqual([site, status, 200]);
    }
  });

  it('accepts commands of its own page, and of programs that send JSON', async () => {
    const page = await PageAtWork.start();
    const origin = `http://127.0.0.1:${page.port}`;
    for (const headers of [{}, { origin }, { origin, 'sec-fetch-site': 'same-origin' }])
      expect((await page.post('/api/rescan', {}, headers)).status).toBe(200);
    expect(page.asked).toEqual(Array(3).fill('rescan all'));
  });

  it.each([
    ['FOREIGN_ORIGIN', { origin: 'https://evil.example' }],
    ['FOREIGN_ORIGIN', { origin: 'null' }],
    ['FOREIGN_ORIGIN', { origin: 'http://127.0.0.1:1' }],
    ['FOREIGN_ORIGIN', { 'sec-fetch-site': 'cross-site' }],
    ['FOREIGN_ORIGIN', { 'sec-fetch-site': 'same-site' }],
    ['FOREIGN_ORIGIN', { 'sec-fetch-site': 'none' }],
    ['NOT_JSON', { 'content-type': 'text/plain' }],
    ['NOT_JSON', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['NOT_JSON', { 'content-type': 'application/jsonp' }],
  ])('accepts no commands of other pages: %s %j', async (code, headers) => {
    // Nor where a browser is signed in.
    for (const page of [await PageAtWork.start(), await PageAtWork.start({ token: TOKEN })]) {
      for (const path of ['/api/retry', '/api/rescan', '/api/pause', '/api/mirrors/run'])
        expect(
          await page.refusal(path, page.posting({ all: true }, { ...bearer(TOKEN), ...headers })),
        ).toEqual([403, code]);
      expect(page.asked).toEqual([]);
    }
  });
});

it('answers an unknown address with a page for a browser, and with an error for a program', async () => {
  const page = await PageAtWork.start();
  const answer = await page.fetch('/nothing', { headers: { accept: 'text/html' } });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([
    404,
    'text/html; charset=utf-8',
  ]);
  expect(await page.refusal('/nothing')).toEqual([404, 'NOT_FOUND']);
  expect(await page.refusal('/api/nothing', { headers: { accept: 'application/json' } })).toEqual([
    404,
    'NOT_FOUND',
  ]);
});

describe('with a token, the page', () => {
  it('is closed except for the health check, the sign-in and its files', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    const apis = ['/api/status', '/api/live', '/api/why?path=/x', '/api/items'];
    for (const path of [...apis, '/metrics', '/readyz', '/nothing'])
      expect(await page.status(path)).toBe(401);
    for (const path of ['/api/retry', '/api/rescan', '/sign-out'])
      expect((await page.post(path)).status).toBe(401);
    expect(page.asked).toEqual([]);
    const answer = await page.fetch('/');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/sign-in']);
    for (const path of ['/healthz', '/sign-in', '/assets/main.js'])
      expect(await page.status(path)).toBe(200);
  });

  it('names the place of the token, and shows no secret', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    for (const headers of [{}, bearer('a guess')]) {
      const answer = await page.fetch('/api/status', { headers });
      const { hint } = ((await answer.json()) as ApiError).error;
      expect(hint).toMatch(/The token stands in the file `\/.+` \(`status\.token\.file`\)\.$/);
      expect(hint).not.toContain(TOKEN);
    }
  });

  it('redirects a browser to the sign-in from any address', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    const headers = { accept: 'text/html,application/xhtml+xml' };
    for (const path of ['/metrics', '/nothing']) {
      const answer = await page.fetch(path, { headers });
      expect([answer.status, answer.headers.get('location')]).toEqual([303, '/sign-in']);
    }
    expect(await page.status('/nothing', { ...headers, ...bearer(TOKEN) })).toBe(404);
  });

  it('shows no more at odd paths', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    const within = ['/assets/../api/status', '/assets/%2e%2e/api/status', '/healthz/../api/status'];
    for (const path of [...within, '//api/status', '/%61pi/status'])
      expect([401, 404]).toContain(await page.rawStatus(`GET ${path} HTTP/1.1`, 'Host: x'));
  });

  it('answers requests with the token, under any name', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    for (const path of ['/', '/api/status', '/metrics'])
      expect(await page.status(path, bearer(TOKEN))).toBe(200);
    const lines = [
      'GET /api/status HTTP/1.1',
      'Host: status.example',
      `Authorization: bearer ${TOKEN}`,
    ];
    expect(await page.rawStatus(...lines)).toBe(200);
    for (const authorization of [`Bearer ${TOKEN}x`, 'Bearer ', `Basic ${TOKEN}`, TOKEN])
      expect(await page.status('/api/status', { authorization })).toBe(401);
  });

  it('accepts a token of any letters', async () => {
    const token = 'schlüssel €';
    const page = await PageAtWork.start({ token });
    expect(await page.status('/api/status', bearer(Buffer.from(token).toString('latin1')))).toBe(
      200,
    );
    expect((await page.signIn(token)).headers.get('location')).toBe('/');
  });

  it('signs in by its form, with a session that differs from the token', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    const form = await page.signIn(TOKEN);
    expect([form.status, form.headers.get('location')]).toEqual([303, '/']);
    const set = form.headers.get('set-cookie') ?? '';
    expect(set).toMatch(/; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/);
    expect(set).not.toContain(TOKEN);
    const cookie = cookieOf(form);
    expect(await (await page.fetch('/', { headers: { cookie } })).text()).toBe(INDEX);
    const tampered = cookie.replace(/=\d/, (text) => `=${(Number(text[1]) + 1) % 10}`);
    // A signature with the right number of letters, but more bytes.
    const foreign = cookie.replace(/\.\w+$/, `.${'é'.repeat(64)}`);
    for (const wrong of [tampered, foreign])
      expect(await page.status('/api/status', { cookie: wrong })).toBe(401);
    expect(page.logged.filter(({ level }) => level === 'error')).toEqual([]);
    const out = await page.post('/sign-out', {}, { cookie });
    expect(out.headers.get('set-cookie')).toMatch(/=; Path=\/; Max-Age=0;/);
  });

  it('ends a session at the sign-out, including copies of it, and no other session', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    const [one, other] = [cookieOf(await page.signIn(TOKEN)), cookieOf(await page.signIn(TOKEN))];
    expect(one).not.toBe(other);
    await page.post('/sign-out', {}, { cookie: one });
    expect(await page.status('/api/status', { cookie: one })).toBe(401);
    expect(await page.status('/api/status', { cookie: other })).toBe(200);
    await page.post('/sign-out', {}, { cookie: other });
    for (const cookie of [one, other])
      expect(await page.status('/api/status', { cookie })).toBe(401);
    // The ended sessions are on disk, and so outlive a restart.
    const name = expect.stringMatching(/^\d+-[0-9a-f]{24}$/);
    const onDisk = await State.read(join(page.directory, 'state'));
    expect(onDisk.meta('endedSessions')).toEqual([name, name]);
  });

  it('closes the event streams of a session at its end, and no others', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    const ended: string[] = [];
    const follow = async (name: string, headers: Record<string, string>) => {
      const { body } = await page.fetch('/api/live', { headers });
      const reader = body?.getReader();
      await reader?.read();
      const toEnd = async () => {
        while ((await reader?.read())?.done === false);
        ended.push(name);
      };
      void toEnd().catch(() => {});
    };
    const [one, other] = [cookieOf(await page.signIn(TOKEN)), cookieOf(await page.signIn(TOKEN))];
    await follow('one', { cookie: one });
    await follow('other', { cookie: other });
    await follow('program', bearer(TOKEN));
    await page.post('/sign-out', {}, { cookie: one });
    await until(() => ended.length > 0, 'a follower is ended');
    await page.post('/sign-out', {}, { cookie: other });
    await until(() => ended.length > 1, 'the other one is ended as well');
    expect(ended).toEqual(['one', 'other']);
  });

  it('restricts a session to TLS if the server in front uses TLS', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    const headers = { 'x-forwarded-proto': 'https' };
    const form = await page.signIn(TOKEN, headers);
    expect(form.headers.get('set-cookie')).toMatch(
      /^__Host-peersync_\d+=[^;]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/,
    );
    const cookie = cookieOf(form);
    const both = `${cookie.slice('__Host-'.length).replace(/=.*/, '=old')}; ${cookie}`;
    for (const sent of [cookie, both])
      expect(await page.status('/api/status', { cookie: sent })).toBe(200);
    const out = await page.post('/sign-out', {}, { cookie, ...headers });
    expect(out.headers.get('set-cookie')).toMatch(/^__Host-\S+=; .*; Secure$/);
  });

  it('reports a wrong token at the form, and accepts none from another page', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    const { status, headers } = await page.signIn('x');
    const said = [status, headers.get('location'), headers.get('set-cookie')];
    expect(said).toEqual([303, '/sign-in#wrong', null]);
    expect((await page.signIn(TOKEN, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  });

  it('signs in by a link with the token, and removes the token from the address', async () => {
    const page = await PageAtWork.start({ token: TOKEN });
    const path = `/?token=${encodeURIComponent(TOKEN)}`;
    const link = await page.fetch(path);
    expect([link.status, await link.text()]).toEqual([200, expect.stringContaining('url=/"')]);
    const headers = { cookie: cookieOf(link) };
    expect(await page.status('/api/status', headers)).toBe(200);
    for (const init of [{}, { headers }])
      expect((await page.fetch('/?token=x', init)).headers.get('location')).toBe('/sign-in#wrong');
    // A resource that another page loads does not count as an attempt to sign in.
    for (const what of ['image', 'iframe', 'script', 'empty']) {
      const other = { 'sec-fetch-dest': what, 'sec-fetch-site': 'cross-site' };
      expect((await page.fetch(path, { headers: other })).headers.get('location')).toBe('/sign-in');
    }
    expect(await page.status(path, { 'sec-fetch-dest': 'document' })).toBe(200);
  });

  it('ends a session after its time', async () => {
    const clock = new FakeClock(Date.now());
    const page = await PageAtWork.start({ token: TOKEN, clock });
    const cookie = cookieOf(await page.signIn(TOKEN));
    await clock.advance(29 * DAY_MS);
    expect(await page.status('/api/status', { cookie })).toBe(200);
    await clock.advance(2 * DAY_MS);
    expect(await page.status('/api/status', { cookie })).toBe(401);
  });

  it('accepts the right token while others guess, and slows guesses down', async () => {
    const clock = new FakeClock();
    const page = await PageAtWork.start({ token: TOKEN, clock });
    const answered: number[] = [];
    const guesses = Array.from({ length: 40 }, async (_, i) =>
      answered.push(await page.status('/api/status', bearer(`guess ${i}`))),
    );
    await until(() => clock.waiting >= 40, 'all guesses wait');
    expect(await page.status('/api/status', bearer(TOKEN))).toBe(200);
    expect((await page.signIn(TOKEN)).headers.get('location')).toBe('/');
    expect(answered).toEqual([]);
    await clock.advance(500);
    await Promise.all(guesses);
    expect(new Set(answered)).toEqual(new Set([401]));
    expect(page.logged.filter(({ level }) => level === 'warn')).toHaveLength(1);
    expect(JSON.stringify(page.logged)).not.toContain('guess 1');
  });

  it('does not listen for other machines with a weak token', async () => {
    const page = await PageAtWork.start(
      { listen: '0.0.0.0:0', token: 'fifteen letters' },
      { opens: false },
    );
    const said = () => page.logged.find(({ level }) => level === 'warn')?.message;
    await until(() => said() !== undefined || page.page.url !== undefined, 'it is decided');
    expect([page.page.url, said()]).toEqual([
      undefined,
      expect.stringContaining('at least 16 characters'),
    ]);
  });
});

it('answers others while one address holds as many half requests as it can', async () => {
  const page = await PageAtWork.start();
  const held = Array.from({ length: 300 }, () => page.connect());
  for (const socket of held) socket.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${page.port}\r\n`);
  await Promise.all(held.map((socket) => once(socket, 'connect')));
  const asked = request(page.page.url ?? '', {
    localAddress: '127.0.0.2',
    headers: { connection: 'close' },
  });
  const [answer] = (await once(asked.end(), 'response')) as [IncomingMessage];
  expect(answer.resume().statusCode).toBe(200);
  for (const socket of held) socket.destroy();
});

describe('every answer of the page', () => {
  it('forbids browser features that the page does not need', async () => {
    const page = await PageAtWork.start();
    for (const path of ['/', '/assets/main.js', '/api/status', '/metrics', '/nothing']) {
      const { headers } = await page.fetch(path);
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).toMatch(/default-src 'self'.*frame-ancestors 'none'/);
      expect(policy).not.toContain('unsafe');
      const others = ['x-content-type-options', 'referrer-policy', 'access-control-allow-origin'];
      expect(others.map((name) => headers.get(name))).toEqual(['nosniff', 'no-referrer', null]);
    }
  });

  it('limits the size of requests', async () => {
    const page = await PageAtWork.start();
    const big = await page.post('/api/retry', { paths: ['x'.repeat(70_000)] });
    expect([big.status, await big.json()]).toMatchObject([413, { error: { code: 'TOO_LARGE' } }]);
    expect(await page.status(`/api/why?path=/${'x'.repeat(17_000)}`)).toBe(413);
    const host = `Host: 127.0.0.1:${page.port}`;
    expect(await page.rawStatus('GET / HTTP/1.1', host, `x: ${'y'.repeat(40_000)}`)).toBe(431);
    expect(await page.rawStatus('nonsense')).toBe(400);
  });

  it.each([
    [404, '/nothing'],
    [400, '/%zz'],
    [400, `/assets/${'x'.repeat(200)}`],
    [400, '/api/items?limit=0'],
    [400, '/api/why?path=%00'],
    [400, '/api/why?path=%zz'],
  ])(
    'has two sentences if it is an error, and shows no internals (%d %s)',
    async (status, path) => {
      const page = await PageAtWork.start();
      const answer = await page.fetch(path);
      expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'self'/);
      const said = await answer.text();
      const sentence = expect.stringMatching(/\.$/);
      const error = { code: expect.any(String), message: sentence, hint: sentence };
      expect([answer.status, JSON.parse(said)]).toEqual([status, { error }]);
      expect(said).not.toMatch(/ {4}at |node_modules|\.ts|\.js/);
    },
  );
});
