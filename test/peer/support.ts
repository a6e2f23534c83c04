import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import type { HttpAnswer as PeerAnswer } from '../../src/peer/answer.js';
import { PeerClient } from '../../src/peer/client.js';
import type { PeerClientOptions } from '../../src/peer/client-options.js';
import { afterwards } from '../support/afterwards.js';
import { type HttpAnswer, HttpPeer, onRequest } from '../support/http-peer.js';

/** An answer as the HTTP layer returns it. */
export function answerOf(body: string | Buffer, more: Partial<PeerAnswer> = {}): PeerAnswer {
  return {
    url: 'http://peer.example.org/api/push_p.html',
    status: 200,
    headers: {},
    at: 1_000,
    body: Buffer.from(body as string),
    peerAt: undefined,
    tookMs: 5,
    delivered: 'yes',
    ...more,
  };
}

/** Returns the recorded body of a real peer's answer. */
export function realAnswer(name: string): Buffer {
  return readFileSync(new URL(`../wire/recorded/yacy-1.92/${name}`, import.meta.url));
}

/** Returns the code and the message of the error, or the result without one. */
export async function refusalOf(read: () => unknown): Promise<string> {
  try {
    return `no error: ${JSON.stringify(await read())}`;
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return `${code} ${message}`;
  }
}

/** Any character. The unit `binary` of fast-check takes a second to build. */
export const ANY_CHARACTER = fc
  .integer({ min: 0, max: 0x10f7ff })
  .map((n) => String.fromCodePoint(n < 0xd800 ? n : n + 0x800));

export const ACCEPTED = '{"count":"1","successall":"true","countsuccess":1,"countfail":0}';
/** Accepts each push; other requests get a page. */
export const accepts: HttpAnswer = ({ method }, response) =>
  void response.end(method === 'GET' ? '<p>Push</p>' : ACCEPTED);

export const OK = { results: [{ ok: true }] };
export const ITEM = {
  url: 'https://docs.example.org/a.txt',
  collection: 'c',
  data: Buffer.from('hello'),
};

/** A client that is closed after the test. */
export function clientOf(baseUrl: string, options: Partial<PeerClientOptions> = {}): PeerClient {
  const timeouts = { connect: 20_000, headers: 20_000, body: 20_000, total: 60_000 };
  const client = new PeerClient({
    dialect: 'standard',
    baseUrl,
    timeouts,
    maxAnswer: 1024 * 1024,
    ...options,
  });
  afterwards('test', () => client.close());
  return client;
}

/** Starts a peer with this answer, and a client of it. */
export async function serving(answer: HttpAnswer, options: Partial<PeerClientOptions> = {}) {
  const server = await HttpPeer.start(answer);
  return { server, client: clientOf(server.url, options) };
}

/** Starts a peer that calls this with the socket of each complete request, and a client of it. */
export async function raw(
  answer: (socket: Socket, request: string, n: number) => unknown,
  options: Partial<PeerClientOptions> = {},
) {
  const server = await HttpPeer.raw((socket) =>
    onRequest(socket, (...asked) => answer(socket, ...asked)),
  );
  return { server, client: clientOf(server.url, options) };
}
