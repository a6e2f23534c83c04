import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LOST_NOTE } from '../../src/state/history.js';
import { gone, leaving, removing, retried, skipped } from '../../src/state/transitions.js';
import { sentOf } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { takes, unreachable } from '../support/fake-peer.js';
import type { UplinkWorld, UplinkWorldOptions } from '../support/uplink-world.js';
import { world } from '../support/world.js';

const OLD = 'the old version';
const NEW = 'the new version';
/** Confirmations that do not come count only after so long, in ms. */
const TIMEOUT_MS = 600_000;
const MINUTE_MS = 60_000;

async function openWorld(options: UplinkWorldOptions = {}): Promise<UplinkWorld> {
  const confirm = { timeout: TIMEOUT_MS, maxInterval: 5_000 };
  return await world({ clock: new FakeClock(), confirm, tickMs: 1_000, ...options });
}

const shownText = (w: UplinkWorld) => w.peer.documents.get(w.url('a.txt'))?.text;

/** Pushes the old version of a file. No answer comes, and the peer does not have it yet. */
async function pushUnanswered(w: UplinkWorld): Promise<void> {
  let wasPushed = false;
  w.peer.onPush = () => {
    wasPushed = true;
    w.peer.onPush = takes;
    throw unreachable('maybe', 'ECONNRESET');
  };
  w.write('a.txt', OLD);
  await w.until(() => wasPushed, 'the old version was pushed');
}

/** The old version arrives at the peer, from a buffer on the way. */
const arriveLate = (w: UplinkWorld) => w.peer.show(w.url('a.txt'), OLD);

const isSoWithin = async (w: UplinkWorld, ms: number, condition: () => boolean) => {
  w.tickMs = ms > 5 * MINUTE_MS ? 10_000 : 1_000;
  const end = w.clock.now() + ms;
  await w.until(() => condition() || w.clock.now() > end, 'it is so, or the time is over');
  return condition();
};

/** Expects that the document is removed, and removed again after its push arrived. */
async function expectRemovedAgain(w: UplinkWorld, status: 'removed' | 'skipped'): Promise<void> {
  await w.until(() => w.statusOf('a.txt') === status, 'it is removed');
  arriveLate(w);
  const isRemoved = () => shownText(w) === undefined && w.statusOf('a.txt') === status;
  expect(await isSoWithin(w, MINUTE_MS, isRemoved)).toBe(true);
}

describe('a push that was never answered', () => {
  it('leaves no old version, if it arrives after a newer one was confirmed', async () => {
    const w = await openWorld();
    await pushUnanswered(w);
    w.write('a.txt', NEW);
    await w.confirmed('a.txt');
    arriveLate(w);
    expect(await isSoWithin(w, MINUTE_MS, () => shownText(w) === NEW)).toBe(true);
    await w.confirmed('a.txt');
    const entry = w.state.get('inbox', 'a.txt');
    expect(entry?.history.some(({ note }) => note?.startsWith(LOST_NOTE))).toBe(true);
  });

  it('leaves no old version, if it arrives minutes later', async () => {
    const w = await openWorld();
    await pushUnanswered(w);
    w.write('a.txt', NEW);
    await w.confirmed('a.txt');
    expect(await isSoWithin(w, 15 * MINUTE_MS, () => w.statusOf('a.txt') !== 'confirmed')).toBe(
      false,
    );
    arriveLate(w);
    expect(await isSoWithin(w, 5 * MINUTE_MS, () => shownText(w) === NEW)).toBe(true);
  });

  it('leaves no old version, if it was pushed again with success before the file changed', async () => {
    const w = await openWorld();
    await pushUnanswered(w);
    await w.confirmed('a.txt');
    w.write('a.txt', NEW);
    await w.confirmed('a.txt');
    arriveLate(w);
    expect(await isSoWithin(w, MINUTE_MS, () => shownText(w) === NEW)).toBe(true);
  });

  it('leaves no old version, if the peer shows nothing by which versions differ', async () => {
    const w = await openWorld();
    const { peer } = w;
    const whole = peer.peerdoc.bind(peer);
    peer.peerdoc = async (query) => {
      const doc = await whole(query);
      return doc && { ...doc, digest: undefined, size: undefined };
    };
    await pushUnanswered(w);
    w.write('a.txt', NEW);
    arriveLate(w);
    await w.confirmed('a.txt');
    arriveLate(w);
    await w.confirmed('a.txt');
    expect(await isSoWithin(w, MINUTE_MS, () => shownText(w) === NEW)).toBe(true);
  });

  it('is repaired at once, if a worker tells that it was completed', async () => {
    const w = await openWorld();
    w.write('a.txt', NEW);
    await w.confirmed('a.txt');
    arriveLate(w);
    const version = { sha256: 'that of the old version', url: w.url('a.txt') };
    await w.uplink.repairLate([{ folder: 'inbox', path: 'a.txt', version }]);
    expect(await isSoWithin(w, 5_000, () => shownText(w) === NEW)).toBe(true);
    arriveLate(w);
    expect(await isSoWithin(w, MINUTE_MS, () => shownText(w) === NEW)).toBe(true);
  });

  it('leaves no old version until the timeout, if it arrives before the newer one is confirmed', async () => {
    const w = await openWorld();
    await pushUnanswered(w);
    w.peer.onPush = () => {
      w.peer.onPush = takes;
      arriveLate(w);
      return { results: [{ ok: true }] };
    };
    w.write('a.txt', NEW);
    await w.until(() => w.statusOf('a.txt') === 'accepted', 'the newer one is accepted');
    expect(await isSoWithin(w, MINUTE_MS, () => w.statusOf('a.txt') === 'confirmed')).toBe(true);
    expect(shownText(w)).toBe(NEW);
    expect(w.state.get('inbox', 'a.txt')).toMatchObject({ attempts: 0 });
  });

  it('is looked after from its last push on, if the same version was pushed without an answer again', async () => {
    const w = await openWorld();
    await pushUnanswered(w);
    await w.confirmed('a.txt');
    await isSoWithin(w, 16 * MINUTE_MS, () => false);
    let wasPushed = false;
    w.peer.onPush = () => {
      wasPushed = true;
      w.peer.onPush = takes;
      throw unreachable('maybe', 'ECONNRESET');
    };
    const entry = w.state.get('inbox', 'a.txt');
    if (entry?.status !== 'confirmed') throw new Error('a.txt is not confirmed');
    w.peer.documents.delete(w.url('a.txt'));
    w.state.put(retried(entry, w.clock.now()));
    await w.until(() => wasPushed, 'it was pushed again');
    await w.confirmed('a.txt');
    w.write('a.txt', NEW);
    await w.confirmed('a.txt');
    await isSoWithin(w, 5 * MINUTE_MS, () => false);
    arriveLate(w);
    expect(await isSoWithin(w, 15 * MINUTE_MS, () => shownText(w) === NEW)).toBe(true);
  });

  it('has a newer version pushed again three times at most before the timeout', async () => {
    const w = await openWorld();
    await pushUnanswered(w);
    w.peer.onPush = () => {
      arriveLate(w);
      return { results: [{ ok: true }] };
    };
    const before = w.peer.pushes.length;
    w.write('a.txt', NEW);
    await isSoWithin(w, TIMEOUT_MS - 2 * MINUTE_MS, () => false);
    expect(w.peer.pushes.length - before).toBe(4);
    expect(w.statusOf('a.txt')).toBe('accepted');
  });

  it('leaves no document of a file that was removed', async () => {
    const w = await openWorld();
    await pushUnanswered(w);
    unlinkSync(join(w.root, 'a.txt'));
    w.remove('a.txt');
    const item = w.state.get('inbox', 'a.txt');
    if (item?.status !== 'gone') throw new Error('a.txt is not gone');
    w.state.put(removing(item, w.clock.now()));
    await expectRemovedAgain(w, 'removed');
  });

  it('leaves no document of a file that a rule keeps out', async () => {
    const w = await openWorld();
    await pushUnanswered(w);
    const item = w.state.get('inbox', 'a.txt');
    if (item === undefined) throw new Error('a.txt is not known');
    const now = w.clock.now();
    const kept = skipped(item, item, item.version, { code: 'IGNORED', message: '', hint: '' }, now);
    if (kept.sent === undefined) throw new Error('a.txt was not pushed');
    w.state.put(removing({ ...kept, sent: kept.sent }, now));
    await expectRemovedAgain(w, 'skipped');
    // The worker that had it tells only which version it was.
    const { sha256, url } = kept.sent;
    await w.uplink.repairLate([{ folder: 'inbox', path: 'a.txt', version: { sha256, url } }]);
    await expectRemovedAgain(w, 'skipped');
  });

  it('leaves no old version, if an earlier run pushed it', async () => {
    const w = await openWorld({
      fill: (opened) => {
        opened.write('a.txt', OLD);
        const item = opened.pending('a.txt');
        opened.state.put(leaving(item, sentOf(item)));
        opened.write('a.txt', NEW);
      },
    });
    await w.confirmed('a.txt');
    arriveLate(w);
    expect(await isSoWithin(w, MINUTE_MS, () => shownText(w) === NEW)).toBe(true);
  });

  it('leaves no document, if an earlier run pushed it and its file is gone', async () => {
    const w = await openWorld({
      fill: (opened) => {
        opened.write('a.txt', OLD);
        const item = opened.pending('a.txt');
        const left = leaving(item, sentOf(item));
        unlinkSync(join(opened.root, 'a.txt'));
        opened.state.put(removing(gone(left, opened.clock.now()), opened.clock.now()));
      },
    });
    await expectRemovedAgain(w, 'removed');
  });

  it('costs no look-up more if its version is still the present one', async () => {
    const w = await openWorld();
    await pushUnanswered(w);
    await w.confirmed('a.txt');
    const before = w.peer.lookUps;
    await isSoWithin(w, 20 * MINUTE_MS, () => false);
    expect(w.peer.lookUps).toBe(before);
  });

  it('is looked after again when the peer was away at that time', async () => {
    const w = await openWorld();
    await pushUnanswered(w);
    w.write('a.txt', NEW);
    await w.confirmed('a.txt');
    arriveLate(w);
    w.peer.onLookUp = () => {
      throw unreachable('no');
    };
    expect(await isSoWithin(w, 2 * MINUTE_MS, () => shownText(w) === NEW)).toBe(false);
    w.peer.onLookUp = () => {};
    expect(await isSoWithin(w, MINUTE_MS, () => shownText(w) === NEW)).toBe(true);
  });
});
