import {
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { removing } from '../../src/state/transitions.js';
import { Audit } from '../../src/uplink/audit.js';
import type { Deps } from '../../src/uplink/deps.js';
import { repairAuditProgress } from '../../src/uplink/repair-audit.js';
import { QUICK, unreachable, World } from '../support/world.js';

const WEEK_MS = 7 * 86_400_000;

/** A clock whose waits end with the next turn of the event loop. */
const impatient: Clock = Object.assign(Object.create(systemClock), {
  sleep: () => new Promise<void>((resolve) => setImmediate(resolve)),
});

/**
 * Starts a world that can be restarted. The end of the test stops it.
 * @returns a function that stops it
 */
async function started(w: World): Promise<() => Promise<void>> {
  await w.start();
  let isRunning = true;
  const stop = async () => {
    if (isRunning) await w.stop();
    isRunning = false;
  };
  onTestFinished(stop);
  return stop;
}

/**
 * Starts an audit of the world. The end of the test stops it.
 * @param look called before each look-up; may throw
 */
function audited(w: World, everyMs = WEEK_MS, look: (url: string) => unknown = () => {}) {
  const deps = {
    state: w.state,
    queue: {
      run: (_: string, work: (signal: AbortSignal) => unknown) =>
        work(new AbortController().signal),
    },
    peer: {
      peerdoc: async ({ url }: { readonly url: string }) => {
        await look(url);
        return await w.peer.peerdoc({ url });
      },
    },
    dialect: w.dialect,
    settings: QUICK,
    clock: impatient,
    log: silentLogger,
  } as unknown as Deps;
  const audit = new Audit(deps);
  audit.start(everyMs, (error) => {
    w.failure = error;
  });
  onTestFinished(() => audit.stop());
  return audit;
}

const newest = (w: World, kind: 'journal' | 'snapshot') =>
  join(
    w.stateDir,
    readdirSync(w.stateDir)
      .filter((name) => name.startsWith(kind))
      .sort()
      .at(-1) ?? '',
  );

function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 0x10, at);
  writeFileSync(path, bytes);
}

const endsOf = (path: string) =>
  [...readFileSync(path).entries()].flatMap(([i, byte]) => (byte === 0x0a ? i : []));

/** Ways to damage a state with one version in the snapshot and a later one in the journal. */
const DAMAGES: readonly (readonly [string, (w: World) => void])[] = [
  ['is lost', (w) => rmSync(newest(w, 'journal'))],
  ['is empty', (w) => truncateSync(newest(w, 'journal'), 0)],
  [
    'is cut behind its first line',
    (w) => truncateSync(newest(w, 'journal'), (endsOf(newest(w, 'journal'))[0] ?? 0) + 1),
  ],
  [
    'is cut in its last line, and nothing tells how far it was acknowledged',
    (w) => {
      truncateSync(newest(w, 'journal'), (endsOf(newest(w, 'journal'))[1] ?? 0) + 10);
      rmSync(join(w.stateDir, 'acknowledged'));
    },
  ],
  [
    'has a wrong bit in each line',
    (w) => {
      const journal = newest(w, 'journal');
      for (const end of endsOf(journal).slice(1)) flip(journal, end - 20);
    },
  ],
  [
    'is lost, with the snapshot',
    (w) => {
      rmSync(newest(w, 'journal'));
      rmSync(newest(w, 'snapshot'));
    },
  ],
  [
    'is lost, and the snapshot damaged',
    (w) => {
      rmSync(newest(w, 'journal'));
      flip(newest(w, 'snapshot'), Math.floor(statSync(newest(w, 'snapshot')).size / 2));
    },
  ],
];

describe.each(DAMAGES)('after a journal that %s', (_, damage) => {
  it.each([{ everyMs: WEEK_MS }, { everyMs: 0 }])(
    'a file that went back to its earlier version is pushed at once, with an audit period of $everyMs ms',
    async ({ everyMs }) => {
      const w = new World();
      const stop = await started(w);
      w.write('a', 'one');
      w.write('b', 'is left alone');
      await w.confirmed('a', 'b');
      await w.state.compact();
      await w.state.compact();
      w.write('a', 'two');
      await w.until(
        () => w.peer.documents.get(w.url('a'))?.text === 'two',
        'the later version is pushed',
      );
      await w.confirmed('a');
      await stop();
      damage(w);
      await started(w);
      w.write('a', 'one');
      w.known('b', 'is left alone');
      const pushes = w.peer.pushes.length;
      audited(w, everyMs);
      const isPushed = () => w.peer.documents.get(w.url('a'))?.text === 'one';
      await w.until(
        () => isPushed() && w.statusOf('a') === 'confirmed',
        'the earlier version is pushed again',
      );
      await w.until(() => repairAuditProgress(w.state) === undefined, 'the audit is over');
      expect(w.peer.pushes.slice(pushes)).toEqual([[w.url('a')]]);
    },
  );
});

describe('the audit after a repair', () => {
  /** Starts a world with so many confirmed files, whose state lost its journal. */
  async function repaired(files: number, prepare: (w: World) => unknown = () => {}) {
    const w = new World();
    const stop = await started(w);
    await prepare(w);
    w.writeMany(files);
    await w.allConfirmed(files);
    await w.state.compact();
    await stop();
    rmSync(newest(w, 'journal'));
    return w;
  }

  it('reports its progress, waits for a peer that is away, and continues after a restart', async () => {
    const FILES = 1_200;
    const w = await repaired(FILES);
    const stop = await started(w);
    expect(repairAuditProgress(w.state)).toMatchObject({ checked: 0, of: FILES });
    const looked = new Set<string>();
    let isAway = false;
    const first = audited(w, WEEK_MS, (url) => {
      isAway ||= looked.size === 700;
      if (isAway) throw unreachable('no');
      looked.add(url);
    });
    await w.until(() => isAway, 'the peer goes away');
    await first.stop();
    // Until the repaired state is written anew, each start repairs it again.
    await w.state.compact();
    const done = looked.size;
    const { checked: known = 0 } = repairAuditProgress(w.state) ?? {};
    // One part has a third of the items.
    expect(known).toBeGreaterThan(300);
    expect(known).toBeLessThanOrEqual(done);
    await stop();
    await started(w);
    expect(repairAuditProgress(w.state)).toMatchObject({ checked: known, of: FILES });
    let again = 0;
    const second = audited(w, WEEK_MS, (url) => {
      if (looked.has(url)) again += 1;
      looked.add(url);
    });
    await w.until(() => second.repairProgress === undefined, 'the audit is over');
    expect(looked.size).toBe(FILES);
    expect(again).toBe(done - known);
    expect(repairAuditProgress(w.state)).toBeUndefined();
  });

  it('runs once, and only after a repair', async () => {
    const w = await repaired(3);
    const stop = await started(w);
    const audit = audited(w);
    await w.until(() => audit.repairProgress === undefined, 'the audit is over');
    await audit.stop();
    await w.state.compact();
    await stop();
    await started(w);
    expect(repairAuditProgress(w.state)).toBeUndefined();
    const looked: string[] = [];
    const next = audited(w, WEEK_MS, (url) => looked.push(url));
    await new Promise((resolve) => setImmediate(resolve));
    await next.stop();
    expect(looked).toEqual([]);
  });

  it('removes the document of a removed file again if it is back in the peer', async () => {
    const w = await repaired(1, async (w) => {
      w.write('gone', 'one');
      await w.confirmed('gone');
      unlinkSync(join(w.root, 'gone'));
      w.remove('gone');
      const item = w.state.get('inbox', 'gone');
      if (item?.status !== 'gone') throw new Error('it is not gone');
      w.state.put(removing(item, w.clock.now()));
      await w.until(() => w.statusOf('gone') === 'removed', 'removed');
    });
    w.peer.show(w.url('gone'), 'two');
    await started(w);
    audited(w);
    await w.until(() => !w.peer.documents.has(w.url('gone')), 'removed again');
  });

  it.each([
    { shows: 'nothing that tells versions apart', loadDate: false, pushes: 1 },
    { shows: 'when it was loaded, as it did before', loadDate: true, pushes: 0 },
  ])('of a peer that shows $shows pushes $pushes again', async ({ loadDate, pushes }) => {
    const w = await repaired(1, (w) => {
      const { peerdoc } = w.peer;
      w.peer.peerdoc = async (key) => {
        const doc = await peerdoc.call(w.peer, key);
        if (doc === undefined) return undefined;
        const { digest: _, loadDate: at, ...rest } = doc;
        return loadDate && at !== undefined ? { ...rest, loadDate: at } : rest;
      };
    });
    await started(w);
    const before = w.peer.pushes.length;
    const audit = audited(w);
    await w.until(() => audit.repairProgress === undefined, 'the audit is over');
    await w.allConfirmed(1);
    expect(w.peer.pushes.length - before).toBe(pushes);
  });
});
