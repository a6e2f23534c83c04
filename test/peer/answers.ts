import { readFileSync } from 'node:fs';
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
