import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import { removalLeft, removing } from '../../src/state/transitions.js';
import { FakeClock } from '../support/fake-clock.js';
import { failing, unreachable } from '../support/fake-peer.js';
import type { UplinkWorld, UplinkWorldOptions } from '../support/uplink-world.js';
import { deferred } from '../support/wait.js';
import { world } from '../support/world.js';

/** Marks the file as removed, and its document as to be removed. */
function removeBoth(w: UplinkWorld, path: string, unlink = true): void {
  if (unlink) unlinkSync(join(w.root, path));
  w.remove(path);
  const item = w.state.get('inbox', path);
  if (item?.status !== 'gone') throw new Error(`${path} is not gone`);
  w.state.put(removing(item, w.clock.now()));
}

const isRemoved = (w: UplinkWorld, path: string) =>
  w.until(() => w.statusOf(path) === 'removed', `${path} removed`);

async function withConfirmed(
  count: number,
  options: UplinkWorldOptions = {},
): Promise<UplinkWorld> {
  const w = await world(options);
  w.writeMany(count);
  await w.allConfirmed(count);
  return w;
}

describe('a document whose file was removed', () => {
  it('is removed from the peer, with many others in one request, and looked up until it is not shown', async () => {
    const w = await withConfirmed(30);
    const lookups = w.peer.lookUps;
    for (let i = 0; i < 20; i += 1) removeBoth(w, `f${i}`);
    await w.until(() => w.state.counts().removed === 20, '20 removed');
    expect(w.peer.removals.flat()).toHaveLength(20);
    expect(w.peer.removals.length).toBeLessThan(5);
    expect(w.peer.lookUps - lookups).toBe(20);
    expect([...w.peer.documents.keys()].sort()).toEqual(
      Array.from({ length: 10 }, (_, i) => w.url(`f${20 + i}`)).sort(),
    );
    await w.until(() => w.uplink.isIdle, 'it is idle');
  });

  it('is marked as requested on disk before the request is sent', async () => {
    const w = await withConfirmed(1);
    let unsaved: number | undefined;
    w.peer.onRemove = () => {
      const item = w.state.get('inbox', 'f0');
      if (item?.status === 'removing' && item.requestedAt !== undefined)
        unsaved = w.state.figures().unsaved;
      return true;
    };
    removeBoth(w, 'f0');
    await isRemoved(w, 'f0');
    expect(unsaved).toBe(0);
  });

  it.each([
    ['the peer is away', () => unreachable('no')],
    ['the peer fails', () => failing()],
    ['nobody answers', () => unreachable('maybe')],
  ])('is requested again if %s, and is not removed before', async (_, error) => {
    const w = await withConfirmed(1);
    let failures = 3;
    w.peer.onRemove = () => {
      expect(w.statusOf('f0')).toBe('removing');
      failures -= 1;
      if (failures >= 0) throw error();
      return true;
    };
    removeBoth(w, 'f0');
    await isRemoved(w, 'f0');
    expect(w.peer.removals).toHaveLength(4);
  });

  it('counts as failing after five attempts, but not while its folder is missing', async () => {
    const w = await withConfirmed(1, { clock: new FakeClock() });
    w.peer.onRemove = () => {
      throw failing();
    };
    removeBoth(w, 'f0');
    const documents = () => w.uplink.status().removalsFailing?.documents;
    await w.until(() => documents() === 1, 'it failed again and again');
    w.folderState = () => 'missing';
    expect(documents()).toBeUndefined();
    w.folderState = () => 'there';
    w.peer.onRemove = () => true;
    await isRemoved(w, 'f0');
    expect(documents()).toBeUndefined();
  });

  it('is requested alone after a request with others failed', async () => {
    const w = await withConfirmed(6);
    w.peer.onRemove = (urls) => {
      if (urls.length > 1 && urls.includes(w.url('f3'))) throw failing('PEER_REFUSED', 400);
      return true;
    };
    for (let i = 0; i < 6; i += 1) removeBoth(w, `f${i}`);
    await w.until(() => w.state.counts().removed === 6, 'all removed');
  });

  it('counts as removed only after a valid answer', async () => {
    const w = await withConfirmed(1);
    let failures = 5;
    w.peer.onLookUp = () => {
      failures -= 1;
      if (failures >= 0) throw failing('PEER_ANSWER', 200);
    };
    removeBoth(w, 'f0');
    await isRemoved(w, 'f0');
    expect(failures).toBeLessThan(0);
    expect(w.peer.removals).toHaveLength(1);
  });

  it('is requested again if the peer still shows it', async () => {
    const w = await withConfirmed(1, { clock: new FakeClock() });
    const failures: unknown[] = [];
    w.peer.onRemove = () => {
      const item = w.state.get('inbox', 'f0');
      return failures.push(item?.status === 'removing' ? item.failure?.code : item?.status) > 1;
    };
    removeBoth(w, 'f0');
    await isRemoved(w, 'f0');
    expect(failures).toEqual([undefined, 'NOT_REMOVED']);
  });

  it('is looked up first if an earlier run requested its removal', async () => {
    const w = await withConfirmed(2);
    for (const path of ['f0', 'f1']) {
      unlinkSync(join(w.root, path));
      w.remove(path);
      const item = w.state.get('inbox', path);
      if (item?.status === 'gone')
        w.state.put(removalLeft(removing(item, w.clock.now()), w.clock.now()));
    }
    w.peer.documents.delete(w.url('f0'));
    await isRemoved(w, 'f1');
    await isRemoved(w, 'f0');
    expect(w.peer.removals).toEqual([[w.url('f1')]]);
  });
});

describe('a removal waits', () => {
  it('until the same file is found under its new name', async () => {
    const w = await withConfirmed(1, { confirm: { timeout: 100_000 } });
    w.peer.visibleAfterMs = 100_000;
    w.write('renamed', 'content 0');
    removeBoth(w, 'f0');
    await w.until(() => w.statusOf('renamed') === 'accepted', 'the new one is accepted');
    await w.until(() => w.peer.lookUps > 8, 'it is looked up in vain');
    expect(w.peer.removals).toEqual([]);
    w.peer.visibleAfterMs = 0;
    await isRemoved(w, 'f0');
    expect(w.statusOf('renamed')).toBe('confirmed');
  });

  it('while its file is there again, and has the file looked at', async () => {
    const w = await withConfirmed(1, { clock: new FakeClock() });
    removeBoth(w, 'f0', false);
    await w.until(() => w.rechecked.includes('f0'), 'it is looked at');
    const since = w.clock.now();
    await w.until(() => w.clock.now() > since + 120_000, 'it was not at rest for two minutes');
    expect(w.peer.removals).toEqual([]);
    w.record('f0', 'content 0');
    await w.confirmed('f0');
    expect(w.peer.removals).toEqual([]);
  });

  it('while its folder is missing', async () => {
    const w = await withConfirmed(1);
    w.folderState = () => 'missing';
    w.uplink.foldersChanged();
    removeBoth(w, 'f0');
    await w.until(() => w.uplink.isIdle, 'nothing is to be done');
    expect(w.peer.removals).toEqual([]);
    w.folderState = () => 'there';
    w.uplink.foldersChanged();
    await isRemoved(w, 'f0');
  });

  it('until another file with its URL is pushed, and then ends without a request', async () => {
    const w = await withConfirmed(1);
    const other = w.write('renamed/f0', 'other text', 'utf-8', w.url('f0'));
    w.state.remove('inbox', 'renamed/f0');
    w.state.put({ ...other, folder: 'renamed', path: 'f0' });
    removeBoth(w, 'f0');
    await isRemoved(w, 'f0');
    expect(w.peer.removals).toEqual([]);
  });
});

it('a file that comes back during the removal request is pushed after its answer', async () => {
  const w = await withConfirmed(1, { clock: new FakeClock() });
  const answer = deferred<boolean>();
  w.peer.onRemove = () => answer.promise;
  removeBoth(w, 'f0');
  await w.until(() => w.peer.removals.length === 1, 'it is asked for');
  const pushes = w.peer.pushes.length;
  w.write('f0', 'content 0');
  w.write('other', 'other');
  await w.until(() => w.peer.pushes.flat().includes(w.url('other')), 'the other one is pushed');
  expect(w.peer.pushes.slice(pushes).flat()).toEqual([w.url('other')]);
  answer.resolve(true);
  await w.confirmed('f0');
});

it('with a hold, a removal is requested a hold after the last push, and confirmed a hold after the request', async () => {
  const w = await withConfirmed(1, {
    confirm: { hold: 20_000 },
    clock: new FakeClock(),
    tickMs: 1_000,
    dialect: { current: DIALECTS.yacy },
  });
  const times: number[] = [];
  w.peer.onRemove = () => times.push(w.clock.now()) > 0;
  w.write('f0', 'changed');
  await w.until(() => w.statusOf('f0') === 'accepted', 'accepted');
  const accepted = w.clock.now();
  removeBoth(w, 'f0');
  await isRemoved(w, 'f0');
  expect((times[0] ?? 0) - accepted).toBeGreaterThan(19_000);
  expect(w.clock.now() - (times[0] ?? 0)).toBeGreaterThanOrEqual(20_000);
});

it('with a hold, a document that is still shown after it counts as removed only if it stays away for another hold', async () => {
  const HOLD_MS = 20_000;
  const w = await withConfirmed(1, {
    confirm: { hold: HOLD_MS },
    clock: new FakeClock(),
    tickMs: 1_000,
  });
  const times: number[] = [];
  w.peer.onRemove = () => times.push(w.clock.now()) < 0;
  const looked: number[] = [];
  removeBoth(w, 'f0');
  w.peer.onLookUp = (url) => {
    if (looked.push(w.clock.now()) > 1) w.peer.documents.delete(url);
  };
  await isRemoved(w, 'f0');
  const [requestedAt = 0] = times;
  const [first = 0, second = 0, third = 0] = looked;
  expect(first - requestedAt).toBeGreaterThanOrEqual(HOLD_MS);
  expect(third - second).toBeGreaterThanOrEqual(HOLD_MS);
  expect([times.length, looked.length]).toEqual([1, 3]);
});

it('with a hold, a removal that an earlier run requested is looked up a hold after its request', async () => {
  const HOLD_MS = 20_000;
  const w = await withConfirmed(1, {
    confirm: { hold: HOLD_MS },
    clock: new FakeClock(),
    tickMs: 1_000,
  });
  unlinkSync(join(w.root, 'f0'));
  w.remove('f0');
  w.peer.documents.clear();
  const item = w.state.get('inbox', 'f0');
  if (item?.status !== 'gone') throw new Error('f0 is not gone');
  const requestedAt = w.clock.now();
  w.state.put(removalLeft(removing(item, requestedAt), requestedAt));
  await isRemoved(w, 'f0');
  expect(w.clock.now() - requestedAt).toBeGreaterThanOrEqual(HOLD_MS);
  expect(w.peer.removals).toEqual([]);
});

it('a removal is not requested while the last push of the document can still arrive from another machine', async () => {
  const w = await withConfirmed(1, {
    clock: new FakeClock(),
    tickMs: 1_000,
    sharing: {
      slots: 0,
      read: async () => undefined,
      latestArrival: (sentAt) => sentAt + 10_000,
    },
  });
  unlinkSync(join(w.root, 'f0'));
  w.remove('f0');
  const item = w.state.get('inbox', 'f0');
  if (item?.status !== 'gone' || item.sent === undefined) throw new Error('f0 was not pushed');
  const times: number[] = [];
  w.peer.onRemove = () => times.push(w.clock.now()) > 0;
  const at = w.clock.now();
  w.state.put(removing({ ...item, sent: { ...item.sent, at, isUncertain: true } }, at));
  await isRemoved(w, 'f0');
  expect((times[0] ?? 0) - at).toBeGreaterThanOrEqual(12_000);
});

it('a document is requested to be removed again if an older push arrived late, during the request', async () => {
  const w = await withConfirmed(1, { clock: new FakeClock() });
  const answer = deferred<boolean>();
  w.peer.onRemove = () => (w.peer.removals.length === 1 ? answer.promise : true);
  removeBoth(w, 'f0');
  await w.until(() => w.peer.removals.length === 1, 'it is asked for');
  await w.uplink.repairLate([
    { folder: 'inbox', path: 'f0', version: { sha256: 'x', url: w.url('f0') } },
  ]);
  answer.resolve(true);
  await isRemoved(w, 'f0');
  expect(w.peer.removals).toHaveLength(2);
});
