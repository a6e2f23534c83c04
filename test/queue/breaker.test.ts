import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Breaker, type CircuitStatus, type Ticket, type TroubleKind } from '../../src/queue/breaker.js';
import { DEFAULT_POLICY, LANES, type Lane, type Outcome } from '../../src/queue/options.js';

/** A breaker, the time it is told, and what it logs. */
function wired(random = 1) {
  const said: string[] = [];
  const say = (_: object, message: string) => void said.push(message);
  const log = { debug() {}, info: say, warn: say, error: say };
  const breaker = new Breaker({ ...DEFAULT_POLICY, random: () => random }, log, 'peer', 0);
  const wire = {
    ...{ breaker, said },
    now: 0,
    status: (): CircuitStatus => breaker.status(wire.now),
    admits: (lane: Lane) => breaker.admitsFrom(lane) <= wire.now,
    start: (lane: Lane): Ticket => breaker.started(lane, wire.now),
    end: (ticket: Ticket, kind: Outcome['kind'], retryAfterMs?: number): boolean => {
      const outcome: Outcome =
        kind === 'busy' && retryAfterMs !== undefined ? { kind, retryAfterMs } : { kind };
      return breaker.ended(ticket, outcome, wire.now, new Error(`it is ${kind}`));
    },
    /** A task of this lane starts and ends at once. @returns whether the circuit closed */
    pass: (lane: Lane, kind: Outcome['kind']): boolean => wire.end(wire.start(lane), kind),
    wait: (ms: number): void => {
      wire.now += ms;
    },
    /** How long until the next probe, in ms. */
    waitMs: () => breaker.probeAt - wire.now,
  };
  return wire;
}

function opened(kind: TroubleKind, lane: Lane = 'push') {
  const wire = wired();
  for (let i = 0; i < DEFAULT_POLICY.openAfter[kind]; i += 1) wire.pass(lane, kind);
  expect(wire.status().state).toBe('open');
  return wire;
}

describe('a closed circuit', () => {
  test.each([
    ['unreachable', 2],
    ['failing', 5],
    ['denied', 1],
  ] as const)('opens when the peer is %s %i times in a row', (kind, times) => {
    const wire = wired();
    for (let i = 1; i < times; i += 1) {
      wire.pass('push', kind);
      expect(wire.status().state).toBe('closed');
    }
    wire.pass('push', kind);
    expect(wire.status()).toMatchObject({ state: 'open', reason: { kind }, tries: times });
  });

  test('stays closed while its lane is answered in between: one bad item among good ones', () => {
    const wire = wired();
    for (let i = 0; i < 50; i += 1) {
      for (let n = 0; n < 4; n += 1) wire.pass('push', 'failing');
      wire.pass('push', 'answered');
    }
    expect(wire.status().state).toBe('closed');
  });

  test('opens for one page that only fails, however well the others work', () => {
    const wire = wired();
    for (let n = 1; n < 5; n += 1) {
      wire.pass('push', 'failing');
      wire.pass('confirm', 'answered');
    }
    wire.wait(500);
    wire.pass('push', 'failing');
    expect(wire.status()).toMatchObject({ state: 'open', tries: 5, since: 0 });
    expect(LANES.filter((lane) => wire.breaker.holds(lane))).toEqual(['push']);
  });

  test('stays closed where an answer of any lane shows that the peer is there', () => {
    const wire = wired();
    for (let i = 0; i < 50; i += 1) {
      wire.pass('push', 'unreachable');
      wire.pass('confirm', 'answered');
    }
    expect(wire.status().state).toBe('closed');
  });

  test('counts troubles of all lanes and kinds together', () => {
    const wire = wired();
    wire.pass('push', 'failing');
    wire.pass('confirm', 'failing');
    wire.pass('mirror', 'failing');
    wire.pass('audit', 'failing');
    wire.pass('push', 'unreachable');
    expect(wire.status()).toMatchObject({ state: 'open', reason: { kind: 'unreachable' } });
  });

  test('learns nothing from a task that was called off', () => {
    const wire = wired();
    wire.pass('push', 'unreachable');
    wire.pass('push', 'aborted');
    wire.pass('push', 'unreachable');
    expect(wire.status().state).toBe('open');
  });

  test('takes what a person is refused for theirs alone, but not that the peer is unreachable', () => {
    const wire = wired();
    for (let i = 0; i < 10; i += 1) {
      wire.pass('interactive', 'denied');
      wire.pass('interactive', 'failing');
    }
    expect(wire.status().state).toBe('closed');
    wire.pass('interactive', 'unreachable');
    wire.pass('interactive', 'unreachable');
    expect(wire.status().state).toBe('open');
  });
});

describe('an open circuit', () => {
  test('lets nothing through but interactive while the peer is unreachable', () => {
    const wire = opened('unreachable');
    expect(LANES.filter((lane) => wire.admits(lane))).toEqual(['interactive']);
  });

  test.each(['failing', 'denied'] as const)(
    'holds only the lanes that had the trouble while the peer is %s',
    (kind) => {
      const wire = opened(kind, 'push');
      expect(LANES.filter((lane) => wire.breaker.holds(lane))).toEqual(['push']);
      wire.pass('mirror', kind);
      expect(LANES.filter((lane) => wire.breaker.holds(lane))).toEqual(['push', 'mirror']);
    },
  );

  test('is not closed by a page that asks for no credentials', () => {
    const wire = opened('denied', 'push');
    expect(wire.pass('confirm', 'answered')).toBe(false);
    wire.wait(5000);
    expect(wire.pass('push', 'answered')).toBe(true);
  });

  test('holds every lane once a lane that was let through finds the peer gone', () => {
    const wire = opened('denied', 'push');
    wire.pass('confirm', 'unreachable');
    wire.pass('confirm', 'unreachable');
    expect(wire.status().reason?.kind).toBe('unreachable');
    expect(LANES.filter((lane) => wire.admits(lane))).toEqual(['interactive']);
  });

  test('is half-open after a second and lets one probe through', () => {
    const wire = opened('unreachable');
    wire.wait(999);
    expect(wire.admits('push')).toBe(false);
    wire.wait(1);
    expect(wire.admits('push')).toBe(true);
    wire.start('confirm');
    expect(wire.admits('push')).toBe(false);
    expect(wire.status().state).toBe('half-open');
  });

  test('stays half-open until a probe comes', () => {
    const wire = opened('unreachable');
    wire.wait(1000);
    wire.wait(86_400_000);
    expect(wire.status().state).toBe('half-open');
    expect(wire.admits('push')).toBe(true);
  });

  test('waits twice as long after each probe that fails, up to a minute, and anew after a success', () => {
    const wire = opened('unreachable');
    const waits: number[] = [];
    for (let i = 0; i < 8; i += 1) {
      wire.wait(wire.waitMs());
      wire.pass('push', 'unreachable');
      waits.push(wire.waitMs());
    }
    expect(waits).toEqual([2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    wire.wait(60_000);
    expect(wire.pass('push', 'answered')).toBe(true);
    expect(wire.said.at(-1)).toBe('peer answers again after 4m 3s; 10 tries.');
    wire.pass('push', 'unreachable');
    wire.pass('push', 'unreachable');
    expect(wire.waitMs()).toBe(1000);
  });

  test('waits five seconds to five minutes where the credentials are refused', () => {
    const wire = opened('denied');
    const waits = [wire.waitMs()];
    for (let i = 0; i < 8; i += 1) {
      wire.wait(wire.waitMs());
      wire.pass('push', 'denied');
      waits.push(wire.waitMs());
    }
    expect(waits.slice(0, 3)).toEqual([5000, 10_000, 20_000]);
    expect(waits.at(-1)).toBe(300_000);
  });

  test('waits less by up to half, at random', () => {
    const wire = wired(0);
    wire.pass('push', 'unreachable');
    wire.pass('push', 'unreachable');
    expect(wire.breaker.probeAt).toBe(500);
  });

  test('begins with short waits again when the trouble is of another kind', () => {
    const wire = opened('unreachable');
    for (let i = 0; i < 8; i += 1) {
      wire.wait(60_000);
      wire.pass('push', 'unreachable');
    }
    wire.wait(60_000);
    wire.pass('push', 'failing');
    expect([wire.status().reason?.kind, wire.waitMs()]).toEqual(['failing', 1000]);
  });

  test('counts and times a trouble of another kind by itself, and all of it when the peer answers', () => {
    const wire = opened('unreachable');
    wire.wait(60_000);
    wire.pass('push', 'unreachable');
    wire.wait(60_000);
    wire.pass('push', 'denied');
    expect(wire.status()).toMatchObject({ reason: { kind: 'denied' }, tries: 1, since: 120_000 });
    wire.wait(5_000);
    wire.pass('push', 'denied');
    expect(wire.status()).toMatchObject({ tries: 2, since: 120_000, downSince: 0 });
    wire.wait(10_000);
    expect(wire.pass('push', 'answered')).toBe(true);
    expect(wire.said.at(-1)).toBe('peer answers again after 2m 15s; 5 tries.');
    expect(wire.status()).toEqual({ state: 'closed', since: 135_000, held: [], tries: 0 });
  });

  test('times a trouble from its first sign, which came while another one lasted', () => {
    const wire = opened('denied');
    for (let i = 0; i < DEFAULT_POLICY.openAfter.failing - 1; i += 1) {
      wire.now += 100;
      wire.pass('mirror', 'failing');
      expect(wire.status().reason?.kind).toBe('denied');
    }
    wire.now += 100;
    wire.pass('mirror', 'failing');
    const tries = DEFAULT_POLICY.openAfter.failing;
    expect(wire.status()).toMatchObject({ reason: { kind: 'failing' }, tries, since: wire.now - 400 });
  });

  test('leaves room for another probe when one is called off', () => {
    const wire = opened('unreachable');
    wire.wait(1000);
    expect(wire.pass('push', 'aborted')).toBe(false);
    expect(wire.status().state).toBe('half-open');
    expect(wire.admits('push')).toBe(true);
  });

  test('closes when the peer answers a person, before any probe', () => {
    const wire = opened('unreachable');
    expect(wire.pass('interactive', 'answered')).toBe(true);
    expect(wire.admits('push')).toBe(true);
  });

  test('believes no task that started before it opened', () => {
    const wire = wired();
    const early = [wire.start('push'), wire.start('push'), wire.start('push')];
    wire.pass('push', 'unreachable');
    wire.pass('push', 'unreachable');
    const probeAt = wire.breaker.probeAt;
    for (const [i, ticket] of early.entries()) wire.end(ticket, i === 0 ? 'answered' : 'unreachable');
    expect(wire.status().state).toBe('open');
    expect(wire.breaker.probeAt).toBe(probeAt);
    expect(wire.status().tries).toBe(4);
  });

  test('holds no lane for a task that started before it opened', () => {
    const wire = wired();
    const early = wire.start('mirror');
    for (let i = 0; i < 5; i += 1) wire.pass('push', 'failing');
    wire.end(early, 'failing');
    expect(wire.breaker.holds('mirror')).toBe(false);
  });

  test('holds no lane for trouble that was over before', () => {
    const wire = wired();
    wire.pass('mirror', 'failing');
    wire.pass('mirror', 'answered');
    for (let round = 0; round < 2; round += 1) {
      const lane = round === 0 ? 'push' : 'audit';
      for (let i = 0; i < 5; i += 1) wire.pass(lane, 'failing');
      expect(LANES.filter((name) => wire.breaker.holds(name))).toEqual([lane]);
      wire.wait(1000);
      wire.pass(lane, 'answered');
    }
  });

  test('lets a probe through though one of an earlier outage never came back', () => {
    const wire = opened('unreachable');
    wire.wait(1000);
    const lost = wire.start('push');
    wire.pass('interactive', 'answered');
    wire.pass('push', 'unreachable');
    wire.pass('push', 'unreachable');
    wire.wait(1000);
    expect(wire.admits('push')).toBe(true);
    wire.start('confirm');
    wire.end(lost, 'aborted');
    expect(wire.admits('push')).toBe(false);
  });

  test('is not opened again by tasks of the outage that time out after it', () => {
    const wire = wired();
    const hanging = [wire.start('push'), wire.start('push'), wire.start('push')];
    wire.pass('push', 'unreachable');
    wire.pass('push', 'unreachable');
    wire.wait(1000);
    wire.pass('confirm', 'answered');
    for (const ticket of hanging) wire.end(ticket, 'unreachable');
    expect(wire.status().state).toBe('closed');
  });
});

describe('a peer that is busy', () => {
  test('is left alone by every lane but interactive, as long as it asks, and is in no trouble', () => {
    const wire = wired();
    wire.end(wire.start('push'), 'busy', 30_000);
    expect(wire.breaker.pausedUntil).toBe(30_000);
    expect(wire.status()).toEqual({ state: 'closed', since: 0, held: [], tries: 0 });
    wire.wait(29_999);
    expect(LANES.filter((lane) => wire.admits(lane))).toEqual(['interactive']);
    wire.pass('interactive', 'answered');
    expect(wire.breaker.pausedUntil).toBe(30_000);
    wire.breaker.endWait(wire.now);
    expect(wire.admits('push')).toBe(false);
    wire.wait(1);
    expect(LANES.filter((lane) => wire.admits(lane))).toEqual([...LANES]);
    wire.start('push');
    expect(wire.admits('push')).toBe(true);
    expect(wire.breaker.answeringForMs(wire.now)).toBe(30_000);
  });

  test('is left alone for the longest of several waits', () => {
    const wire = wired();
    const [first, second] = [wire.start('push'), wire.start('push')];
    wire.end(first, 'busy', 30_000);
    wire.wait(1000);
    wire.end(second, 'busy', 5000);
    expect(wire.breaker.pausedUntil).toBe(30_000);
    wire.end(wire.start('interactive'), 'busy', 60_000);
    expect(wire.breaker.pausedUntil).toBe(61_000);
  });

  test('is not believed where it asks for more than an hour', () => {
    const wire = wired();
    wire.end(wire.start('push'), 'busy', 86_400_000);
    expect(wire.breaker.pausedUntil).toBe(3_600_000);
  });

  test.each([undefined, 0, -5, Number.NaN])(
    'without a usable wait (%s) is asked after a second, then twice as long up to a minute',
    (asked) => {
      const wire = wired();
      const waits: number[] = [];
      for (let i = 0; i < 8; i += 1) {
        wire.end(wire.start('push'), 'busy', asked);
        waits.push(wire.waitMs());
        wire.wait(wire.waitMs());
      }
      expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    },
  );

  test('gets a longer wait once for requests that were under way together', () => {
    const wire = wired();
    const tickets = [1, 2, 3, 4].map(() => wire.start('push'));
    for (const ticket of tickets) wire.end(ticket, 'busy');
    expect(wire.waitMs()).toBe(1000);
  });

  test('gets a short wait again after an answer, unless that was under way when it asked', () => {
    const wire = wired();
    const early = wire.start('push');
    for (let i = 0; i < 5; i += 1) {
      wire.wait(Math.max(0, wire.waitMs()));
      wire.pass('push', 'busy');
    }
    wire.end(early, 'answered');
    wire.wait(wire.waitMs());
    wire.pass('push', 'busy');
    expect(wire.waitMs()).toBe(32_000);
    wire.wait(32_000);
    wire.pass('push', 'answered');
    wire.pass('push', 'busy');
    expect(wire.waitMs()).toBe(1000);
  });

  test('gets a wait that is shorter by up to half, at random', () => {
    const wire = wired(0);
    wire.pass('push', 'busy');
    expect(wire.waitMs()).toBe(500);
  });

  test('is on its way back where it was in trouble before', () => {
    const wire = opened('unreachable');
    wire.wait(10_000);
    wire.pass('push', 'busy');
    expect(wire.status()).toEqual({ state: 'closed', since: 10_000, held: [], tries: 0 });
    wire.wait(1000);
    expect(wire.pass('confirm', 'answered')).toBe(false);
    expect(wire.said.at(-1)).toBe('peer answers again after 11s; 3 tries.');
  });

  test('may be in trouble afterwards', () => {
    const wire = wired();
    wire.pass('push', 'busy');
    wire.wait(1000);
    wire.pass('push', 'unreachable');
    wire.pass('push', 'unreachable');
    expect(wire.status()).toMatchObject({ state: 'open', reason: { kind: 'unreachable' }, tries: 2 });
    expect(wire.breaker.pausedUntil).toBeLessThan(0);
  });
});

type Step =
  | { readonly do: 'start'; readonly lane: Lane }
  | { readonly do: 'end'; readonly which: number; readonly kind: Outcome['kind'] }
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

describe('whatever happens', () => {
  test('one probe at a time, no wait too long, no opening without its strikes, and a way back', () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 120 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (steps, random) => {
          const wire = wired(random);
          const { breaker } = wire;
          const running: Ticket[] = [];
          let probe: Ticket | undefined;
          const inARow = new Map<Lane, number>();
          for (const what of steps) {
            if (what.do === 'wait') wire.wait(what.ms);
            if (what.do === 'start' && wire.admits(what.lane)) {
              const isProbe = wire.status().held.includes(what.lane);
              const ticket = wire.start(what.lane);
              if (isProbe) {
                expect(wire.status().state).toBe('half-open');
                expect(probe, 'a second probe').toBeUndefined();
                probe = ticket;
              }
              running.push(ticket);
            }
            if (what.do === 'end' && running.length > 0) {
              const [ticket] = running.splice(what.which % running.length, 1);
              if (!ticket) throw new Error('unreachable');
              const before = wire.status();
              const isClosed = wire.end(ticket, what.kind);
              const { reason, since, state } = wire.status();
              const isOpened = before.state === 'closed' && state === 'open';
              if (
                ticket === probe ||
                isOpened ||
                reason?.kind !== before.reason?.kind ||
                since !== before.since
              )
                probe = undefined;
              if (what.kind === 'answered') inARow.delete(ticket.lane);
              else if (what.kind !== 'aborted') inARow.set(ticket.lane, (inARow.get(ticket.lane) ?? 0) + 1);
              if (isOpened) {
                expect([...inARow.values()].reduce((a, b) => a + b)).toBeGreaterThanOrEqual(
                  what.kind === 'denied' ? 1 : what.kind === 'failing' ? 5 : 2,
                );
              }
              if (isClosed) {
                expect(what.kind).toBe('answered');
                probe = undefined;
              }
            }
            expect(wire.admits('interactive')).toBe(true);
            if (wire.status().state === 'closed')
              expect(LANES.every((lane) => wire.admits(lane))).toBe(breaker.pausedUntil <= wire.now);
            if (wire.status().state === 'open') {
              const longest = wire.status().reason?.kind === 'denied' ? 300_000 : 60_000;
              expect(breaker.probeAt - wire.now).toBeLessThanOrEqual(longest);
            }
          }
          for (const ticket of running) wire.end(ticket, 'aborted');
          wire.wait(300_000);
          for (const lane of LANES) expect(wire.admits(lane), `${lane} is held for ever`).toBe(true);
          const held = LANES.find((lane) => breaker.holds(lane));
          if (held) wire.pass(held, 'answered');
          expect(wire.status().state).toBe('closed');
        },
      ),
      { numRuns: 400 },
    );
  });
});
