import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { PeerError } from '../../src/peer/errors.js';
import type { Peerdoc } from '../../src/peer/peerdoc.js';
import type { ConfirmedItem } from '../../src/state/entry.js';
import { Audit, type VerifyDeps, verify } from '../../src/uplink/verify.js';
import { until } from '../support/wait.js';
import { QUICK, unreachable, World } from '../support/world.js';

const worlds: World[] = [];
async function world(files: number): Promise<World> {
  const w = new World();
  worlds.push(w);
  await w.start();
  for (let i = 0; i < files; i += 1) w.write(`f${i}`, `content ${i}`);
  await until(() => w.state.counts().confirmed === files, 'all confirmed');
  return w;
}
afterEach(async () => {
  for (const w of worlds.splice(0)) await w.stop();
});

function unusableAnswer(url: string): PeerError {
  return new PeerError('PEER_ANSWER', {
    url,
    what: 'answered with a page that nobody expected',
    delivered: 'yes',
  });
}

type LookUp = (url: string) => Promise<Peerdoc | undefined>;

/** What verify and the audit work with, where look-ups go this way. */
function depsOf(w: World, lookUp: LookUp = (url) => w.peer.peerdoc({ url })): VerifyDeps {
  return {
    state: w.state,
    queue: { run: (_: string, work: (signal: AbortSignal) => unknown) => work(new AbortController().signal) },
    peer: { peerdoc: ({ url }: { url: string }) => lookUp(url) },
    dialect: w.dialect,
    settings: QUICK,
    clock: systemClock,
    log: silentLogger,
  } as unknown as VerifyDeps;
}

function items(w: World): ConfirmedItem[] {
  return [...w.state.entries.all()].filter((entry) => entry.status === 'confirmed');
}

async function lines(w: World, repair: boolean, deps = depsOf(w)) {
  const all = [];
  for await (const line of verify(items(w), deps, { lane: 'interactive', repair }))
    if (line.kind !== 'verifying') all.push(line);
  return all;
}

describe('verify', () => {
  it('says that all is there, with one look-up each', async () => {
    const w = await world(20);
    const before = w.peer.lookups;
    expect(await lines(w, false)).toEqual([{ kind: 'verified', checked: 20, missed: 0, failed: 0 }]);
    expect(w.peer.lookups - before).toBe(20);
  });

  it('takes an answer that cannot be used for the trouble of that item only', async () => {
    const w = await world(6);
    w.peer.documents.delete(w.url('f5'));
    const lookUp = (url: string) =>
      url === w.url('f2') ? Promise.reject(unusableAnswer(url)) : w.peer.peerdoc({ url });
    expect(await lines(w, false, depsOf(w, lookUp))).toMatchObject([
      { kind: 'missed', file: 'inbox/f5' },
      { kind: 'verified', checked: 6, missed: 1, failed: 1 },
    ]);
  });

  it('begins no look-up once its consumer is gone', async () => {
    const w = await world(40);
    let looked = 0;
    const lookUp = async (url: string) => {
      looked += 1;
      await systemClock.sleep(60);
      return w.peer.peerdoc({ url });
    };
    for await (const line of verify(items(w), depsOf(w, lookUp), { lane: 'interactive', repair: false })) {
      expect(line.kind).toBe('verifying');
      break;
    }
    const begun = looked;
    await systemClock.sleep(300);
    expect(looked).toBe(begun);
    expect(begun).toBeLessThan(40);
  });

  it('tells what is missing or another version, and leaves it unless it is to repair', async () => {
    const w = await world(3);
    w.peer.documents.delete(w.url('f0'));
    w.peer.documents.set(w.url('f1'), { text: 'other', collection: 'c', loadDate: Date.now() });
    const told = await lines(w, false);
    expect(told).toMatchObject([
      { kind: 'missed', file: 'inbox/f0', repaired: false },
      { kind: 'missed', file: 'inbox/f1', why: expect.stringContaining('other content') },
      { kind: 'verified', checked: 3, missed: 2 },
    ]);
    expect(w.state.counts().confirmed).toBe(3);
  });

  it('tells now and then how far it has come, where it is told how many there are', async () => {
    const w = await world(6);
    w.peer.documents.delete(w.url('f5'));
    // Each of the first three takes long enough for a word in between.
    let slow = 3;
    const lookUp = async (url: string) => {
      if (slow-- > 0) await systemClock.sleep(300);
      return await w.peer.peerdoc({ url });
    };
    const all = [];
    for await (const line of verify(items(w), depsOf(w, lookUp), { lane: 'audit', repair: false, of: 6 }))
      all.push(line);
    const between = all.filter((line) => line.kind === 'verifying');
    expect(between[0]).toMatchObject({ of: 6, missed: 0 });
    expect(between[0]?.checked).toBeLessThan(6);
    expect(between.at(-1)).toEqual({ kind: 'verifying', checked: 6, of: 6, missed: 1 });
    expect(all.slice(-2)).toMatchObject([{ kind: 'missed' }, { kind: 'verified', checked: 6, missed: 1 }]);
  });

  it('has what is missing pushed and confirmed again, with a note in its history', async () => {
    const w = await world(3);
    w.peer.documents.delete(w.url('f0'));
    expect(await lines(w, true)).toMatchObject([{ kind: 'missed', repaired: true }, { missed: 1 }]);
    await until(() => w.peer.documents.has(w.url('f0')), 'pushed again');
    await until(() => w.state.counts().confirmed === 3, 'confirmed again');
    const notes = w.state.get('inbox', 'f0')?.history.map(({ note }) => note);
    expect(notes).toContainEqual(expect.stringContaining('missed now'));
  });

  it('does not believe a peer that misses a document only for a moment', async () => {
    const w = await world(1);
    const [doc] = w.peer.documents.values();
    w.peer.documents.clear();
    let looks = 0;
    w.peer.onLookup = (url) => {
      looks += 1;
      if (looks === 2 && doc !== undefined) w.peer.documents.set(url, doc);
    };
    expect(await lines(w, true)).toEqual([{ kind: 'verified', checked: 1, missed: 0, failed: 0 }]);
    expect(looks).toBe(2);
  });

  it('concludes nothing from a peer that is away', async () => {
    const w = await world(2);
    const away = depsOf(w, () => Promise.reject(unreachable('no')));
    await expect(lines(w, true, away)).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' });
    expect(w.state.counts().confirmed).toBe(2);
  });
});

describe('the audit', () => {
  it('looks every item up once in its time, and has pushed again what vanished, also when the peer was away', async () => {
    const w = await world(30);
    w.peer.documents.delete(w.url('f7'));
    const looked = new Map<string, number>();
    let away = true;
    const audit = new Audit(
      depsOf(w, (url) => {
        if (away) return Promise.reject(unreachable('no'));
        looked.set(url, (looked.get(url) ?? 0) + 1);
        return w.peer.peerdoc({ url });
      }),
    );
    audit.start(2_000, (error) => {
      w.failure = error;
    });
    setTimeout(() => {
      away = false;
    }, 400);
    await until(() => looked.size === 30, 'each was looked up');
    expect(
      Math.max(...[...looked].filter(([url]) => url !== w.url('f7')).map(([, times]) => times)),
    ).toBeLessThan(3);
    await until(() => w.peer.documents.has(w.url('f7')), 'pushed again');
    await audit.stop();
    expect(w.state.meta('auditedUntil')).toBeTypeOf('number');
  });

  it('goes on though one document is always answered with what cannot be used', async () => {
    const w = await world(10);
    const audited = new Audit(
      depsOf(w, (url) =>
        url === w.url('f3') ? Promise.reject(unusableAnswer(url)) : w.peer.peerdoc({ url }),
      ),
    );
    audited.start(1_000, (error) => {
      w.failure = error;
    });
    await until(() => w.state.meta('auditedUntil') !== undefined, 'the audit has begun');
    const began = w.state.meta('auditedUntil');
    w.peer.documents.delete(w.url('f8'));
    await until(() => w.peer.documents.has(w.url('f8')), 'what is missing is pushed again');
    expect(w.state.meta('auditedUntil')).toBeGreaterThan(Number(began));
    await audited.stop();
  });
});
