import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { DIALECTS } from '../../src/peer/client.js';
import { PeerError } from '../../src/peer/errors.js';
import type { AcceptedItem } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { gone, leaving, read } from '../../src/state/transitions.js';
import { BatchSender } from '../../src/uplink/batch-sender.js';
import { FailureAttribution } from '../../src/uplink/failure-attribution.js';
import { inlinePacker } from '../../src/uplink/packer.js';
import type { UplinkParts } from '../../src/uplink/parts.js';
import type { Spoken } from '../../src/uplink/peer-dialect.js';
import { type PreparedDocument, STALE_PAUSE_MS } from '../../src/uplink/prepare.js';
import { temporaryDirectory } from '../support/temp.js';
import { FakePeer, failing, QUICK, unreachable } from '../support/world.js';

/** A sender between a state and a peer in memory, with documents that are ready: no loops, no folder, a queue that is free. */
class Way {
  readonly peer = new FakePeer();
  readonly spoken: Spoken = DIALECTS.standard;
  readonly looked: string[] = [];
  readonly accepted: AcceptedItem[] = [];
  /** Called when a request is about to leave. */
  inQueue: () => void = () => {};
  misfits = false;
  readonly #state: State;
  readonly #failures: FailureAttribution;
  readonly #sender: BatchSender;

  constructor(state: State) {
    this.#state = state;
    const dialect = { current: this.spoken, known: async () => true, misfits: async () => this.misfits };
    const parts: UplinkParts = {
      ...{ state, peer: this.peer, clock: systemClock, log: silentLogger, settings: QUICK },
      ...{ packer: inlinePacker, dialect, commit: () => state.commit() },
      queue: {
        run: (_, work) => {
          this.inQueue();
          return work(new AbortController().signal);
        },
        ready: async () => {},
        hasRoom: () => true,
        isBusy: () => false,
        answeringForMs: 0,
      },
      pathOf: () => expect.fail('nothing is read'),
      standing: () => expect.fail('nothing is read'),
      look: ({ path }) => void this.looked.push(path),
    };
    this.#failures = new FailureAttribution(parts);
    this.#sender = new BatchSender(parts, this.#failures, (items) => void this.accepted.push(...items));
  }

  /** A file that was read and packed, and is marked as leaving. */
  document(path: string): PreparedDocument {
    const at = systemClock.now();
    const version = {
      ...{ size: path.length, mtimeMs: at, ctimeMs: at, ino: 1 },
      ...{ sha256: `of ${path}`, encoding: 'utf-8' as const },
    };
    const to = { folder: 'inbox', path, url: `https://x.example/${path}`, collection: 'c' };
    const item = read(undefined, to, version, at);
    if (item.status !== 'pending') throw new Error(item.status);
    const { url, collection } = to;
    const sent = { sha256: version.sha256, size: version.size, digest: version.sha256, url, collection, at };
    this.#state.put(leaving(item, sent));
    const text = Buffer.from(path);
    return {
      item,
      content: {
        kind: 'content',
        text,
        size: text.length,
        digest: version.sha256,
        type: '',
        words: undefined,
      },
      sent,
    };
  }

  send(documents: readonly PreparedDocument[], spoken = this.spoken): Promise<void> {
    return this.#sender.send(documents, spoken, this.#failures.successes);
  }

  of(path: string) {
    return this.#state.get('inbox', path);
  }

  remove(path: string): void {
    const item = this.of(path);
    if (item?.status !== 'pending') throw new Error(`${path} is ${item?.status}`);
    this.#state.put(gone(item, systemClock.now()));
  }

  get pushed(): string[] {
    return this.peer.pushes.map((urls) => urls.map((url) => url.slice(-1)).join(''));
  }
}

const states: State[] = [];
async function way(): Promise<Way> {
  const state = await State.open(temporaryDirectory(), { clock: systemClock, log: silentLogger });
  states.push(state);
  return new Way(state);
}
afterEach(async () => {
  for (const state of states.splice(0)) await state.close();
});

describe('a batch', () => {
  it('that is answered is accepted item by item; who is refused has an attempt spent', async () => {
    const w = await way();
    w.peer.onPush = (urls) => ({
      results: urls.map((url) => (url.endsWith('b') ? { ok: false, message: 'no thanks' } : { ok: true })),
    });
    await w.send(['a', 'b', 'c'].map((path) => w.document(path)));
    expect(w.pushed).toEqual(['abc']);
    expect(w.accepted.map(({ path }) => path)).toEqual(['a', 'c']);
    expect(w.of('a')).toEqual(w.accepted[0]);
    expect(w.of('b')).toMatchObject({ status: 'pending', attempts: 1, trouble: { code: 'REFUSED' } });
  });

  it('that never came to the peer is pending as before, with the reason', async () => {
    const w = await way();
    w.peer.onPush = () => Promise.reject(unreachable('no'));
    await w.send(['a', 'b'].map((path) => w.document(path)));
    for (const path of ['a', 'b']) {
      expect(w.of(path)).toMatchObject({
        status: 'pending',
        attempts: 0,
        trouble: { code: 'PEER_UNREACHABLE' },
      });
      expect(w.of(path)).not.toHaveProperty('doubt');
    }
    expect([w.pushed, w.accepted]).toEqual([['ab'], []]);
  });

  it('that was never answered stays in doubt', async () => {
    const w = await way();
    w.peer.onPush = () => Promise.reject(unreachable('maybe'));
    const document = w.document('a');
    await w.send([document]);
    expect(w.of('a')).toMatchObject({ status: 'pending', attempts: 0, doubt: document.sent });
  });

  it('that is answered badly is split until the bad item stands alone, all of a size before any smaller', async () => {
    const w = await way();
    w.peer.onPush = (urls) => (urls.some((url) => url.endsWith('b')) ? Promise.reject(failing()) : undefined);
    await w.send(['a', 'b', 'c', 'd', 'e'].map((path) => w.document(path)));
    expect(w.pushed).toEqual(['abcde', 'abc', 'de', 'ab', 'c', 'a', 'b']);
    expect(w.accepted.map(({ path }) => path).toSorted()).toEqual(['a', 'c', 'd', 'e']);
    expect(w.of('b')).toMatchObject({ status: 'pending', attempts: 1 });
  });

  it('that another kind of peer answered is to be made ready anew', async () => {
    const w = await way();
    w.misfits = true;
    w.peer.onPush = () => Promise.reject(failing('PEER_ANSWER', 200));
    await w.send(['a', 'b'].map((path) => w.document(path)));
    expect(w.pushed).toEqual(['ab']);
    for (const path of ['a', 'b']) {
      expect(w.of(path)).toMatchObject({ status: 'pending', attempts: 0 });
      expect(w.of(path)).not.toHaveProperty('doubt');
    }
  });

  it('is not sent when the dialect became another while it waited in the queue', async () => {
    const w = await way();
    await w.send([w.document('a')], DIALECTS.yacy);
    expect(w.pushed).toEqual([]);
    expect(w.of('a')).toMatchObject({ status: 'pending' });
    expect(w.of('a')).not.toHaveProperty('doubt');
  });

  it('is not sent when one of its files went while it waited in the queue: the others are due again', async () => {
    const w = await way();
    w.inQueue = () => w.remove('b');
    await w.send(['a', 'b'].map((path) => w.document(path)));
    expect(w.pushed).toEqual([]);
    expect(w.of('a')).not.toHaveProperty('doubt');
    expect(w.of('b')?.status).toBe('gone');
  });

  it('whose file changed under the body is due again, but for that file, which is left alone and looked at', async () => {
    const w = await way();
    w.peer.onPush = () => {
      const url = 'http://127.0.0.1:1/api/push_p.html';
      return Promise.reject(new PeerError('PEER_SOURCE', { url, what: 'changed', delivered: 'no', item: 1 }));
    };
    const began = systemClock.now();
    await w.send(['a', 'b'].map((path) => w.document(path)));
    expect(w.looked).toEqual(['b']);
    const [a, b] = [w.of('a'), w.of('b')];
    if (a?.status !== 'pending' || b?.status !== 'pending') throw new Error('they are not pending');
    expect(b.notBefore).toBeGreaterThanOrEqual(began + STALE_PAUSE_MS);
    expect(a.notBefore).toBeLessThan(began + STALE_PAUSE_MS);
  });

  it('whose file went while it travelled is remembered as what the peer has', async () => {
    const w = await way();
    w.peer.onPush = () => {
      w.remove('a');
      return undefined;
    };
    await w.send(['a', 'b'].map((path) => w.document(path)));
    expect(w.of('a')).toMatchObject({ status: 'gone', sent: { sha256: 'of a' } });
    expect(w.accepted.map(({ path }) => path)).toEqual(['b']);
  });

  it('of nothing is not sent', async () => {
    const w = await way();
    await w.send([]);
    expect(w.pushed).toEqual([]);
  });
});
