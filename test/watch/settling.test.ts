import { describe, expect, it } from 'vitest';
import type { FileStat } from '../../src/state/entry.js';
import { type Seen, Settling } from '../../src/watch/settling.js';
import { FakeClock } from '../support/fake-clock.js';

const SETTLE = 2_000;

function setUp() {
  const clock = new FakeClock();
  const again: { path: string; seen: Seen }[] = [];
  const directories: string[] = [];
  const settling = new Settling({
    settleMs: SETTLE,
    clock,
    lookAgain: (path, seen) => again.push({ path, seen }),
    lookAtDirectory: (directory) => directories.push(directory),
  });
  const stat = (ageMs: number, size = 1): FileStat => ({
    size,
    mtimeMs: clock.now() - ageMs,
    ctimeMs: clock.now() - ageMs,
    ino: 1,
  });
  return { clock, again, directories, settling, stat };
}

describe('a settling file', () => {
  it('is at rest at once when it is older than settle', () => {
    const { settling, stat } = setUp();
    expect(settling.atRest('f', stat(SETTLE))).toBe(true);
    expect(settling.size).toBe(0);
  });

  it('is looked at again as soon as it may be old enough, and not before', async () => {
    const { clock, again, settling, stat } = setUp();
    const written = stat(500);
    expect(settling.atRest('f', written)).toBe(false);
    await clock.advance(1_400);
    expect(again).toEqual([]);
    await clock.advance(200);
    expect(again.map(({ path }) => path)).toEqual(['f']);
    expect(settling.atRest('f', written, again[0]?.seen)).toBe(true);
  });

  it('begins anew with every change', async () => {
    const { clock, again, settling, stat } = setUp();
    settling.atRest('f', stat(0));
    for (let i = 0; i < 10; i += 1) {
      await clock.advance(1_500);
      expect(settling.atRest('f', stat(0, i + 2))).toBe(false);
    }
    expect(again).toEqual([]);
    await clock.advance(SETTLE + 100);
    expect(again).toHaveLength(1);
  });

  it('from the future is at rest when it looked the same for settle', async () => {
    const { clock, again, settling, stat } = setUp();
    const future = stat(-86_400_000);
    expect(settling.atRest('f', future)).toBe(false);
    await clock.advance(SETTLE + 100);
    expect(settling.atRest('f', future, again[0]?.seen)).toBe(true);
    expect(settling.atRest('f', { ...future, size: 2 }, again[0]?.seen)).toBe(false);
  });

  it('that changes only its inode or ctime is not the same', () => {
    const { settling, stat } = setUp();
    const future = stat(-1_000);
    const seen: Seen = { stat: future, since: -SETTLE };
    expect(settling.atRest('f', future, seen)).toBe(true);
    expect(settling.atRest('f', { ...future, ino: 2 }, seen)).toBe(false);
    expect(settling.atRest('f', { ...future, ctimeMs: future.ctimeMs + 1 }, seen)).toBe(false);
  });

  it('that raced a write waits a whole settle', async () => {
    const { clock, again, settling, stat } = setUp();
    settling.again('f', stat(SETTLE * 10));
    await clock.advance(SETTLE - 100);
    expect(again).toEqual([]);
    await clock.advance(200);
    expect(again).toHaveLength(1);
  });

  it('of too many is found again by its directory, however many more come', async () => {
    const { clock, again, directories, settling, stat } = setUp();
    for (let i = 0; i < 10_000; i += 1) settling.atRest(`a/${i}`, stat(0));
    for (let i = 0; i < 15; i += 1) {
      settling.atRest(`b/${i}`, stat(0));
      await clock.advance(100);
    }
    expect(settling.size).toBe(10_001);
    await clock.advance(600);
    expect(again).toHaveLength(10_000);
    expect(directories).toEqual(['b']);
    expect(settling.size).toBe(0);
    expect(clock.waiting).toBe(0);
  });
});
