import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { ConfirmedItem } from '../../src/state/entry.js';
import { Audit } from '../../src/uplink/audit.js';
import { type VerifyParts, verify } from '../../src/uplink/verify.js';
import { until } from '../support/wait.js';
import { unreachable, World } from '../support/world.js';

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

function items(w: World): ConfirmedItem[] {
  return [...w.state.entries.all()].filter((entry) => entry.status === 'confirmed');
}

function partsOf(w: World): VerifyParts {
  return {
    state: w.state,
    commit: () => w.state.commit(),
    lookUp: (url) => w.peer.peerdoc({ url }),
    concurrency: 2,
    patienceMs: 10,
    clock: systemClock,
    log: silentLogger,
  };
}

async function lines(w: World, repair: boolean, parts = partsOf(w)) {
  const all = [];
  for await (const line of verify(items(w), parts, { repair })) all.push(line);
  return all;
}

describe('verify', () => {
  it('says that all is there, with one look-up each', async () => {
    const w = await world(20);
    const before = w.peer.lookups;
    expect(await lines(w, false)).toEqual([{ kind: 'verified', checked: 20, missed: 0 }]);
    expect(w.peer.lookups - before).toBe(20);
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
    const parts = { ...partsOf(w), concurrency: 1 };
    // Each of the first three takes long enough for a word in between.
    let slow = 3;
    const lookUp = async (url: string) => {
      if (slow-- > 0) await systemClock.sleep(300);
      return await w.peer.peerdoc({ url });
    };
    const all = [];
    for await (const line of verify(items(w), { ...parts, lookUp }, { repair: false, of: 6 })) all.push(line);
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
    expect(await lines(w, true)).toEqual([{ kind: 'verified', checked: 1, missed: 0 }]);
    expect(looks).toBe(2);
  });

  it('concludes nothing from a peer that is away', async () => {
    const w = await world(2);
    const away = { ...partsOf(w), lookUp: () => Promise.reject(unreachable('no')) };
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
    const audit = new Audit({
      state: w.state,
      commit: () => w.state.commit(),
      door: {
        run: async (_, work) => {
          if (away) throw unreachable('no');
          return work(new AbortController().signal);
        },
        ready: async () => {},
        hasRoom: () => true,
        isBusy: () => false,
        answeringForMs: 0,
      },
      peer: {
        push: () => Promise.reject(new Error('not expected')),
        peerdoc: ({ url }) => {
          looked.set(url, (looked.get(url) ?? 0) + 1);
          return w.peer.peerdoc({ url });
        },
      },
      dialect: w.dialect,
      clock: systemClock,
      log: silentLogger,
    });
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
});
