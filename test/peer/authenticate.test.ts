import { describe, expect, it } from 'vitest';
import { CREDENTIALS, DigestServer } from './auth-server.js';
import { clientOf, ITEM } from './servers.js';

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

  it('begins anew where an introduction with the old ones is under way', async () => {
    const server = await DigestServer.start();
    server.changePassword();
    const client = clientOf(server.url, { credentials: CREDENTIALS });
    const before = client.push([ITEM]).catch((error: unknown) => error);
    client.authenticate(OTHER);
    await client.push([ITEM]);
    await client.push([ITEM]);
    await before;
  });
});
