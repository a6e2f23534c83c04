import { unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import { PeerError } from '../../src/peer/errors.js';
import type { Peerdoc } from '../../src/peer/peerdoc.js';
import type { ConfirmedItem } from '../../src/state/entry.js';
import { removing } from '../../src/state/transitions.js';
import { Audit } from '../../src/uplink/audit.js';
import type { Deps } from '../../src/uplink/deps.js';
import { type VerifyOptions, verify } from '../../src/uplink/verify.js';
import { QUICK, unreachable, type World, world } from '../support/world.js';

type LookUp = (url: string) => Promise<Peerdoc | undefined>;

/** Starts a world with so many confirmed files. */
async function confirmedWorld(files: number): Promise<World> {
  const w = await world();
  w.writeMany(files);
  await w.allConfirmed(files);
  return w;
}

/** A clock whose waits end at once. */
const impatient: Clock = Object.assign(Object.create(systemClock), { sleep: async () => {} });

/** The dependencies of `verify` and the audit, with this function for look-ups. */
function depsOf(
  w: World,
  lookUp: LookUp = (url) => w.peer.peerdoc({ url }),
  clock = impatient,
): Deps {
  return {
    state: w.state,
    queue: {
      run: (_: string, work: (signal: AbortSignal) => unknown) =>
        work(new AbortController().signal),
    },
    peer: { peerdoc: ({ url }: { url: string }) => lookUp(url) },
    dialect: w.dialect,
    settings: QUICK,
    clock,
    log: silentLogger,
  } as unknown as Deps;
}

/** Look-ups with an unusable answer for one URL. */
const unusableFor =
  (w: World, bad: string): LookUp =>
  (url) =>
    url === bad
      ? Promise.reject(
          new PeerError('PEER_ANSWER', { url, what: 'answered oddly', delivered: 'yes' }),
        )
      : w.peer.peerdoc({ url });

function verifying(w: World, options: Partial<VerifyOptions> = {}, lookUp?: LookUp, clock?: Clock) {
  const items = [...w.state.entries.all()].filter(
    (entry): entry is ConfirmedItem => entry.status === 'confirmed',
  );
  return verify(items, depsOf(w, lookUp, clock), {
    lane: 'interactive',
    repair: false,
    ...options,
  });
}

async function lines(...args: Parameters<typeof verifying>) {
  const all = [];
  for await (const line of verifying(...args)) if (line.kind !== 'verifying') all.push(line);
  return all;
}

describe('verify', () => {
  it('looks each item up once if nothing deviates', async () => {
    const w = await confirmedWorld(20);
    const before = w.peer.lookups;
    expect(await lines(w)).toEqual([
      { kind: 'verified', checked: 20, removed: 0, lost: 0, back: 0, failed: 0 },
    ]);
    expect(w.peer.lookups - before).toBe(20);
  });

  it('begins no look-up after its consumer has ended', async () => {
    const w = await confirmedWorld(40);
    let [begun, ended] = [0, 0];
    const lookUp = async (url: string) => {
      begun += 1;
      await systemClock.sleep(60);
      ended += 1;
      return w.peer.peerdoc({ url });
    };
    for await (const line of verifying(w, {}, lookUp)) {
      expect(line.kind).toBe('verifying');
      break;
    }
    await w.until(() => ended === begun, 'what had begun has ended');
    await systemClock.sleep(100);
    expect(begun).toBe(ended);
    expect(begun).toBeLessThan(40);
  });

  it('reports documents that are missing or another version, counts unusable answers, and changes nothing', async () => {
    const w = await confirmedWorld(6);
    w.peer.documents.delete(w.url('f0'));
    w.peer.show(w.url('f1'), 'other');
    expect(await lines(w, {}, unusableFor(w, w.url('f2')))).toMatchObject([
      { kind: 'lost', file: 'inbox/f0', repaired: false },
      { kind: 'lost', file: 'inbox/f1', why: expect.stringContaining('other content') },
      { kind: 'verified', checked: 6, lost: 2, failed: 1 },
    ]);
    expect(w.state.counts().confirmed).toBe(6);
  });

  it('reports its progress, with the total if it is known', async () => {
    const w = await confirmedWorld(6);
    w.peer.documents.delete(w.url('f5'));
    let now = 0;
    const clock: Clock = Object.assign(Object.create(impatient), { now: () => now });
    const lookUp = (url: string) => {
      now = 300;
      return w.peer.peerdoc({ url });
    };
    const all = [];
    for await (const line of verifying(w, { lane: 'audit', of: 6 }, lookUp, clock)) all.push(line);
    expect(all).toMatchObject([
      { kind: 'verifying', checked: 1, of: 6, lost: 0 },
      { kind: 'verifying', checked: 6, of: 6, lost: 1 },
      { kind: 'lost' },
      { kind: 'verified', checked: 6, lost: 1 },
    ]);
  });

  it('does not report a document that is missing only for a moment', async () => {
    const w = await confirmedWorld(1);
    w.peer.documents.clear();
    let looks = 0;
    w.peer.onLookup = (url) => {
      looks += 1;
      if (looks === 2) w.peer.show(url, 'content 0');
    };
    expect(await lines(w, { repair: true })).toMatchObject([
      { kind: 'verified', checked: 1, lost: 0 },
    ]);
    expect(looks).toBe(2);
  });

  it('does not report an item that changed after its second look-up', async () => {
    const w = await confirmedWorld(2);
    w.peer.documents.clear();
    const files: string[] = [];
    for await (const line of verifying(w, { repair: true })) {
      if (line.kind !== 'lost') continue;
      files.push(line.file);
      for (const path of ['f0', 'f1']) if (!files.includes(`inbox/${path}`)) w.remove(path);
    }
    expect(files).toHaveLength(1);
    expect(w.state.counts()).toMatchObject({ gone: 1 });
  });

  it.each([
    ['it was sent with', 'c', true],
    ['that another program uses', 'theirs', false],
  ])(
    'removes a document that came back in the collection %s again: %s',
    async (_, collection, isBack) => {
      const w = await confirmedWorld(1);
      const url = w.url('f0');
      unlinkSync(join(w.root, 'f0'));
      w.remove('f0');
      const item = w.state.get('inbox', 'f0');
      if (item?.status !== 'gone') throw new Error('f0 is not gone');
      w.state.put(removing(item, w.clock.now()));
      await w.until(() => w.statusOf('f0') === 'removed', 'removed');
      w.dialect.current = DIALECTS.yacy;
      w.peer.documents.set(url, { text: 'content 0', collection, loadDate: 0 });
      const audit = new Audit(depsOf(w, undefined, systemClock));
      audit.start(200, (error) => {
        w.failure = error;
      });
      const looked = w.peer.lookups;
      if (isBack) await w.until(() => w.peer.removals.length === 2, 'removed again');
      else await w.until(() => w.peer.lookups > looked + 3, 'looked up again and again');
      await audit.stop();
      expect(w.peer.removals).toHaveLength(isBack ? 2 : 1);
    },
  );

  it('fails, and reports nothing, if the peer is away', async () => {
    const w = await confirmedWorld(2);
    const away = () => Promise.reject(unreachable('no'));
    await expect(lines(w, { repair: true }, away)).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
    });
    expect(w.state.counts().confirmed).toBe(2);
  });
});

it('the audit looks each item up once in each period and has lost ones pushed again, despite an outage and an unusable answer', async () => {
  const w = await confirmedWorld(30);
  const [gone, bad] = [w.url('f7'), w.url('f3')];
  w.peer.documents.delete(gone);
  const looked = new Map<string, number>();
  let isAway = true;
  const onFailure = (error: unknown) => {
    w.failure = error;
  };
  const look = unusableFor(w, bad);
  const audit = new Audit(
    depsOf(
      w,
      (url) => {
        looked.set(url, (looked.get(url) ?? 0) + 1);
        return isAway ? Promise.reject(unreachable('no')) : look(url);
      },
      systemClock,
    ),
  );
  audit.start(1_500, onFailure);
  await w.until(() => looked.size > 0, 'the audit has found that the peer is away');
  const began = w.state.meta('auditedUntil');
  isAway = false;
  looked.clear();
  await w.until(() => looked.size === 30, 'each was looked up');
  expect(Math.max(...[...looked].map(([url, times]) => (url === gone ? 0 : times)))).toBeLessThan(
    3,
  );
  await w.until(() => w.peer.documents.has(gone), 'pushed again');
  await w.until(() => Number(w.state.meta('auditedUntil')) > Number(began), 'it goes on');
  await audit.stop();
});
