import { describe, expect, it } from 'vitest';
import { atRestSince } from '../../src/report/statistics.js';
import type { ConfirmedItem, Entry, Item, PendingItem, Sent, Version } from '../../src/state/entry.js';
import {
  accepted,
  confirmed,
  failed,
  gone,
  missed,
  quarantined,
  read,
  retried,
} from '../../src/state/entry.js';

const DAY = Date.UTC(2026, 0, 1);
const at = (hour: number, minute = 0, second = 0) => DAY + ((hour * 60 + minute) * 60 + second) * 1_000;
const TO = { folder: 'f', path: 'a.txt', url: 'https://x.example/a.txt', collection: 'c' };
const TROUBLE = { code: 'NO', message: 'It did not work.', hint: 'Wait.' };

function version(content: string): Version {
  return {
    size: 1,
    mtimeMs: 0,
    ctimeMs: content.charCodeAt(0),
    ino: 1,
    sha256: content.repeat(64),
    encoding: 'utf-8',
  };
}

function found(content: string, restedAt: number, foundAt: number, before?: Entry): PendingItem {
  const item = read(before, TO, version(content), foundAt, restedAt);
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
  it('since before it was found, and still so when it was only touched later', () => {
    const item = found('a', at(10), at(10, 8));
    expect(item.since).toBe(at(10, 8));
    expect(atRestSince(item)).toBe(at(10));
    const touched = read(item, TO, { ...version('a'), ctimeMs: at(11) }, at(11, 0, 2), at(11)) as Item;
    expect(touched.version.ctimeMs).toBe(at(11));
    expect(atRestSince(touched)).toBe(at(10));
  });

  it('anew in each version, and in the same one through any number of attempts', () => {
    const first = done(found('a', at(10), at(10, 0, 2)), at(10, 1));
    let item = found('b', at(12), at(12, 0, 3), first);
    for (let i = 1; i < 12; i += 1) {
      const taken = accepted(item, sentOf(item, at(12, i)), at(12, i));
      expect(atRestSince(taken)).toBe(at(12));
      item = failed(taken, TROUBLE, at(12, i), at(12, i));
    }
    expect(atRestSince(item)).toBe(at(12));
    expect(atRestSince(done(item, at(13)))).toBe(at(12));
  });

  it('anew when it goes back to what the peer was sent before', () => {
    const first = done(found('a', at(10), at(10, 0, 2)), at(10, 1));
    const back = read(gone(first, at(11)), TO, version('a'), at(12, 0, 2), at(12));
    expect(back.status).toBe('accepted');
    expect(atRestSince(back)).toBe(at(12));
  });
});

describe('an item whose file did not change counts', () => {
  const known = done(found('a', at(10), at(10, 0, 2)), at(10, 1));

  it('from when its document was missed', () => {
    expect(atRestSince(missed(known, 'it is not there', at(20)))).toBe(at(20));
  });

  it('from when a person asked for another try', () => {
    const item = found('a', at(10), at(10, 0, 2));
    const given = quarantined(item, TO, item.version, TROUBLE, at(11));
    expect(atRestSince(retried(given, at(20)))).toBe(at(20));
  });

  it('from where it counted before when it waits already as a person asks for another try', () => {
    const item = found('a', at(10), at(10, 0, 2));
    const since = atRestSince(item);
    const again = retried(retried(failed(item, TROUBLE, at(12), at(11)), at(20)), at(21));
    expect(again).toMatchObject({ attempts: 0, notBefore: at(21), since: item.since });
    expect(again.history.at(-1)?.at).toBe(at(21));
    expect(atRestSince(again)).toBe(since);
  });

  it('from when a rule gave it another collection, and from when that was taken back', () => {
    const other = { ...TO, collection: 'other' };
    const moved = read(known, other, known.version, at(20), at(9));
    expect(moved.status).toBe('pending');
    expect(atRestSince(moved)).toBe(at(20));
    const back = read(moved, TO, known.version, at(21), at(9));
    expect(atRestSince(back)).toBe(at(21));
  });
});
