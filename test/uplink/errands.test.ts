import { describe, expect, it } from 'vitest';
import { Errands } from '../../src/uplink/errands.js';

/** Work that ends when it is told. */
function work() {
  let end: () => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const promise = new Promise<void>((resolve, reject) => {
    end = resolve;
    fail = reject;
  });
  return { promise, end: () => end(), fail: (error: unknown) => fail(error) };
}

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('errands', () => {
  it('count until they end, and do not when that is told', async () => {
    const sizes: number[] = [];
    const errands = new Errands(() => sizes.push(errands.size));
    const [a, b] = [work(), work()];
    errands.begin(a.promise);
    errands.begin(b.promise);
    expect(errands.size).toBe(2);
    b.end();
    await settle();
    expect([errands.size, sizes]).toEqual([1, [1]]);
    a.end();
    await settle();
    expect([errands.size, sizes, errands.hasFailed]).toEqual([0, [1, 0], false]);
    await errands.ended();
  });

  it('are waited for, all of them', async () => {
    const errands = new Errands(() => {});
    const [a, b] = [work(), work()];
    errands.begin(a.promise);
    errands.begin(b.promise);
    let isOver = false;
    const ended = errands.ended().then(() => {
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
    const errands = new Errands(() => failed.push(errands.hasFailed));
    const [a, b, c] = [work(), work(), work()];
    for (const { promise } of [a, b, c]) errands.begin(promise);
    b.fail(new Error('first'));
    await settle();
    expect(failed).toEqual([true]);
    let isOver = false;
    const ended = errands.ended().finally(() => {
      isOver = true;
    });
    const thrown = expect(ended).rejects.toThrow('first');
    a.fail(new Error('second'));
    await settle();
    expect(isOver).toBe(false);
    c.end();
    await thrown;
    expect(errands.size).toBe(0);
  });
});
