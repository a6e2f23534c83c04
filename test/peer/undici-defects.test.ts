import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { ShareStream } from '../../src/peer/share.js';
import { http } from '../support/http-peer.js';
import { until } from '../support/wait.js';
import { raw } from './support.js';

// The reader takes the first piece and waits. The rest is one byte more than may be unread. Its
// last byte therefore pauses the answer, and nothing is left to be parsed when the connection ends.
const FIRST = 'x';
const REST = 'x'.repeat(128 * 1024 + 1);
const LENGTH = FIRST.length + REST.length;

/** Returns a reader of a whole share, which waits for `meanwhile` after the first piece. */
function slowReader(meanwhile: () => Promise<unknown>): (share: ShareStream) => Promise<number> {
  return async ({ chunks }) => {
    let length = 0;
    for await (const chunk of chunks) {
      if (length === 0) await meanwhile();
      length += chunk.length;
    }
    return length;
  };
}

/** A peer that answers pings, and answers a share with this head and the first piece. */
async function sharing(head: string) {
  let socket: Socket | undefined;
  const { client } = await raw((each, request) => {
    if (!request.includes('/share')) {
      each.write(http('pong'));
      return;
    }
    socket = each;
    each.write(`HTTP/1.1 200 OK\r\n${head}\r\n${FIRST}`);
  });
  const peer = () => socket ?? expect.fail('no share was asked for');
  return { client, peer };
}

describe('an answer that is paused', () => {
  it.each([
    ['without a length', ''],
    ['with a length', `Content-Length: ${LENGTH}\r\n`],
    [
      'with a length, the last one on its connection',
      `Content-Length: ${LENGTH}\r\nConnection: close\r\n`,
    ],
  ])('is read to its end after the peer closed the connection: %s', async (_, head) => {
    const { client, peer } = await sharing(head);
    const reader = slowReader(async () => {
      peer().end(REST);
      await until(() => peer().destroyed, 'both sides closed the connection');
    });
    expect(await client.share({ data: 'x' }, reader)).toBe(LENGTH);
  });

  it('fails when the connection is reset', async () => {
    const { client, peer } = await sharing('');
    const reader = slowReader(async () => {
      await new Promise((resolve) => peer().write(REST, resolve));
      // Each ping is a turn of the event loop in which the client can read what came.
      for (let turn = 0; turn < 50; turn += 1) await client.ping();
      peer().resetAndDestroy();
      for (let turn = 0; turn < 50; turn += 1) await client.ping();
    });
    const message = expect.stringContaining('in the middle of its answer: read ECONNRESET');
    await expect(client.share({ data: 'x' }, reader)).rejects.toMatchObject({
      code: 'PEER_ANSWER',
      message,
    });
  });
});
