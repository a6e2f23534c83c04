import { describe, expect, it } from 'vitest';
import { BackgroundWork, Signal } from '../../src/uplink/signal.js';
import { FakeClock } from '../support/fake-clock.js';

/** Work that ends when it is told. */
function pending() {
  let end: () => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const promise = new Promise<void>((resolve, reject) => {
    end = resolve;
    fail = reject;
  });
  return { promise, end: () => end(), fail: (error: unknown) => fail(error) };
}

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('background work', () => {
  it('count until they end, and do not when that is told', async () => {
    const sizes: number[] = [];
    const work = new BackgroundWork(() => sizes.push(work.size));
    const [a, b] = [pending(), pending()];
    work.start(a.promise);
    work.start(b.promise);
    expect(work.size).toBe(2);
    b.end();
    await settle();
    expect([work.size, sizes]).toEqual([1, [1]]);
    a.end();
    await settle();
    expect([work.size, sizes, work.hasFailed]).toEqual([0, [1, 0], false]);
    await work.settled();
  });

  it('are waited for, all of them', async () => {
    const work = new BackgroundWork(() => {});
    const [a, b] = [pending(), pending()];
    work.start(a.promise);
    work.start(b.promise);
    let isOver = false;
    const ended = work.settled().then(() => {
      isOver = true;
    });
    a.end();
    await settle();
    expect(isOver).toBe(false);
    b.end();
    await ended;
  });

  it('that fail are known when that is told; the first failure is thrown when all have ended', async () => {
    const failed: boolean[] = [];
    const work = new BackgroundWork(() => failed.push(work.hasFailed));
    const [a, b, c] = [pending(), pending(), pending()];
    for (const { promise } of [a, b, c]) work.start(promise);
    b.fail(new Error('first'));
    await settle();
    expect(failed).toEqual([true]);
    let isOver = false;
    const ended = work.settled().finally(() => {
      isOver = true;
    });
    const thrown = expect(ended).rejects.toThrow('first');
    a.fail(new Error('second'));
    await settle();
    expect(isOver).toBe(false);
    c.end();
    await thrown;
    expect(work.size).toBe(0);
  });
});

describe('a loop that waits', () => {
  it('is woken now and then where a time is waited for: the wall clock may have been set ahead', async () => {
    const clock = new FakeClock();
    let up = 0;
    void new Signal(clock).wait(3_600_000, new AbortController().signal).then(() => {
      up += 1;
    });
    await clock.advance(20_000);
    expect(up).toBe(0);
    await clock.advance(20_000);
    expect(up).toBe(1);
  });

  it('waits for ever where only a notification can wake it', async () => {
    const clock = new FakeClock();
    const signal = new Signal(clock);
    let up = 0;
    void signal.wait(undefined, new AbortController().signal).then(() => {
      up += 1;
    });
    await clock.advance(3_600_000);
    expect(up).toBe(0);
    signal.notify();
    await clock.advance(0);
    expect(up).toBe(1);
  });
});
