import { describe, expect, it } from 'vitest';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { CREDENTIALS, DigestServer, parameters } from './auth-server.js';
import { ACCEPTED, clientOf, HttpServer, ITEM } from './servers.js';

async function peer() {
  const server = await DigestServer.start();
  const clock = new FakeClock();
  const client = clientOf(server.url, { credentials: CREDENTIALS, clock });
  return { server, clock, client };
}

describe('a nonce', () => {
  it('is used again and again while it is fresh', async () => {
    const { server, clock, client } = await peer();
    await client.push([ITEM]);
    await clock.advance(49_000);
    await client.push([ITEM]);
    expect(server.log).toEqual(['GET -', 'GET 1', 'POST 2', 'POST 3']);
  });

  it('of 60 s is renewed in time: a document does not travel with one that is refused', async () => {
    const { server, clock, client } = await peer();
    await client.push([ITEM]);
    await clock.advance(51_000);
    server.restart();
    await Promise.all([client.push([ITEM]), client.push([ITEM]), client.push([ITEM])]);
    expect(server.log.slice(0, 5)).toEqual(['GET -', 'GET 1', 'POST 2', 'GET -', 'GET 1']);
    expect(server.log.slice(5).sort()).toEqual(['POST 2', 'POST 3', 'POST 4']);
  });

  it('is renewed before it was used 1,024 times', async () => {
    const { server, client } = await peer();
    await client.push([ITEM]);
    for (let n = 0; n < 1_020; n += 1) await client.checkAdmin();
    await client.push([ITEM]);
    expect(server.log.slice(-3)).toEqual(['GET -', 'GET 1', 'POST 2']);
  });
});

it('a nonce that a server gives out again after it was renewed is counted on', async () => {
  const seen: string[] = [];
  const server = await HttpServer.start(({ headers }, response) => {
    const { nc } = parameters(headers.authorization ?? '');
    if (nc !== undefined && !seen.includes(nc)) {
      seen.push(nc);
      response.end(ACCEPTED);
    } else
      response.writeHead(401, { 'www-authenticate': 'Digest realm="r", nonce="same", qop="auth"' }).end();
  });
  const clock = new FakeClock();
  const client = clientOf(server.url, { credentials: CREDENTIALS, clock });
  await client.push([ITEM]);
  await clock.advance(51_000);
  await client.push([ITEM]);
  expect(seen.map((nc) => Number.parseInt(nc, 16))).toEqual([1, 2, 3, 4]);
  expect(server.requests.filter(({ method }) => method === 'POST')).toHaveLength(2);
});

it('a push that ends while the nonce is renewed does not let the next one go without', async () => {
  const asked: { readonly line: string; readonly answer: () => void }[] = [];
  const server = await HttpServer.start(({ method, headers }, response) => {
    const isIn = headers.authorization !== undefined;
    const answer = () => {
      if (isIn) response.end(ACCEPTED);
      else
        response.writeHead(401, { 'www-authenticate': `Digest realm="r", nonce="n${asked.length}"` }).end();
    };
    asked.push({ line: `${method}${isIn ? '' : ' -'}`, answer });
  });
  const clock = new FakeClock();
  const timeouts = { connect: 200_000, headers: 200_000, body: 200_000, total: 200_000 };
  const client = clientOf(server.url, { credentials: CREDENTIALS, clock, timeouts });
  const answered = async (...numbers: readonly number[]) => {
    for (const n of numbers) {
      await until(() => asked.length > n, 'the next request');
      asked[n]?.answer();
    }
  };
  const first = client.push([ITEM]);
  await answered(0, 1, 2);
  await first;
  const slow = client.push([ITEM]);
  await until(() => asked.length === 4, 'a slow push');
  await clock.advance(51_000);
  const renewing = client.push([ITEM]);
  await until(() => asked.length === 5, 'a question for a new nonce');
  await answered(3);
  await slow;
  const next = client.push([ITEM]);
  await answered(4, 5, 6, 7);
  await Promise.all([renewing, next]);
  expect(asked.map(({ line }) => line)).toEqual([
    ...['GET -', 'GET', 'POST', 'POST'],
    ...['GET -', 'GET', 'POST', 'POST'],
  ]);
});
