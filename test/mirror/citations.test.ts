import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/lib/clock.js';
import { MARKER } from '../../src/mirror/target-path.js';
import type { Citation } from '../../src/peer/citation.js';
import { lifeOf, pendingRecord } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { type FakePeer, failing } from '../support/fake-peer.js';
import type { MirrorWorld } from '../support/mirror-world.js';
import { until } from '../support/wait.js';
import { world } from '../support/world.js';

const MINUTE = 60_000;
const DAY = 86_400_000;
const SETTINGS = { citations: [{ folder: 'inbox' }] };

/** `count` names: `p00.txt` and so on. */
const manyPaths = (count: number) =>
  Array.from({ length: count }, (_, i) => `p${String(i).padStart(2, '0')}.txt`);

/** A folder of confirmed items, which the peer knows, and the mirror of their citations. */
class Folder {
  private constructor(readonly w: MirrorWorld) {}

  static async open(paths: readonly string[], more: object = {}, clock?: Clock): Promise<Folder> {
    const mirrors = { citations: [{ folder: 'inbox', ...more }] };
    const folder = new Folder(await world({ mirrors, clock }));
    for (const path of paths) folder.confirm(path);
    return folder;
  }

  get peer(): FakePeer {
    return this.w.peer;
  }

  confirm(path: string, more: object = {}): void {
    const item = pendingRecord(path);
    this.w.state.put({ ...lifeOf(item)[2], ...more });
    this.knows(item.url);
  }

  knows(url: string, more: Partial<Citation> = {}): void {
    this.peer.citations.set(url, {
      url,
      title: 'T',
      sentences: [],
      citing: [],
      similar: [],
      ...more,
    });
  }

  remove(path: string, more: object = {}): void {
    const entry = this.w.state.get('inbox', path);
    if (entry?.status !== 'confirmed') throw new Error('no item');
    this.w.state.put({ ...entry, status: 'gone', ...more });
  }

  /** The peer fails for some paths. */
  fails(code: Parameters<typeof failing>[0], isBad: (path: string) => boolean): void {
    this.peer.onRequest = (what) => isBad(pathOf(what)) && Promise.reject(failing(code, 500));
  }

  once() {
    return this.w.once('citations/inbox');
  }

  get status() {
    return this.w.status();
  }

  /** The paths that were asked for, in order. */
  get asked(): string[] {
    return this.peer.requests.map(pathOf);
  }
}

const pathOf = (what: string) => decodeURIComponent(what.split('/inbox/')[1] ?? what);

describe('mirrored citations', () => {
  it('are one file for each confirmed item, and unchanged ones keep their mtime', async () => {
    const folder = await Folder.open(['b.txt', 'a/x.txt', 'a.txt']);
    const { w } = folder;
    w.state.put(pendingRecord('not-yet.txt'));
    expect(await folder.once()).toMatchObject({ changed: true, rows: 3 });
    expect(folder.asked).toEqual(['a.txt', 'a/x.txt', 'b.txt']);
    const files = ['a.txt', 'a/x.txt', 'b.txt'].map((path) => `citations/inbox/${path}.json`);
    expect(w.files()).toEqual(files);
    const before = files.map((file) => w.mtime(file));
    expect(await folder.once()).toMatchObject({ changed: false, rows: 3 });
    expect(files.map((file) => w.mtime(file))).toEqual(before);
  });

  it('are the same text in any order of the answer', async () => {
    const folder = await Folder.open(['a.txt']);
    const { url } = pendingRecord('a.txt');
    const one = { number: 1, text: 'One.', appearsIn: [] };
    const two = { number: 2, text: 'Two.', appearsIn: ['https://b/', 'https://a/'] };
    const [a, b] = [{ url: 'https://a/' }, { url: 'https://b/', sentences: 1 }];
    folder.knows(url, { sentences: [two, one], citing: [b, a] });
    await folder.once();
    const sentences = [one, { ...two, appearsIn: ['https://a/', 'https://b/'] }];
    const expected = {
      url,
      title: 'T',
      sentences,
      citing: [a, b],
      similar: [],
      sha256: expect.stringMatching(/^[\da-f]{64}$/),
    };
    expect(JSON.parse(folder.w.read('citations/inbox/a.txt.json'))).toEqual(expected);
    folder.knows(url, { sentences: [one, two], citing: [a, b] });
    expect(await folder.once()).toMatchObject({ changed: false });
  });

  it('are removed with their item, and kept for a document that the peer does not show', async () => {
    const folder = await Folder.open(['a.txt', 'b.txt', 'never/mirrored.txt']);
    folder.remove('never/mirrored.txt');
    await folder.once();
    folder.remove('a.txt');
    folder.peer.citations.clear();
    expect(await folder.once()).toMatchObject({ changed: true, rows: 0 });
    expect(folder.w.files()).toEqual(['citations/inbox/b.txt.json']);
    expect(folder.w.has('citations/inbox/never')).toBe(false);
    expect(folder.status?.condition).toBeUndefined();
  });

  it('are kept as conflict files before they are replaced or removed if somebody edited them', async () => {
    const folder = await Folder.open(['a.txt', 'b.txt', 'c.txt']);
    await folder.once();
    const { w } = folder;
    const fileOf = (path: string) => `citations/inbox/${path}.json`;
    const edited = Object.fromEntries(
      ['a.txt', 'b.txt'].map((path) => [path, w.read(fileOf(path)).replace('"T"', '"mine"')]),
    );
    for (const [path, text] of Object.entries(edited)) w.write(fileOf(path), text);
    await w.loseState();
    rmSync(join(w.root, MARKER));
    await w.open(SETTINGS);
    for (const path of ['a.txt', 'b.txt', 'c.txt']) folder.confirm(path);
    folder.remove('b.txt');
    folder.knows(pendingRecord('c.txt').url, { title: 'another' });
    const { conflicts = [] } = await folder.once();
    const kept = conflicts.map(({ file }) => [
      file.replace(/\.json\.conflict-.*/, ''),
      w.read(file),
    ]);
    expect(kept.sort()).toEqual([
      ['citations/inbox/a.txt', edited['a.txt']],
      ['citations/inbox/b.txt', edited['b.txt']],
    ]);
    expect(w.files().filter((file) => file.includes('conflict'))).toHaveLength(2);
    expect(w.read(fileOf('a.txt'))).toContain('"T"');
  });

  it('are requested as configured', async () => {
    const folder = await Folder.open(['a.txt'], {
      filter: true,
      ch: 3,
      path: 'c/{path}.{folder}.json',
    });
    const options: object[] = [];
    const { citation } = folder.peer;
    folder.peer.citation = async (query, given) => {
      options.push({ ...given, signal: undefined });
      return await citation.call(folder.peer, query);
    };
    await folder.once();
    expect(options).toEqual([{ filter: true, ch: 3 }]);
    expect(folder.w.files()).toEqual(['c/a.txt.inbox.json']);
  });

  it('continue their pass after a restart', async () => {
    const folder = await Folder.open(['a.txt', 'b.txt', 'c.txt', 'd.txt']);
    folder.fails('PEER_UNREACHABLE', (path) => path === 'c.txt');
    expect(await folder.once()).toMatchObject({ failure: { code: 'PEER_UNREACHABLE' } });
    await folder.w.open(SETTINGS);
    folder.peer.onRequest = () => {};
    expect(await folder.once()).toMatchObject({ changed: true, rows: 4 });
    expect(folder.asked).toEqual(['a.txt', 'b.txt', 'c.txt', 'c.txt', 'd.txt']);
  });

  it('skip single items that fail, and note the first', async () => {
    const folder = await Folder.open(manyPaths(14));
    folder.fails('PEER_ANSWER', (path) => /[02468]\.txt/.test(path));
    const { failure, rows, notes } = await folder.once();
    expect([failure, rows]).toEqual([undefined, 7]);
    expect(notes?.[0]).toMatch(/^7 documents could not be looked up, the first of them p00\.txt: /);
  });

  it('wait after five failures in a row, and continue with the first of them', async () => {
    const folder = await Folder.open(manyPaths(12));
    folder.fails('PEER_FAILED', (path) => path !== 'p00.txt');
    expect(await folder.once()).toMatchObject({ failure: { code: 'PEER_FAILED' } });
    expect(folder.asked).toHaveLength(6);
    folder.peer.onRequest = () => {};
    folder.peer.requests.length = 0;
    expect(await folder.once()).toMatchObject({ rows: 12 });
    expect(folder.asked[0]).toBe('p01.txt');
  });

  it('are requested once for each of thousands of items, in order', async () => {
    const folder = await Folder.open([]);
    const paths = Array.from({ length: 4_500 }, (_, i) => `d${i % 7}/${(i * 7919) % 4_500}.txt`);
    for (const path of paths) folder.w.state.put(lifeOf(pendingRecord(path))[2]);
    await folder.once();
    expect(folder.asked).toEqual(paths.toSorted());
  });

  it('begin the next pass a day after the beginning of the last, even after a restart', async () => {
    const clock = new FakeClock();
    const folder = await Folder.open(['a.txt'], {}, clock);
    await clock.advance(MINUTE);
    await folder.once();
    const nextPassAt = clock.now() + DAY;
    await clock.advance(DAY / 4);
    await folder.w.open(SETTINGS);
    folder.w.start();
    await clock.advance(MINUTE);
    await settled(clock, () => folder.status?.nextAt === nextPassAt, 'the next pass is planned');
    expect(folder.asked).toEqual(['a.txt']);
  });

  it('begin the next pass within a day although the clock was set back before a restart', async () => {
    const clock = new FakeClock();
    const folder = await Folder.open(['a.txt'], {}, clock);
    await folder.once();
    clock.set(-DAY);
    clock.restart();
    await folder.w.open(SETTINGS);
    folder.w.start();
    await clock.advance(MINUTE);
    await settled(
      clock,
      () => (folder.status?.nextAt ?? 0) > clock.now(),
      'the next pass is planned',
    );
    expect(folder.status?.nextAt).toBeLessThanOrEqual(clock.now() + DAY);
  });
});

/** Waits for what the disk is still busy with, while time stands still. */
async function settled(clock: FakeClock, isSo: () => boolean, what: string): Promise<void> {
  await until(async () => {
    await clock.advance(0);
    return isSo();
  }, what);
}

describe('mirrored citations of a folder that changes', () => {
  /** A folder whose items were all asked for a moment ago, and whose mirror runs. */
  async function followed(paths: readonly string[]): Promise<{ folder: Folder; clock: FakeClock }> {
    const clock = new FakeClock();
    const folder = await Folder.open(paths, {}, clock);
    await clock.advance(MINUTE);
    folder.w.start();
    await clock.advance(MINUTE);
    await asked(folder, clock, paths);
    await clock.advance(MINUTE);
    await rested(folder, clock);
    folder.peer.requests.length = 0;
    return { folder, clock };
  }

  /** Waits until the last run ended and the next is planned. */
  const rested = (folder: Folder, clock: FakeClock) =>
    settled(
      clock,
      () => folder.status?.running === false && (folder.status.nextAt ?? 0) > clock.now(),
      'no run',
    );

  /** Waits until just these items were asked for, in this order, and the run ended. */
  async function asked(folder: Folder, clock: FakeClock, paths: readonly string[]): Promise<void> {
    await settled(
      clock,
      () => folder.asked.length >= paths.length,
      `${paths.length} items are asked for`,
    );
    await rested(folder, clock);
    expect(folder.asked).toEqual(paths);
  }

  it('are fetched within a minute for newly confirmed documents, in one run, and for no other', async () => {
    const { folder, clock } = await followed(['a.txt', 'b.txt']);
    const { succeededAt, nextAt } = folder.status ?? {};
    const paths = ['d.txt', 'c.txt', 'b.txt'];
    for (const path of paths) {
      folder.confirm(path, { since: clock.now() });
      await clock.advance(1_000);
    }
    expect(folder.asked).toEqual([]);
    await clock.advance(MINUTE);
    await asked(folder, clock, paths);
    expect(folder.w.has('citations/inbox/c.txt.json')).toBe(true);
    // That says nothing of the others: they are as old as they were, and their turn does not move.
    expect(folder.status).toMatchObject({ rows: 4, succeededAt, nextAt });
    await clock.advance(DAY / 2);
    await asked(folder, clock, paths);
  });

  it('are removed within a minute after their item is gone', async () => {
    const { folder, clock } = await followed(['a.txt', 'b.txt']);
    folder.remove('a.txt', { since: clock.now() });
    await clock.advance(MINUTE);
    await settled(clock, () => folder.status?.rows === 1, 'a run has ended');
    expect(folder.w.files()).toEqual(['citations/inbox/b.txt.json']);
  });

  it('are fetched soon after a restart for items confirmed before it, and for all when a person asks', async () => {
    const { folder, clock } = await followed(['a.txt']);
    folder.confirm('b.txt', { since: clock.now() });
    await folder.w.open(SETTINGS);
    folder.w.start();
    await settled(clock, () => folder.status?.nextAt !== undefined, 'it is started');
    await clock.advance(MINUTE);
    await asked(folder, clock, ['b.txt']);
    await folder.once();
    expect(folder.asked).toEqual(['b.txt', 'a.txt', 'b.txt']);
  });

  it('continue with the first failed item, after the delay of a failure', async () => {
    const { folder, clock } = await followed(['a.txt']);
    const paths = manyPaths(10);
    for (const path of paths) folder.confirm(path, { since: clock.now() });
    folder.fails('PEER_REFUSED', (path) => path !== 'p00.txt');
    await clock.advance(20_000);
    await asked(folder, clock, paths.slice(0, 6));
    expect(folder.status).toMatchObject({ failure: { code: 'PEER_REFUSED' } });
    const nextAt = folder.status?.nextAt;
    folder.confirm('q.txt', { since: clock.now() });
    expect(folder.status?.nextAt).toBe(nextAt);
    folder.peer.onRequest = () => {};
    folder.peer.requests.length = 0;
    await clock.advance(MINUTE);
    await asked(folder, clock, [...paths.slice(1), 'q.txt']);
    expect(folder.status?.failure).toBeUndefined();
  });

  it('are fetched for new items within a long pass, which then continues', async () => {
    const clock = new FakeClock();
    const paths = manyPaths(10);
    const folder = await Folder.open(paths, {}, clock);
    await clock.advance(MINUTE);
    folder.peer.onRequest = (what) => {
      if (pathOf(what) === 'p04.txt') folder.confirm('new.txt', { since: clock.now() });
      clock.skip(10_000);
    };
    folder.w.start();
    await clock.advance(MINUTE);
    await settled(clock, () => folder.status?.rows === 11, 'the pass is over');
    expect(folder.asked.toSorted()).toEqual(['new.txt', ...paths]);
    expect(folder.asked.at(-1)).toBe('p09.txt');
  });
});
