import { describe, expect, it } from 'vitest';
import { atRestSince, type WatchTerm } from '../../src/report/durations.js';
import type { ConfirmedItem, Entry, PendingItem, Sent, Version } from '../../src/state/entry.js';
import {
  accepted,
  broughtIn,
  confirmed,
  failed,
  gone,
  missed,
  quarantined,
  read,
  retried,
} from '../../src/state/transitions.js';

const DAY = Date.UTC(2026, 0, 1);
const at = (hour: number, minute = 0, second = 0) => DAY + ((hour * 60 + minute) * 60 + second) * 1_000;
const TO = { folder: 'f', path: 'a.txt', url: 'https://x.example/a.txt', collection: 'c' };
const TROUBLE = { code: 'NO', message: 'It did not work.', hint: 'Wait.' };
/** The daemon began at 9:00, with a settle of 2 s. */
const watchAt = (_: string, time: number): WatchTerm | undefined =>
  time < at(9) ? undefined : [at(9), 2_000, 0];

function version(content: string, ctimeMs: number): Version {
  return { size: 1, mtimeMs: 0, ctimeMs, ino: 1, sha256: content.repeat(64), encoding: 'utf-8' };
}

function found(content: string, changedAt: number, foundAt: number, before?: Entry): PendingItem {
  const item = read(before, TO, version(content, changedAt), foundAt);
  if (item.status !== 'pending') throw new Error(`it is ${item.status}`);
  return item;
}

function sentOf({ version: { sha256 } }: PendingItem, sentAt: number): Sent {
  return { sha256, size: 1, digest: sha256, url: TO.url, collection: TO.collection, at: sentAt };
}

function done(item: PendingItem, now: number): ConfirmedItem {
  const taken = accepted(item, sentOf(item, now - 1_000), now - 500);
  return confirmed(taken, { kind: 'digest', at: now, shown: 'it' }, now);
}

describe('a file is at rest', () => {
  it('once it had not changed for settle, however late it was found', () => {
    expect(atRestSince(found('a', at(10), at(10, 0, 2)), watchAt)).toBe(at(10, 0, 2));
    expect(atRestSince(found('a', at(10), at(10, 8)), watchAt)).toBe(at(10, 0, 2));
  });

  it('not before it was watched: an old file counts from when the daemon began', () => {
    expect(atRestSince(found('a', at(9) - 1e11, at(9, 20)), watchAt)).toBe(at(9));
    expect(atRestSince(found('a', at(8, 59, 59), at(9, 20)), watchAt)).toBe(at(9, 0, 1));
  });

  it('not after it was found, whatever its times say', () => {
    expect(atRestSince(found('a', at(23), at(10)), watchAt)).toBe(at(10));
  });

  it('not after it was found, also when it was only touched later', () => {
    const item = found('a', at(10), at(10, 0, 2));
    const touched = read(item, TO, version('a', at(11)), at(11, 0, 2)) as PendingItem;
    expect(touched.version.ctimeMs).toBe(at(11));
    expect(atRestSince(touched, watchAt)).toBe(at(10, 0, 2));
  });

  it('when it was found, where nobody knows any more how it was watched', () => {
    expect(atRestSince(found('a', at(7), at(8)), watchAt)).toBe(at(8));
  });

  it('when it was found, if it came to its place later than its times say', () => {
    const item = broughtIn(found('a', at(9, 30), at(10))) as PendingItem;
    expect(atRestSince(item, watchAt)).toBe(at(10));
  });

  it('anew in each version, and in the same one through any number of attempts', () => {
    const first = done(found('a', at(10), at(10, 0, 2)), at(10, 1));
    let item = found('b', at(12), at(12, 0, 3), first);
    for (let i = 1; i < 12; i += 1) {
      const taken = accepted(item, sentOf(item, at(12, i)), at(12, i));
      expect(atRestSince(taken, watchAt)).toBe(at(12, 0, 2));
      item = failed(taken, TROUBLE, at(12, i), at(12, i));
    }
    expect(atRestSince(item, watchAt)).toBe(at(12, 0, 2));
    expect(atRestSince(done(item, at(13)), watchAt)).toBe(at(12, 0, 2));
  });

  it('anew when it goes back to what the peer was sent before', () => {
    const first = done(found('a', at(10), at(10, 0, 2)), at(10, 1));
    const away = gone(first, at(11));
    const back = read(away, TO, version('a', at(12)), at(12, 0, 2));
    expect(back.status).toBe('accepted');
    expect(atRestSince(back as ConfirmedItem, watchAt)).toBe(at(12, 0, 2));
  });

  it('not while it was gone, though a move kept its times', () => {
    const away = gone(done(found('a', at(10), at(10, 0, 2)), at(10, 1)), at(11));
    expect(atRestSince(found('b', at(9, 30), at(11, 0, 20), away), watchAt)).toBe(at(11));
  });
});

describe('an item whose file did not change counts', () => {
  const known = done(found('a', at(10), at(10, 0, 2)), at(10, 1));

  it('from when its document was missed', () => {
    expect(atRestSince(missed(known, 'it is not there', at(20)), watchAt)).toBe(at(20));
  });

  it('from when a person asked for another try', () => {
    const item = found('a', at(10), at(10, 0, 2));
    const given = quarantined(item, TO, item.version, TROUBLE, at(11));
    expect(atRestSince(retried(given, at(20)), watchAt)).toBe(at(20));
  });

  it('from where it counted before when it waits already as a person asks for another try', () => {
    const item = found('a', at(10), at(10, 0, 2));
    const since = atRestSince(item, watchAt);
    const again = retried(retried(failed(item, TROUBLE, at(12), at(11)), at(20)), at(21));
    expect(again).toMatchObject({ attempts: 0, notBefore: at(21), since: item.since });
    expect(again.history.at(-1)?.at).toBe(at(21));
    expect(atRestSince(again, watchAt)).toBe(since);
  });

  it('from when a rule gave it another collection, and from when that was taken back', () => {
    const other = { ...TO, collection: 'other' };
    const moved = read(known, other, known.version, at(20)) as PendingItem;
    expect(moved.status).toBe('pending');
    expect(atRestSince(moved, watchAt)).toBe(at(20));
    const back = read(moved, TO, known.version, at(21)) as PendingItem;
    expect(atRestSince(back, watchAt)).toBe(at(21));
  });
});
