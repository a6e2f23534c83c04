import { describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import type { Citation, CitationOptions } from '../../src/peer/citation.js';
import { lifeOf, pendingRecord } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { Engine, FakePeer, peerError } from './engine.js';

const MINUTE = 60_000;
const DAY = 86_400_000;

function citation(url: string, more: Partial<Citation> = {}): Citation {
  return { url, title: 'T', sentences: [], citing: [], similar: [], ...more };
}

/** A folder of confirmed items, which the peer knows. */
class Folder {
  readonly peer = new FakePeer();
  readonly engine: Engine;

  constructor(clock: Clock = systemClock) {
    this.engine = new Engine(this.peer, clock);
  }

  async open(paths: readonly string[], more: object = {}): Promise<Engine> {
    await this.engine.open({ citations: [{ folder: 'inbox', ...more }] });
    for (const path of paths) this.confirm(path);
    return this.engine;
  }

  confirm(path: string, more: object = {}): void {
    const [, , confirmed] = lifeOf(pendingRecord(path));
    this.engine.state.put({ ...confirmed, ...more });
    const url = pendingRecord(path).url;
    this.peer.citations.set(url, citation(url));
  }

  remove(path: string, more: object = {}): void {
    const entry = this.engine.state.get('inbox', path);
    if (entry?.status !== 'confirmed') throw new Error('no item');
    this.engine.state.put({ ...entry, status: 'gone', ...more });
  }

  /** The paths that were asked for, in order. */
  get asked(): string[] {
    return this.peer.asked.map((what) => decodeURIComponent(what.split('/inbox/')[1] ?? what));
  }
}

describe('mirrored citations', () => {
  it('are a file for each confirmed item, by path, and unchanged ones keep their mtime', async () => {
    const folder = new Folder();
    const engine = await folder.open(['b.txt', 'a/x.txt', 'a.txt']);
    engine.state.put(pendingRecord('not-yet.txt'));
    expect(await engine.once('citations/inbox')).toMatchObject({ changed: true, rows: 3 });
    expect(folder.asked).toEqual(['a.txt', 'a/x.txt', 'b.txt']);
    const files = [
      'citations/inbox/a.txt.json',
      'citations/inbox/a/x.txt.json',
      'citations/inbox/b.txt.json',
    ];
    expect(engine.files()).toEqual(files);
    const before = files.map((file) => engine.mtime(file));
    expect(await engine.once('citations/inbox')).toMatchObject({ changed: false, rows: 3 });
    expect(files.map((file) => engine.mtime(file))).toEqual(before);
  });

  it('read the same in whatever order the peer tells them', async () => {
    const folder = new Folder();
    const engine = await folder.open(['a.txt']);
    const { url } = pendingRecord('a.txt');
    const sentences = [
      { number: 2, text: 'Two.', appearsIn: ['https://b/', 'https://a/'] },
      { number: 1, text: 'One.', appearsIn: [] },
    ];
    const citing = [{ url: 'https://b/', sentences: 1 }, { url: 'https://a/' }];
    folder.peer.citations.set(url, citation(url, { sentences, citing }));
    await engine.once('citations/inbox');
    const text = engine.read('citations/inbox/a.txt.json');
    expect(JSON.parse(text)).toEqual({
      url,
      title: 'T',
      sentences: [
        { number: 1, text: 'One.', appearsIn: [] },
        { number: 2, text: 'Two.', appearsIn: ['https://a/', 'https://b/'] },
      ],
      citing: [{ url: 'https://a/' }, { url: 'https://b/', sentences: 1 }],
      similar: [],
    });
    const turned = citation(url, { sentences: sentences.toReversed(), citing: citing.toReversed() });
    folder.peer.citations.set(url, turned);
    expect(await engine.once('citations/inbox')).toMatchObject({ changed: false });
  });

  it('go when their item is gone; a document that the peer does not show keeps its file', async () => {
    const folder = new Folder();
    const engine = await folder.open(['a.txt', 'b.txt']);
    await engine.once('citations/inbox');
    folder.remove('a.txt');
    folder.peer.citations.clear();
    expect(await engine.once('citations/inbox')).toMatchObject({ changed: true, rows: 0 });
    expect(engine.files()).toEqual(['citations/inbox/b.txt.json']);
    expect(engine.mirrors.status()[0]?.alarm).toBeUndefined();
  });

  it('of items that are gone make no directories', async () => {
    const folder = new Folder();
    const engine = await folder.open(['never/mirrored.txt']);
    folder.remove('never/mirrored.txt');
    await engine.once('citations/inbox');
    expect(engine.has('citations')).toBe(false);
  });

  it('are asked for as configured', async () => {
    const folder = new Folder();
    const engine = await folder.open(['a.txt'], { filter: true, ch: 3, path: 'c/{path}.{folder}.json' });
    const options: object[] = [];
    folder.peer.citation = async (_query, { signal: _, ...given }: CitationOptions = {}) => {
      options.push(given);
      return undefined;
    };
    await engine.once('citations/inbox');
    expect(options).toEqual([{ filter: true, ch: 3 }]);
  });

  it('go on after a restart where they were', async () => {
    const folder = new Folder();
    const engine = await folder.open(['a.txt', 'b.txt', 'c.txt', 'd.txt']);
    folder.peer.onAsk = (what) => {
      if (what.includes('c.txt')) throw peerError('PEER_UNREACHABLE');
    };
    expect(await engine.once('citations/inbox')).toMatchObject({ failure: { code: 'PEER_UNREACHABLE' } });
    await engine.open({ citations: [{ folder: 'inbox' }] });
    folder.peer.onAsk = () => {};
    expect(await engine.once('citations/inbox')).toMatchObject({ changed: true, rows: 4 });
    expect(folder.asked).toEqual(['a.txt', 'b.txt', 'c.txt', 'c.txt', 'd.txt']);
  });

  it('pass over an item that fails by itself, and note it', async () => {
    const folder = new Folder();
    const engine = await folder.open(['a.txt', 'b.txt', 'c.txt']);
    folder.peer.onAsk = (what) => {
      if (what.includes('b.txt')) throw peerError('PEER_ANSWER');
    };
    const report = await engine.once('citations/inbox');
    expect(report).toMatchObject({ rows: 2 });
    expect(report.notes?.[0]).toMatch(/^1 document could not be looked at, the first of them b\.txt: /);
    expect(report.failure).toBeUndefined();
  });

  it('go on where items fail here and there', async () => {
    const folder = new Folder();
    const paths = Array.from({ length: 14 }, (_, i) => `${String(i).padStart(2, '0')}.txt`);
    const engine = await folder.open(paths);
    folder.peer.onAsk = (what) => {
      if (/[02468]\.txt/.test(what)) throw peerError('PEER_ANSWER');
    };
    const report = await engine.once('citations/inbox');
    expect(report.failure).toBeUndefined();
    expect(report).toMatchObject({ rows: 7 });
    expect(report.notes?.[0]).toContain('7 documents');
  });

  it('wait where item after item fails, and then go on with the first of them', async () => {
    const folder = new Folder();
    const paths = Array.from({ length: 12 }, (_, i) => `${String(i).padStart(2, '0')}.txt`);
    const engine = await folder.open(paths);
    folder.peer.onAsk = (what) => {
      if (!what.includes('/00.txt')) throw peerError('PEER_FAILED', 500);
    };
    expect(await engine.once('citations/inbox')).toMatchObject({ failure: { code: 'PEER_FAILED' } });
    expect(folder.asked).toHaveLength(6);
    folder.peer.onAsk = () => {};
    folder.peer.asked.length = 0;
    expect(await engine.once('citations/inbox')).toMatchObject({ rows: 12 });
    expect(folder.asked[0]).toBe('01.txt');
  });

  it('ask for thousands of items in the order of their paths, each once', async () => {
    const folder = new Folder();
    const engine = await folder.open([]);
    const paths = Array.from({ length: 4_500 }, (_, i) => `d${i % 7}/${(i * 7919) % 4_500}.txt`);
    for (const path of paths) engine.state.put(lifeOf(pendingRecord(path))[2]);
    await engine.once('citations/inbox');
    expect(folder.asked).toEqual(paths.toSorted());
  });

  it('begin the next pass a day after the beginning of the last, also after a restart', async () => {
    const clock = new FakeClock();
    const folder = new Folder(clock);
    const engine = await folder.open(['a.txt']);
    await clock.advance(MINUTE);
    await engine.once('citations/inbox');
    const nextPassAt = clock.now() + DAY;
    await clock.advance(DAY / 4);
    await engine.open({ citations: [{ folder: 'inbox' }] });
    engine.start();
    await clock.advance(MINUTE);
    await settled(clock, () => engine.mirrors.status()[0]?.nextAt === nextPassAt, 'the next pass is planned');
    expect(folder.asked).toEqual(['a.txt']);
  });
});

/** Waits for what the disk is still busy with, while time stands still. */
async function settled(clock: FakeClock, isSo: () => boolean, what: string): Promise<void> {
  const isSettled = async () => {
    await clock.advance(0);
    return isSo();
  };
  await until(isSettled, what);
}

describe('mirrored citations of a folder that changes', () => {
  /** A folder whose items were all asked for a moment ago, and whose mirror runs. */
  async function followed(paths: readonly string[]): Promise<{ folder: Folder; clock: FakeClock }> {
    const clock = new FakeClock();
    const folder = new Folder(clock);
    const engine = await folder.open(paths);
    await clock.advance(MINUTE);
    engine.start();
    await clock.advance(MINUTE);
    await asked(folder, clock, paths);
    await clock.advance(MINUTE);
    await rested(folder, clock);
    folder.peer.asked.length = 0;
    return { folder, clock };
  }

  const statusOf = (folder: Folder) => folder.engine.mirrors.status()[0];

  /** Waits until the last run ended and the next is planned. */
  async function rested(folder: Folder, clock: FakeClock): Promise<void> {
    const isAtRest = () =>
      statusOf(folder)?.running === false && (statusOf(folder)?.nextAt ?? 0) > clock.now();
    await settled(clock, isAtRest, 'no run is under way');
  }

  /** Waits until just these items were asked for, in this order, and the run ended. */
  async function asked(folder: Folder, clock: FakeClock, paths: readonly string[]): Promise<void> {
    await settled(clock, () => folder.asked.length >= paths.length, `${paths.length} items are asked for`);
    await rested(folder, clock);
    expect(folder.asked).toEqual(paths);
  }

  it('are fetched for a newly confirmed document within a minute, in one run for all of them, and for no other', async () => {
    const { folder, clock } = await followed(['a.txt', 'b.txt']);
    const before = statusOf(folder);
    for (const path of ['d.txt', 'c.txt', 'b.txt']) {
      folder.confirm(path, { since: clock.now() });
      await clock.advance(1_000);
    }
    expect(folder.asked).toEqual([]);
    await clock.advance(MINUTE);
    await asked(folder, clock, ['d.txt', 'c.txt', 'b.txt']);
    expect(folder.engine.has('citations/inbox/c.txt.json')).toBe(true);
    // That says nothing of the others: they are as old as they were, and their turn does not move.
    const { succeededAt, nextAt } = before ?? {};
    expect(statusOf(folder)).toMatchObject({ rows: 4, succeededAt, nextAt });
    await clock.advance(DAY / 2);
    await asked(folder, clock, ['d.txt', 'c.txt', 'b.txt']);
  });

  it('lose the file of an item that is gone within a minute', async () => {
    const { folder, clock } = await followed(['a.txt', 'b.txt']);
    folder.remove('a.txt', { since: clock.now() });
    await clock.advance(MINUTE);
    await settled(clock, () => statusOf(folder)?.rows === 1, 'a run has ended');
    expect(folder.engine.files()).toEqual(['citations/inbox/b.txt.json']);
  });

  it('are fetched soon after a restart for what was confirmed before', async () => {
    const { folder, clock } = await followed(['a.txt']);
    folder.confirm('b.txt', { since: clock.now() });
    await folder.engine.open({ citations: [{ folder: 'inbox' }] });
    folder.engine.start();
    await settled(clock, () => statusOf(folder)?.nextAt !== undefined, 'it is started');
    await clock.advance(MINUTE);
    await asked(folder, clock, ['b.txt']);
  });

  it('go on with the first that could not be fetched, at the pace of a failure', async () => {
    const { folder, clock } = await followed(['a.txt']);
    const paths = Array.from({ length: 10 }, (_, i) => `n${i}.txt`);
    for (const path of paths) folder.confirm(path, { since: clock.now() });
    folder.peer.onAsk = (what) => {
      if (!what.includes('/n0.txt')) throw peerError('PEER_REFUSED', 400);
    };
    await clock.advance(20_000);
    await asked(folder, clock, paths.slice(0, 6));
    expect(statusOf(folder)).toMatchObject({ failure: { code: 'PEER_REFUSED' } });
    const nextAt = statusOf(folder)?.nextAt;
    folder.confirm('o.txt', { since: clock.now() });
    expect(statusOf(folder)?.nextAt).toBe(nextAt);
    folder.peer.onAsk = () => {};
    folder.peer.asked.length = 0;
    await clock.advance(MINUTE);
    await asked(folder, clock, [...paths.slice(1), 'o.txt']);
    expect(statusOf(folder)?.failure).toBeUndefined();
  });

  it('are fetched in the middle of a pass that takes long, which then goes on', async () => {
    const clock = new FakeClock();
    const folder = new Folder(clock);
    const paths = Array.from({ length: 10 }, (_, i) => `${i}.txt`);
    const engine = await folder.open(paths);
    await clock.advance(MINUTE);
    folder.peer.onAsk = (what) => {
      if (what.endsWith('/4.txt')) folder.confirm('00.txt', { since: clock.now() });
      clock.skip(10_000);
    };
    engine.start();
    await clock.advance(MINUTE);
    await settled(clock, () => statusOf(folder)?.rows === 11, 'the pass is over');
    expect(folder.asked.toSorted()).toEqual(['0.txt', '00.txt', ...paths.slice(1)]);
    expect(folder.asked.at(-1)).toBe('9.txt');
  });

  it('are all fetched when a person asks', async () => {
    const { folder } = await followed(['a.txt', 'b.txt']);
    await folder.engine.once('citations/inbox');
    expect(folder.asked).toEqual(['a.txt', 'b.txt']);
  });
});
