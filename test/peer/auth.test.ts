import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { isSupported, parseChallenges } from '../../src/peer/auth.js';
import type { PeerClientOptions } from '../../src/peer/client-options.js';
import type { TextSource } from '../../src/peer/form.js';
import { CREDENTIALS, type DigestRules, parameters } from '../support/digest.js';
import { FakeClock } from '../support/fake-clock.js';
import { type HttpAnswer, HttpPeer } from '../support/http-peer.js';
import { until } from '../support/wait.js';
import { ACCEPTED, accepts, clientOf, ITEM, OK, serving } from './support.js';

const OTHER = { username: CREDENTIALS.username, password: 'another' };
const PEER_AUTH = { code: 'PEER_AUTH' };
const BASIC = 'Basic realm="r"';
const WANTED = { 'www-authenticate': BASIC };
const basicOf = ({ username, password }: typeof OTHER) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

/** A server with Digest, and a client that knows its password. */
async function digest(rules: Partial<DigestRules> = {}) {
  const server = await HttpPeer.start(accepts, { digest: rules });
  const clock = new FakeClock();
  return { server, clock, client: clientOf(server.url, { credentials: CREDENTIALS, clock }) };
}

/** A server with this answer, and a client with credentials. */
const known = (answer: HttpAnswer, more: Partial<PeerClientOptions> = {}) =>
  serving(answer, { credentials: CREDENTIALS, ...more });

/** A server that answers 401 with these challenges if a request has no credentials. */
const asking = (...challenges: readonly string[]) =>
  known(({ headers }, response) => {
    if (headers.authorization) response.end(ACCEPTED);
    else response.writeHead(401, { 'www-authenticate': [...challenges] }).end();
  });

describe('a challenge', () => {
  const newauth = 'Newauth realm="apps", type=1, title="Login to \\"apps\\""';
  const apps = { realm: 'apps', type: '1', title: 'Login to "apps"' };
  const three = { negotiate: {}, newauth: apps, basic: { realm: 'simple' } };

  it.each<[string | string[], object]>([
    [`Negotiate YWJj+/==, ${newauth}, Basic realm="simple"`, three],
    [['Negotiate', newauth, 'Basic realm="simple"'], three],
    [' , DIGEST  Realm = "a, b" ,, NONCE="n=="\t,', { digest: { realm: 'a, b', nonce: 'n==' } }],
    ['Digest realm="never closed', { digest: {} }],
  ])('is read: %s', (header, expected) => {
    const read = parseChallenges(header).map((each) => [
      each.scheme,
      Object.fromEntries(each.parameters),
    ]);
    expect(Object.fromEntries(read)).toEqual(expected);
  });

  it.each(['nonce="n", qop="auth-int"', 'nonce="n", algorithm=MD5-sess', 'qop="auth"'])(
    'is not answered if it is not supported: %s',
    (rest) => {
      expect(parseChallenges(`Digest realm="r", ${rest}`).filter(isSupported)).toEqual([]);
    },
  );
});

describe('a peer that asks for Digest', () => {
  it.each([
    ['MD5', 'auth'],
    ['SHA-256', 'auth, auth-int'],
    ['MD5', ''],
  ] as const)(
    'with %s and qop "%s" is answered, and the document travels once',
    async (algorithm, qop) => {
      const { server, client } = await digest({ algorithm, qop });
      for (let times = 0; times < 2; times += 1)
        expect(await client.push([ITEM])).toMatchObject(OK);
      const count = (n: number) => (qop === '' ? 'old' : n);
      expect(server.digest.log).toEqual([
        'GET -',
        `GET ${count(1)}`,
        `POST ${count(2)}`,
        `POST ${count(3)}`,
      ]);
      expect(server.requests[0]).toMatchObject({ url: '/api/push_p.html', body: '' });
      expect(client.requests).toEqual({ push: 2, peerdoc: 0, other: 2 });
    },
  );

  it('is answered again, with the whole body, if a nonce was too old', async () => {
    const { server, client } = await digest({ uses: 2 });
    const data: TextSource = {
      size: 8,
      async *chunks() {
        yield* ['stream', 'ed'].map((piece) => Buffer.from(piece));
      },
    };
    await client.push([ITEM]);
    expect(await client.push([{ ...ITEM, data }])).toMatchObject(OK);
    expect(server.digest.log).toEqual(['GET -', 'GET 1', 'POST 2', 'POST 3', 'POST 1']);
    const [first, again] = server.requests.slice(3).map(({ body }) => body);
    expect(again).toBe(first);
    expect(again).toContain('data-0=streamed');
  });

  it.each([true, false])(
    'is answered again if it has forgotten its nonces (says stale: %s)',
    async (saysStale) => {
      const { server, client } = await digest({ saysStale });
      await client.push([ITEM]);
      server.digest.nonces.clear();
      expect(await client.push([ITEM])).toMatchObject(OK);
      expect(server.digest.log.slice(3)).toEqual(['POST 3', 'POST 1']);
    },
  );

  it('is not asked for ever if it finds every nonce too old', async () => {
    const { server, client } = await digest({ uses: 0 });
    await expect(client.push([ITEM])).rejects.toMatchObject(PEER_AUTH);
    expect(server.digest.log).toEqual(['GET -', 'GET 1', 'GET 1']);
  });

  it('never sees a document with a wrong password, and is asked once for each push', async () => {
    const { server } = await digest();
    const client = clientOf(server.url, { credentials: OTHER });
    const message = expect.stringContaining('did not accept the user name and the password (401)');
    for (let n = 0; n < 2; n += 1)
      await expect(client.push([ITEM])).rejects.toMatchObject({
        ...PEER_AUTH,
        delivered: 'no',
        message,
      });
    expect(server.digest.log).toEqual(['GET -', 'GET 1', 'GET 1']);
    expect(client.requests.push).toBe(0);
  });

  it('gets no more documents with an old password, until the client has the new one', async () => {
    const { server, client } = await digest();
    await client.push([ITEM]);
    server.digest.password = OTHER.password;
    await expect(client.push([ITEM])).rejects.toMatchObject({ ...PEER_AUTH, delivered: 'yes' });
    const before = server.digest.log.length;
    await expect(client.push([ITEM])).rejects.toMatchObject({ ...PEER_AUTH, delivered: 'no' });
    expect(server.digest.log.slice(before).join()).not.toContain('POST');
    expect(client.authenticate(OTHER)).toBe(true);
    expect(await client.push([ITEM])).toMatchObject(OK);
    const asked = server.digest.log.length;
    expect(client.authenticate({ ...OTHER })).toBe(false);
    await client.push([ITEM]);
    expect(server.digest.log.length - asked).toBe(1);
    expect(client.authenticate({ ...OTHER, username: 'other' })).toBe(true);
    expect(client.authenticate(undefined)).toBe(true);
    await expect(client.push([ITEM])).rejects.toMatchObject(PEER_AUTH);
  });
});

describe('a nonce', () => {
  it('is reused while it is fresh, and renewed once for all requests before it is 60 s old', async () => {
    const { server, clock, client } = await digest();
    await client.push([ITEM]);
    await clock.advance(49_000);
    await client.push([ITEM]);
    expect(server.digest.log).toEqual(['GET -', 'GET 1', 'POST 2', 'POST 3']);
    await clock.advance(2_000);
    server.digest.nonces.clear();
    await Promise.all([client.push([ITEM]), client.push([ITEM])]);
    expect(server.digest.log.slice(4, 6)).toEqual(['GET -', 'GET 1']);
    expect(server.digest.log.slice(6).sort()).toEqual(['POST 2', 'POST 3']);
  });

  it('keeps its counter if the server sends it again after a renewal', async () => {
    const seen: string[] = [];
    const clock = new FakeClock();
    const challenge = { 'www-authenticate': 'Digest realm="r", nonce="same", qop="auth"' };
    const { client } = await known(
      ({ headers }, response) => {
        const { nc } = parameters(headers.authorization);
        const isNew = nc !== undefined && !seen.includes(nc);
        if (isNew) seen.push(nc);
        response.writeHead(isNew ? 200 : 401, challenge).end(ACCEPTED);
      },
      { clock },
    );
    await client.push([ITEM]);
    await clock.advance(51_000);
    for (let n = 0; n < 2; n += 1) await client.push([ITEM]);
    expect(seen.map((nc) => Number.parseInt(nc, 16))).toEqual([1, 2, 3, 4, 5]);
    expect(client.requests.push).toBe(3);
  });
});

describe('the strongest scheme', () => {
  const digestBy = (algorithm: string) =>
    `Digest realm="r", nonce="n", qop="auth", algorithm=${algorithm}`;
  const [md5, sha256] = [digestBy('MD5'), digestBy('SHA-256')];

  it.each([
    [[`${md5}, ${BASIC}, ${sha256}`], 'SHA-256'],
    [[BASIC, md5], 'MD5'],
    [[digestBy('SHA-999'), BASIC], undefined],
  ])('of %j is %s', async (offers, chosen) => {
    const { server, client } = await asking(...offers);
    await client.push([ITEM]);
    const { authorization } = server.requests.at(-1)?.headers ?? {};
    if (chosen === undefined) expect(authorization).toBe(basicOf(CREDENTIALS));
    else expect(parameters(authorization).algorithm).toBe(chosen);
  });

  it('does not exist if the peer offers only schemes that are not supported', async () => {
    const { client } = await asking('Negotiate');
    const message = expect.stringContaining('not spoken here (401, negotiate)');
    await expect(client.push([ITEM])).rejects.toMatchObject({ ...PEER_AUTH, message });
    expect(client.requests.other).toBe(1);
  });
});

it('a peer without a password gets no credentials, until it asks for one', async () => {
  let [locked, isRefused] = [false, false];
  const { server, client } = await known(({ method, headers }, response) => {
    const taken = method === 'GET' ? 405 : 202;
    const isLetIn = !isRefused && (!locked || headers.authorization !== undefined);
    response.writeHead(isLetIn ? taken : 401, WANTED).end(ACCEPTED);
  });
  await client.push([ITEM]);
  await client.push([ITEM]);
  expect(server.requests.map(({ method }) => method)).toEqual(['GET', 'POST', 'POST']);
  expect(server.requests.every(({ headers }) => headers.authorization === undefined)).toBe(true);
  locked = true;
  expect(await client.push([ITEM])).toMatchObject(OK);
  await client.ping();
  expect(server.requests.at(-1)?.headers).not.toHaveProperty('authorization');
  isRefused = true;
  const before = server.requests.length;
  await expect(client.push([ITEM])).rejects.toMatchObject(PEER_AUTH);
  expect(server.requests).toHaveLength(before + 1);
});

describe('a request that authenticates before a push', () => {
  it('fails the push before documents are sent if the peer is away or busy', async () => {
    const { client } = await known((_, response, n) =>
      n === 0 ? response.destroy() : response.writeHead(503, { 'retry-after': '5' }).end(),
    );
    for (const failure of [
      { code: 'PEER_UNREACHABLE' },
      { code: 'PEER_BUSY', retryAfterMs: 5_000 },
    ])
      await expect(client.push([ITEM])).rejects.toMatchObject({ ...failure, delivered: 'no' });
    expect(client.requests).toMatchObject({ push: 0, other: 2 });
  });

  it('does not delay the end of an aborted push if it hangs', async () => {
    const { server, client } = await known(() => {});
    const stop = new AbortController();
    const failed = client.push([ITEM], { signal: stop.signal });
    const aborted = expect(failed).rejects.toMatchObject({ code: 'PEER_ABORTED', delivered: 'no' });
    await until(() => server.requests.length === 1, 'introduced');
    stop.abort();
    await aborted;
  });

  it('does not count if the credentials are replaced meanwhile', async () => {
    let refuseFirst = () => {};
    const { server, client } = await known(({ headers }, response, n) => {
      const refuse = () => void response.writeHead(401, WANTED).end('no');
      if (n === 0) refuseFirst = refuse;
      else if (headers.authorization !== basicOf(OTHER)) refuse();
      else response.end(ACCEPTED);
    });
    const before = client.push([ITEM]).catch((error: unknown) => error);
    await until(() => server.requests.length === 1, 'it introduces itself');
    client.authenticate(OTHER);
    await client.push([ITEM]);
    refuseFirst();
    expect(await before).toMatchObject(PEER_AUTH);
    await client.push([ITEM]);
  });
});

describe('a password', () => {
  it('is visible neither in the client nor in an error', async () => {
    const server = await HttpPeer.start((_, response) => response.writeHead(401, WANTED).end());
    const credentials = { username: 'admin', password: 'hunter2' };
    const client = clientOf(server.url.replace('http://', 'http://admin:hunter2@'), {
      credentials,
    });
    const error = await client.push([ITEM]).catch((e: unknown) => e);
    const seen = [client, error]
      .map((thing) => inspect(thing, { depth: 10, showHidden: true }))
      .join();
    expect(seen).toContain('PEER_AUTH');
    expect(seen + JSON.stringify(client) + JSON.stringify(error)).not.toMatch(
      /hunter2|aHVudGVyMg|YWRtaW46/,
    );
  });
});
