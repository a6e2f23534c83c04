import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  Breaker,
  type CircuitStatus,
  type PeerFailureKind,
  type Ticket,
} from '../../src/queue/breaker.js';
import { DEFAULT_POLICY, LANES, type Lane, type Outcome } from '../../src/queue/options.js';

type Kind = Outcome['kind'];

/** A breaker with its clock and its log. */
function wired(random = 1) {
  const said: string[] = [];
  const say = (_: object, message: string) => void said.push(message);
  const log = { debug() {}, info: say, warn: say, error: say };
  const breaker = new Breaker({ ...DEFAULT_POLICY, random: () => random }, log, 'peer', 0);
  const wire = {
    breaker,
    said,
    now: 0,
    status: (): CircuitStatus => breaker.status(wire.now),
    admits: (lane: Lane) => breaker.admitsFrom(lane) <= wire.now,
    admitted: () => LANES.filter((lane) => wire.admits(lane)),
    held: () => LANES.filter((lane) => breaker.holds(lane)),
    start: (lane: Lane): Ticket => breaker.started(lane, wire.now),
    end: (ticket: Ticket, kind: Kind, retryAfterMs?: number): boolean => {
      const outcome: Outcome =
        kind === 'busy' && retryAfterMs !== undefined ? { kind, retryAfterMs } : { kind };
      return breaker.ended(ticket, outcome, wire.now, new Error(`it is ${kind}`));
    },
    /**
     * Starts and ends requests of this lane at once. Returns whether the last one closed the
     * circuit.
     */
    pass: (lane: Lane, kind: Kind, times = 1): boolean => {
      let isClosed = false;
      for (let i = 0; i < times; i += 1) isClosed = wire.end(wire.start(lane), kind);
      return isClosed;
    },
    wait: (ms: number): void => {
      wire.now += ms;
    },
    /** Time until the next probe, in ms. */
    waitMs: () => breaker.probeAt - wire.now,
    /**
     * Returns the wait after each of `times` probes that end like this. Each starts as soon as it
     * may.
     */
    waits: (kind: Kind, times: number, retryAfterMs?: number): number[] =>
      Array.from({ length: times }, () => {
        wire.wait(Math.max(0, wire.waitMs()));
        wire.end(wire.start('push'), kind, retryAfterMs);
        return wire.waitMs();
      }),
  };
  return wire;
}

function opened(kind: PeerFailureKind, lane: Lane = 'push') {
  const wire = wired();
  wire.pass(lane, kind, DEFAULT_POLICY.openAfter[kind]);
  expect(wire.status().state).toBe('open');
  return wire;
}

describe('a closed circuit', () => {
  test.each([
    ['unreachable', 2],
    ['failing', 5],
    ['denied', 1],
    ['weak', 1],
  ] as const)('opens when the peer is %s %i times in a row', (kind, times) => {
    const wire = wired();
    wire.pass('push', kind, times - 1);
    expect(wire.status().state).toBe('closed');
    wire.pass('push', kind);
    expect(wire.status()).toMatchObject({ state: 'open', reason: { kind }, tries: times });
  });

  test.each([
    ['its lane is answered in between', 'closed', 'push failing 4, push answered 1', 50],
    [
      'an answer in any lane shows that the peer is reachable',
      'closed',
      'push unreachable 1, audit answered 1',
      50,
    ],
    [
      'failures of several lanes and kinds add up',
      'open',
      'push failing 2, audit failing 2, push unreachable 1',
      1,
    ],
    [
      'a request is aborted in between',
      'open',
      'push unreachable 1, push aborted 1, push unreachable 1',
      1,
    ],
    [
      'only interactive requests are refused',
      'closed',
      'interactive denied 10, interactive failing 10',
      1,
    ],
    ['interactive requests find the peer unreachable', 'open', 'interactive unreachable 2', 1],
  ])('if %s, is then %s', (_, state, requests, rounds) => {
    const wire = wired();
    for (let round = 0; round < rounds; round += 1) {
      for (const some of requests.split(', ')) {
        const [lane, kind, times] = some.split(' ');
        wire.pass(lane as Lane, kind as Kind, Number(times));
      }
    }
    expect(wire.status().state).toBe(state);
  });

  test('opens if one page always fails, however well the others work', () => {
    const wire = wired();
    for (let n = 1; n < 5; n += 1) {
      wire.pass('push', 'failing');
      wire.pass('confirm', 'answered');
    }
    wire.wait(500);
    wire.pass('push', 'failing');
    expect(wire.status()).toMatchObject({ state: 'open', tries: 5, since: 0 });
    expect(wire.held()).toEqual(['push']);
  });
});

describe('an open circuit', () => {
  test('lets one probe start after a second, however late it comes, and interactive requests at any time', () => {
    const wire = opened('unreachable');
    wire.wait(999);
    expect(wire.admitted()).toEqual(['interactive']);
    wire.wait(1);
    expect([wire.status().state, wire.admits('push')]).toEqual(['half-open', true]);
    wire.wait(86_400_000);
    wire.start('confirm');
    expect([wire.status().state, wire.admits('push')]).toEqual(['half-open', false]);
  });

  test.each(['failing', 'denied'] as const)(
    'holds only the lanes for which the peer is %s',
    (kind) => {
      const wire = opened(kind);
      expect(wire.held()).toEqual(['push']);
      wire.pass('mirror', kind);
      expect(wire.held()).toEqual(['push', 'mirror']);
      expect(wire.pass('confirm', 'answered')).toBe(false);
      wire.wait(5000);
      expect(wire.pass('push', 'answered')).toBe(true);
    },
  );

  test('holds every lane once a request of a free lane finds the peer unreachable', () => {
    const wire = opened('denied');
    wire.pass('confirm', 'unreachable', 2);
    expect(wire.status().reason?.kind).toBe('unreachable');
    expect(wire.admitted()).toEqual(['interactive']);
  });

  test.each([
    ['unreachable', [2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]],
    ['denied', [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]],
  ] as const)('waits twice as long after each probe that is %s, up to a limit', (kind, waits) => {
    expect(opened(kind).waits(kind, 7)).toEqual(waits);
  });

  test('shortens waits by up to half at random, and starts from the first wait again after a success', () => {
    const wire = wired(0);
    wire.pass('push', 'unreachable', 2);
    expect(wire.waitMs()).toBe(500);
    wire.waits('unreachable', 8);
    wire.wait(60_000);
    expect(wire.pass('push', 'answered')).toBe(true);
    wire.pass('push', 'unreachable', 2);
    expect(wire.waitMs()).toBe(500);
  });

  test('counts and times each kind of failure separately, and logs the total when the peer answers', () => {
    const wire = opened('unreachable');
    for (const kind of ['unreachable', 'denied'] as const) {
      wire.wait(60_000);
      wire.pass('push', kind);
    }
    expect(wire.status()).toMatchObject({ reason: { kind: 'denied' }, tries: 1, since: 120_000 });
    expect(wire.waitMs()).toBe(5_000);
    wire.wait(5_000);
    wire.pass('push', 'denied');
    expect(wire.status()).toMatchObject({ tries: 2, since: 120_000, downSince: 0 });
    wire.wait(10_000);
    expect(wire.pass('push', 'answered')).toBe(true);
    expect(wire.said.at(-1)).toBe('peer answers again after 2m 15s; 5 tries.');
    expect(wire.status()).toEqual({ state: 'closed', since: 135_000, held: [], tries: 0 });
  });

  test('times a kind of failure from its first request, even if that came during another kind', () => {
    const wire = opened('denied');
    const tries = DEFAULT_POLICY.openAfter.failing;
    for (let i = 0; i < tries; i += 1) {
      expect(wire.status().reason?.kind).toBe('denied');
      wire.wait(100);
      wire.pass('mirror', 'failing');
    }
    expect(wire.status()).toMatchObject({
      reason: { kind: 'failing' },
      tries,
      since: wire.now - 400,
    });
  });

  test('allows another probe when one is aborted, and closes when an interactive request is answered', () => {
    const wire = opened('unreachable');
    wire.wait(1000);
    expect(wire.pass('push', 'aborted')).toBe(false);
    expect([wire.status().state, wire.admits('push')]).toEqual(['half-open', true]);
    expect(wire.pass('interactive', 'answered')).toBe(true);
    expect(wire.admitted()).toEqual([...LANES]);
  });

  test('ignores requests that started before it opened, and holds no lane because of them', () => {
    const wire = wired();
    const early = (['push', 'push', 'mirror'] as const).map(wire.start);
    wire.pass('push', 'failing', 5);
    const { probeAt } = wire.breaker;
    for (const [i, ticket] of early.entries()) wire.end(ticket, i === 0 ? 'answered' : 'failing');
    expect([wire.status().state, wire.breaker.probeAt, wire.status().tries]).toEqual([
      'open',
      probeAt,
      7,
    ]);
    expect(wire.held()).toEqual(['push']);
  });

  test('holds no lane for a failure that was over before', () => {
    const wire = wired();
    wire.pass('mirror', 'failing');
    wire.pass('mirror', 'answered');
    for (const lane of ['push', 'audit'] as const) {
      wire.pass(lane, 'failing', 5);
      expect(wire.held()).toEqual([lane]);
      wire.wait(1000);
      wire.pass(lane, 'answered');
    }
  });

  test('allows a probe even if one of an earlier outage never ended', () => {
    const wire = opened('unreachable');
    wire.wait(1000);
    const lost = wire.start('push');
    wire.pass('interactive', 'answered');
    wire.pass('push', 'unreachable', 2);
    wire.wait(1000);
    expect(wire.admits('push')).toBe(true);
    wire.start('confirm');
    wire.end(lost, 'aborted');
    expect(wire.admits('push')).toBe(false);
  });
});

describe('a peer that is busy', () => {
  test('holds every lane but interactive for as long as it asks, and counts as healthy', () => {
    const wire = wired();
    wire.end(wire.start('push'), 'busy', 30_000);
    expect(wire.status()).toEqual({ state: 'closed', since: 0, held: [], tries: 0 });
    wire.wait(29_999);
    expect(wire.admitted()).toEqual(['interactive']);
    wire.pass('interactive', 'answered');
    wire.breaker.endWait(wire.now);
    expect([wire.breaker.retryAfterUntil, wire.admits('push')]).toEqual([30_000, false]);
    wire.wait(1);
    wire.start('push');
    expect(wire.admitted()).toEqual([...LANES]);
    expect(wire.breaker.answeringForMs(wire.now)).toBe(30_000);
  });

  test('holds the lanes for the longest of several waits, and never longer than an hour', () => {
    const wire = wired();
    const [first, second] = [wire.start('push'), wire.start('push')];
    wire.end(first, 'busy', 30_000);
    wire.wait(1000);
    wire.end(second, 'busy', 5000);
    expect(wire.breaker.retryAfterUntil).toBe(30_000);
    wire.end(wire.start('interactive'), 'busy', 60_000);
    expect(wire.breaker.retryAfterUntil).toBe(61_000);
    wire.end(wire.start('interactive'), 'busy', 86_400_000);
    expect(wire.breaker.retryAfterUntil).toBe(1_000 + 3_600_000);
  });

  test.each([undefined, 0, -5, Number.NaN])(
    'without a usable Retry-After (%s) is asked again after a second, then after doubled waits up to a minute',
    (asked) => {
      const waits = [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000];
      expect(wired().waits('busy', 8, asked)).toEqual(waits);
      expect(wired(0).waits('busy', 1, asked)).toEqual([500]);
    },
  );

  test('lengthens the backoff once for requests that ran together', () => {
    const wire = wired();
    const tickets = [1, 2, 3, 4].map(() => wire.start('push'));
    for (const ticket of tickets) wire.end(ticket, 'busy');
    expect(wire.waitMs()).toBe(1000);
  });

  test('gets the first wait again after an answer, unless that request was already running when the peer asked', () => {
    const wire = wired();
    const early = wire.start('push');
    wire.waits('busy', 5);
    wire.end(early, 'answered');
    expect(wire.waits('busy', 1)).toEqual([32_000]);
    wire.wait(32_000);
    wire.pass('push', 'answered');
    wire.pass('push', 'busy');
    expect(wire.waitMs()).toBe(1000);
  });

  test('counts as recovering after a failure, and may fail again afterwards', () => {
    const wire = opened('unreachable');
    wire.wait(10_000);
    wire.pass('push', 'busy');
    expect(wire.status()).toEqual({ state: 'closed', since: 10_000, held: [], tries: 0 });
    wire.wait(1000);
    expect(wire.pass('confirm', 'answered')).toBe(false);
    expect(wire.said.at(-1)).toBe('peer answers again after 11s; 3 tries.');
    wire.pass('push', 'busy');
    wire.wait(1000);
    wire.pass('push', 'unreachable', 2);
    expect(wire.status()).toMatchObject({
      state: 'open',
      reason: { kind: 'unreachable' },
      tries: 2,
    });
    expect(wire.breaker.retryAfterUntil).toBeLessThan(0);
  });
});

type Step =
  | { readonly do: 'start'; readonly lane: Lane }
  | { readonly do: 'end'; readonly which: number; readonly kind: Kind }
  | { readonly do: 'wait'; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('start' as const), lane: fc.constantFrom(...LANES) }),
  fc.record({
    do: fc.constant('end' as const),
    which: fc.nat(20),
    kind: fc.constantFrom('answered', 'unreachable', 'failing', 'busy', 'denied', 'aborted'),
  }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 90_000 }) }),
);

/** Takes a breaker through these steps, and checks its invariants after each. */
function walk(steps: readonly Step[], random: number): void {
  const wire = wired(random);
  const running: Ticket[] = [];
  let probe: Ticket | undefined;
  const inARow = new Map<Lane, number>();
  const starts = (lane: Lane) => {
    const isProbe = wire.status().held.includes(lane);
    const ticket = wire.start(lane);
    running.push(ticket);
    if (!isProbe) return;
    expect(wire.status().state).toBe('half-open');
    // A download may take long: another lane does not wait for it.
    if (probe?.lane !== 'mirror') expect(probe, 'a second probe').toBeUndefined();
    probe = ticket;
  };
  const ends = (ticket: Ticket, kind: Kind) => {
    const before = wire.status();
    const isClosed = wire.end(ticket, kind);
    const { reason, since, state } = wire.status();
    const isOpened = before.state === 'closed' && state === 'open';
    const isAnother = reason?.kind !== before.reason?.kind || since !== before.since;
    if (ticket === probe || isOpened || isAnother || isClosed) probe = undefined;
    if (isClosed) expect(kind).toBe('answered');
    if (kind === 'answered') inARow.delete(ticket.lane);
    else if (kind !== 'aborted') inARow.set(ticket.lane, (inARow.get(ticket.lane) ?? 0) + 1);
    const strikes = [...inARow.values()].reduce((a, b) => a + b, 0);
    if (isOpened)
      expect(strikes).toBeGreaterThanOrEqual(DEFAULT_POLICY.openAfter[kind as PeerFailureKind]);
  };
  for (const what of steps) {
    if (what.do === 'wait') wire.wait(what.ms);
    if (what.do === 'start' && wire.admits(what.lane)) starts(what.lane);
    if (what.do === 'end')
      for (const one of running.splice(what.which % running.length, 1)) ends(one, what.kind);
    expect(wire.admits('interactive')).toBe(true);
    const { reason, state } = wire.status();
    if (state === 'closed')
      expect(LANES.every((lane) => wire.admits(lane))).toBe(
        wire.breaker.retryAfterUntil <= wire.now,
      );
    if (state === 'open')
      expect(wire.waitMs()).toBeLessThanOrEqual(reason?.kind === 'denied' ? 300_000 : 60_000);
  }
  for (const ticket of running) wire.end(ticket, 'aborted');
  wire.wait(300_000);
  expect(wire.admitted(), 'a lane is held for ever').toEqual([...LANES]);
  const [held] = wire.held();
  if (held) wire.pass(held, 'answered');
  expect(wire.status().state).toBe('closed');
}

test('whatever happens: one probe at a time, no wait beyond the maximum, no opening without enough strikes, and the circuit can close again', () => {
  const random = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(fc.property(fc.array(step, { maxLength: 120 }), random, walk), { numRuns: 400 });
});
