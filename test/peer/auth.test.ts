import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { Logger } from '../../src/lib/logger.js';
import { digestAuthorization, isSpoken, parseChallenges } from '../../src/peer/auth.js';
import { until } from '../support/wait.js';
import { CREDENTIALS, DigestServer, parameters } from './auth-server.js';
import { ACCEPTED, clientOf, HttpServer, ITEM, Pieces } from './servers.js';

describe('a challenge', () => {
  const plain = (header: string | string[]) =>
    parseChallenges(header).map(({ scheme, parameters }) => [scheme, Object.fromEntries(parameters)]);

  it('is read with commas, quotes and equal signs inside its texts', () => {
    expect(
      plain(
        'Digest realm="a, \\"b\\" \\\\ c=d", nonce="x==", qop="auth,auth-int", algorithm=MD5, stale=FALSE',
      ),
    ).toEqual([
      [
        'digest',
        { realm: 'a, "b" \\ c=d', nonce: 'x==', qop: 'auth,auth-int', algorithm: 'MD5', stale: 'FALSE' },
      ],
    ]);
  });

  it('is one of several, in one header or in many', () => {
    const expected = [
      ['negotiate', {}],
      ['newauth', { realm: 'apps', type: '1', title: 'Login to "apps"' }],
      ['basic', { realm: 'simple' }],
    ];
    const newauth = 'Newauth realm="apps", type=1, title="Login to \\"apps\\""';
    expect(plain(`Negotiate YWJj+/==, ${newauth}, Basic realm="simple"`)).toEqual(expected);
    expect(plain(['Negotiate', newauth, 'Basic realm="simple"'])).toEqual(expected);
  });

  it('is read with odd blanks, empty places and names in any case', () => {
    expect(plain(' , DIGEST  Realm = "r" ,, NONCE="n"\t,')).toEqual([['digest', { realm: 'r', nonce: 'n' }]]);
  });

  it('ends where it cannot be read', () => {
    expect(plain('Digest realm="never closed')).toEqual([['digest', {}]]);
    expect(plain('"')).toEqual([]);
    expect(plain('')).toEqual([]);
  });
});

describe('a Digest answer', () => {
  function answer(header: string, credentials: { username: string; password: string }, cnonce: string) {
    const challenge = parseChallenges(header)[0] ?? { scheme: '', parameters: new Map() };
    if (!isSpoken(challenge)) throw new Error('not understood');
    const request = { method: 'GET', uri: '/dir/index.html', count: 1, cnonce };
    return parameters(digestAuthorization(challenge, credentials, request));
  }
  const MUFASA = { username: 'Mufasa', password: 'Circle of Life' };
  const RFC_7616 = 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ';

  it.each([
    ['MD5', '8ca523f5e9506fed4657c9700eebdbec'],
    ['SHA-256', '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1'],
  ])('with %s is the one in RFC 7616, 3.9.1', (algorithm, response) => {
    const header = `Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=${algorithm}, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`;
    expect(answer(header, MUFASA, RFC_7616)).toEqual({
      username: 'Mufasa',
      realm: 'http-auth@example.org',
      uri: '/dir/index.html',
      algorithm,
      nonce: '7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v',
      nc: '00000001',
      cnonce: RFC_7616,
      qop: 'auth',
      response,
      opaque: 'FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS',
    });
  });

  it('with MD5 and qop is the one in RFC 2617, 3.5', () => {
    const header =
      'Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41"';
    const credentials = { username: 'Mufasa', password: 'Circle Of Life' };
    expect(answer(header, credentials, '0a4f113b').response).toBe('6629fae49393a05397450978507c4ef1');
  });

  it('without qop is the one of RFC 2069', () => {
    const header =
      'Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41"';
    const given = answer(header, { username: 'Mufasa', password: 'CircleOfLife' }, 'unused');
    expect(given).not.toHaveProperty('nc');
    expect(given).not.toHaveProperty('cnonce');
    // The RFC's own example is wrong (its errata 749 say so); this is the value they give.
    expect(given.response).toBe('1949323746fe6a43ef61f9606e7febea');
  });

  it('is not given to what is not spoken here', () => {
    for (const rest of [
      'qop="auth-int"',
      'qop="auth", algorithm=SHA-512-256',
      'qop="auth", algorithm=MD5-sess',
    ]) {
      const [challenge] = parseChallenges(`Digest realm="r", nonce="n", ${rest}`);
      expect(challenge && isSpoken(challenge)).toBe(false);
    }
  });
});

describe('a peer that asks for Digest', () => {
  it.each([
    ['MD5', 'auth'],
    ['SHA-256', 'auth, auth-int'],
    ['MD5', ''],
  ])('with %s and qop "%s" is answered, and the document travels once', async (algorithm, qop) => {
    const server = await DigestServer.start({ algorithm, qop });
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    expect(await client.push([ITEM])).toMatchObject({ results: [{ ok: true }] });
    await client.push([ITEM]);
    const count = (n: number) => (qop === '' ? 'old' : n);
    expect(server.log).toEqual(['GET -', `GET ${count(1)}`, `POST ${count(2)}`, `POST ${count(3)}`]);
    expect(server.http.requests[0]).toMatchObject({ url: '/api/push_p.html', body: '' });
    expect(client.requests).toEqual({ push: 2, peerdoc: 0, other: 2 });
  });

  it('gets every count once, in spite of requests side by side', async () => {
    const server = await DigestServer.start({ algorithm: 'SHA-256' });
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    await Promise.all(Array.from({ length: 40 }, () => client.push([ITEM])));
    expect(server.log.filter((line) => line === 'GET -')).toHaveLength(1);
    expect([...server.counts].sort()).toEqual(
      Array.from({ length: 41 }, (_, i) => (i + 1).toString(16).padStart(8, '0')),
    );
  });

  it('and finds a nonce too old, is answered anew with the whole body', async () => {
    const server = await DigestServer.start({ uses: 2 });
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    const item = { ...ITEM, data: new Pieces('stream', 'ed') };
    await client.push([ITEM]);
    expect(await client.push([item])).toMatchObject({ results: [{ ok: true }] });
    expect(server.log).toEqual(['GET -', 'GET 1', 'POST 2', 'POST 3', 'POST 1']);
    expect(server.http.bodies[4]).toBe(server.http.bodies[3]);
    expect(server.http.bodies[4]).toContain('data-0=streamed');
  });

  it.each([true, false])('and forgot its nonces is answered anew (says stale: %s)', async (saysStale) => {
    const server = await DigestServer.start({ saysStale });
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    await client.push([ITEM]);
    server.restart();
    expect(await client.push([ITEM])).toMatchObject({ results: [{ ok: true }] });
    expect(server.log.slice(3)).toEqual(['POST 3', 'POST 1']);
  });

  it('and finds every nonce too old is not asked for ever', async () => {
    const server = await DigestServer.start({ uses: 0 });
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    await expect(client.push([ITEM])).rejects.toMatchObject({ code: 'PEER_AUTH' });
    expect(server.log).toEqual(['GET -', 'GET 1', 'GET 1']);
  });

  it('never sees a document with a wrong password, and is asked once for each push', async () => {
    const server = await DigestServer.start();
    const client = clientOf(server.url, { credentials: { username: 'admin', password: 'wrong' } });
    await expect(client.push([ITEM])).rejects.toMatchObject({
      code: 'PEER_AUTH',
      status: 401,
      delivered: 'no',
      message: expect.stringContaining('did not accept the user name and the password (401)'),
    });
    expect(server.log).toEqual(['GET -', 'GET 1']);
    await expect(client.push([ITEM])).rejects.toMatchObject({ code: 'PEER_AUTH' });
    expect(server.log).toEqual(['GET -', 'GET 1', 'GET 1']);
    expect(client.requests.push).toBe(0);
  });

  it('and no longer takes the password gets no more documents', async () => {
    const server = await DigestServer.start();
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    await client.push([ITEM]);
    server.changePassword();
    await expect(client.push([ITEM])).rejects.toMatchObject({ code: 'PEER_AUTH', delivered: 'yes' });
    const before = server.log.length;
    await expect(client.push([ITEM])).rejects.toMatchObject({ code: 'PEER_AUTH', delivered: 'no' });
    expect(server.log.slice(before).filter((line) => line.startsWith('POST'))).toEqual([]);
  });

  it('for every page is answered when a document is looked up', async () => {
    const server = await DigestServer.start();
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    await expect(client.peerdoc({ url: ITEM.url })).rejects.toMatchObject({ code: 'PEER_ANSWER' });
    expect(server.log).toEqual(['POST -', 'POST 1']);
  });
});

describe('the strongest way in', () => {
  async function chosen(...offers: readonly string[]): Promise<string | undefined> {
    const server = await HttpServer.start(({ headers }, response) => {
      if (headers.authorization === undefined)
        response.writeHead(401, { 'www-authenticate': [...offers] }).end();
      else response.end(ACCEPTED);
    });
    await clientOf(server.url, { credentials: CREDENTIALS }).push([ITEM]);
    const { authorization } = server.requests.at(-1)?.headers ?? {};
    return authorization?.startsWith('Basic') ? authorization : parameters(authorization ?? '').algorithm;
  }
  const md5 = 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5';
  const sha256 = 'Digest realm="r", nonce="n", qop="auth", algorithm=SHA-256';
  const unknown = 'Digest realm="r", nonce="n", qop="auth", algorithm=SHA-999';

  it('is Digest with SHA-256, then with MD5, then Basic, in whatever order they are offered', async () => {
    expect(await chosen('Basic realm="r"', md5, sha256)).toBe('SHA-256');
    expect(await chosen(`${md5}, Basic realm="r", ${sha256}`)).toBe('SHA-256');
    expect(await chosen(`Basic realm="r", ${md5}`)).toBe('MD5');
  });

  it('is Basic, in UTF-8, where nothing else is spoken on both sides', async () => {
    const header = `Basic ${Buffer.from('admin:sécret:"x"').toString('base64')}`;
    expect(await chosen(unknown, 'Basic realm="r"')).toBe(header);
  });

  it('is none where the peer asks for something that is not spoken here', async () => {
    const server = await HttpServer.start((_, response) =>
      response.writeHead(401, { 'www-authenticate': 'Negotiate' }).end(),
    );
    await expect(clientOf(server.url, { credentials: CREDENTIALS }).push([ITEM])).rejects.toMatchObject({
      code: 'PEER_AUTH',
      message: expect.stringContaining('not spoken here (401, negotiate)'),
    });
    expect(server.requests).toHaveLength(1);
  });
});

describe('a peer that lets everyone in', () => {
  it('gets no credentials, and one request that introduces the first push', async () => {
    const server = await HttpServer.start((_, response) => response.end(ACCEPTED));
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    await client.push([ITEM]);
    await client.push([ITEM]);
    expect(server.requests.map(({ method }) => method)).toEqual(['GET', 'POST', 'POST']);
    expect(server.requests.every(({ headers }) => headers.authorization === undefined)).toBe(true);
  });

  it('and later asks for a password is answered then', async () => {
    let locked = false;
    const server = await HttpServer.start(({ headers }, response) => {
      if (!locked || headers.authorization) response.end(ACCEPTED);
      else response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end();
    });
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    await client.push([ITEM]);
    locked = true;
    expect(await client.push([ITEM])).toMatchObject({ results: [{ ok: true }] });
  });
});

describe('an introduction', () => {
  it('that finds nobody fails the push without doubt', async () => {
    const server = await HttpServer.start((_, response) => response.destroy());
    const failed = clientOf(server.url, { credentials: CREDENTIALS }).push([ITEM]);
    await expect(failed).rejects.toMatchObject({ code: 'PEER_UNREACHABLE', delivered: 'no' });
  });

  it('that finds a busy peer spares it the documents', async () => {
    const server = await HttpServer.start((_, response) =>
      response.writeHead(503, { 'retry-after': '5' }).end(),
    );
    const failed = clientOf(server.url, { credentials: CREDENTIALS }).push([ITEM]);
    await expect(failed).rejects.toMatchObject({ code: 'PEER_BUSY', retryAfterMs: 5_000, delivered: 'no' });
    expect(server.requests.map(({ method }) => method)).toEqual(['GET']);
  });

  it('that hangs does not keep a push that is called off', async () => {
    const server = await HttpServer.start(() => {});
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    const controller = new AbortController();
    const failed = expect(client.push([ITEM], { signal: controller.signal })).rejects.toMatchObject({
      code: 'PEER_ABORTED',
      delivered: 'no',
    });
    await until(() => server.requests.length === 1, 'introduced');
    controller.abort();
    await failed;
  });
});

describe('a password', () => {
  it('in plain text to another machine without TLS is warned of, once', async () => {
    const warnings: string[] = [];
    const log: Logger = {
      debug() {},
      info() {},
      warn: (_, message) => void warnings.push(message),
      error() {},
    };
    const server = await HttpServer.start(({ headers }, response) => {
      if (headers.authorization) response.end(ACCEPTED);
      else response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end();
    });
    // This name of every interface is no loopback name, and leads to the same server.
    const far = clientOf(server.url.replace('127.0.0.1', '0.0.0.0'), { credentials: CREDENTIALS, log });
    await far.push([ITEM]);
    await far.push([ITEM]);
    expect(warnings).toEqual([expect.stringContaining('plain text (Basic over http)')]);
    const near = clientOf(server.url, { credentials: CREDENTIALS, log });
    await near.push([ITEM]);
    expect(warnings).toHaveLength(1);
  });

  it('shows neither in the client nor in an error', async () => {
    const server = await HttpServer.start((_, response) =>
      response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end(),
    );
    const client = clientOf(server.url.replace('http://', 'http://admin:hunter2@'), {
      credentials: { username: 'admin', password: 'hunter2' },
    });
    const error = await client.push([ITEM]).catch((e: unknown) => e);
    const seen = [client, error].map((thing) => inspect(thing, { depth: 10, showHidden: true })).join();
    expect(seen).toContain('PEER_AUTH');
    expect(seen + JSON.stringify(client) + JSON.stringify(error)).not.toMatch(/hunter2|aHVudGVyMg|YWRtaW46/);
  });
});
