import { describe, expect, it } from 'vitest';
import type { Failure, PendingItem } from '../../src/state/entry.js';
import { Blame } from '../../src/uplink/blame.js';
import type { UplinkDeps } from '../../src/uplink/deps.js';
import { pendingRecord } from '../state/records.js';
import { failing } from '../support/fake-peer.js';

const FAILED: Failure = { code: 'PEER_FAILED', message: 'The peer failed (500).', hint: 'Wait.' };
const item = pendingRecord('bad.txt');
const again: PendingItem = { ...item, attempts: 1 };
const other = pendingRecord('good.txt');

/** A Blame whose peer records the sizes of its pushes, and refuses them all if it fails. */
function setUp({ pending = 2 } = {}) {
  const peer = { fails: false, pushes: [] as number[] };
  const deps = {
    state: { counts: () => ({ pending }) },
    queue: {
      run: (_: string, request: (signal: AbortSignal) => unknown) =>
        request(new AbortController().signal),
    },
    peer: {
      push: async (items: readonly unknown[]) => {
        peer.pushes.push(items.length);
        if (peer.fails) throw failing();
        return { results: [] };
      },
    },
  };
  return { peer, blame: new Blame(deps as unknown as UplinkDeps) };
}

describe('an item is blamed', () => {
  it('from its first unanswered push until it is accepted or cleared', () => {
    const { blame } = setUp();
    expect(blame.isBlamed(item)).toBe(false);
    blame.unanswered(item);
    expect([blame.isBlamed(item), blame.isBlamed(other)]).toEqual([true, false]);
    blame.succeeded([other]);
    expect(blame.isBlamed(item)).toBe(true);
    blame.succeeded([item]);
    expect(blame.isBlamed(item)).toBe(false);
    blame.unanswered(item);
    blame.clear(item);
    expect(blame.isBlamed(item)).toBe(false);
  });

  it('when its push failed while it was alone, whatever the verdict is', async () => {
    const { blame } = setUp();
    expect(await blame.failedAlone(item, FAILED, 0)).toBe('postponed');
    expect(blame.isBlamed(item)).toBe(true);
  });
});

describe('the failure of an item that was pushed alone', () => {
  it('is the fault of the item if another push succeeded since the first push of the item began', async () => {
    const { blame, peer } = setUp();
    const before = blame.successes;
    blame.succeeded([other]);
    expect(await blame.failedAlone(item, FAILED, before)).toBe('atFault');
    expect(peer.pushes).toEqual([]);
  });

  it('is postponed if no other push succeeded since its last failure', async () => {
    const { blame, peer } = setUp();
    blame.succeeded([other]);
    await blame.failedAlone(item, FAILED, 0);
    expect(await blame.failedAlone(item, FAILED, 0)).toBe('postponed');
    blame.succeeded([other]);
    expect(await blame.failedAlone(item, FAILED, 0)).toBe('atFault');
    expect(peer.pushes).toEqual([]);
  });

  it('does not count after an unanswered push, because in an outage no push is answered', async () => {
    const { blame } = setUp();
    blame.unanswered(item);
    blame.succeeded([other]);
    expect(await blame.failedAlone(item, FAILED, 0)).toBe('postponed');
    blame.succeeded([other]);
    blame.unanswered(item);
    expect(await blame.failedAlone(item, FAILED, 0)).toBe('atFault');
  });

  it('because it is too large is final, without a probe', async () => {
    const { blame, peer } = setUp({ pending: 1 });
    const tooLarge = { ...FAILED, code: 'PEER_TOO_LARGE' };
    expect(await blame.failedAlone(item, tooLarge, 0)).toBe('tooLarge');
    expect(peer.pushes).toEqual([]);
  });

  it.each([
    ['the only pending item', item, 1],
    ['an item that spent an attempt before', again, 2],
  ])('of %s is judged by one empty push', async (_, which, pending) => {
    const accepting = setUp({ pending });
    expect(await accepting.blame.failedAlone(which, FAILED, 0)).toBe('atFault');
    expect(accepting.peer.pushes).toEqual([0]);
    const broken = setUp({ pending });
    broken.peer.fails = true;
    expect(await broken.blame.failedAlone(which, FAILED, 0)).toBe('postponed');
    expect(broken.peer.pushes).toEqual([0]);
  });
});
