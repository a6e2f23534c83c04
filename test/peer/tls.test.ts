import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../support/temp.js';
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
async function startTls(answer = answering): Promise<{ url: string; ca: string }> {
  const directory = temporaryDirectory();
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const request = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=peer';
  execFileSync(
    'openssl',
    [...request.split(' '), '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert],
    { stdio: 'pipe' },
  );
  const ca = readFileSync(cert, 'utf8');
  const server = createServer({ key: readFileSync(key), cert: ca }, (request, response) => {
    request.resume().on('end', () => answer(response));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, ca };
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

  it.each([
    ['ends', (socket: Socket) => void socket.end()],
    ['breaks off', (socket: Socket) => void socket.destroy()],
  ])('that a peer %s on a connection used before is begun anew', async (_, close) => {
    let asked = 0;
    const { url, ca } = await startTls((response) => {
      asked += 1;
      if (asked === 2 && response.socket) close(response.socket);
      else answering(response);
    });
    const client = clientOf(url, { tls: { ca } });
    await client.push([ITEM]);
    expect(await client.push([ITEM])).toMatchObject({ results: [{ ok: true }] });
    expect(asked).toBe(3);
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

  it('with a peer that does not speak it is no connection', async () => {
    const server = await HttpServer.start((_, response) => response.end(ACCEPTED));
    const failed = clientOf(server.url.replace('http:', 'https:')).push([ITEM]);
    await expect(failed).rejects.toMatchObject({ code: 'PEER_UNREACHABLE', delivered: 'no' });
  });
});
