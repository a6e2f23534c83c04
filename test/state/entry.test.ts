import { describe, expect, it } from 'vitest';
import { atRestSince } from '../../src/report/statistics.js';
import {
  type AwayItem,
  type Entry,
  type Evidence,
  isLiveAt,
  mayHaveDocument,
  type PendingItem,
  type Sent,
  type Version,
} from '../../src/state/entry.js';
import { BEGINNINGS, beginningOf } from '../../src/state/history.js';
import {
  accepted,
  confirmed,
  failed,
  gone,
  leaving,
  lost,
  lostLater,
  olderVersionAccepted,
  quarantined,
  read,
  removing,
  replaced,
  retried,
  skipped,
} from '../../src/state/transitions.js';

const NOW = Date.UTC(2026, 0, 1);
/** A time far after everything before. */
const LATER = NOW + 60_000;
const TO = { folder: 'f', path: 'a.txt', url: 'https://x.example/a.txt', collection: 'c' };
const ELSEWHERE = { ...TO, url: 'https://x.example/b.txt' };
const FAILURE = { code: 'NO', message: 'The peer did not like it.', hint: 'Wait.' };

const version = (content: string, ctimeMs = NOW + content.charCodeAt(0)): Version => {
  const sha256 = content.repeat(64);
  return { size: 3, mtimeMs: NOW, ctimeMs, ino: 1, sha256, encoding: 'utf-8' };
};

function sentOf({ version: { sha256 }, url }: PendingItem, at: number): Sent {
  return { sha256, size: 3, digest: sha256, url, collection: TO.collection, at };
}

function pending(content: string, before?: Entry, now = NOW, restedAt = now): PendingItem {
  const item = read(before, TO, version(content), now, restedAt);
  if (item.status !== 'pending') throw new Error(`it is ${item.status}`);
  return item;
}

const taken = (item: PendingItem, at = NOW) => accepted(item, sentOf(item, at), at + 10);
const confirmedBy = (kind: Evidence['kind']) =>
  confirmed(taken(pending('a')), { kind, at: NOW + 1_000, shown: 'it' }, NOW + 1_000);
const known = confirmedBy('digest');
const noteOf = ({ history }: Entry) => history.at(-1)?.note;

describe('a file that changed soon after it was pushed', () => {
  it('waits a little if its older version could pass for the new one', () => {
    expect(pending('b', confirmedBy('loadDate'), NOW + 1_500).notBefore).toBe(NOW + 3_000);
    expect(pending('b', taken(pending('a'), NOW + 1_990), NOW + 2_500).notBefore).toBe(NOW + 5_000);
  });

  it('waits from the answer to the older version on, if that was still in flight', () => {
    const item = pending('a');
    const changed = pending('b', leaving(item, sentOf(item, NOW)), NOW + 100);
    expect(olderVersionAccepted(changed, sentOf(item, NOW), NOW + 400)).toMatchObject({
      notBefore: NOW + 3_400,
    });
  });

  it('does not wait if the peer tells versions apart by digest, or if the push was long ago', () => {
    expect(pending('b', known, NOW + 1_500).notBefore).toBe(NOW + 1_500);
    expect(pending('b', confirmedBy('size'), LATER).notBefore).toBe(LATER);
  });
});

describe('content that the peer was sent before', () => {
  it('is pushed if another version was sent since and its outcome is unknown', () => {
    const changed = pending('b', known, NOW + 10);
    expect(read(leaving(changed, sentOf(changed, NOW)), TO, version('a'), NOW + 30).status).toBe(
      'pending',
    );
  });
});

describe('the document that a removed file may have in the peer', () => {
  const isMaybe = { isUncertain: true };
  const changed = pending('b', known, NOW + 10);
  const left = leaving(changed, sentOf(changed, NOW + 20));
  const removed = gone(known, NOW + 5);
  const back = pending('a', removing(removed, NOW + 6), NOW + 10);

  it.each<[string, Exclude<Entry, AwayItem>, object]>([
    ['it was confirmed', known, { sha256: known.version.sha256 }],
    ['a push was never answered', left, { ...left.inFlight, ...isMaybe }],
    [
      'a push was never answered, and the file changed again',
      pending('c', left, LATER),
      { ...left.inFlight, ...isMaybe },
    ],
    ['it could not be confirmed', failed(taken(changed), FAILURE, LATER, LATER), isMaybe],
    ['it came back, while its document was being removed', back, isMaybe],
    ['it was quarantined', quarantined(known, TO, known.version, FAILURE, LATER), known.sent],
    ['it was kept out by a rule', skipped(known, TO, known.version, FAILURE, LATER), known.sent],
  ])('is known if %s', (_, entry, sent) => {
    if (!mayHaveDocument(entry)) throw new Error('there is none');
    const away = gone(entry, LATER);
    expect(away).toMatchObject({ ...TO, status: 'gone', sent });
    expect(removing(away, LATER)).toMatchObject({ ...TO, status: 'removing', sent });
  });

  it('is pushed, not only looked up, if the file is back and the document is uncertain', () => {
    expect(back.notBefore).toBe(NOW + 3_000);
    expect(read(gone(back, LATER), TO, version('a'), LATER).status).toBe('pending');
  });

  it('is at the URL to which it was sent, whatever URL the file had last', () => {
    const moved = read(known, ELSEWHERE, known.version, NOW + 10) as PendingItem;
    expect(removing(gone(moved, LATER), LATER)).toMatchObject({ url: TO.url });
  });
});

describe('another file that is pushed to the same URL', () => {
  it('clears the sent version of a file that is gone', () => {
    const { sent: _, ...rest } = gone(known, NOW + 5);
    expect(replaced(gone(known, NOW + 5), TO.url, LATER)).toEqual(rest);
  });

  it.each([known, taken(pending('a'))])(
    'makes an item that was $status pending again, a little later',
    (entry) => {
      const after = replaced(entry, TO.url, LATER);
      const times = { since: LATER, notBefore: LATER + 3_000 };
      expect(after).toMatchObject({ ...TO, ...times, status: 'pending', attempts: 0 });
      expect(after).not.toHaveProperty('sent');
      expect(beginningOf(after.history)).toBe(after.history.length - 1);
    },
  );

  it('clears a push in flight, and keeps a version that was sent elsewhere', () => {
    const moved = read(known, ELSEWHERE, known.version, NOW + 10) as PendingItem;
    const left = leaving(moved, sentOf(moved, NOW + 20));
    expect(replaced(left, ELSEWHERE.url, LATER)).toEqual({ ...moved, notBefore: LATER + 3_000 });
    expect(replaced(left, TO.url, LATER)).toMatchObject({ inFlight: left.inFlight });
    expect(replaced(left, TO.url, LATER)).not.toHaveProperty('sent');
  });
});

it('a version that the peer lost spends no attempt, and one that it never shows spends one', () => {
  expect(lost(taken(pending('a')), FAILURE, LATER).attempts).toBe(0);
  expect(failed(taken(pending('a')), FAILURE, LATER, LATER).attempts).toBe(1);
});

it('a document is not removed while it may belong to an existing file, even if a rule now excludes the file', () => {
  const keptOut = skipped(known, TO, known.version, FAILURE, LATER);
  const moved = read(known, ELSEWHERE, known.version, LATER);
  const all = [keptOut, moved, gone(known, LATER)];
  expect(all.map((entry) => isLiveAt(entry, TO.url))).toEqual([true, true, false]);
});

describe('the beginning of the work on a version', () => {
  const [RESTED, FOUND] = [LATER, LATER + 2_000];
  const other = { ...TO, collection: 'other' };
  const moved = read(known, other, known.version, FOUND, RESTED);
  const movedBack = read(
    { ...moved, sent: known.sent } as PendingItem,
    TO,
    known.version,
    LATER + 9,
    RESTED,
  );
  const back = read(gone(known, NOW), TO, version('a'), FOUND, RESTED);
  const keptOut = skipped(undefined, TO, version('a'), FAILURE, NOW);
  const wasQuarantined = quarantined(pending('a'), TO, version('a'), FAILURE, NOW + 50);

  it.each([
    ['a new file', pending('a', undefined, FOUND, RESTED), BEGINNINGS.newFile, RESTED],
    ['a changed one', pending('b', known, FOUND, RESTED), BEGINNINGS.fileChanged, RESTED],
    [
      'one that is back',
      pending('b', gone(known, NOW), FOUND, RESTED),
      BEGINNINGS.fileBack,
      RESTED,
    ],
    ['one that is back as the peer was sent it', back, BEGINNINGS.sentBefore, RESTED],
    ['an unchanged one with another destination', moved, BEGINNINGS.takenAnew, FOUND],
    [
      'an unchanged one with its former destination again',
      movedBack,
      BEGINNINGS.takenAnewSentBefore,
      LATER + 9,
    ],
    [
      'an unchanged one that was kept out before',
      pending('a', keptOut, FOUND, RESTED),
      BEGINNINGS.takenAnew,
      FOUND,
    ],
    [
      'a lost document',
      lostLater(known, 'no', FOUND),
      'confirmed before and missed now: no',
      FOUND,
    ],
    ['a retry', retried(wasQuarantined, FOUND), BEGINNINGS.retry, FOUND],
  ])('is noted, with the time from which the work counts: %s', (_, item, note, since) => {
    expect(noteOf(item)).toBe(note);
    expect(atRestSince(item)).toBe(since);
  });

  it('stays the same if the file was only touched, or a retry is asked for while it waits', () => {
    const item = pending('a', undefined, FOUND, RESTED);
    const touched = read(item, TO, version('a', FOUND + 5), FOUND + 9, FOUND + 5) as PendingItem;
    expect(touched.version.ctimeMs).toBe(FOUND + 5);
    expect(atRestSince(touched)).toBe(RESTED);
    const again = retried(
      retried(failed(item, FAILURE, FOUND + 60, FOUND + 9), FOUND + 20),
      FOUND + 21,
    );
    expect(again).toMatchObject({ attempts: 0, notBefore: FOUND + 21, since: item.since });
    expect(again.history.at(-1)?.at).toBe(FOUND + 21);
    expect(atRestSince(again)).toBe(RESTED);
  });

  it('is kept through any number of attempts, and dropped at the next beginning', () => {
    let item = pending('b', known, FOUND, RESTED);
    for (let i = 1; i < 12; i += 1)
      item = failed(taken(item, FOUND + i), FAILURE, FOUND + i, FOUND + i);
    expect(item.history).toHaveLength(8);
    expect(item.history[0]).toEqual({
      status: 'pending',
      at: RESTED,
      note: BEGINNINGS.fileChanged,
    });
    expect(atRestSince(item)).toBe(RESTED);
    const evidence = { kind: 'digest', at: LATER * 2, shown: 'it' } as const;
    expect(atRestSince(confirmed(taken(item, LATER), evidence, LATER * 2))).toBe(RESTED);
    const again = retried(quarantined(item, TO, item.version, FAILURE, FOUND + 50), FOUND + 60);
    expect(again.history).toHaveLength(8);
    expect(beginningOf(again.history)).toBe(7);
    expect(again.history[0]?.note).not.toBe(BEGINNINGS.fileChanged);
  });
});
