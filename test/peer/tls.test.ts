import { describe, expect, it } from 'vitest';
import type { ShareStream } from '../../src/peer/share.js';
import { makeCertificate } from '../support/certificate.js';
import { type HttpAnswer, HttpPeer } from '../support/http-peer.js';
import { until } from '../support/wait.js';
import { ACCEPTED, accepts, clientOf, ITEM, OK } from './support.js';

/** A server with a certificate of its own for 127.0.0.1. */
async function startTls(answer: HttpAnswer = accepts) {
  const own = makeCertificate();
  const server = await HttpPeer.start(answer, { tls: own });
  const { url } = server;
  return { url, ca: own.cert, server, client: clientOf(url, { tls: { ca: own.cert } }) };
}

describe('TLS', () => {
  it('carries long answers no faster than they are read', async () => {
    const content = Buffer.alloc(8 * 1024 * 1024, 'gulls');
    const { client } = await startTls((_, response) => void response.end(content));
    const read: Uint8Array[] = [];
    const slowly = async ({ chunks }: ShareStream) => {
      for await (const chunk of chunks)
        if (read.push(chunk) % 16 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    };
    await client.share({ data: 'x' }, slowly, { maxBytes: content.length });
    expect(Buffer.concat(read).equals(content)).toBe(true);
  });

  it('is refused if the certificate is not trusted, or is for another name', async () => {
    const { url, ca } = await startTls();
    const cases = [
      [clientOf(url), /cannot be reached: self-signed certificate/],
      [clientOf(url.replace('127.0.0.1', 'localhost'), { tls: { ca } }), /(altnames|ECONNREFUSED)/],
    ] as const;
    for (const [client, words] of cases)
      await expect(client.push([ITEM])).rejects.toMatchObject({
        code: 'PEER_UNREACHABLE',
        delivered: 'no',
        hint: expect.stringContaining('peer.tls.ca'),
        message: expect.stringMatching(words),
      });
  });

  it('accepts a renewed certificate once it is trusted, on a new connection', async () => {
    const { ca, server, client } = await startTls();
    expect(await client.push([ITEM])).toMatchObject(OK);
    const renewed = makeCertificate();
    server.renewCertificate(renewed);
    expect(client.trust(renewed.cert)).toBe(true);
    await client.push([ITEM]);
    expect(client.trust(renewed.cert)).toBe(false);
    await client.push([ITEM]);
    expect(client.trust(ca)).toBe(true);
    await expect(client.push([ITEM])).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' });
  });

  it('finishes requests under way when the trusted certificates change, and does not reuse their connection', async () => {
    let answer: (() => void) | undefined;
    const { client } = await startTls((_, response) => {
      answer = () => void response.end(ACCEPTED);
    });
    const asked = client.push([ITEM]);
    await until(() => answer !== undefined, 'the push came');
    client.trust(makeCertificate().cert);
    answer?.();
    expect(await asked).toMatchObject(OK);
    await expect(client.push([ITEM])).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' });
  });
});
