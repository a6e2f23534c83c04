import { expect, test } from 'vitest';
import type { Lane, Outcome } from '../../src/queue/options.js';
import { Bad, Gate, openQueue, settle, slots } from './queue-setup.js';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const AWAY = () => Promise.reject(new Bad({ kind: 'unreachable' }));

type Answer = Exclude<Outcome['kind'], 'aborted'>;

const MESSAGES: Readonly<Partial<Record<Answer, string>>> = {
  unreachable: 'connect ECONNREFUSED 127.0.0.1:8090',
  denied: '401 Unauthorized',
};

/**
 * A peer that answers as the test sets it, and for each lane a producer that always has a request.
 */
function peerAndProducers(lanes: readonly Lane[]) {
  const { queue, clock, logged } = openQueue({ policy: { random: () => 0.5 }, lanes: slots(4) });
  const peer = {
    queue,
    clock,
    logged,
    says: (_lane: Lane): Answer => 'answered',
    requests: [] as { readonly lane: Lane; readonly at: number }[],
    answered: 0,
    /** Makes the peer answer like this for a time. */
    is: async (kind: Answer, ms: number) => {
      peer.says = () => kind;
      await clock.advance(ms);
    },
  };
  const produce = async (lane: Lane) => {
    for (;;) {
      await queue.ready(lane);
      const end = queue.run(lane, async (signal) => {
        peer.requests.push({ lane, at: clock.elapsed() });
        await clock.sleep(1000, signal);
        const kind = peer.says(lane);
        if (kind !== 'answered') throw new Bad({ kind }, MESSAGES[kind] ?? kind);
        peer.answered += 1;
      });
      end.catch(() => {});
    }
  };
  for (const lane of lanes) produce(lane).catch(() => {});
  return peer;
}

test('a peer that is down for a day is probed by one request at a time, at growing intervals, and logged once and then hourly', async () => {
  const peer = peerAndProducers(['push']);
  const { clock, queue, logged } = peer;
  await peer.is('answered', 10_000);
  expect(logged).toEqual([]);
  const began = clock.elapsed();
  await peer.is('unreachable', DAY_MS);
  const tries = peer.requests.filter(({ at }) => at > began + 1000);
  const gaps = tries.slice(7).map(({ at }, i) => at - (tries[i + 6]?.at ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(30_000);
  expect(tries.length).toBeLessThan(DAY_MS / 45_000);
  expect(logged[0]).toBe(
    'warn: peer does not answer: connect ECONNREFUSED 127.0.0.1:8090. Work waits and nothing is lost; next try in 750ms.',
  );
  expect(logged[1]).toMatch(
    /^warn: peer still does not answer after 1h( \dm)?: connect ECONNREFUSED/,
  );
  expect(logged.length).toBeGreaterThanOrEqual(23);
  expect(logged.length).toBeLessThanOrEqual(25);
  const answeredBefore = peer.answered;
  logged.length = 0;
  await peer.is('answered', 120_000);
  expect(logged).toEqual([
    expect.stringMatching(/^info: peer answers again after 1d; \d,\d{3} tries\.$/),
  ]);
  expect(peer.answered).toBeGreaterThan(answeredBefore + 100);
  await queue.stop(0);
});

test('a peer that comes back in steps is logged once for each kind of failure', async () => {
  const peer = peerAndProducers(['push', 'confirm']);
  await peer.is('unreachable', HOUR_MS / 2);
  await peer.is('failing', HOUR_MS / 4);
  await peer.is('denied', HOUR_MS / 4 - 120_000);
  await peer.is('answered', 300_000);
  expect(peer.logged.map((text) => text.replace(/next try.*$/, '…'))).toEqual([
    'warn: peer does not answer: connect ECONNREFUSED 127.0.0.1:8090. Work waits and nothing is lost; …',
    'warn: peer answers with errors: failing. Work waits and nothing is lost; …',
    'warn: peer refuses the credentials: 401 Unauthorized. Work waits and nothing is lost; …',
    expect.stringMatching(/^info: peer answers again after (59m|1h)/),
  ]);
  await peer.queue.stop(0);
});

test.each([
  ['denied', 15, /^warn: peer refuses the credentials: /],
  ['failing', 30, /^warn: peer answers with errors: /],
] as const)(
  'if only pushes are %s, pushes wait except for probes, look-ups continue, and the failure is logged once',
  async (kind, most, line) => {
    const peer = peerAndProducers(['push', 'confirm']);
    peer.says = (lane) => (lane === 'push' ? kind : 'answered');
    await peer.clock.advance(HOUR_MS / 6);
    expect(peer.requests.filter(({ lane }) => lane === 'push').length).toBeLessThan(most);
    expect(peer.answered).toBeGreaterThan(500);
    expect(peer.queue.status().circuit).toMatchObject({ held: ['push'], reason: { kind } });
    expect(peer.logged).toEqual([expect.stringMatching(line)]);
    await peer.queue.stop(0);
  },
);

test('a peer that asks to wait for hours is logged as info, then hourly as a warning, and when it is over', async () => {
  const peer = peerAndProducers(['push']);
  await peer.is('busy', 2.5 * HOUR_MS);
  await peer.is('answered', 120_000);
  expect(peer.logged).toEqual([
    'info: peer asks to wait: busy. Going on in 750ms.',
    expect.stringMatching(
      /^warn: peer still asks to wait after 1h( \d+s)?: busy\. Going on in \S+\.$/,
    ),
    expect.stringMatching(/^warn: peer still asks to wait after 2h( \d+[ms])?: /),
    expect.stringMatching(/^info: peer answers again after 2h (29|30)m; \d+ tries\.$/),
  ]);
  await peer.queue.stop(0);
});

test('requests wait for as long as the peer is down; a look-up is preferred to a push as the probe', async () => {
  const { queue, clock } = openQueue();
  for (let i = 0; i < 2; i += 1) await queue.run('push', AWAY).catch(() => {});
  const order: string[] = [];
  let isAway = true;
  const task = (name: string) => async () => {
    order.push(name);
    if (isAway) throw new Bad({ kind: 'unreachable' });
  };
  const lost = [queue.run('push', task('push 1')), queue.run('confirm', task('confirm 1'))].map(
    (end) => end.catch((error: unknown) => error),
  );
  const push = queue.run('push', task('push 2'));
  await clock.advance(1000);
  expect(order).toEqual(['confirm 1']);
  await clock.advance(2000);
  expect(order).toEqual(['confirm 1', 'push 1']);
  isAway = false;
  await clock.advance(4000);
  await push;
  expect(await Promise.all(lost)).toEqual([expect.any(Bad), expect.any(Bad)]);
});

test('requests do not wait for a long download that is the probe, and downloads are not probed more often', async () => {
  const { queue, clock } = openQueue({ lanes: slots(4) });
  const gate = new Gate();
  for (let i = 0; i < 2; i += 1) await queue.run('push', AWAY).catch(() => {});
  for (const name of ['download 1', 'download 2']) void queue.run('mirror', gate.task(name));
  void queue.ready('push').then(() => queue.run('push', gate.task('push')));
  await clock.advance(1000);
  expect(gate.running).toEqual(['download 1', 'push']);
});

test('a peer that is back gets one request per lane at a time at first', async () => {
  const { queue, clock } = openQueue();
  for (let i = 0; i < 50; i += 1) void queue.run('push', settle);
  await clock.advance(1);
  expect(queue.status().concurrency.limit).toBeGreaterThan(20);
  for (let i = 0; i < 2; i += 1) await queue.run('push', AWAY).catch(() => {});
  await clock.advance(1000);
  await queue.run('push', async () => {});
  // A push and a look-up.
  expect(queue.status().concurrency.limit).toBeLessThanOrEqual(3);
});

test('a person’s retry starts a probe at once, however late the next one was due', async () => {
  const { queue, clock, logged } = openQueue();
  queue.tryNow();
  await queue.run('push', () => Promise.reject(new Bad({ kind: 'denied' }))).catch(() => {});
  const gate = new Gate();
  const push = queue.run('push', gate.task('push'));
  await clock.advance(1000);
  expect(gate.order).toEqual([]);
  queue.tryNow();
  expect(gate.order).toEqual(['push']);
  gate.end('push');
  await push;
  expect(queue.status().circuit.state).toBe('closed');
  expect(logged.at(-1)).toMatch(/^info: peer answers again/);
});

test('interactive requests ignore full lanes, a wait that the peer asked for and an open circuit, and their answer closes the circuit', async () => {
  const { queue } = openQueue({ lanes: slots(1) });
  const gate = new Gate();
  const full = queue.run('push', gate.task('full')).catch(() => {});
  expect(await queue.run('interactive', async () => 'at once')).toBe('at once');
  gate.fail('full', new Bad({ kind: 'busy', retryAfterMs: 0 }));
  await full;
  expect(await queue.run('interactive', async () => 'in a pause')).toBe('in a pause');
  for (let i = 0; i < 2; i += 1) await queue.run('interactive', AWAY).catch(() => {});
  expect(queue.status().circuit.state).toBe('open');
  const waiting = queue.run('push', async () => 'pushed');
  await queue.ready('interactive');
  await queue.run('interactive', async () => 'there');
  await expect(waiting).resolves.toBe('pushed');
});
