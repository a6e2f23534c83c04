import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/lib/logger.js';
import { DIALECTS } from '../../src/peer/client.js';
import type { AcceptedItem, Entry, PendingItem, Sent } from '../../src/state/entry.js';
import { accepted, failed, gone, leaving, read } from '../../src/state/transitions.js';
import { GivingUp } from '../../src/uplink/giving-up.js';
import { Isolation } from '../../src/uplink/isolation.js';
import type { Spoken } from '../../src/uplink/peer-dialect.js';
import { FakeClock } from '../support/fake-clock.js';
import { QUICK } from '../support/world.js';

const TYPICAL_MS = 1_000;
const PUBLIC = 'https://files.example.org/a.txt';
const LOCAL = 'http://vault.local/a.txt';

/** What gives items up for a peer of this dialect, and what it did to them; `push.attempts` is 3. */
function givingUp(first: Spoken) {
  const dialect = { current: first, known: async () => true, misfits: async () => false };
  const clock = new FakeClock();
  const done: string[] = [];
  const put: Entry[] = [];
  const log = {
    ...silentLogger,
    info: (_: object, message: string) => void done.push(`info: ${message}`),
    warn: (_: object, message: string) => void done.push(`warn: ${message}`),
  };
  const hold = {
    ms: 20_000,
    patienceMs: (typicalMs: number, kind?: 'doubt' | 'gated') =>
      typicalMs * { doubt: 2, gated: 3, none: 10 }[kind ?? 'none'],
  };
  const setting: { entry: Entry | undefined } = { entry: undefined };
  const isolation = new Isolation(
    { state: { get: () => setting.entry }, standing: () => 'there', clock, isNeeded: () => true },
    hold,
  );
  const part = new GivingUp(
    {
      ...{ clock, log, settings: QUICK },
      commit: async () => void done.push('commit'),
      dialect,
      state: { put: (entry) => void put.push(entry) },
    },
    hold,
    isolation,
  );
  return Object.assign(setting, { part, clock, done, put, dialect, isolation });
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
  it('is pushed again with an attempt spent, which is said once it is on disk', async () => {
    const { part, clock, done, put } = givingUp(DIALECTS.standard);
    const item = takenBy(PUBLIC, clock.now());
    expect(part.patienceMs(item, TYPICAL_MS)).toBe(10_000);
    await part.giveUp(item, 10_000, 'the peer does not know the document', undefined);
    expect(put).toMatchObject([{ status: 'pending', attempts: 1, notBefore: clock.now() }]);
    expect(put[0]).toMatchObject({
      trouble: {
        code: 'NOT_SHOWN',
        message: expect.stringMatching(/within 10s: the peer does not know the document\.$/),
        hint: expect.not.stringContaining('network'),
      },
    });
    expect(done).toEqual([
      'commit',
      expect.stringMatching(/^info: not shown by the peer, pushed again: inbox\/a/),
    ]);
  });

  it('is quarantined after `push.attempts`, and a person is warned', async () => {
    const { part, clock, done, put } = givingUp(DIALECTS.standard);
    await part.giveUp(takenBy(PUBLIC, clock.now(), 1), 10_000, 'no', undefined);
    expect(put.at(-1)).toMatchObject({ status: 'pending', attempts: 2 });
    await part.giveUp(takenBy(PUBLIC, clock.now(), 2), 10_000, 'no', undefined);
    expect(put.at(-1)).toMatchObject({ status: 'quarantined', trouble: { code: 'NOT_SHOWN' } });
    expect(done.slice(2)).toEqual(['commit', expect.stringMatching(/^warn: quarantined inbox\/a\.txt/)]);
  });

  it('in doubt is waited for as such, and pushed again without an attempt spent', async () => {
    const { part, clock, done, put } = givingUp(DIALECTS.standard);
    const item = inDoubt(PUBLIC, clock.now());
    expect(part.patienceMs(item, TYPICAL_MS)).toBe(2_000);
    await clock.advance(2_000);
    await part.giveUp(item, 2_000, 'no', undefined);
    expect(put).toMatchObject([{ status: 'pending', attempts: 0, notBefore: clock.now() }]);
    expect(put[0]).not.toHaveProperty('doubt');
    expect(done).toEqual(['commit']);
  });

  it('was sent to it before is waited for like one in doubt, and pushed now without an attempt spent', async () => {
    const { part, clock, done, put } = givingUp(DIALECTS.standard);
    const before = takenBy(PUBLIC, clock.now());
    const item = read(gone(before, clock.now()), before, before.version, clock.now());
    if (item.status !== 'accepted') throw new Error(item.status);
    expect(part.patienceMs(item, TYPICAL_MS)).toBe(2_000);
    await clock.advance(2_000);
    await part.giveUp(item, 2_000, 'the peer shows other content', undefined);
    expect(put).toMatchObject([{ status: 'pending', attempts: 0, notBefore: clock.now() }]);
    expect(put[0]).not.toHaveProperty('sent');
    expect(put[0]?.history.at(-1)?.note).toBe('sent before, and not shown now: the peer shows other content');
    expect(done).toEqual([
      'commit',
      'info: not shown by the peer any more, pushed again: inbox/a.txt: the peer shows other content',
    ]);
  });

  it('in doubt is left to who has to decide about it', async () => {
    const { part, clock, done, put } = givingUp(DIALECTS.standard);
    const item = inDoubt(PUBLIC, clock.now());
    const decided: PendingItem[] = [];
    await part.giveUp(item, 2_000, 'no', async (it) => {
      expect(done).toEqual([]);
      decided.push(it);
    });
    expect([decided, put, done]).toEqual([[item], [], ['commit']]);
  });
});

describe('a peer that seems to drop addresses', () => {
  it('is waited for no longer than that takes to know, and the item is quarantined after two attempts with words that say so', async () => {
    const { part, clock, put } = givingUp(DIALECTS.yacy);
    part.saw({ url: PUBLIC, path: 'a.txt' }, clock.now());
    const first = takenBy(LOCAL, clock.now());
    expect(part.patienceMs(first, TYPICAL_MS)).toBe(3_000);
    await part.giveUp(first, 3_000, 'no', undefined);
    expect(put.at(-1)).toMatchObject({ status: 'pending', attempts: 1, trouble: { code: 'DOMAIN_GATE' } });
    await part.giveUp(takenBy(LOCAL, clock.now(), 1), 3_000, 'no', undefined);
    expect(put.at(-1)).toMatchObject({ status: 'quarantined', trouble: { code: 'DOMAIN_GATE' } });
  });

  it('is told from one that shows addresses of the same kind, and is hinted at all the same', async () => {
    const { part, clock, put } = givingUp(DIALECTS.yacy);
    part.saw({ url: PUBLIC, path: 'a.txt' }, clock.now());
    part.saw({ url: 'http://nas/b.txt', path: 'b.txt' }, clock.now());
    const item = takenBy(LOCAL, clock.now());
    expect(part.patienceMs(item, TYPICAL_MS)).toBe(10_000);
    await part.giveUp(item, 10_000, 'no', undefined);
    expect(put.at(-1)).toMatchObject({
      trouble: { code: 'NOT_SHOWN', hint: expect.stringContaining('network.unit.domain') },
    });
  });

  it('is known by when this version was taken first, however often it was pushed since', () => {
    const { part, clock } = givingUp(DIALECTS.yacy);
    const began = clock.now();
    part.saw({ url: PUBLIC, path: 'a.txt' }, began);
    const late = began + 3_600_000;
    const again = failed(
      accepted(inDoubt(LOCAL, began), sent(LOCAL, began), began),
      { code: 'NOT_SHOWN', message: 'Not shown.', hint: 'Wait.' },
      late,
      late,
    );
    expect(part.patienceMs(accepted(again, sent(LOCAL, late), late), TYPICAL_MS)).toBe(3_000);
    expect(part.patienceMs(takenBy(LOCAL, late), TYPICAL_MS)).toBe(10_000);
  });

  it('is none while the dialect has no such gate, and what it shows then tells nothing of one that has', () => {
    const { part, clock, dialect } = givingUp(DIALECTS.standard);
    const item = takenBy(LOCAL, clock.now());
    part.saw({ url: PUBLIC, path: 'a.txt' }, clock.now());
    dialect.current = DIALECTS.yacy;
    expect(part.patienceMs(item, TYPICAL_MS)).toBe(10_000);
    part.saw({ url: PUBLIC, path: 'a.txt' }, clock.now());
    expect(part.patienceMs(item, TYPICAL_MS)).toBe(3_000);
    dialect.current = DIALECTS.standard;
    expect(part.patienceMs(item, TYPICAL_MS)).toBe(10_000);
  });
});

describe('an item that is lost each time it is pushed alone', () => {
  /** Pushes the only suspect there is, and loses it. */
  async function lostAlone(setting: ReturnType<typeof givingUp>, times: number): Promise<Entry | undefined> {
    const { part, clock, put, isolation } = setting;
    const item = takenBy(PUBLIC, clock.now());
    await part.lost(item, 'no', 'likely');
    for (let i = 0; i < times; i += 1) {
      const again = put.at(-1);
      if (again?.status !== 'pending') return again;
      setting.entry = again;
      isolation.take(again);
      await clock.advance(60_000);
      expect(isolation.decide(false, false).push).toHaveLength(1);
      isolation.pushed(true);
      await part.lost(item, 'no', 'certain');
    }
    return put.at(-1);
  }

  it('is not to blame before all its attempts, for the peer may have crashed each time', async () => {
    expect(await lostAlone(givingUp(DIALECTS.yacy), 2)).toMatchObject({ status: 'pending', attempts: 0 });
    expect(await lostAlone(givingUp(DIALECTS.yacy), 3)).toMatchObject({
      status: 'quarantined',
      trouble: { code: 'NEVER_INDEXED' },
    });
  });

  it('is not, either, where the peer may not index anything at all', async () => {
    const setting = givingUp(DIALECTS.yacy);
    const item = takenBy(PUBLIC, setting.clock.now());
    for (let i = 0; i < 10; i += 1) await setting.part.lost(item, 'no', 'likely');
    expect(setting.put.at(-1)).toMatchObject({ status: 'pending', attempts: 0 });
  });
});
