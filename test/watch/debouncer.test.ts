import { describe, expect, it } from 'vitest';
import type { FileStat } from '../../src/lib/file.js';
import { Debouncer } from '../../src/watch/debouncer.js';
import { FakeClock } from '../support/fake-clock.js';

const SETTLE = 2_000;

function setUp(onLook: (path: string) => Promise<void> | void = () => {}) {
  const clock = new FakeClock();
  const again: { path: string; isAsked: boolean }[] = [];
  const directories: string[] = [];
  const debouncer = new Debouncer(SETTLE, clock, async (path, isAsked) => {
    if (path.endsWith('/')) directories.push(path.slice(0, -1));
    else again.push({ path, isAsked });
    await onLook(path);
  });
  const stat = (ageMs: number, size = 1): FileStat => ({
    size,
    mtimeMs: clock.now() - ageMs,
    ctimeMs: clock.now() - ageMs,
    ino: 1,
  });
  const paths = () => again.map(({ path }) => path);
  return { clock, again, paths, directories, debouncer, stat };
}

describe('a settling file', () => {
  it('is at rest at once when it is older than settle', () => {
    const { debouncer, stat } = setUp();
    expect(debouncer.atRest('f', stat(SETTLE))).toBe(true);
    expect(debouncer.settling).toBe(0);
  });

  it('is looked at for an event though an older stat of it is at rest', async () => {
    const { clock, paths, debouncer, stat } = setUp();
    debouncer.changed('', 'f');
    expect(debouncer.atRest('f', stat(SETTLE))).toBe(true);
    await clock.advance(100);
    expect(paths()).toEqual(['f']);
  });

  it('is looked at again as soon as it may be old enough, and not before', async () => {
    const { clock, paths, debouncer, stat } = setUp();
    const written = stat(500);
    expect(debouncer.atRest('f', written)).toBe(false);
    await clock.advance(1_400);
    expect(paths()).toEqual([]);
    await clock.advance(200);
    expect(paths()).toEqual(['f']);
    expect(debouncer.atRest('f', written)).toBe(true);
  });

  it('begins anew with every change', async () => {
    const { clock, again, debouncer, stat } = setUp();
    debouncer.atRest('f', stat(0));
    for (let i = 0; i < 10; i += 1) {
      await clock.advance(1_500);
      expect(debouncer.atRest('f', stat(0, i + 2))).toBe(false);
    }
    expect(again).toEqual([]);
    await clock.advance(SETTLE + 100);
    expect(again).toHaveLength(1);
  });

  it('from the future is at rest when it looked the same for settle', async () => {
    const found: boolean[] = [];
    const { clock, debouncer, stat } = setUp(() => void found.push(debouncer.atRest('f', future)));
    const future = stat(-86_400_000);
    expect(debouncer.atRest('f', future)).toBe(false);
    await clock.advance(SETTLE + 100);
    expect(found).toEqual([true]);
    expect(debouncer.busy).toBe(false);
  });

  it.each([
    ['size', { size: 2 }],
    ['inode', { ino: 2 }],
    ['ctime', { ctimeMs: 90_000_001 }],
  ])('from the future that changes only its %s is not the same', async (_, change) => {
    const found: boolean[] = [];
    const { clock, debouncer, stat } = setUp(
      () => void found.push(debouncer.atRest('f', { ...future, ...change })),
    );
    const future = stat(-86_400_000);
    debouncer.atRest('f', future);
    await clock.advance(SETTLE + 100);
    expect(found).toEqual([false]);
    await clock.advance(SETTLE + 100);
    expect(found).toEqual([false, true]);
  });

  it('that raced a write waits a whole settle', async () => {
    const { clock, again, debouncer, stat } = setUp();
    debouncer.raced('f', stat(SETTLE * 10));
    await clock.advance(SETTLE - 100);
    expect(again).toEqual([]);
    await clock.advance(200);
    expect(again).toHaveLength(1);
  });

  it('of too many is found again by its directory, however many more come', async () => {
    const { clock, again, directories, debouncer, stat } = setUp();
    for (let i = 0; i < 10_000; i += 1) debouncer.atRest(`a/${i}`, stat(0));
    for (let i = 0; i < 15; i += 1) {
      debouncer.atRest(`b/${i}`, stat(0));
      await clock.advance(100);
    }
    expect(debouncer.settling).toBe(10_001);
    await clock.advance(600);
    expect(again).toHaveLength(10_000);
    expect(directories).toEqual(['b']);
    expect(debouncer.settling).toBe(0);
    expect(clock.waiting).toBe(0);
  });
});

describe('a path', () => {
  it('that many events named is looked at once, after a moment', async () => {
    const { clock, paths, debouncer } = setUp();
    for (let i = 0; i < 20; i += 1) debouncer.changed('d', 'f');
    debouncer.changed('', 'g');
    expect(debouncer.busy).toBe(true);
    await clock.advance(20);
    expect(paths()).toEqual([]);
    await clock.advance(20);
    expect(paths()).toEqual(['d/f', 'g']);
    expect([debouncer.busy, clock.waiting]).toEqual([false, 0]);
  });

  it('that changes while it settles is looked at, and what was seen before counts', async () => {
    const found: boolean[] = [];
    const { clock, debouncer, stat } = setUp(() => void found.push(debouncer.atRest('f', future)));
    const future = stat(-86_400_000);
    debouncer.atRest('f', future);
    await clock.advance(1_000);
    debouncer.changed('', 'f');
    await clock.advance(100);
    expect(found).toEqual([false]);
    await clock.advance(SETTLE - 1_000);
    expect(found).toEqual([false, true]);
  });

  it('that somebody asked for is looked at as that, whatever else names it', async () => {
    const { clock, again, debouncer } = setUp();
    debouncer.look('f', true);
    debouncer.changed('', 'f');
    debouncer.look('f');
    await clock.advance(30);
    expect(again).toMatchObject([{ path: 'f', isAsked: true }]);
  });

  it('is one of thousands that are asked for, and looked at a few at a time', async () => {
    let [now, most] = [0, 0];
    const { clock, paths, debouncer } = setUp(async () => {
      now += 1;
      most = Math.max(most, now);
      await new Promise((resolve) => setImmediate(resolve));
      now -= 1;
    });
    for (let i = 0; i < 20_000; i += 1) debouncer.look(`${i}`, true);
    await clock.advance(30);
    debouncer.look('late', true);
    while (debouncer.busy) await clock.advance(30);
    expect(new Set(paths()).size).toBe(20_001);
    expect(most).toBe(16);
  });

  it('whose name is not known leads to its directory', async () => {
    const { clock, directories, debouncer } = setUp();
    debouncer.changed('d', undefined);
    debouncer.changed('e', 'caf\ufffd');
    await clock.advance(30);
    expect(directories).toEqual(['d', 'e']);
  });

  it('that changes while it is looked at is looked at again', async () => {
    const { clock, paths, debouncer } = setUp(async () => {
      if (paths().length === 1) debouncer.changed('', 'f');
    });
    debouncer.changed('', 'f');
    await clock.advance(100);
    expect(paths()).toEqual(['f', 'f']);
  });

  it('is forgotten by a stop, and nothing is looked at any more', async () => {
    const { clock, paths, debouncer } = setUp(async () => {
      await new Promise((resolve) => setImmediate(resolve));
    });
    for (let i = 0; i < 1_000; i += 1) debouncer.look(`${i}`, true);
    clock.skip(30);
    await Promise.all([clock.advance(0), debouncer.stop()]);
    debouncer.look('late', true);
    await clock.advance(100);
    expect(paths().length).toBeLessThan(20);
    expect(debouncer.busy).toBe(false);
  });
});
