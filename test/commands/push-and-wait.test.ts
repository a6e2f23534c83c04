import { describe, expect, it } from 'vitest';
import { type PushPeer, pushFile, type ReadyFile, untilShown } from '../../src/commands/push.js';
import { PeerError, type PeerErrorCode } from '../../src/peer/errors.js';
import type { Peerdoc } from '../../src/peer/peerdoc.js';
import type { PushAnswer } from '../../src/peer/push.js';
import { FakeClock } from '../support/fake-clock.js';

const URL_ = 'https://x.org/a';
const signal = new AbortController().signal;

function file(size: number): ReadyFile {
  return {
    file: 'a',
    url: URL_,
    text: new Uint8Array(size),
    size,
    digest: 'd'.repeat(64),
    type: '',
    mtimeMs: 0,
  };
}

function failing(code: PeerErrorCode, retryAfterMs?: number): PeerError {
  return new PeerError(code, { url: URL_, what: 'is in trouble', delivered: 'no', retryAfterMs });
}

function doc(more: Partial<Peerdoc> = {}): Peerdoc {
  return { url: URL_, at: 0, fields: {}, ...more };
}

const never = () => Promise.reject(new Error('not expected'));

/** A peer that answers look-ups as told, the last answer again and again. */
function showing(...answers: (Peerdoc | undefined | PeerError)[]): PushPeer & { asked: number } {
  return {
    asked: 0,
    push: never,
    peerdoc() {
      const answer = answers[Math.min(this.asked, answers.length - 1)];
      this.asked += 1;
      return answer instanceof PeerError ? Promise.reject(answer) : Promise.resolve(answer);
    },
  };
}

describe('what is pushed by hand', () => {
  it('is pushed again as long as the peer asks to wait, and no longer than there is time', async () => {
    const clock = new FakeClock(0);
    let pushes = 0;
    const peer: PushPeer = {
      push: () => {
        pushes += 1;
        const answer: PushAnswer = { results: [{ ok: true }], peerTime: 7000 };
        return pushes < 3 ? Promise.reject(failing('PEER_BUSY', 5_000)) : Promise.resolve(answer);
      },
      peerdoc: never,
    };
    const how = { collection: 'c' };
    const pushed = pushFile(peer, file(3), how, { clock, deadline: 12_000, signal });
    await clock.advance(10_000);
    expect(await pushed).toMatchObject({ size: 3, collection: 'c', peerAt: 7000 });
    pushes = 0;
    const late = pushFile(peer, file(3), how, { clock, deadline: 14_000, signal });
    await expect(late).rejects.toMatchObject({ code: 'PEER_BUSY' });
    expect(pushes).toBe(1);
  });
});

describe('a document that was pushed by hand', () => {
  const sent = { size: 3, digest: 'd'.repeat(64), url: URL_, collection: 'c', at: 0 };
  const patience = { deadline: 60_000, maxInterval: 5_000, hold: 0 };

  it('is confirmed when the peer shows this version, and not by the one before', async () => {
    const clock = new FakeClock(0);
    const old = doc({ digest: 'e'.repeat(64) });
    const peer = showing(undefined, old, old, failing('PEER_BUSY'), doc({ digest: sent.digest }));
    const outcome = untilShown(peer, sent, patience, { clock, signal });
    await clock.advance(10_000);
    expect(await outcome).toEqual({
      status: 'confirmed',
      evidence: { kind: 'digest', shown: `sha256 ${sent.digest}` },
    });
    expect(peer.asked).toBe(5);
  });

  it('is unseen when the time is over, with what the peer shows in its place; look-ups grow rare', async () => {
    const clock = new FakeClock(0);
    const peer = showing(doc({ digest: 'e'.repeat(64) }));
    const outcome = untilShown(peer, sent, patience, { clock, signal });
    await clock.advance(60_000);
    expect(await outcome).toMatchObject({
      status: 'unseen',
      message: expect.stringContaining('other content'),
    });
    expect(peer.asked).toBeLessThan(25);
    expect(clock.elapsed()).toBe(60_000);
  });

  it('that the peer may take back is looked up once, when that time is over', async () => {
    const clock = new FakeClock(0);
    const peer = showing(doc({ digest: sent.digest }));
    const at = clock.now();
    const outcome = untilShown(peer, { ...sent, at }, { ...patience, hold: 2_600 }, { clock, signal });
    await clock.advance(2_500);
    expect(peer.asked).toBe(0);
    await clock.advance(200);
    expect(await outcome).toMatchObject({ status: 'confirmed' });
    expect(peer.asked).toBe(1);
  });

  it('is looked up no later because the clock was set back meanwhile', async () => {
    const clock = new FakeClock(0);
    const peer = showing(doc({ digest: sent.digest }));
    const at = clock.now();
    const outcome = untilShown(peer, { ...sent, at }, { ...patience, hold: 2_600 }, { clock, signal });
    await clock.advance(1_000);
    clock.set(-86_400_000);
    await clock.advance(1_700);
    expect(clock.waiting).toBe(0);
    expect(await outcome).toMatchObject({ status: 'confirmed' });
    expect(peer.asked).toBe(1);
  });

  it('that was missing then must be seen for as long as confirm.hold says', async () => {
    const clock = new FakeClock(0);
    const right = doc({ digest: sent.digest });
    const peer = showing(undefined, right, undefined, right);
    let outcome: unknown;
    const late = { ...patience, hold: 2_600 };
    void untilShown(peer, { ...sent, at: clock.now() }, late, { clock, signal }).then((seen) => {
      outcome = seen;
    });
    await clock.advance(5_500);
    expect(outcome).toBeUndefined();
    await clock.advance(5_000);
    expect(outcome).toMatchObject({ status: 'confirmed' });
  });

  it('ends with the trouble of the peer that lasts to the end, and at once with one that does not pass', async () => {
    const clock = new FakeClock(0);
    const away = untilShown(showing(failing('PEER_UNREACHABLE')), sent, patience, { clock, signal });
    const told = expect(away).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' });
    await clock.advance(60_000);
    await told;
    const start = { clock: new FakeClock(0), signal };
    const denied = untilShown(showing(failing('PEER_AUTH')), sent, patience, start);
    await expect(denied).rejects.toMatchObject({ code: 'PEER_AUTH' });
  });
});
