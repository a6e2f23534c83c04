import { describe, expect, it } from 'vitest';
import { until } from '../support/wait.js';
import { CREDENTIALS, DigestServer } from './auth-server.js';
import { ACCEPTED, clientOf, HttpServer, ITEM } from './servers.js';

const OTHER = { username: CREDENTIALS.username, password: 'another' };

describe('a client that gets other credentials', () => {
  it('uses them from the next request on', async () => {
    const server = await DigestServer.start();
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    await client.push([ITEM]);
    server.changePassword();
    server.restart();
    await expect(client.push([ITEM])).rejects.toMatchObject({ code: 'PEER_AUTH' });
    expect(client.authenticate(OTHER)).toBe(true);
    await client.push([ITEM]);
    expect(client.authenticate(undefined)).toBe(true);
    await expect(client.push([ITEM])).rejects.toMatchObject({ code: 'PEER_AUTH' });
  });

  it('keeps what it knows of the server where they are the same', async () => {
    const server = await DigestServer.start();
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    await client.push([ITEM]);
    const asked = server.log.length;
    expect(client.authenticate({ ...CREDENTIALS })).toBe(false);
    await client.push([ITEM]);
    expect(server.log.length - asked).toBe(1);
  });

  it('begins anew while an introduction with the old ones is under way', async () => {
    const basic = `Basic ${Buffer.from(`${OTHER.username}:${OTHER.password}`).toString('base64')}`;
    let refuseFirst = () => {};
    const server = await HttpServer.start(({ headers, method }, response, n) => {
      const refuse = () => void response.writeHead(401, { 'www-authenticate': 'Basic realm="r"' }).end('no');
      if (n === 0) refuseFirst = refuse;
      else if (headers.authorization !== basic) refuse();
      else response.end(method === 'GET' ? '<p>Push</p>' : ACCEPTED);
    });
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    const before = client.push([ITEM]).catch((error: unknown) => error);
    await until(() => server.requests.length === 1, 'it introduces itself');
    client.authenticate(OTHER);
    await client.push([ITEM]);
    refuseFirst();
    expect(await before).toMatchObject({ code: 'PEER_AUTH' });
    await client.push([ITEM]);
  });
});
