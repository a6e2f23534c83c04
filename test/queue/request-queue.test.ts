import { describe, expect, test } from 'vitest';
import { LANES, type Lane } from '../../src/queue/options.js';
import { Bad, bad, Gate, lanesOf, openQueue, settle, slots, UNLIMITED } from './queue-setup.js';

const DAY_MS = 86_400_000;
const STOPPED = { code: 'QUEUE_STOPPED' };
/** Work that ends only when it is aborted. */
const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });

type Queue = ReturnType<typeof openQueue>['queue'];

/** Opens the circuit. */
async function away(queue: Queue): Promise<void> {
  for (let i = 0; i < 2; i += 1)
    await queue.run('push', () => Promise.reject(bad('unreachable'))).catch(() => {});
  expect(queue.status().circuit.state).toBe('open');
}

/** Tracks whether a promise has resolved. */
function follow(promise: Promise<unknown>): { readonly isOver: boolean } {
  const state = { isOver: false };
  void promise.then(() => {
    state.isOver = true;
  });
  return state;
}

describe('a request', () => {
  test('settles as its work does', async () => {
    const { queue } = openQueue();
    await expect(queue.run('push', async () => 42)).resolves.toBe(42);
    await expect(queue.run('push', async () => Promise.reject(new Error('no')))).rejects.toThrow(
      'no',
    );
    const throws = () => {
      throw new Error('at once');
    };
    await expect(queue.run('push', throws)).rejects.toThrow('at once');
    expect(queue.status().lanes.push).toMatchObject({
      started: 3,
      failed: 2,
      running: 0,
      waiting: 0,
    });
  });

  test('whose caller aborts leaves the queue if it waits, gets the signal if it runs, and never starts later', async () => {
    const { queue } = openQueue({ lanes: slots(1) });
    const gate = new Gate();
    const caller = new AbortController();
    const { signal } = caller;
    const runs = queue.run('mirror', untilAborted, { signal });
    const waits = queue.run('mirror', gate.task('waits'), { signal });
    const other = queue.run('mirror', gate.task('other'));
    caller.abort(new Error('enough'));
    await expect(waits).rejects.toThrow('enough');
    await expect(runs).rejects.toThrow('enough');
    await expect(queue.run('push', gate.task('late'), { signal })).rejects.toThrow('enough');
    gate.end('other');
    await other;
    expect(gate.order).toEqual(['other']);
    expect(queue.status().lanes.mirror).toMatchObject({ failed: 0, running: 0, waiting: 0 });
  });

  test('shares its caller’s signal with any number of others, without a warning', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    const { queue } = openQueue({ lanes: slots(1) });
    const caller = new AbortController();
    const { signal } = caller;
    const gate = new Gate();
    const all = Array.from({ length: 50 }, (_, i) => [
      queue.run('push', gate.task(`${i}`), { signal }).catch(() => 'gone'),
      queue.ready('push', signal).catch(() => 'gone'),
    ]);
    await settle();
    caller.abort();
    gate.end('0');
    await Promise.all(all.flat());
    await settle();
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
  });
});

describe('the lanes', () => {
  test('start requests in order and at once, each lane in its own slots', async () => {
    const { queue } = openQueue({ lanes: slots(2) });
    // One answer raised the limit of pushes to two; that of look-ups is still one.
    await queue.run('push', async () => {});
    await settle();
    const gate = new Gate();
    for (const lane of ['push', 'confirm', 'mirror', 'audit', 'interactive'] as const)
      for (const i of [1, 2, 3]) void queue.run(lane, gate.task(`${lane} ${i}`));
    const twoOf = (lane: Lane) => [`${lane} 1`, `${lane} 2`];
    const first = [...twoOf('push'), 'confirm 1', ...twoOf('mirror'), ...twoOf('audit')];
    expect(gate.order).toEqual([...first, ...twoOf('interactive')]);
    expect(queue.status().concurrency).toEqual({ running: 3, limit: 3, max: 4 });
    expect(queue.status().lanes.push).toMatchObject({ running: 2, waiting: 1 });
    gate.end('push 1');
    await settle();
    expect(gate.order.at(-1)).toBe('push 3');
  });

  test('of downloads do not affect the adaptive concurrency limit, however long they take', async () => {
    const { queue, clock } = openQueue({ lanes: slots(8) });
    for (let i = 0; i < 20; i += 1) void queue.run('push', settle);
    await clock.advance(1);
    const before = queue.status().concurrency.limit;
    expect(before).toBe(9);
    for (let i = 0; i < 20; i += 1) {
      const download = queue.run('mirror', () => clock.sleep(i < 10 ? 1 : 100_000));
      await clock.advance(100_000);
      await download;
    }
    expect(queue.status().concurrency.limit).toBe(before);
  });

  test('start nothing more once their limit is lowered', async () => {
    const { queue, clock } = openQueue({ lanes: slots(8) });
    for (let i = 0; i < 20; i += 1) void queue.run('push', settle);
    await clock.advance(1);
    const gate = new Gate();
    for (let i = 0; i < 20; i += 1) void queue.run('push', gate.task(`${i}`)).catch(() => {});
    expect(gate.running.length).toBe(8);
    gate.fail('0', new Bad({ kind: 'failing' }));
    await settle();
    expect(queue.status().concurrency).toMatchObject({ limit: 5, running: 7 });
    for (let i = 1; i < 20; i += 1) {
      gate.end(`${i}`);
      await settle();
      expect(gate.running.length).toBeLessThanOrEqual(
        Math.max(7 - i, queue.status().concurrency.limit),
      );
    }
  });
});

describe('ready', () => {
  test('resolves while fewer requests wait than can start together', async () => {
    const { queue } = openQueue({ lanes: slots(2) });
    const gate = new Gate();
    let entered = 0;
    for (; queue.hasRoom('mirror'); entered += 1) void queue.run('mirror', gate.task(`${entered}`));
    expect([entered, gate.running.length]).toEqual([4, 2]);
    const ready = follow(queue.ready('mirror'));
    await settle();
    expect(ready.isOver).toBe(false);
    gate.end('0');
    await settle();
    expect(ready.isOver).toBe(true);
  });

  test('waits while the peer is down, until a probe is due, and while the peer asks to wait', async () => {
    const { queue, clock, said } = openQueue();
    await away(queue);
    const order: string[] = [];
    for (const lane of ['push', 'confirm'] as const)
      void queue.ready(lane).then(() => order.push(lane));
    await clock.advance(999);
    expect(order).toEqual([]);
    await clock.advance(1);
    expect(order).toEqual(['confirm', 'push']);
    expect(queue.status().circuit.state).toBe('half-open');
    await queue
      .run('push', () => Promise.reject(new Bad({ kind: 'busy', retryAfterMs: 500 })))
      .catch(() => {});
    const ready = follow(queue.ready('push'));
    expect(queue.status().retryAfterUntil).toBe(clock.now() + 500);
    await clock.advance(499);
    expect(ready.isOver).toBe(false);
    await clock.advance(1);
    expect([ready.isOver, queue.status().retryAfterUntil]).toEqual([true, undefined]);
    expect(said.at(-1)).toBe('info: peer asks to wait: busy. Going on in 500ms.');
  });

  test('rejects when the caller’s signal aborts, and when the queue stops', async () => {
    const { queue } = openQueue({ lanes: slots(1) });
    const gate = new Gate();
    for (const name of ['runs', 'waits']) void queue.run('push', gate.task(name)).catch(() => {});
    const caller = new AbortController();
    const [first, second] = [queue.ready('push', caller.signal), queue.ready('push')];
    caller.abort(new Error('enough'));
    await expect(first).rejects.toThrow('enough');
    const stopped = queue.stop(1000);
    await expect(second).rejects.toMatchObject(STOPPED);
    gate.end('runs');
    await stopped;
    await expect(queue.ready('push')).rejects.toMatchObject(STOPPED);
  });
});

describe('a queue that a person paused', () => {
  const HELD: readonly Lane[] = LANES.filter((lane) => lane !== 'interactive');

  test.each(HELD)(
    'starts nothing in the lane %s until it is resumed, and lets running requests finish',
    async (lane) => {
      const { queue, clock } = openQueue();
      const gate = new Gate();
      const before = queue.run(lane, gate.task('before'));
      queue.pause({ since: clock.now() });
      expect(queue.hasRoom(lane)).toBe(false);
      const after = queue.run(lane, gate.task('after'));
      const ready = follow(queue.ready(lane));
      await clock.advance(DAY_MS);
      // Without an end it needs no timer.
      expect(clock.waiting).toBe(0);
      gate.end('before');
      expect(await before).toBe('before');
      await clock.advance(60_000);
      expect([gate.order, ready.isOver]).toEqual([['before'], false]);
      expect(await queue.run('interactive', async () => 'asked')).toBe('asked');
      queue.resume();
      await settle();
      gate.end('after');
      expect(await after).toBe('after');
      expect([ready.isOver, queue.hasRoom(lane)]).toEqual([true, true]);
    },
  );

  test('resumes by itself at the end of the pause, even days later, and logs it; a new pause replaces the old one', async () => {
    const { queue, clock, said } = openQueue();
    const since = clock.now();
    queue.pause({ since });
    queue.pause({ since, until: since + 1_000 });
    queue.pause({ since, until: since + 5 * DAY_MS });
    const gate = new Gate();
    void queue.run('push', gate.task('work'));
    await clock.advance(5 * DAY_MS - 1);
    expect(gate.order).toEqual([]);
    expect(queue.status().paused).toEqual({ since, until: since + 5 * DAY_MS });
    await clock.advance(1);
    expect(gate.order).toEqual(['work']);
    expect(queue.status().paused).toBeUndefined();
    expect(said).toEqual(['info: the pause is over: the work with the peer goes on']);
    queue.pause({ since, until: clock.now() + 5_000 });
    await clock.advance(5_000);
    expect([queue.status().paused, clock.waiting]).toEqual([undefined, 0]);
  });
});

describe('a queue whose limits change', () => {
  test('starts more requests at once, and lets a producer continue', async () => {
    const { queue } = openQueue({ lanes: slots(1) });
    const gate = new Gate();
    for (const name of ['a', 'b', 'c']) void queue.run('mirror', gate.task(name));
    const ready = follow(queue.ready('mirror'));
    await settle();
    expect([gate.running, ready.isOver]).toEqual([['a'], false]);
    queue.limit({ lanes: slots(3) });
    await settle();
    expect([gate.running, ready.isOver]).toEqual([['a', 'b', 'c'], true]);
  });

  test('keeps the adaptive limit below a new maximum', async () => {
    const { queue, clock } = openQueue({ lanes: slots(10) });
    const push = async () => {
      for (let i = 0; i < 30; i += 1) void queue.run('push', settle);
      await clock.advance(1);
      return queue.status().concurrency;
    };
    expect(await push()).toMatchObject({ max: 20, limit: 11 });
    queue.limit({ lanes: slots(2) });
    expect(queue.status().concurrency).toMatchObject({ max: 4, limit: 3 });
    expect(await push()).toMatchObject({ max: 4, limit: 3 });
  });
});

describe('stop', () => {
  test('lets running requests finish within the grace period, even after a change of rate, and rejects waiting ones', async () => {
    const { queue, clock } = openQueue({ lanes: slots(1) });
    const gate = new Gate();
    let isAborted = false;
    const running = queue.run('push', (signal) => {
      signal.addEventListener('abort', () => {
        isAborted = true;
      });
      return gate.task('runs')();
    });
    for (const requestsPerSecond of [50, 60])
      queue.limit({ lanes: lanesOf({ ...UNLIMITED, concurrency: 1, requestsPerSecond }) });
    const waiting = queue.run('push', gate.task('waits'));
    const stopped = queue.stop(10_000);
    await expect(waiting).rejects.toMatchObject(STOPPED);
    await expect(queue.run('confirm', gate.task('late'))).rejects.toMatchObject(STOPPED);
    const end = follow(stopped);
    await clock.advance(9000);
    expect([isAborted, end.isOver]).toEqual([false, false]);
    gate.end('runs');
    await expect(running).resolves.toBe('runs');
    await stopped;
    expect([gate.order, clock.waiting]).toEqual([['runs'], 0]);
  });

  test.each([
    ['within the grace period', [1000], 1000],
    ['within the shorter grace period of a second stop', [3_600_000, 0], 0],
  ])('aborts requests that do not finish %s', async (_, graces, afterMs) => {
    const { queue, clock } = openQueue();
    const rejected = expect(queue.run('push', untilAborted)).rejects.toMatchObject(STOPPED);
    const stops = graces.map((ms) => queue.stop(ms));
    await clock.advance(afterMs);
    await Promise.all([rejected, ...stops]);
    expect(clock.waiting, 'timers left').toBe(0);
  });

  test('rejects requests that wait for a peer that is down', async () => {
    const { queue, clock } = openQueue();
    await away(queue);
    const rejected = expect(queue.run('push', async () => 'never')).rejects.toMatchObject(STOPPED);
    await queue.stop(1000);
    await rejected;
    expect(clock.waiting, 'timers left').toBe(0);
  });
});

describe('the status', () => {
  test('has statistics for each lane', async () => {
    const { queue, clock } = openQueue();
    for (const ms of [10, 20, 90]) {
      const end = queue.run('confirm', () => clock.sleep(ms));
      await clock.advance(ms);
      await end;
    }
    await queue.run('push', () => Promise.reject(bad('failing'))).catch(() => {});
    const none = { running: 0, waiting: 0 };
    expect(queue.status().lanes.confirm).toEqual({
      started: 3,
      failed: 0,
      ...none,
      p50LatencyMs: 20,
    });
    expect(queue.status().lanes.push).toEqual({ started: 1, failed: 1, ...none });
  });

  test('shows since when the peer answers or fails, and how it fails', async () => {
    const { queue, clock } = openQueue();
    const up = clock.now();
    await clock.advance(5000);
    expect(queue.status().circuit).toEqual({ state: 'closed', since: up, held: [], tries: 0 });
    const refused = new Bad({ kind: 'unreachable' }, 'refused', 'REFUSED');
    for (let i = 0; i < 2; i += 1) {
      await queue.run('push', () => Promise.reject(refused)).catch(() => {});
      await clock.advance(100);
    }
    expect(queue.status().circuit).toEqual({
      state: 'open',
      since: up + 5000,
      downSince: up + 5000,
      held: ['confirm', 'push', 'removal', 'mirror', 'audit'],
      reason: { kind: 'unreachable', code: 'REFUSED', message: 'refused' },
      nextProbeAt: up + 5000 + 100 + 1000,
      tries: 2,
    });
    await clock.advance(1000);
    await queue.run('push', async () => {});
    expect(queue.status().circuit).toEqual({
      state: 'closed',
      since: clock.now(),
      held: [],
      tries: 0,
    });
  });
});
