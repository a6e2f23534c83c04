import { describe, expect, test } from 'vitest';
import type { Lane, Outcome } from '../../src/queue/options.js';
import type { RequestQueue } from '../../src/queue/request-queue.js';
import type { FakeClock } from '../support/fake-clock.js';
import { Bad, Gate, openQueue, slots } from './queue-setup.js';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

type Answer = Exclude<Outcome['kind'], 'aborted'>;

/** A peer that behaves as it is told, and a producer for each lane that always has something for it. */
function peerAndProducers(queue: RequestQueue, clock: FakeClock, lanes: readonly Lane[]) {
  const peer = {
    says: (_lane: Lane): Answer => 'answered',
    requests: [] as { readonly lane: Lane; readonly at: number }[],
    answered: 0,
  };
  const message = (kind: Answer) =>
    ({ unreachable: 'connect ECONNREFUSED 127.0.0.1:8090', denied: '401 Unauthorized' })[kind as string] ??
    kind;
  const produce = async (lane: Lane) => {
    for (;;) {
      await queue.ready(lane);
      const end = queue.run(lane, async (signal) => {
        peer.requests.push({ lane, at: clock.elapsed() });
        await clock.sleep(1000, signal);
        const kind = peer.says(lane);
        if (kind !== 'answered') throw new Bad({ kind }, message(kind));
        peer.answered += 1;
      });
      end.catch(() => {});
    }
  };
  for (const lane of lanes) produce(lane).catch(() => {});
  return peer;
}

describe('a peer that is away for a day', () => {
  test('is tried with one probe at a time, ever more rarely, and told of once and then hourly', async () => {
    const { queue, clock, said } = openQueue({ policy: { random: () => 0.5 }, lanes: slots(4) });
    const peer = peerAndProducers(queue, clock, ['push']);
    await clock.advance(10_000);
    expect(said).toEqual([]);
    peer.says = () => 'unreachable';
    const began = clock.elapsed();
    await clock.advance(DAY_MS);
    const tries = peer.requests.filter(({ at }) => at > began + 1000);
    const gaps = tries.slice(7).map(({ at }, i) => at - (tries[i + 6]?.at ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(30_000);
    expect(tries.length).toBeLessThan(DAY_MS / 45_000);
    expect(said[0]).toMatch(
      /^warn: peer does not answer: connect ECONNREFUSED 127\.0\.0\.1:8090\. Work waits and nothing is lost; next try in 750ms\.$/,
    );
    expect(said[1]).toMatch(/^warn: peer still does not answer after 1h( \dm)?: connect ECONNREFUSED/);
    expect(said.length).toBeGreaterThanOrEqual(23);
    expect(said.length).toBeLessThanOrEqual(25);
    const answeredBefore = peer.answered;
    peer.says = () => 'answered';
    said.length = 0;
    await clock.advance(120_000);
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(/^info: peer answers again after 1d; \d{4} tries\.$/);
    expect(peer.answered).toBeGreaterThan(answeredBefore + 100);
    await queue.stop(0);
  });
});

describe('a peer that comes back in steps', () => {
  test('is told of once for each kind of trouble', async () => {
    const { queue, clock, said } = openQueue({ lanes: slots(4) });
    const peer = peerAndProducers(queue, clock, ['push', 'confirm']);
    peer.says = () => 'unreachable';
    await clock.advance(HOUR_MS / 2);
    peer.says = () => 'failing';
    await clock.advance(HOUR_MS / 4);
    peer.says = () => 'denied';
    await clock.advance(HOUR_MS / 4 - 120_000);
    peer.says = () => 'answered';
    await clock.advance(300_000);
    expect(said.map((text) => text.replace(/next try.*$/, '…'))).toEqual([
      'warn: peer does not answer: connect ECONNREFUSED 127.0.0.1:8090. Work waits and nothing is lost; …',
      'warn: peer answers with errors: failing. Work waits and nothing is lost; …',
      'warn: peer refuses the credentials: 401 Unauthorized. Work waits and nothing is lost; …',
      expect.stringMatching(/^info: peer answers again after (59m|1h)/),
    ]);
    await queue.stop(0);
  });
});

describe('a peer that refuses the credentials where it asks for them', () => {
  test('is not pushed to but for probes, goes on answering lookups, and is told of once', async () => {
    const { queue, clock, said } = openQueue({ lanes: slots(4) });
    const peer = peerAndProducers(queue, clock, ['push', 'confirm']);
    peer.says = (lane) => (lane === 'push' ? 'denied' : 'answered');
    await clock.advance(HOUR_MS / 6);
    const pushes = peer.requests.filter(({ lane }) => lane === 'push').length;
    expect(pushes).toBeLessThan(15);
    expect(peer.answered).toBeGreaterThan(500);
    expect(queue.status().circuit).toMatchObject({ held: ['push'], reason: { kind: 'denied' } });
    expect(said).toHaveLength(1);
    await queue.stop(0);
  });
});

describe('one bad item among good ones', () => {
  test('opens nothing', async () => {
    const { queue, clock, said } = openQueue({ lanes: slots(4) });
    let n = 0;
    const peer = peerAndProducers(queue, clock, ['push', 'confirm']);
    peer.says = (lane) => {
      if (lane !== 'push') return 'answered';
      n += 1;
      return n % 3 === 0 ? 'failing' : 'answered';
    };
    await clock.advance(60_000);
    expect(queue.status().circuit.state).toBe('closed');
    expect(said).toEqual([]);
    await queue.stop(0);
  });
});

describe('a page that fails while the others work', () => {
  test('is told of once and left alone but for probes, and the others go on', async () => {
    const { queue, clock, said } = openQueue({ lanes: slots(4) });
    const peer = peerAndProducers(queue, clock, ['push', 'confirm']);
    peer.says = (lane) => (lane === 'push' ? 'failing' : 'answered');
    await clock.advance(HOUR_MS / 6);
    expect(peer.requests.filter(({ lane }) => lane === 'push').length).toBeLessThan(30);
    expect(peer.answered).toBeGreaterThan(500);
    expect(said).toEqual([expect.stringMatching(/^warn: peer answers with errors: /)]);
    await queue.stop(0);
  });
});

describe('tasks that wait while the peer is away', () => {
  test('wait as long as it takes; the probe is a lookup rather than a push; then all go', async () => {
    const { queue, clock } = openQueue();
    for (let i = 0; i < 2; i += 1) {
      await queue.run('push', () => Promise.reject(new Bad({ kind: 'unreachable' }))).catch(() => {});
    }
    const order: string[] = [];
    let isAway = true;
    const task = (name: string) => async () => {
      order.push(name);
      if (isAway) throw new Bad({ kind: 'unreachable' });
    };
    const lost = [queue.run('push', task('push 1')), queue.run('confirm', task('confirm 1'))].map((end) =>
      end.catch((error: unknown) => error),
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
    await queue.stop(0);
  });

  test('do not wait for a long download that goes first, nor is one tried more often for that', async () => {
    const { queue, clock } = openQueue({ lanes: slots(4) });
    const gate = new Gate();
    const away = () => Promise.reject(new Bad({ kind: 'unreachable' }));
    for (let i = 0; i < 2; i += 1) await queue.run('push', away).catch(() => {});
    const downloads = ['download 1', 'download 2'].map((name) => queue.run('mirror', gate.task(name)));
    const push = queue.ready('push').then(() => queue.run('push', gate.task('push')));
    await clock.advance(1000);
    expect(gate.running).toEqual(['download 1', 'push']);
    gate.end('push');
    await push;
    for (const name of ['download 1', 'download 2']) gate.end(name);
    await Promise.all(downloads);
    await queue.stop(0);
  });
});
