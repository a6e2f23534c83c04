import { describe, expect, it } from 'vitest';
import { PeerError } from '../../src/peer/errors.js';
import { queueStopped } from '../../src/queue/options.js';
import { pushFailure } from '../../src/uplink/trouble.js';

const parts = { url: 'http://127.0.0.1:1/api/push_p.html', what: 'failed' };

describe('a push', () => {
  it('that waited in the queue when it stopped was not taken', () => {
    expect(pushFailure(queueStopped(), false).kind).toBe('untaken');
  });

  it('that the stopping queue gave up halfway may have been taken', () => {
    expect(pushFailure(queueStopped(), true).kind).toBe('doubt');
  });

  it.each(['PEER_UNREACHABLE', 'PEER_TIMEOUT', 'PEER_ABORTED'] as const)(
    'that ended with %s is in doubt once its body was sent whole',
    (code) => {
      expect(pushFailure(new PeerError(code, { ...parts, delivered: 'no' }), true).kind).toBe('untaken');
      expect(pushFailure(new PeerError(code, { ...parts, delivered: 'maybe' }), true).kind).toBe('doubt');
    },
  );

  it('that failed by a mistake of ours is no word of the peer', () => {
    expect(() => pushFailure(new TypeError('oops'), true)).toThrow('oops');
  });
});
