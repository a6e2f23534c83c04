import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import type { HttpAnswer } from '../../src/peer/answer.js';

/** An answer as it would have come. */
export function answerOf(body: string | Buffer, more: Partial<HttpAnswer> = {}): HttpAnswer {
  return {
    url: 'http://peer.example.org/api/push_p.html',
    status: 200,
    headers: {},
    body: Buffer.from(body as string),
    at: 1_000,
    peerAt: undefined,
    tookMs: 5,
    delivered: 'yes',
    ...more,
  };
}

/** The body of an answer that a real peer gave. */
export function realAnswer(name: string): Buffer {
  return readFileSync(new URL(`../wire/recorded/yacy-1.92/${name}`, import.meta.url));
}

/** The code and the sentence of the error, or what was read without one. */
export async function refusalOf(read: () => unknown): Promise<string> {
  try {
    return `no error: ${JSON.stringify(await read())}`;
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return `${code} ${message}`;
  }
}

/** Any character; to make the unit 'binary' of fast-check takes a second. */
export const ANY_CHARACTER = fc
  .integer({ min: 0, max: 0x10f7ff })
  .map((n) => String.fromCodePoint(n < 0xd800 ? n : n + 0x800));
