import { describe, expect, test } from 'vitest';
import type { Lane } from '../../src/queue/options.js';
import type { RequestQueue } from '../../src/queue/request-queue.js';
import { Bad, bad, Gate, lanesOf, openQueue, settle, slots, UNLIMITED } from './queue-setup.js';

/** Lets the queue find out that the peer bears more than one task at a time. */
async function warmUp(queue: RequestQueue, slots: number, lane: Lane = 'push'): Promise<void> {
  // The other lane that adapts has one.
  while (queue.status().concurrency.limit < slots + 1) {
    await Promise.all(Array.from({ length: slots }, () => queue.run(lane, async () => settle())));
  }
}

describe('a task', () => {
  test('settles as its work does', async () => {
    const { queue } = openQueue();
    await expect(queue.run('push', async () => 42)).resolves.toBe(42);
    await expect(queue.run('push', async () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    await expect(
      queue.run('push', () => {
        throw new Error('at once');
      }),
    ).rejects.toThrow('at once');
    expect(queue.status().lanes.push).toMatchObject({ started: 3, failed: 2, running: 0, waiting: 0 });
  });

  test('that waits leaves when its caller gives it up', async () => {
    const { queue } = openQueue({ lanes: slots(1) });
    const gate = new Gate();
    const first = queue.run('push', gate.task('first'));
    const caller = new AbortController();
    const second = queue.run('push', gate.task('second'), { signal: caller.signal });
    const third = queue.run('push', gate.task('third'));
    caller.abort(new Error('changed my mind'));
    await expect(second).rejects.toThrow('changed my mind');
    expect(queue.status().lanes.push.waiting).toBe(1);
    gate.end('first');
    await first;
    await settle();
    gate.end('third');
    await third;
    expect(gate.order).toEqual(['first', 'third']);
  });

  test('that runs is told when its caller gives it up, and settles as it ends', async () => {
    const { queue } = openQueue();
    const caller = new AbortController();
    const task = queue.run(
      'push',
      (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(new Error(`ended: ${signal.reason}`)));
        }),
      { signal: caller.signal },
    );
    caller.abort('enough');
    await expect(task).rejects.toThrow('ended: enough');
    expect(queue.status().lanes.push.failed).toBe(0);
  });

  test('never starts for a caller that has already gone', async () => {
    const { queue } = openQueue();
    const gate = new Gate();
    await expect(
      queue.run('push', gate.task('x'), { signal: AbortSignal.abort(new Error('gone')) }),
    ).rejects.toThrow('gone');
    expect(gate.order).toEqual([]);
  });

  test('shares its caller’s signal with any number of others, without a warning', async () => {
    const warnings: Error[] = [];
    const hear = (warning: Error) => warnings.push(warning);
    process.on('warning', hear);
    const { queue } = openQueue({ lanes: slots(1) });
    const caller = new AbortController();
    const gate = new Gate();
    const tasks = Array.from({ length: 50 }, (_, i) =>
      queue.run('push', gate.task(`${i}`), { signal: caller.signal }).catch(() => 'gone'),
    );
    const waits = Array.from({ length: 50 }, () => queue.ready('push', caller.signal).catch(() => 'gone'));
    await settle();
    caller.abort();
    gate.end('0');
    await Promise.all([...tasks, ...waits]);
    await settle();
    process.off('warning', hear);
    expect(warnings).toEqual([]);
  });
});

describe('the lanes', () => {
  test('start in order, each by itself', async () => {
    const { queue } = openQueue({ lanes: slots(1) });
    const gate = new Gate();
    for (const lane of ['push', 'mirror', 'confirm'] as const)
      for (let i = 0; i < 3; i += 1) void queue.run(lane, gate.task(`${lane} ${i}`));
    expect(gate.order).toEqual(['push 0', 'mirror 0', 'confirm 0']);
    for (const name of ['mirror 0', 'mirror 1', 'push 0']) {
      gate.end(name);
      await settle();
    }
    expect(gate.order).toEqual(['push 0', 'mirror 0', 'confirm 0', 'mirror 1', 'mirror 2', 'push 1']);
  });

  test('of downloads tell nothing of how much the peer bears, however long they take', async () => {
    const { queue, clock } = openQueue({ lanes: slots(8) });
    await warmUp(queue, 8);
    const before = queue.status().concurrency.limit;
    const gate = new Gate();
    for (let i = 0; i < 20; i += 1) {
      void queue.run('mirror', gate.task(`${i}`));
      await settle();
      await clock.advance(i < 10 ? 1 : 100_000);
      gate.end(`${i}`);
      await settle();
    }
    expect(queue.status().concurrency.limit).toBe(before);
  });

  test('let a push through however many look-ups wait', async () => {
    const { queue } = openQueue({ lanes: slots(2) });
    const gate = new Gate();
    for (let i = 0; i < 20; i += 1) void queue.run('confirm', gate.task(`confirm ${i}`));
    void queue.run('push', gate.task('push'));
    expect(gate.order).toEqual(['confirm 0', 'push']);
  });

  test('have their own concurrency', async () => {
    const { queue } = openQueue({
      lanes: lanesOf(UNLIMITED, { push: { requestsPerSecond: 1e5, concurrency: 2 } }),
    });
    await warmUp(queue, 2);
    const gate = new Gate();
    for (let i = 0; i < 5; i += 1) void queue.run('push', gate.task(`push ${i}`));
    void queue.run('confirm', gate.task('confirm'));
    expect(gate.order).toEqual(['push 0', 'push 1', 'confirm']);
  });

  test('never start more than there are slots, also in the instant these become fewer', async () => {
    const { queue } = openQueue({ lanes: slots(8) });
    await warmUp(queue, 8);
    const gate = new Gate();
    const tasks = Array.from({ length: 40 }, (_, i) => queue.run('push', gate.task(`${i}`)).catch(() => {}));
    expect(gate.running.length).toBe(8);
    gate.fail('0', new Bad({ kind: 'failing' }));
    await settle();
    expect(queue.status().concurrency).toMatchObject({ limit: 5, running: 7 });
    while (gate.running.length > 0) {
      gate.end(gate.running[0] ?? '');
      await settle();
      expect(gate.running.length).toBeLessThanOrEqual(Math.max(7, queue.status().concurrency.limit));
    }
    await Promise.all(tasks);
  });
});

describe('interactive', () => {
  test('goes at once, past a full house, a pause and an open circuit', async () => {
    const { queue } = openQueue({ lanes: slots(1) });
    const gate = new Gate();
    const full = queue.run('push', gate.task('full')).catch(() => {});
    expect(await queue.run('interactive', async () => 'at once')).toBe('at once');
    gate.fail('full', new Bad({ kind: 'busy', retryAfterMs: 60_000 }));
    await full;
    expect(await queue.run('interactive', async () => 'in a pause')).toBe('in a pause');
    for (let i = 0; i < 2; i += 1) {
      await queue.run('interactive', () => Promise.reject(bad('unreachable'))).catch(() => {});
    }
    expect(queue.status().circuit.state).toBe('open');
    await queue.ready('interactive');
    await expect(queue.run('interactive', () => Promise.reject(bad('unreachable')))).rejects.toThrow(
      'unreachable',
    );
  });

  test('brings the others back when it is answered', async () => {
    const { queue } = openQueue();
    for (let i = 0; i < 2; i += 1)
      await queue.run('push', () => Promise.reject(bad('unreachable'))).catch(() => {});
    const waiting = queue.run('push', async () => 'pushed');
    await queue.run('interactive', async () => 'there');
    await expect(waiting).resolves.toBe('pushed');
  });
});

describe('a peer that is busy', () => {
  test('is left alone as long as it asks, and told of once', async () => {
    const { queue, clock, said } = openQueue();
    await warmUp(queue, 3);
    const busy = () => Promise.reject(new Bad({ kind: 'busy', retryAfterMs: 30_000 }));
    await Promise.all(Array.from({ length: 3 }, () => queue.run('push', busy).catch(() => {})));
    const gate = new Gate();
    void queue.run('confirm', gate.task('confirm'));
    expect(queue.status().pausedUntil).toBe(clock.now() + 30_000);
    expect(queue.status().circuit.state).toBe('closed');
    await clock.advance(29_999);
    expect(gate.order).toEqual([]);
    await clock.advance(1);
    expect(gate.order).toEqual(['confirm']);
    expect(queue.status().pausedUntil).toBeUndefined();
    expect(said).toEqual(['info: peer asks to wait: busy. Going on in 30s.']);
  });
});

describe('a peer that is busy now and then', () => {
  test('is told of each time, and left alone for a short while each time', async () => {
    const { queue, clock, said } = openQueue();
    for (let i = 0; i < 3; i += 1) {
      await queue.run('push', () => Promise.reject(new Bad({ kind: 'busy' }))).catch(() => {});
      expect(queue.status().pausedUntil).toBe(clock.now() + 1000);
      await clock.advance(1000);
      await queue.run('push', async () => {});
    }
    expect(said).toEqual(Array(3).fill('info: peer asks to wait: busy. Going on in 1s.'));
  });
});

describe('a peer that asks to wait for hours', () => {
  test('is told of in passing, then hourly as trouble, and when it is over', async () => {
    const { queue, clock, said } = openQueue();
    let isBusy = true;
    const produce = async () => {
      for (;;) {
        await queue.ready('push');
        await queue
          .run('push', async (signal) => {
            if (isBusy) throw new Bad({ kind: 'busy' }, 'it cannot serve requests now (503)');
            await clock.sleep(1000, signal);
          })
          .catch(() => {});
      }
    };
    produce().catch(() => {});
    await clock.advance(2.5 * 3_600_000);
    isBusy = false;
    await clock.advance(120_000);
    expect(said).toEqual([
      'info: peer asks to wait: it cannot serve requests now (503). Going on in 1s.',
      expect.stringMatching(
        /^warn: peer still asks to wait after 1h( \d+s)?: it cannot serve requests now \(503\)\. Going on in \S+\.$/,
      ),
      expect.stringMatching(/^warn: peer still asks to wait after 2h( \d+[ms])?: /),
      expect.stringMatching(/^info: peer answers again after 2h (29|30)m; \d+ tries\.$/),
    ]);
    await queue.stop(0);
  });
});

describe('a person who asks for another try', () => {
  test('gets it at once, however long the next probe was away', async () => {
    const { queue, clock, said } = openQueue();
    await queue.run('push', () => Promise.reject(bad('denied'))).catch(() => {});
    const gate = new Gate();
    const push = queue.run('push', gate.task('push'));
    await clock.advance(1000);
    expect(gate.order).toEqual([]);
    queue.tryNow();
    expect(gate.order).toEqual(['push']);
    gate.end('push');
    await push;
    expect(queue.status().circuit.state).toBe('closed');
    expect(said.at(-1)).toMatch(/^info: peer answers again/);
  });

  test('changes nothing while the peer is well', async () => {
    const { queue } = openQueue();
    queue.tryNow();
    expect(queue.status().circuit.state).toBe('closed');
  });
});

describe('a peer that comes back', () => {
  test('gets one task of a lane at a time at first', async () => {
    const { queue, clock } = openQueue();
    await warmUp(queue, 40);
    for (let i = 0; i < 2; i += 1)
      await queue.run('push', () => Promise.reject(bad('unreachable'))).catch(() => {});
    expect(queue.status().concurrency.limit).toBeGreaterThan(3);
    await clock.advance(1000);
    await queue.run('push', async () => {});
    // A push and a look-up.
    expect(queue.status().concurrency.limit).toBeLessThanOrEqual(3);
  });
});

describe('ready', () => {
  test('waits until no more tasks wait than could start together', async () => {
    const { queue } = openQueue({ lanes: slots(1) });
    const gate = new Gate();
    void queue.run('push', gate.task('runs'));
    await queue.ready('push');
    void queue.run('push', gate.task('waits'));
    let isReady = false;
    void queue.ready('push').then(() => {
      isReady = true;
    });
    await settle();
    expect(isReady).toBe(false);
    gate.end('runs');
    await settle();
    expect(isReady).toBe(true);
  });

  test('waits while the peer is away, until a probe is wanted', async () => {
    const { queue, clock } = openQueue();
    for (let i = 0; i < 2; i += 1)
      await queue.run('push', () => Promise.reject(bad('unreachable'))).catch(() => {});
    const order: string[] = [];
    for (const lane of ['push', 'confirm'] as const) void queue.ready(lane).then(() => order.push(lane));
    await clock.advance(999);
    expect(order).toEqual([]);
    await clock.advance(1);
    expect(order).toEqual(['confirm', 'push']);
    expect(queue.status().circuit.state).toBe('half-open');
  });

  test('waits while the peer wants to be left alone', async () => {
    const { queue, clock } = openQueue();
    await queue
      .run('push', () => Promise.reject(new Bad({ kind: 'busy', retryAfterMs: 500 })))
      .catch(() => {});
    await settle();
    let isReady = false;
    void queue.ready('push').then(() => {
      isReady = true;
    });
    await clock.advance(499);
    expect(isReady).toBe(false);
    await clock.advance(1);
    expect(isReady).toBe(true);
  });

  test('ends with the caller’s signal, and with the queue', async () => {
    const { queue } = openQueue({ lanes: slots(1) });
    const gate = new Gate();
    const running = queue.run('push', gate.task('runs'));
    const waiting = queue.run('push', gate.task('waits')).catch((error: unknown) => error);
    const caller = new AbortController();
    const first = queue.ready('push', caller.signal);
    const second = queue.ready('push');
    caller.abort(new Error('enough'));
    await expect(first).rejects.toThrow('enough');
    const stopped = queue.stop(1000);
    await expect(second).rejects.toMatchObject({ code: 'QUEUE_STOPPED' });
    expect(await waiting).toMatchObject({ code: 'QUEUE_STOPPED' });
    gate.end('runs');
    await Promise.all([running, stopped]);
    await expect(queue.ready('push')).rejects.toMatchObject({ code: 'QUEUE_STOPPED' });
  });
});

describe('stop', () => {
  test('lets what runs end within the grace, and rejects what waits', async () => {
    const { queue, clock } = openQueue({ lanes: slots(1) });
    const gate = new Gate();
    const running = queue.run('push', gate.task('runs'));
    const waiting = queue.run('push', gate.task('waits'));
    const stopped = queue.stop(10_000);
    await expect(waiting).rejects.toMatchObject({ code: 'QUEUE_STOPPED' });
    await expect(queue.run('confirm', gate.task('late'))).rejects.toMatchObject({ code: 'QUEUE_STOPPED' });
    await clock.advance(9000);
    gate.end('runs');
    await expect(running).resolves.toBe('runs');
    await stopped;
    expect(gate.order).toEqual(['runs']);
    expect(clock.waiting, 'timers left').toBe(0);
  });

  test('lets what runs end within the grace also where the rate has changed since it started', async () => {
    const { queue, clock } = openQueue();
    const gate = new Gate();
    let isAborted = false;
    const running = queue.run('push', (signal) => {
      signal.addEventListener('abort', () => {
        isAborted = true;
      });
      return gate.task('runs')();
    });
    for (const requestsPerSecond of [50, 60])
      queue.limit({ lanes: lanesOf({ ...UNLIMITED, requestsPerSecond }) });
    let isStopped = false;
    const stopped = queue.stop(10_000).then(() => {
      isStopped = true;
    });
    await clock.advance(9000);
    expect([isAborted, isStopped]).toEqual([false, false]);
    gate.end('runs');
    await expect(running).resolves.toBe('runs');
    await stopped;
  });

  test('aborts after the grace what does not end', async () => {
    const { queue, clock } = openQueue();
    const end = queue.run(
      'push',
      (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    );
    const rejected = expect(end).rejects.toMatchObject({ code: 'QUEUE_STOPPED' });
    const stopped = queue.stop(1000);
    await clock.advance(1000);
    await Promise.all([rejected, stopped]);
    expect(clock.waiting, 'timers left').toBe(0);
  });

  test('asked for again with less grace, stops sooner', async () => {
    const { queue, clock } = openQueue();
    const end = queue.run(
      'push',
      (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    );
    const rejected = expect(end).rejects.toMatchObject({ code: 'QUEUE_STOPPED' });
    const gently = queue.stop(3_600_000);
    const now = queue.stop(0);
    await clock.advance(0);
    await Promise.all([rejected, gently, now]);
    expect(clock.waiting, 'timers left').toBe(0);
  });

  test('rejects what waits for a peer that is away', async () => {
    const { queue, clock } = openQueue();
    for (let i = 0; i < 2; i += 1)
      await queue.run('push', () => Promise.reject(bad('unreachable'))).catch(() => {});
    const waiting = queue.run('push', async () => 'never');
    const rejected = expect(waiting).rejects.toMatchObject({ code: 'QUEUE_STOPPED' });
    await queue.stop(1000);
    await rejected;
    expect(clock.waiting, 'timers left').toBe(0);
  });
});

describe('the status', () => {
  test('tells figures by lane', async () => {
    const { queue, clock } = openQueue();
    for (const ms of [10, 20, 90]) {
      const end = queue.run('confirm', () => clock.sleep(ms));
      await clock.advance(ms);
      await end;
    }
    await queue.run('push', () => Promise.reject(bad('failing'))).catch(() => {});
    expect(queue.status().lanes.confirm).toEqual({
      started: 3,
      failed: 0,
      running: 0,
      waiting: 0,
      p50LatencyMs: 20,
    });
    expect(queue.status().lanes.push).toEqual({ started: 1, failed: 1, running: 0, waiting: 0 });
  });

  test('tells since when the peer answers or is in trouble', async () => {
    const { queue, clock } = openQueue();
    await queue.run('push', async () => {});
    const up = clock.now();
    await clock.advance(5000);
    expect(queue.status().circuit).toEqual({ state: 'closed', since: up, held: [], tries: 0 });
    for (let i = 0; i < 2; i += 1) {
      await queue
        .run('push', () => Promise.reject(new Bad({ kind: 'unreachable' }, 'refused', 'REFUSED')))
        .catch(() => {});
      await clock.advance(100);
    }
    expect(queue.status().circuit).toEqual({
      state: 'open',
      since: up + 5000,
      downSince: up + 5000,
      held: ['confirm', 'push', 'mirror', 'audit'],
      reason: { kind: 'unreachable', code: 'REFUSED', message: 'refused' },
      nextProbeAt: up + 5000 + 100 + 1000,
      tries: 2,
    });
    await clock.advance(1000);
    await queue.run('push', async () => {});
    expect(queue.status().circuit).toEqual({ state: 'closed', since: clock.now(), held: [], tries: 0 });
    await queue.run('push', () => Promise.reject(bad('denied'))).catch(() => {});
  });

  test('dates a trouble from its own beginning where another one was before it', async () => {
    const { queue, clock } = openQueue();
    const began = clock.now();
    for (let i = 0; i < 2; i += 1)
      await queue.run('push', () => Promise.reject(bad('unreachable'))).catch(() => {});
    await clock.advance(10_000);
    await queue.run('push', () => Promise.reject(bad('denied'))).catch(() => {});
    const { reason, since, downSince, tries } = queue.status().circuit;
    expect(reason?.kind).toBe('denied');
    expect({ since, downSince, tries }).toEqual({ since: began + 10_000, downSince: began, tries: 1 });
    await clock.advance(10_000);
    await queue.run('push', async () => {});
    expect(queue.status().circuit).toEqual({ state: 'closed', since: began + 20_000, held: [], tries: 0 });
  });
});
