import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Breaker, type Change, type Ticket, type TroubleKind } from '../../src/queue/breaker.js';
import { DEFAULT_POLICY, LANES, type Lane, type Outcome } from '../../src/queue/options.js';

/** A breaker and the time it is told. */
function wired(random = 1) {
  const breaker = new Breaker(DEFAULT_POLICY, () => random);
  const wire = {
    breaker,
    now: 0,
    admits: (lane: Lane) => breaker.admitsFrom(lane) <= wire.now,
    start: (lane: Lane): Ticket => breaker.started(lane, wire.now),
    end: (ticket: Ticket, kind: Outcome['kind']): Change =>
      breaker.ended(ticket, { kind }, wire.now, (trouble) => ({
        kind: trouble,
        message: `it is ${trouble}`,
      })),
    /** A task of this lane starts and ends at once. */
    pass: (lane: Lane, kind: Outcome['kind']): Change => wire.end(wire.start(lane), kind),
    wait: (ms: number): boolean => {
      wire.now += ms;
      return breaker.tick(wire.now);
    },
  };
  return wire;
}

function opened(kind: TroubleKind, lane: Lane = 'push') {
  const wire = wired();
  for (let i = 0; i < DEFAULT_POLICY.openAfter[kind]; i += 1) wire.pass(lane, kind);
  expect(wire.breaker.state).toBe('open');
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
      expect(wire.breaker.state).toBe('closed');
    }
    expect(wire.pass('push', kind)).toMatchObject({ kind: 'opened', trouble: { kind }, tries: times });
    expect(wire.breaker.state).toBe('open');
  });

  test('stays closed while its lane is answered in between: one bad item among good ones', () => {
    const wire = wired();
    for (let i = 0; i < 50; i += 1) {
      for (let n = 0; n < 4; n += 1) wire.pass('push', 'failing');
      wire.pass('push', i % 2 === 0 ? 'answered' : 'busy');
    }
    expect(wire.breaker.state).toBe('closed');
  });

  test('opens for one page that only fails, however well the others work', () => {
    const wire = wired();
    for (let n = 1; n < 5; n += 1) {
      wire.pass('push', 'failing');
      wire.pass('confirm', 'answered');
    }
    wire.wait(500);
    expect(wire.pass('push', 'failing')).toMatchObject({ kind: 'opened', tries: 5, troubleMs: 500 });
    expect(LANES.filter((lane) => wire.breaker.holds(lane))).toEqual(['push']);
  });

  test('stays closed where an answer of any lane shows that the peer is there', () => {
    const wire = wired();
    for (let i = 0; i < 50; i += 1) {
      wire.pass('push', 'unreachable');
      wire.pass('confirm', 'answered');
    }
    expect(wire.breaker.state).toBe('closed');
  });

  test('counts troubles of all lanes and kinds together', () => {
    const wire = wired();
    wire.pass('push', 'failing');
    wire.pass('confirm', 'failing');
    wire.pass('mirror', 'failing');
    wire.pass('audit', 'failing');
    expect(wire.pass('push', 'unreachable')).toMatchObject({
      kind: 'opened',
      trouble: { kind: 'unreachable' },
    });
  });

  test('learns nothing from a task that was called off', () => {
    const wire = wired();
    wire.pass('push', 'unreachable');
    wire.pass('push', 'aborted');
    wire.pass('push', 'unreachable');
    expect(wire.breaker.state).toBe('open');
  });

  test('takes what a person is refused for theirs alone, but not that the peer is unreachable', () => {
    const wire = wired();
    for (let i = 0; i < 10; i += 1) {
      wire.pass('interactive', 'denied');
      wire.pass('interactive', 'failing');
    }
    expect(wire.breaker.state).toBe('closed');
    wire.pass('interactive', 'unreachable');
    wire.pass('interactive', 'unreachable');
    expect(wire.breaker.state).toBe('open');
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
    expect(wire.pass('confirm', 'answered')).toEqual({ kind: 'none' });
    wire.wait(5000);
    expect(wire.pass('push', 'busy')).toEqual({ kind: 'none' });
    expect(wire.pass('push', 'answered')).toMatchObject({ kind: 'closed' });
  });

  test('holds every lane once a lane that was let through finds the peer gone', () => {
    const wire = opened('denied', 'push');
    wire.pass('confirm', 'unreachable');
    expect(wire.pass('confirm', 'unreachable')).toMatchObject({ kind: 'other-trouble' });
    expect(LANES.filter((lane) => wire.admits(lane))).toEqual(['interactive']);
  });

  test('is half-open after a second and lets one probe through', () => {
    const wire = opened('unreachable');
    expect(wire.wait(999)).toBe(false);
    expect(wire.admits('push')).toBe(false);
    expect(wire.wait(1)).toBe(true);
    expect(wire.admits('push')).toBe(true);
    wire.start('confirm');
    expect(wire.admits('push')).toBe(false);
    expect(wire.breaker.state).toBe('half-open');
  });

  test('stays half-open until a probe comes', () => {
    const wire = opened('unreachable');
    wire.wait(1000);
    wire.wait(86_400_000);
    expect(wire.breaker.state).toBe('half-open');
    expect(wire.admits('push')).toBe(true);
  });

  test('waits twice as long after each probe that fails, up to a minute, and anew after a success', () => {
    const wire = opened('unreachable');
    const waits: number[] = [];
    for (let i = 0; i < 8; i += 1) {
      wire.wait((wire.breaker.probeAt ?? 0) - wire.now);
      const change = wire.pass('push', 'unreachable');
      expect(change.kind).toBe('still');
      waits.push((wire.breaker.probeAt ?? 0) - wire.now);
    }
    expect(waits).toEqual([2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    wire.wait(60_000);
    expect(wire.pass('push', 'answered')).toEqual({ kind: 'closed', downMs: wire.now, tries: 10 });
    wire.pass('push', 'unreachable');
    wire.pass('push', 'unreachable');
    expect((wire.breaker.probeAt ?? 0) - wire.now).toBe(1000);
  });

  test('waits five seconds to five minutes where the credentials are refused', () => {
    const wire = opened('denied');
    const waits = [(wire.breaker.probeAt ?? 0) - wire.now];
    for (let i = 0; i < 8; i += 1) {
      wire.wait((wire.breaker.probeAt ?? 0) - wire.now);
      wire.pass('push', 'denied');
      waits.push((wire.breaker.probeAt ?? 0) - wire.now);
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
    expect(wire.pass('push', 'failing')).toMatchObject({
      kind: 'other-trouble',
      nextProbeMs: 1000,
    });
  });

  test('counts and times a trouble of another kind by itself, and all of it when the peer answers', () => {
    const wire = opened('unreachable');
    wire.wait(60_000);
    wire.pass('push', 'unreachable');
    wire.wait(60_000);
    expect(wire.pass('push', 'denied')).toMatchObject({ kind: 'other-trouble', tries: 1, troubleMs: 0 });
    wire.wait(5_000);
    expect(wire.pass('push', 'denied')).toMatchObject({ kind: 'still', tries: 2, troubleMs: 5_000 });
    expect(wire.breaker.tries).toBe(2);
    expect(wire.breaker.began).toEqual({ trouble: 120_000, down: 0 });
    wire.wait(10_000);
    expect(wire.pass('push', 'answered')).toEqual({ kind: 'closed', downMs: 135_000, tries: 5 });
    expect(wire.breaker.began).toBeUndefined();
  });

  test('times a trouble from its first sign, which came while another one lasted', () => {
    const wire = opened('denied');
    for (let i = 0; i < DEFAULT_POLICY.openAfter.failing - 1; i += 1) {
      wire.now += 100;
      expect(wire.pass('mirror', 'failing').kind).toBe('none');
    }
    wire.now += 100;
    expect(wire.pass('mirror', 'failing')).toMatchObject({
      kind: 'other-trouble',
      tries: DEFAULT_POLICY.openAfter.failing,
      troubleMs: 400,
    });
  });

  test('leaves room for another probe when one is called off', () => {
    const wire = opened('unreachable');
    wire.wait(1000);
    expect(wire.pass('push', 'aborted')).toEqual({ kind: 'none' });
    expect(wire.breaker.state).toBe('half-open');
    expect(wire.admits('push')).toBe(true);
  });

  test('closes when the peer answers a person, before any probe', () => {
    const wire = opened('unreachable');
    expect(wire.pass('interactive', 'answered')).toMatchObject({ kind: 'closed' });
    expect(wire.admits('push')).toBe(true);
  });

  test('believes no task that started before it opened', () => {
    const wire = wired();
    const early = [wire.start('push'), wire.start('push'), wire.start('push')];
    wire.pass('push', 'unreachable');
    wire.pass('push', 'unreachable');
    const probeAt = wire.breaker.probeAt;
    for (const [i, ticket] of early.entries()) wire.end(ticket, i === 0 ? 'answered' : 'unreachable');
    expect(wire.breaker.state).toBe('open');
    expect(wire.breaker.probeAt).toBe(probeAt);
    expect(wire.breaker.tries).toBe(4);
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
    expect(wire.breaker.state).toBe('closed');
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
              const isProbe = breaker.holds(what.lane);
              const ticket = wire.start(what.lane);
              if (isProbe) {
                expect(breaker.state).toBe('half-open');
                expect(probe, 'a second probe').toBeUndefined();
                probe = ticket;
              }
              running.push(ticket);
            }
            if (what.do === 'end' && running.length > 0) {
              const [ticket] = running.splice(what.which % running.length, 1);
              if (!ticket) throw new Error('unreachable');
              const before = breaker.state;
              const change = wire.end(ticket, what.kind);
              if (ticket === probe || change.kind === 'opened' || change.kind === 'other-trouble')
                probe = undefined;
              if (what.kind === 'answered' || what.kind === 'busy') inARow.delete(ticket.lane);
              else if (what.kind !== 'aborted') inARow.set(ticket.lane, (inARow.get(ticket.lane) ?? 0) + 1);
              if (change.kind === 'opened') {
                expect(before).toBe('closed');
                expect([...inARow.values()].reduce((a, b) => a + b)).toBeGreaterThanOrEqual(
                  what.kind === 'denied' ? 1 : what.kind === 'failing' ? 5 : 2,
                );
              }
              if (change.kind === 'closed') {
                expect(['answered', 'busy']).toContain(what.kind);
                probe = undefined;
              }
            }
            expect(wire.admits('interactive')).toBe(true);
            if (breaker.state === 'closed') expect(LANES.every((lane) => wire.admits(lane))).toBe(true);
            if (breaker.probeAt !== undefined) {
              const longest = breaker.reason?.kind === 'denied' ? 300_000 : 60_000;
              expect(breaker.probeAt - wire.now).toBeLessThanOrEqual(longest);
            }
          }
          for (const ticket of running) wire.end(ticket, 'aborted');
          wire.wait(300_000);
          for (const lane of LANES) expect(wire.admits(lane), `${lane} is held for ever`).toBe(true);
          const held = LANES.find((lane) => breaker.holds(lane));
          if (held) expect(wire.pass(held, 'answered').kind).toBe('closed');
          expect(breaker.state).toBe('closed');
        },
      ),
      { numRuns: 400 },
    );
  });
});
