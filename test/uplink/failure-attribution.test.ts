import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import { DIALECTS } from '../../src/peer/dialects.js';
import type { AcceptedItem, Entry, PendingItem } from '../../src/state/entry.js';
import { accepted, failed, gone, leaving, read } from '../../src/state/entry.js';
import type { UplinkDeps } from '../../src/uplink/deps.js';
import { FailureAttribution, Isolation, reachOf, timesLost } from '../../src/uplink/failure-attribution.js';
import { pendingRecord, sentOf } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import { QUICK } from '../support/world.js';

const PUBLIC = 'https://files.example.org/a.txt';
const LOCAL = 'http://vault.local/a.txt';

/** What decides about failures, and what it did; `push.attempts` is 3. */
function attributed(dialect = DIALECTS.standard) {
  const clock = new FakeClock();
  const said: string[] = [];
  const put: Entry[] = [];
  const meta = new Map<string, unknown>();
  const deps = {
    ...{ clock, dialect: { current: dialect }, standing: () => 'there' },
    log: {
      ...silentLogger,
      info: (_: object, message: string) => void said.push(`info: ${message}`),
      warn: (_: object, message: string) => void said.push(`warn: ${message}`),
    },
    settings: {
      push: QUICK.push,
      confirm: { ...QUICK.confirm, timeout: 60_000, maxInterval: 50, hold: 20_000 },
    },
    state: {
      get: () => put.at(-1),
      put: (entry: Entry) => void put.push(entry),
      meta: (name: string) => meta.get(name),
      counts: () => ({ pending: 2 }),
      setMeta: (name: string, value: unknown) => void meta.set(name, value),
    },
  } as unknown as UplinkDeps;
  const isolation = new Isolation(deps);
  /** An item whose push left now. */
  const left = (url = PUBLIC): PendingItem => {
    const item = { ...pendingRecord('a.txt'), url };
    return leaving(item, { ...sentOf(item), at: clock.now() });
  };
  const takenOf = (item: PendingItem): AcceptedItem =>
    accepted(item, { ...sentOf(item), at: clock.now() }, clock.now());
  return {
    ...{ clock, isolation, said, put, left },
    part: new FailureAttribution(deps, isolation),
    /** What a later run begins with. */
    restarted: () => new FailureAttribution(deps, isolation),
    /** An item that the peer took, after so many times that it was not shown. */
    taken: (url = PUBLIC, attempts = 0): AcceptedItem => {
      const trouble = { code: 'NOT_SHOWN', message: 'Not shown.', hint: 'Wait.' };
      let item = left(url);
      for (let i = 0; i < attempts; i += 1) item = failed(takenOf(item), trouble, clock.now(), clock.now());
      return takenOf(item);
    },
    /** The peer loses an item so many times, one after the other. */
    loses: (url: string, times: number, part: FailureAttribution): Entry | undefined => {
      let item = left(url);
      for (let i = 0; i < times; i += 1) {
        part.lost(takenOf(item), 'no');
        const after = put.at(-1);
        if (after?.status !== 'pending') return after;
        item = after;
      }
      return item;
    },
  };
}

describe('an item that the peer lost', () => {
  it('is pushed apart from others, and with them where very many were lost, as in a crash', () => {
    const { isolation, loses, part } = attributed(DIALECTS.yacy);
    const suspects = Array.from({ length: 300 }, (_, i) => ({ ...loses(PUBLIC, 1, part), path: `f${i}` }));
    const isTaken = suspects.map((item) => isolation.take(item as PendingItem));
    expect(isTaken.filter(Boolean).length).toBe(300);
    const another = loses(PUBLIC, 1, part) as PendingItem;
    expect(another).toMatchObject({ trouble: { code: 'LOST_WITH_MANY' }, attempts: 0 });
    expect([timesLost(another), isolation.take(another)]).toEqual([0, false]);
    for (const item of suspects) isolation.forget(item as PendingItem);
    expect(loses(PUBLIC, 1, part)).toMatchObject({ trouble: { code: 'LOST_FROM_INDEX' } });
  });
});

describe('an item that the peer does not show', () => {
  it('is pushed again with an attempt spent, quarantined after `push.attempts`, and that is logged', () => {
    const { part, clock, said, put, taken } = attributed();
    expect(part.patienceMs(taken(), 1_000)).toBe(60_000);
    const message = expect.stringMatching(/within 10s: the peer does not know the document\.$/);
    const trouble = { code: 'NOT_SHOWN', message, hint: expect.not.stringContaining('network') };
    for (const attempts of [0, 1, 2])
      part.notShown(taken(PUBLIC, attempts), 10_000, 'the peer does not know the document');
    expect(put).toMatchObject([
      { status: 'pending', attempts: 1, notBefore: clock.now(), trouble },
      { status: 'pending', attempts: 2 },
      { status: 'quarantined', trouble },
    ]);
    expect(said).toEqual([
      expect.stringMatching(/^info: not shown by the peer, pushed again: inbox\/a/),
      expect.stringMatching(/^info: /),
      expect.stringMatching(/^warn: quarantined inbox\/a\.txt/),
    ]);
  });

  it.each([
    ['an earlier run is pushed again without a word', 0, undefined],
    ['this run travels alone from then on', 0, 'UNANSWERED'],
    ['this run twice is to blame where others went through since', 1, 'UNANSWERED'],
  ])('since an unanswered push of %s', async (what, attempts, code) => {
    const { part, clock, put, left } = attributed();
    expect(part.patienceMs(left(), 1_000)).toBe(40_000);
    for (const _ of what.includes('twice') ? [1, 2] : [1]) {
      const item = left();
      put.push(item);
      if (code !== undefined) part.unanswered(item);
      part.succeeded([]);
      await part.notTaken(item);
    }
    const after = put.at(-1);
    expect(after).toMatchObject({ status: 'pending', attempts });
    expect(after).not.toHaveProperty('inFlight');
    expect(after?.status === 'pending' && after.trouble?.code).toBe(code);
    expect(part.isSuspect(left())).toBe(code !== undefined);
    if (attempts === 0 && after?.status === 'pending')
      expect(after.notBefore).toBeLessThanOrEqual(clock.now() + 5);
  });

  it('and was sent before is pushed at once without an attempt spent', () => {
    const { part, clock, said, put, taken } = attributed();
    const before = taken();
    const item = read(gone(before, clock.now()), before, before.version, clock.now());
    if (item.status !== 'accepted') throw new Error(item.status);
    expect(part.patienceMs(item, 1_000)).toBe(40_000);
    part.notShown(item, 2_000, 'the peer shows other content');
    // What the peer may still have counts no more for what is sent, and for what is to be removed one day.
    const sent = { isUncertain: true };
    expect(put).toMatchObject([{ status: 'pending', attempts: 0, notBefore: clock.now(), sent }]);
    expect(put[0]?.history.at(-1)?.note).toBe('sent before, and not shown now: the peer shows other content');
    expect(said).toEqual([
      'info: not shown by the peer, pushed again: inbox/a.txt: the peer shows other content',
    ]);
  });
});

describe('an item that the peer loses', () => {
  it.each([
    ['once, is pushed again apart from others', PUBLIC, 1, 'LOST_FROM_INDEX'],
    ['also when it was alone, is pushed once more', PUBLIC, 2, 'LOST_FROM_INDEX'],
    ['alone twice, is to blame', PUBLIC, 3, 'REFUSED_BY_INDEX'],
    ['once, may be at an address that its network does not take', LOCAL, 1, 'LOST_FROM_INDEX'],
    ['twice, is at such an address where none like it was ever shown', LOCAL, 2, 'DOMAIN_GATE'],
  ])('%s', (_, url, times, code) => {
    const { loses, part, restarted } = attributed(DIALECTS.yacy);
    part.shown(PUBLIC);
    for (const each of [part, restarted()])
      expect(loses(url, times, each)).toMatchObject({
        ...{ status: code === 'LOST_FROM_INDEX' ? 'pending' : 'quarantined', trouble: { code } },
      });
  });

  it('is no matter of addresses where one of its kind was shown, also to an earlier run', () => {
    const { loses, part, restarted } = attributed(DIALECTS.yacy);
    for (const url of [PUBLIC, 'http://nas/b.txt']) part.shown(url);
    for (const each of [part, restarted()])
      expect(loses(LOCAL, 2, each)).toMatchObject({ trouble: { code: 'LOST_FROM_INDEX' } });
  });
});

it.each([
  [PUBLIC, 1, 'DOMAIN_GATE'],
  [LOCAL, 2, 'NOT_SHOWN'],
] as const)(
  'what a YaCy that shows %s does not show is reported with the setting of its network',
  (shown, attempts, code) => {
    const { part, put, taken } = attributed(DIALECTS.yacy);
    part.shown(shown);
    part.notShown(taken(LOCAL, attempts), 10_000, 'no');
    expect(put.at(-1)).toMatchObject({
      status: 'quarantined',
      trouble: { code, hint: expect.stringContaining('network.unit.domain') },
    });
  },
);

it.each([
  ['file:///srv/a.txt', 'local'],
  ['http://localhost/a', 'local'],
  ['http://127.0.0.1:8090/a', 'local'],
  ['http://172.16.0.1/a', 'local'],
  ['http://192.168.1.1/a', 'local'],
  ['http://[::1]/a', 'local'],
  ['http://[fd12::1]/a', 'local'],
  ['https://wiki.internal/a', 'local'],
  ['http://user@nas:80/a', 'local'],
  ['http://example.org/a', 'global'],
  ['https://files.example.org:8443/local/a', 'global'],
  ['http://172.32.0.1/a', 'global'],
  ['http://[2001:db8::1]/a', 'global'],
  ['http://local.example.org/a', 'global'],
])('%s is a %s address', (url, reach) => expect(reachOf(url)).toBe(reach));
