import { describe, expect, test } from 'vitest';
import { LANES, type Lane } from '../../src/queue/options.js';
import { bad, Gate, lanesOf, openQueue, settle, UNLIMITED } from './queue-setup.js';

const HELD: readonly Lane[] = LANES.filter((lane) => lane !== 'interactive');

describe('a queue that a person paused', () => {
  test.each(HELD)('starts nothing in the lane %s, and lets what is under way there end', async (lane) => {
    const { queue, clock } = openQueue();
    const gate = new Gate();
    const before = queue.run(lane, gate.task('before'));
    queue.pause({ since: clock.now() });
    const after = queue.run(lane, gate.task('after'));
    await clock.advance(86_400_000);
    expect(gate.order).toEqual(['before']);
    gate.end('before');
    expect(await before).toBe('before');
    await clock.advance(60_000);
    expect(gate.order).toEqual(['before']);
    queue.resume();
    await settle();
    gate.end('after');
    expect(await after).toBe('after');
  });

  test('does what a person asks for', async () => {
    const { queue, clock } = openQueue();
    queue.pause({ since: clock.now() });
    expect(await queue.run('interactive', async () => 'asked')).toBe('asked');
  });

  test.each(HELD)('lets no producer of the lane %s go on before it is resumed', async (lane) => {
    const { queue, clock } = openQueue();
    queue.pause({ since: clock.now() });
    expect(queue.hasRoom(lane)).toBe(false);
    let isReady = false;
    const ready = queue.ready(lane).then(() => {
      isReady = true;
    });
    await clock.advance(3_600_000);
    expect(isReady).toBe(false);
    queue.resume();
    await ready;
    expect(queue.hasRoom(lane)).toBe(true);
  });

  test('goes on by itself when its time is over, also days later, and says so', async () => {
    const { queue, clock, said } = openQueue();
    const days = 5 * 86_400_000;
    const since = clock.now();
    queue.pause({ since, until: since + days });
    expect(queue.status().paused).toEqual({ since, until: since + days });
    const gate = new Gate();
    const work = queue.run('push', gate.task('work'));
    await clock.advance(days - 1);
    expect(gate.order).toEqual([]);
    expect(queue.status().paused).toBeDefined();
    await clock.advance(1);
    expect(queue.status().paused).toBeUndefined();
    expect(said).toEqual(['info: the pause is over: the work with the peer goes on']);
    gate.end('work');
    await work;
  });

  test('ends in time where nobody waits for it', async () => {
    const { queue, clock } = openQueue();
    queue.pause({ since: clock.now(), until: clock.now() + 5_000 });
    await clock.advance(5_000);
    expect(queue.status().paused).toBeUndefined();
    expect(clock.waiting).toBe(0);
  });

  test('is paused for as long as was said last', async () => {
    const { queue, clock } = openQueue();
    const since = clock.now();
    queue.pause({ since, until: since + 1_000 });
    queue.pause({ since, until: since + 10_000 });
    await clock.advance(9_999);
    expect(queue.status().paused).toBeDefined();
    queue.pause({ since });
    await clock.advance(86_400_000);
    expect(queue.status().paused).toEqual({ since });
  });

  test('sets no timers while it rests without an end', async () => {
    const { queue, clock } = openQueue();
    queue.pause({ since: clock.now() });
    const gate = new Gate();
    void queue.run('push', gate.task('push')).catch(() => {});
    void queue.ready('confirm').catch(() => {});
    await clock.advance(1_000);
    expect(clock.waiting).toBe(0);
    await queue.stop(0);
  });

  test('rejects what waits when it is stopped', async () => {
    const { queue, clock } = openQueue();
    queue.pause({ since: clock.now() });
    const work = queue.run('mirror', async () => 'never');
    await Promise.all([
      expect(work).rejects.toMatchObject({ code: 'QUEUE_STOPPED' }),
      expect(queue.ready('push')).rejects.toMatchObject({ code: 'QUEUE_STOPPED' }),
      queue.stop(0),
    ]);
  });

  test('finds a peer that was away out by one probe once it is resumed', async () => {
    const { queue, clock } = openQueue();
    for (let i = 0; i < 2; i += 1)
      await queue.run('push', () => Promise.reject(bad('unreachable'))).catch(() => {});
    expect(queue.status().circuit.state).toBe('open');
    queue.pause({ since: clock.now() });
    const gate = new Gate();
    const works = ['a', 'b'].map((name) => queue.run('push', gate.task(name)));
    await clock.advance(3_600_000);
    expect(gate.order).toEqual([]);
    queue.resume();
    await settle();
    expect(gate.order).toEqual(['a']);
    gate.end('a');
    await settle();
    gate.end('b');
    await Promise.all(works);
  });
});

describe('a queue whose limits change', () => {
  const limits = (concurrency: number, requestsPerSecond = 100_000) => ({
    lanes: lanesOf({ ...UNLIMITED, concurrency, requestsPerSecond }),
  });

  test('starts more at once where it may, while others run', async () => {
    const { queue } = openQueue(limits(1));
    const gate = new Gate();
    for (const lane of LANES)
      for (const name of ['a', 'b', 'c']) void queue.run(lane, gate.task(`${lane} ${name}`));
    await settle();
    const mirrors = () => gate.running.filter((name) => name.startsWith('mirror'));
    expect(mirrors()).toHaveLength(1);
    queue.limit(limits(3));
    await settle();
    expect(mirrors()).toHaveLength(3);
    expect(gate.running.filter((name) => name.startsWith('interactive'))).toHaveLength(3);
  });

  test('lets what runs above a lower limit end, and starts nothing before', async () => {
    const { queue } = openQueue(limits(3));
    const gate = new Gate();
    for (const name of ['a', 'b', 'c', 'd']) void queue.run('mirror', gate.task(name));
    await settle();
    queue.limit(limits(1));
    for (const name of ['a', 'b']) {
      gate.end(name);
      await settle();
      expect(gate.order).toEqual(['a', 'b', 'c']);
    }
    gate.end('c');
    await settle();
    expect(gate.running).toEqual(['d']);
  });

  test('a producer that waited for room of its lane goes on at once', async () => {
    const { queue } = openQueue(limits(1));
    const gate = new Gate();
    void queue.run('mirror', gate.task('running'));
    void queue.run('mirror', gate.task('waiting'));
    await settle();
    let isReady = false;
    const ready = queue.ready('mirror').then(() => {
      isReady = true;
    });
    await settle();
    expect(isReady).toBe(false);
    queue.limit(limits(4));
    await ready;
  });

  test('keeps what the peer bears below a new maximum', async () => {
    const { queue } = openQueue(limits(10));
    const push = async () => {
      for (let i = 0; i < 10; i += 1)
        await Promise.all(Array.from({ length: 10 }, () => queue.run('push', settle)));
    };
    await push();
    expect(queue.status().concurrency).toMatchObject({ max: 20, limit: 11 });
    queue.limit(limits(2));
    expect(queue.status().concurrency).toMatchObject({ max: 4, limit: 3 });
    await push();
    expect(queue.status().concurrency).toMatchObject({ limit: 3 });
  });
});
