import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { makeCertificate } from '../support/certificate.js';
import { until } from '../support/wait.js';
import { ACCEPTED, clientOf, HttpServer, ITEM } from './servers.js';

const servers: ReturnType<typeof createServer>[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

function answering(response: ServerResponse): void {
  response.end(ACCEPTED);
}

/** A server with a certificate of its own for 127.0.0.1. */
async function startTls(answer = answering) {
  const own = makeCertificate();
  const server = createServer(own, (request, response) => {
    request.resume().on('end', () => answer(response));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, ca: own.cert, server };
}

describe('TLS', () => {
  it('is spoken with a peer whose certificate is given', async () => {
    const { url, ca } = await startTls();
    expect(await clientOf(url, { tls: { ca } }).push([ITEM])).toMatchObject({ results: [{ ok: true }] });
  });

  it('carries long answers no faster than they are read', async () => {
    const content = randomBytes(8 * 1024 * 1024);
    const { url, ca } = await startTls((response) => void response.end(content));
    const read: Uint8Array[] = [];
    await clientOf(url, { tls: { ca } }).share(
      { data: 'x' },
      async ({ chunks }) => {
        for await (const chunk of chunks) {
          read.push(chunk);
          if (read.length % 16 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
        }
      },
      { maxBytes: content.length },
    );
    expect(Buffer.concat(read).equals(content)).toBe(true);
  });

  it('is refused with a peer that nobody vouches for', async () => {
    const { url } = await startTls();
    await expect(clientOf(url).push([ITEM])).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
      delivered: 'no',
      message: expect.stringMatching(/cannot be reached: self-signed certificate/),
      hint: expect.stringContaining('peer.tls.ca'),
    });
  });

  it('is refused with a certificate for another name', async () => {
    const { url, ca } = await startTls();
    const failed = clientOf(url.replace('127.0.0.1', 'localhost'), { tls: { ca } }).push([ITEM]);
    await expect(failed).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
      message: expect.stringMatching(/cannot be reached: .*(altnames|ECONNREFUSED)/),
    });
  });

  it('is spoken with a renewed certificate once that is trusted, and not on a connection from before', async () => {
    const { url, ca, server } = await startTls();
    const client = clientOf(url, { tls: { ca } });
    await client.push([ITEM]);
    const renewed = makeCertificate();
    server.setSecureContext(renewed);
    expect(client.trust(renewed.cert)).toBe(true);
    await client.push([ITEM]);
    expect(client.trust(renewed.cert)).toBe(false);
    await client.push([ITEM]);
    expect(client.trust(ca)).toBe(true);
    await expect(client.push([ITEM])).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' });
  });

  it('goes on with what is under way while other certificates are trusted, and uses that connection no more', async () => {
    let answer = () => {};
    const { url, ca } = await startTls((response) => {
      answer = () => answering(response);
    });
    const client = clientOf(url, { tls: { ca } });
    const asked = client.push([ITEM]);
    const seen = answer;
    await until(() => answer !== seen, 'the push came');
    client.trust(makeCertificate().cert);
    answer();
    expect(await asked).toMatchObject({ results: [{ ok: true }] });
    await expect(client.push([ITEM])).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' });
  });

  it('with a peer that does not speak it is no connection', async () => {
    const server = await HttpServer.start((_, response) => response.end(ACCEPTED));
    const failed = clientOf(server.url.replace('http:', 'https:')).push([ITEM]);
    await expect(failed).rejects.toMatchObject({ code: 'PEER_UNREACHABLE', delivered: 'no' });
  });
});
