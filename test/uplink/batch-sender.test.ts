import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import { PeerError } from '../../src/peer/errors.js';
import type { PushOptions } from '../../src/peer/push.js';
import { queueStopped } from '../../src/queue/options.js';
import { pushFailure, sendBatch } from '../../src/uplink/batch-sender.js';
import type { UplinkDeps } from '../../src/uplink/deps.js';
import type { PushTarget } from '../../src/uplink/packed-batch.js';
import { pendingRecord, sentOf } from '../state/records.js';
import { FakePeer, failing, fails } from '../support/fake-peer.js';
import { QUICK } from '../support/uplink-world.js';

/** A sender and a peer in memory, with a queue that never waits. */
function setting({ redetect = false } = {}) {
  const peer = new FakePeer();
  const deps = {
    peer,
    clock: systemClock,
    log: silentLogger,
    settings: QUICK,
    dialect: { current: DIALECTS.standard, redetect: async () => redetect },
    queue: {
      run: (_: string, work: (signal: AbortSignal) => Promise<unknown>) =>
        work(new AbortController().signal),
    },
    state: { entries: { statusOf: () => 'pending' } },
  } as unknown as UplinkDeps;
  return {
    peer,
    /**
     * Sends a batch of items with names of one letter.
     * @returns the result of each item
     */
    send: async (paths: string, dialect = DIALECTS.standard) => {
      const documents = [...paths].map((path, n) => {
        const item = pendingRecord(path);
        const { sha256: digest } = item.version;
        const text = Buffer.from(path);
        const content = {
          kind: 'content' as const,
          text,
          size: 1,
          digest,
          type: '',
          words: undefined,
        };
        return { item, n, content, sent: sentOf(item) };
      });
      const packed = {
        files: documents.map(({ content }) => content),
        push: (targets: readonly PushTarget[], options: PushOptions) =>
          peer.push(
            targets.map(({ n: _, ...target }) => ({ ...target, data: Buffer.from('x') })),
            options,
          ),
        release: () => {},
      };
      return (await sendBatch(deps, documents, packed, dialect)).map(({ kind }) => kind);
    },
    pushed: () => peer.pushes.map((urls) => urls.map((url) => url.slice(-1)).join('')),
  };
}

describe('a batch', () => {
  it('that is answered has a result for each item; an item without an answer is refused', async () => {
    const { peer, send, pushed } = setting();
    peer.onPush = () => ({
      results: [{ ok: true }, { ok: false, message: 'no thanks' }, { ok: true }],
    });
    expect(await send('abcd')).toEqual(['accepted', 'refused', 'accepted', 'refused']);
    expect(await send('')).toEqual([]);
    expect(pushed()).toEqual(['abcd']);
  });

  it('that fails is split until the bad item is alone, with all halves sent before any smaller part', async () => {
    const { peer, send, pushed } = setting();
    peer.onPush = fails(failing, '/b');
    expect(await send('abcde')).toEqual(['accepted', 'failed', 'accepted', 'accepted', 'accepted']);
    expect(pushed()).toEqual(['abcde', 'abc', 'de', 'ab', 'c', 'a', 'b']);
  });

  it('that was prepared for another dialect than the peer speaks has to be prepared again', async () => {
    const { peer, send, pushed } = setting({ redetect: true });
    expect(await send('a', DIALECTS.yacy)).toEqual(['returned']);
    peer.onPush = () => Promise.reject(failing('PEER_ANSWER', 200));
    expect(await send('bc')).toEqual(['returned', 'returned']);
    expect(pushed()).toEqual(['bc']);
  });

  it('is returned, except for a file that changed during the request', async () => {
    const { peer, send } = setting();
    const url = 'http://127.0.0.1:1/api/push_p.html';
    const error = new PeerError('PEER_SOURCE', { url, what: 'changed', delivered: 'no', item: 1 });
    peer.onPush = () => Promise.reject(error);
    expect(await send('abc')).toEqual(['returned', 'stale', 'returned']);
  });
});

const peerError = (
  code: 'PEER_UNREACHABLE' | 'PEER_TIMEOUT' | 'PEER_ABORTED',
  delivered: 'no' | 'maybe',
) => new PeerError(code, { url: 'http://127.0.0.1:1/', what: 'failed', delivered });

it.each([
  ['that waited in the queue when it stopped was not accepted', queueStopped(), false, 'returned'],
  [
    'that the stopping queue aborted halfway may have been accepted',
    queueStopped(),
    true,
    'unanswered',
  ],
  [
    'that was not sent completely was not accepted',
    peerError('PEER_UNREACHABLE', 'no'),
    true,
    'returned',
  ],
  [
    'that was aborted before it was sent was not accepted',
    peerError('PEER_ABORTED', 'no'),
    true,
    'returned',
  ],
  [
    'that was not sent completely in time was not accepted',
    peerError('PEER_TIMEOUT', 'no'),
    true,
    'returned',
  ],
  [
    'without an answer in time may have been accepted',
    peerError('PEER_TIMEOUT', 'maybe'),
    true,
    'unanswered',
  ],
])('a push %s', (_, error, begun, kind) => {
  expect(pushFailure(error, begun)).toBe(kind);
});

it('an error in peersync is thrown, and not taken for an answer of the peer', () => {
  expect(() => pushFailure(new TypeError('oops'), true)).toThrow('oops');
});
