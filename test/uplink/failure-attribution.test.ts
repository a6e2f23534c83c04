import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import type { Dialect } from '../../src/peer/dialect.js';
import { DIALECTS } from '../../src/peer/dialects.js';
import type { AcceptedItem, Entry, PendingItem, Sent } from '../../src/state/entry.js';
import { accepted, failed, gone, leaving, read } from '../../src/state/entry.js';
import type { UplinkDeps } from '../../src/uplink/deps.js';
import { FailureAttribution } from '../../src/uplink/failure-attribution.js';
import { FakeClock } from '../support/fake-clock.js';
import { QUICK } from '../support/world.js';

const TYPICAL_MS = 1_000;
const PUBLIC = 'https://files.example.org/a.txt';
const LOCAL = 'http://vault.local/a.txt';

/** What decides about failures at a peer of this dialect, and what it did; `push.attempts` is 3. */
function attributed(first: Dialect) {
  const dialect = { current: first, known: async () => true, misfits: async () => false };
  const clock = new FakeClock();
  const said: string[] = [];
  const put: Entry[] = [];
  const meta = new Map<string, unknown>();
  const setting: { entry: Entry | undefined } = { entry: undefined };
  const deps = {
    ...{ clock, dialect, standing: () => 'there' },
    log: {
      ...silentLogger,
      info: (_: object, message: string) => void said.push(`info: ${message}`),
      warn: (_: object, message: string) => void said.push(`warn: ${message}`),
    },
    settings: { push: QUICK.push, confirm: { timeout: 60_000, maxInterval: 50, hold: 20_000 } },
    state: {
      get: () => setting.entry,
      put: (entry: Entry) => void put.push(entry),
      meta: (name: string) => meta.get(name),
      counts: () => ({ pending: 2 }),
      setMeta: (name: string, value: unknown) => void meta.set(name, value),
    },
  } as unknown as UplinkDeps;
  const { settings } = deps;
  return Object.assign(setting, {
    ...{ clock, settings, said, put, dialect },
    part: new FailureAttribution(deps),
    /** What a later run begins with. */
    restarted: () => new FailureAttribution(deps),
  });
}

function inDoubt(url: string, at: number): PendingItem {
  const version = {
    ...{ size: 3, mtimeMs: at, ctimeMs: at, ino: 1 },
    ...{ sha256: 'aa', encoding: 'utf-8' as const },
  };
  const item = read(undefined, { folder: 'inbox', path: 'a.txt', url, collection: 'c' }, version, at);
  if (item.status !== 'pending') throw new Error(item.status);
  return leaving(item, sent(url, at));
}

function sent(url: string, at: number): Sent {
  return { sha256: 'aa', size: 3, digest: 'aa', url, collection: 'c', at };
}

function takenBy(url: string, at: number, attempts = 0): AcceptedItem {
  let item: PendingItem = inDoubt(url, at);
  for (let i = 0; i < attempts; i += 1) {
    const trouble = { code: 'NOT_SHOWN', message: 'Not shown.', hint: 'Wait.' };
    item = failed(accepted(item, sent(url, at), at), trouble, at, at);
  }
  return accepted(item, sent(url, at), at);
}

describe('an item that the peer does not show', () => {
  it('is pushed again with an attempt spent, and that is said', () => {
    const { part, clock, said, put } = attributed(DIALECTS.standard);
    const item = takenBy(PUBLIC, clock.now());
    expect(part.patienceMs(item, TYPICAL_MS)).toBe(60_000);
    part.notShown(item, 10_000, 'the peer does not know the document');
    expect(put).toMatchObject([{ status: 'pending', attempts: 1, notBefore: clock.now() }]);
    expect(put[0]).toMatchObject({
      trouble: {
        code: 'NOT_SHOWN',
        message: expect.stringMatching(/within 10s: the peer does not know the document\.$/),
        hint: expect.not.stringContaining('network'),
      },
    });
    expect(said).toEqual([expect.stringMatching(/^info: not shown by the peer, pushed again: inbox\/a/)]);
  });

  it('is quarantined after `push.attempts`, and a person is warned', () => {
    const { part, clock, said, put } = attributed(DIALECTS.standard);
    part.notShown(takenBy(PUBLIC, clock.now(), 1), 10_000, 'no');
    expect(put.at(-1)).toMatchObject({ status: 'pending', attempts: 2 });
    part.notShown(takenBy(PUBLIC, clock.now(), 2), 10_000, 'no');
    expect(put.at(-1)).toMatchObject({ status: 'quarantined', trouble: { code: 'NOT_SHOWN' } });
    expect(said.slice(1)).toEqual([expect.stringMatching(/^warn: quarantined inbox\/a\.txt/)]);
  });

  it('in doubt since an earlier run is waited for as such, and pushed again without an attempt spent', async () => {
    const { part, clock, put } = attributed(DIALECTS.standard);
    const item = inDoubt(PUBLIC, clock.now());
    expect(part.patienceMs(item, TYPICAL_MS)).toBe(40_000);
    await clock.advance(2_000);
    await part.doubtOver(item);
    expect(put).toMatchObject([{ status: 'pending', attempts: 0, notBefore: clock.now() }]);
    expect(put[0]).not.toHaveProperty('doubt');
    expect(put[0]).not.toHaveProperty('trouble');
  });

  it('in doubt since a push of this run travels alone from then on', async () => {
    const setting = attributed(DIALECTS.standard);
    const { part, clock, put } = setting;
    const item = inDoubt(PUBLIC, clock.now());
    setting.entry = item;
    part.unanswered(item);
    await part.doubtOver(item);
    expect(put).toMatchObject([{ status: 'pending', attempts: 0, trouble: { code: 'UNANSWERED' } }]);
    expect(part.isSuspect(item)).toBe(true);
  });

  it('in doubt since an outage is not to blame though others went through since, unless that happens to it alone', async () => {
    const setting = attributed(DIALECTS.standard);
    const { part, clock, put } = setting;
    for (const attempts of [0, 1]) {
      const item = inDoubt(PUBLIC, clock.now());
      setting.entry = item;
      part.unanswered(item);
      part.succeeded([]);
      await part.doubtOver(item);
      expect(put.at(-1)).toMatchObject({ status: 'pending', attempts, trouble: { code: 'UNANSWERED' } });
    }
  });

  it('was sent to it before is waited for like one in doubt, and pushed now without an attempt spent', async () => {
    const { part, clock, said, put } = attributed(DIALECTS.standard);
    const before = takenBy(PUBLIC, clock.now());
    const item = read(gone(before, clock.now()), before, before.version, clock.now());
    if (item.status !== 'accepted') throw new Error(item.status);
    expect(part.patienceMs(item, TYPICAL_MS)).toBe(40_000);
    await clock.advance(2_000);
    part.notShown(item, 2_000, 'the peer shows other content');
    expect(put).toMatchObject([{ status: 'pending', attempts: 0, notBefore: clock.now() }]);
    expect(put[0]).not.toHaveProperty('sent');
    expect(put[0]?.history.at(-1)?.note).toBe('sent before, and not shown now: the peer shows other content');
    expect(said).toEqual([
      'info: not shown by the peer, pushed again: inbox/a.txt: the peer shows other content',
    ]);
  });
});

/** The peer loses the item so many times, one after the other. */
function loses(setting: ReturnType<typeof attributed>, url: string, times: number): Entry | undefined {
  const { part, clock, put } = setting;
  let item: PendingItem = inDoubt(url, clock.now());
  for (let i = 0; i < times; i += 1) {
    part.lost(accepted(item, sent(url, clock.now()), clock.now()), 'no');
    const after = put.at(-1);
    if (after?.status !== 'pending') return after;
    item = after;
  }
  return item;
}

describe('an item that the peer loses', () => {
  it('is pushed again apart from others, also when it was alone, and to blame when that was so twice', () => {
    const setting = attributed(DIALECTS.yacy);
    setting.part.shown(PUBLIC);
    for (const times of [1, 2])
      expect(loses(setting, PUBLIC, times)).toMatchObject({
        ...{ status: 'pending', attempts: 0, trouble: { code: 'LOST_FROM_INDEX' } },
      });
    expect(loses(setting, PUBLIC, 3)).toMatchObject({
      ...{ status: 'quarantined', trouble: { code: 'REFUSED_BY_INDEX' } },
    });
  });

  it('though others with addresses of its kind were never shown is quarantined after two pushes, with words that say so', () => {
    const setting = attributed(DIALECTS.yacy);
    setting.part.shown(PUBLIC);
    expect(loses(setting, LOCAL, 1)).toMatchObject({
      status: 'pending',
      trouble: { code: 'LOST_FROM_INDEX' },
    });
    expect(loses(setting, LOCAL, 2)).toMatchObject({
      status: 'quarantined',
      trouble: { code: 'DOMAIN_GATE' },
    });
  });

  it('is no matter of addresses where one of its kind was shown, also to an earlier run', () => {
    const setting = attributed(DIALECTS.yacy);
    setting.part.shown(PUBLIC);
    setting.part.shown('http://nas/b.txt');
    for (const part of [setting.part, setting.restarted()])
      expect(loses({ ...setting, part }, LOCAL, 2)).toMatchObject({ trouble: { code: 'LOST_FROM_INDEX' } });
  });
});

it('what a YaCy does not show in time is told with what its network takes', () => {
  const { part, clock, put } = attributed(DIALECTS.yacy);
  part.notShown(takenBy(LOCAL, clock.now()), 10_000, 'no');
  expect(put.at(-1)).toMatchObject({
    trouble: { code: 'NOT_SHOWN', hint: expect.stringContaining('network.unit.domain') },
  });
});
