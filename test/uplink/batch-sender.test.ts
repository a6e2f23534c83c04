import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { Dialect } from '../../src/peer/dialect.js';
import { DIALECTS } from '../../src/peer/dialects.js';
import { PeerError } from '../../src/peer/errors.js';
import { queueStopped } from '../../src/queue/options.js';
import type { Entry } from '../../src/state/entry.js';
import { gone } from '../../src/state/entry.js';
import { type PreparedDocument, pushFailure, sendBatch } from '../../src/uplink/batch-sender.js';
import type { UplinkDeps } from '../../src/uplink/deps.js';
import { pendingRecord, sentOf } from '../state/records.js';
import { FakePeer, failing, QUICK, unreachable } from '../support/world.js';

/** A sender and a peer in memory, with documents that are ready, and a queue that is free. */
function setting() {
  const peer = new FakePeer();
  const entries = new Map<string, Entry>();
  const hooks = { inQueue: () => {}, misfits: false };
  const spoken: Dialect = DIALECTS.standard;
  const deps = {
    ...{ peer, clock: systemClock, log: silentLogger, settings: QUICK },
    dialect: { current: spoken, known: async () => true, misfits: async () => hooks.misfits },
    queue: {
      run: (_: string, work: (signal: AbortSignal) => Promise<unknown>) => {
        hooks.inQueue();
        return work(new AbortController().signal);
      },
    },
    state: { get: (_: string, path: string) => entries.get(path) },
  } as unknown as UplinkDeps;
  const documents = (paths: string): PreparedDocument[] =>
    [...paths].map((path) => {
      const item = pendingRecord(path);
      entries.set(path, item);
      const text = Buffer.from(path);
      const { sha256: digest } = item.version;
      const content = { kind: 'content' as const, text, size: 1, digest, type: '', words: undefined };
      return { item, content, sent: sentOf(item) };
    });
  return {
    ...{ peer, hooks, documents },
    remove: (path: string) => void entries.set(path, gone(pendingRecord(path), 0)),
    /** What became of each, by the first letters of the results. */
    send: async (paths: string, dialect = spoken) => {
      const results = await sendBatch(deps, documents(paths), dialect);
      return results.map(({ kind }) => kind);
    },
    pushed: () => peer.pushes.map((urls) => urls.map((url) => url.slice(-1)).join('')),
  };
}

describe('a batch', () => {
  it('that is answered has the answer for each item', async () => {
    const { peer, send, pushed } = setting();
    peer.onPush = (urls) => ({
      results: urls.map((url) => (url.endsWith('b') ? { ok: false, message: 'no thanks' } : { ok: true })),
    });
    expect(await send('abc')).toEqual(['accepted', 'refused', 'accepted']);
    expect(pushed()).toEqual(['abc']);
  });

  it('of which the peer answers for fewer items is refused for the others', async () => {
    const { peer, send } = setting();
    peer.onPush = () => ({ results: [{ ok: true }] });
    expect(await send('ab')).toEqual(['accepted', 'refused']);
  });

  it.each([
    ['never came to the peer', unreachable('no'), 'returned'],
    ['was never answered', unreachable('maybe'), 'unanswered'],
    ['came to a page that is not there', failing('PEER_REFUSED', 404), 'returned'],
  ])('that %s is sent once', async (_, error, kind) => {
    const { peer, send, pushed } = setting();
    peer.onPush = () => Promise.reject(error);
    expect(await send('ab')).toEqual([kind, kind]);
    expect(pushed()).toEqual(['ab']);
  });

  it('that is answered badly is split until the bad item stands alone, all of a size before any smaller', async () => {
    const { peer, send, pushed } = setting();
    peer.onPush = (urls) => (urls.some((url) => url.endsWith('b')) ? Promise.reject(failing()) : undefined);
    expect(await send('abcde')).toEqual(['accepted', 'failed', 'accepted', 'accepted', 'accepted']);
    expect(pushed()).toEqual(['abcde', 'abc', 'de', 'ab', 'c', 'a', 'b']);
  });

  it('that another kind of peer answered is to be made ready anew', async () => {
    const { peer, hooks, send, pushed } = setting();
    hooks.misfits = true;
    peer.onPush = () => Promise.reject(failing('PEER_ANSWER', 200));
    expect(await send('ab')).toEqual(['returned', 'returned']);
    expect(pushed()).toEqual(['ab']);
  });

  it('is not sent when the dialect became another, or one of its files went, while it waited in the queue', async () => {
    const { hooks, remove, send, pushed } = setting();
    expect(await send('a', DIALECTS.yacy)).toEqual(['returned']);
    hooks.inQueue = () => remove('b');
    expect(await send('ab')).toEqual(['returned', 'returned']);
    expect(pushed()).toEqual([]);
  });

  it('whose file changed under the body is returned, but for that file', async () => {
    const { peer, send } = setting();
    peer.onPush = () => {
      const url = 'http://127.0.0.1:1/api/push_p.html';
      return Promise.reject(new PeerError('PEER_SOURCE', { url, what: 'changed', delivered: 'no', item: 1 }));
    };
    expect(await send('abc')).toEqual(['returned', 'stale', 'returned']);
  });

  it('of nothing is not sent', async () => {
    const { send, pushed } = setting();
    expect(await send('')).toEqual([]);
    expect(pushed()).toEqual([]);
  });
});

const parts = { url: 'http://127.0.0.1:1/api/push_p.html', what: 'failed' };

describe('a push', () => {
  it('that waited in the queue when it stopped was not taken', () => {
    expect(pushFailure(queueStopped(), false)).toBe('returned');
  });

  it('that the stopping queue gave up halfway may have been taken', () => {
    expect(pushFailure(queueStopped(), true)).toBe('unanswered');
  });

  it.each(['PEER_UNREACHABLE', 'PEER_TIMEOUT', 'PEER_ABORTED'] as const)(
    'that ended with %s is in doubt once its body was sent whole',
    (code) => {
      expect(pushFailure(new PeerError(code, { ...parts, delivered: 'no' }), true)).toBe('returned');
      expect(pushFailure(new PeerError(code, { ...parts, delivered: 'maybe' }), true)).toBe('unanswered');
    },
  );

  it('that failed by a mistake of ours is no word of the peer', () => {
    expect(() => pushFailure(new TypeError('oops'), true)).toThrow('oops');
  });
});
