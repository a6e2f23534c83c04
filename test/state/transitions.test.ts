import { describe, expect, it } from 'vitest';
import type { Destination, Evidence, PendingItem, Sent, Version } from '../../src/state/entry.js';
import {
  accepted,
  BEGINNINGS,
  beginningOf,
  confirmed,
  failed,
  gone,
  leaving,
  missed,
  overtaken,
  passedOver,
  quarantined,
  read,
  replaced,
  retried,
} from '../../src/state/entry.js';

const NOW = Date.UTC(2026, 0, 1);
const TO: Destination = { folder: 'f', path: 'a.txt', url: 'https://x.example/a.txt', collection: 'c' };

function version(content: string): Version {
  return {
    size: 3,
    mtimeMs: NOW,
    ctimeMs: NOW,
    ino: 1,
    sha256: content.repeat(64).slice(0, 64),
    encoding: 'utf-8',
  };
}

function sentOf(item: PendingItem, at: number): Sent {
  const { sha256 } = item.version;
  return { sha256, size: 3, digest: sha256, url: TO.url, collection: TO.collection, at };
}

function pending(content: string, before?: Parameters<typeof read>[0], now = NOW): PendingItem {
  const item = read(before, TO, version(content), now);
  if (item.status !== 'pending') throw new Error(`it is ${item.status}`);
  return item;
}

function confirmedBy(kind: Evidence['kind']) {
  const item = pending('a');
  const taken = accepted(item, sentOf(item, NOW), NOW + 10);
  return confirmed(taken, { kind, at: NOW + 1_000, shown: 'it' }, NOW + 1_000);
}

describe('a file that changed soon after it was pushed', () => {
  it('waits a little when its older version could be taken for the new one', () => {
    expect(pending('b', confirmedBy('loadDate'), NOW + 1_500).notBefore).toBe(NOW + 3_000);
    const item = pending('a');
    const taken = accepted(item, sentOf(item, NOW), NOW + 2_000);
    expect(pending('b', taken, NOW + 2_500).notBefore).toBe(NOW + 5_000);
  });

  it('waits after the answer to the older version, when that was still travelling', () => {
    const item = pending('a');
    const changed = pending('b', leaving(item, sentOf(item, NOW)), NOW + 100);
    const after = overtaken(changed, sentOf(item, NOW), NOW + 400);
    expect(after.status === 'pending' && after.notBefore).toBe(NOW + 3_400);
  });

  it('does not wait when the peer tells versions apart by their digest, or when the push was long ago', () => {
    expect(pending('b', confirmedBy('digest'), NOW + 1_500).notBefore).toBe(NOW + 1_500);
    expect(pending('b', confirmedBy('size'), NOW + 60_000).notBefore).toBe(NOW + 60_000);
  });
});

describe('content that the peer was sent before', () => {
  it('is looked up and not pushed, also after the file was gone', () => {
    expect(read(gone(confirmedBy('digest'), NOW + 5), TO, version('a'), NOW + 9).status).toBe('accepted');
  });

  it('is pushed when another version left since, and nobody knows whether it landed', () => {
    const changed = pending('b', confirmedBy('digest'), NOW + 10);
    const left = leaving(changed, sentOf(changed, NOW + 20));
    expect(read(left, TO, version('a'), NOW + 30).status).toBe('pending');
  });
});

describe('another file that is pushed to the address', () => {
  const AT = NOW + 60_000;

  it('makes what the peer was sent count no more, whatever became of the file', () => {
    const known = confirmedBy('digest');
    const trouble = { code: 'NO', message: 'The peer did not like it.', hint: 'Wait.' };
    const changed = pending('b', known, NOW + 10);
    for (const entry of [
      gone(known, NOW + 5),
      passedOver(known, TO, version('a'), trouble, NOW + 5),
      quarantined(known, TO, version('a'), trouble, NOW + 5),
      changed,
    ]) {
      const { sent: _, ...rest } = entry;
      expect(replaced(entry, TO.url, AT)).toEqual(rest);
    }
  });

  it('has what was confirmed or accepted pushed again, a little later, as new work', () => {
    const known = confirmedBy('digest');
    const taken = accepted(pending('a'), sentOf(pending('a'), NOW), NOW + 10);
    for (const entry of [known, taken]) {
      const after = replaced(entry, TO.url, AT);
      expect(after).toMatchObject({
        ...TO,
        status: 'pending',
        attempts: 0,
        since: AT,
        notBefore: AT + 3_000,
      });
      expect(after).not.toHaveProperty('sent');
      expect(beginningOf(after.history)).toBe(after.history.length - 1);
    }
  });

  it('ends a doubt, and leaves what was sent elsewhere', () => {
    const elsewhere = { ...TO, url: 'https://x.example/b.txt' };
    const known = confirmedBy('digest');
    const moved = read(known, elsewhere, known.version, NOW + 10) as PendingItem;
    const doubt = { ...sentOf(moved, NOW + 20), url: elsewhere.url };
    const after = replaced(leaving(moved, doubt), elsewhere.url, AT);
    expect(after).toEqual({ ...moved, notBefore: AT + 3_000 });
    expect(replaced(leaving(moved, doubt), TO.url, AT)).toMatchObject({ doubt });
    expect(replaced(leaving(moved, doubt), TO.url, AT)).not.toHaveProperty('sent');
  });
});

describe('where the work on a version begins', () => {
  const trouble = { code: 'NO', message: 'The peer did not like it.', hint: 'Wait.' };
  const last = ({ history }: { history: PendingItem['history'] }) => history.at(-1)?.note;

  it('is noted: a new file, a changed one, one that is back, one that the peer was sent before', () => {
    const known = confirmedBy('digest');
    const changed = { ...version('b'), ctimeMs: NOW + 5 };
    expect(last(pending('a'))).toBe(BEGINNINGS.newFile);
    expect(last(read(known, TO, changed, NOW + 9))).toBe(BEGINNINGS.fileChanged);
    expect(last(read(gone(known, NOW + 5), TO, changed, NOW + 9))).toBe(BEGINNINGS.fileBack);
    expect(last(read(gone(known, NOW + 5), TO, version('a'), NOW + 9))).toBe(BEGINNINGS.sentBefore);
  });

  it('is noted as such where the file is the same and only what becomes of it changed', () => {
    const known = confirmedBy('digest');
    const elsewhere = { ...TO, collection: 'other' };
    const moved = read(known, elsewhere, known.version, NOW + 9);
    expect(last(moved)).toBe(BEGINNINGS.takenAnew);
    const taken = { ...moved, sent: known.sent } as PendingItem;
    expect(last(read(taken, TO, known.version, NOW + 20))).toBe(BEGINNINGS.takenAnewSentBefore);
    const passed = passedOver(undefined, TO, version('a'), trouble, NOW);
    expect(last(read(passed, TO, version('a'), NOW + 9))).toBe(BEGINNINGS.takenAnew);
  });

  it('is remembered through any number of attempts', () => {
    let item = pending('a');
    for (let i = 1; i < 12; i += 1) {
      const taken = accepted(item, sentOf(item, NOW + i), NOW + i);
      item = failed(taken, trouble, NOW + i, NOW + i);
    }
    expect(item.history).toHaveLength(8);
    expect(item.history[0]).toEqual({ status: 'pending', at: NOW, note: BEGINNINGS.newFile });
    expect(beginningOf(item.history)).toBe(0);
    const given = quarantined(item, TO, item.version, trouble, NOW + 50);
    const again = retried(given, NOW + 60);
    expect(again.history).toHaveLength(8);
    expect(beginningOf(again.history)).toBe(7);
    expect(again.history[0]?.note).not.toBe(BEGINNINGS.newFile);
  });

  it('begins anew when an item is missed or tried again', () => {
    const known = confirmedBy('digest');
    const item = missed(known, 'it is not there', NOW + 9_000);
    expect(beginningOf(item.history)).toBe(item.history.length - 1);
  });
});
