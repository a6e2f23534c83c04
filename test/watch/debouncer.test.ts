import { describe, expect, it } from 'vitest';
import type { FileStat } from '../../src/lib/file.js';
import { Debouncer } from '../../src/watch/debouncer.js';
import { FakeClock } from '../support/fake-clock.js';

const SETTLE = 2_000;
const DAY = 86_400_000;
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

function setUp(onLook: (path: string) => Promise<void> | void = () => {}) {
  const clock = new FakeClock();
  const looked: string[] = [];
  const asked: string[] = [];
  const debouncer = new Debouncer(SETTLE, clock);
  debouncer.start(async (path, read) => {
    looked.push(path);
    if (read === 'always') asked.push(path);
    await onLook(path);
  });
  /** Returns the stat of a file that was written `ageMs` ago. */
  const stat = (ageMs: number, size = 1): FileStat => {
    const at = clock.now() - ageMs;
    return { size, mtimeMs: at, ctimeMs: at, ino: 1 };
  };
  return { clock, looked, asked, debouncer, stat };
}

describe('a settling file', () => {
  it('is at rest at once if it is older than settle, and still is looked at for an event that waits', async () => {
    const { clock, looked, debouncer, stat } = setUp();
    debouncer.changed('', 'f');
    expect(debouncer.atRest('f', stat(SETTLE))).toBe(true);
    expect(debouncer.settling).toBe(0);
    await clock.advance(100);
    expect(looked).toEqual(['f']);
  });

  it('is looked at again as soon as it may be old enough, and not before', async () => {
    const { clock, looked, debouncer, stat } = setUp();
    const written = stat(500);
    expect(debouncer.atRest('f', written)).toBe(false);
    await clock.advance(1_400);
    expect(looked).toEqual([]);
    await clock.advance(200);
    expect(looked).toEqual(['f']);
    expect(debouncer.atRest('f', written)).toBe(true);
  });

  it.each([
    ['nothing', {}, [true]],
    ['its size', { size: 2 }, [false, true]],
    ['its inode', { ino: 2 }, [false, true]],
    ['its ctime', { ctimeMs: 90_000_001 }, [false, true]],
  ])(
    'from the future is at rest when it stayed the same for settle: %s of it changes',
    async (_, change, rests) => {
      const found: boolean[] = [];
      const { clock, debouncer, stat } = setUp(
        () => void found.push(debouncer.atRest('f', { ...future, ...change })),
      );
      const future = stat(-DAY);
      expect(debouncer.atRest('f', future)).toBe(false);
      await clock.advance(SETTLE + 100);
      expect(found).toEqual([rests[0]]);
      await clock.advance(SETTLE + 100);
      expect(found).toEqual(rests);
      expect(debouncer.busy).toBe(false);
    },
  );

  it('that an event names is looked at, and its time of rest so far counts', async () => {
    const found: boolean[] = [];
    const { clock, debouncer, stat } = setUp(() => void found.push(debouncer.atRest('f', future)));
    const future = stat(-DAY);
    debouncer.atRest('f', future);
    await clock.advance(1_000);
    debouncer.changed('', 'f');
    await clock.advance(100);
    expect(found).toEqual([false]);
    await clock.advance(SETTLE - 1_000);
    expect(found).toEqual([false, true]);
  });

  it('whose read raced a write waits for a whole settle', async () => {
    const { clock, looked, debouncer, stat } = setUp();
    debouncer.raced('f', stat(SETTLE * 10));
    await clock.advance(SETTLE - 100);
    expect(looked).toEqual([]);
    await clock.advance(200);
    expect(looked).toEqual(['f']);
  });

  it('beyond the limit is found again by its directory, however many more come', async () => {
    const { clock, looked, debouncer, stat } = setUp();
    for (let i = 0; i < 10_000; i += 1) debouncer.atRest(`a/${i}`, stat(0));
    for (let i = 0; i < 15; i += 1) {
      debouncer.atRest(`b/${i}`, stat(0));
      await clock.advance(100);
    }
    expect(debouncer.settling).toBe(10_001);
    await clock.advance(600);
    expect(looked).toHaveLength(10_001);
    expect(looked.filter((path) => !path.startsWith('a/'))).toEqual(['b/']);
    expect([debouncer.settling, clock.waiting]).toEqual([0, 0]);
  });
});

describe('a path', () => {
  it('that many events named is looked at once, after a moment; without a usable name, its directory is', async () => {
    const { clock, looked, debouncer } = setUp();
    for (let i = 0; i < 20; i += 1) debouncer.changed('d', 'f');
    debouncer.changed('', 'g');
    debouncer.changed('e', undefined);
    debouncer.changed('h', 'caf\ufffd');
    expect(debouncer.busy).toBe(true);
    await clock.advance(20);
    expect(looked).toEqual([]);
    await clock.advance(20);
    expect(looked).toEqual(['d/f', 'g', 'e/', 'h/']);
    expect([debouncer.busy, clock.waiting]).toEqual([false, 0]);
  });

  it('that was requested is looked at as such, even if events name it too', async () => {
    const { clock, looked, asked, debouncer } = setUp();
    debouncer.look('f', 'always');
    debouncer.changed('', 'f');
    debouncer.look('f');
    debouncer.look('g');
    await clock.advance(30);
    expect([looked, asked]).toEqual([['f', 'g'], ['f']]);
  });

  it('among thousands of requests is looked at, a few at a time', async () => {
    let [now, most] = [0, 0];
    const { clock, looked, debouncer } = setUp(async () => {
      now += 1;
      most = Math.max(most, now);
      await nextTurn();
      now -= 1;
    });
    for (let i = 0; i < 20_000; i += 1) debouncer.look(`${i}`, 'always');
    await clock.advance(30);
    debouncer.look('late', 'always');
    while (debouncer.busy) await clock.advance(30);
    expect(new Set(looked).size).toBe(20_001);
    expect(most).toBe(16);
  });

  it('that changes while it is looked at is looked at again', async () => {
    const { clock, looked, debouncer } = setUp(() => {
      if (looked.length === 1) debouncer.changed('', 'f');
    });
    debouncer.changed('', 'f');
    await clock.advance(100);
    expect(looked).toEqual(['f', 'f']);
  });

  it('is forgotten by a stop', async () => {
    const { clock, looked, debouncer } = setUp(nextTurn);
    for (let i = 0; i < 1_000; i += 1) debouncer.look(`${i}`, 'always');
    clock.skip(30);
    await Promise.all([clock.advance(0), debouncer.stop()]);
    debouncer.look('late', 'always');
    await clock.advance(100);
    expect(looked.length).toBeLessThan(20);
    expect(debouncer.busy).toBe(false);
  });
});

describe('waiting until the debouncer has caught up', () => {
  it('waits for what events have named so far, and not for settling files or later events', async () => {
    const { clock, looked, debouncer, stat } = setUp((path) => {
      if (path === 'named') debouncer.changed('', 'later');
    });
    debouncer.atRest('written', stat(0));
    debouncer.changed('', 'named');
    let isCaughtUp: boolean | undefined;
    void debouncer.caughtUp(SETTLE).then((is) => {
      isCaughtUp = is;
    });
    expect(isCaughtUp).toBeUndefined();
    await clock.advance(120);
    expect(looked).toContain('named');
    expect(looked).not.toContain('written');
    expect(isCaughtUp).toBe(true);
  });

  it('ends at once if nothing waits, and ends at its limit', async () => {
    const { clock, debouncer } = setUp(() => new Promise(() => {}));
    expect(await debouncer.caughtUp(SETTLE)).toBe(true);
    debouncer.changed('', 'a look at it that never ends');
    let isCaughtUp: boolean | undefined;
    void debouncer.caughtUp(SETTLE).then((is) => {
      isCaughtUp = is;
    });
    await clock.advance(SETTLE - 100);
    expect(isCaughtUp).toBeUndefined();
    await clock.advance(200);
    expect(isCaughtUp).toBe(false);
  });
});
