import { createHash } from 'node:crypto';
import { mkdirSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import { accepted, gone, leaving } from '../../src/state/transitions.js';
import { pendingRecord, sentOf } from '../state/records.js';
import { FakeClock } from '../support/fake-clock.js';
import {
  drops,
  FakePeer,
  failing,
  fails,
  refuses,
  takes,
  unreachable,
} from '../support/fake-peer.js';
import { QUICK, type UplinkWorld } from '../support/uplink-world.js';
import { deferred } from '../support/wait.js';
import { world } from '../support/world.js';

/** Settings with which an item that is not shown is not pushed again. */
const patient = (hold = 0, maxInterval = 50) => ({
  confirm: { timeout: 600_000, maxInterval, hold },
});

const statuses = (w: UplinkWorld, path: string) =>
  w.state.get('inbox', path)?.history.map(({ status }) => status);

describe('a pending item', () => {
  it('is pushed, accepted, looked up and confirmed with the digest as evidence', async () => {
    const w = await world();
    w.write('a.txt', 'hello');
    await w.confirmed('a.txt');
    expect(w.state.get('inbox', 'a.txt')).toMatchObject({ evidence: { kind: 'digest' } });
    expect(statuses(w, 'a.txt')).toEqual(['pending', 'accepted', 'confirmed']);
    expect(w.peer.pushes).toEqual([[w.url('a.txt')]]);
  });

  it('is pushed with others in batches of at most maxItems', async () => {
    const w = await world();
    w.writeMany(95);
    await w.allConfirmed(95);
    expect(Math.max(...w.peer.pushes.map((p) => p.length))).toBe(10);
    expect(w.peer.pushes.flat().sort()).toEqual([...new Set(w.peer.pushes.flat())].sort());
  });

  it('does not wait for a document that is being read', async () => {
    const reading = deferred();
    const w = await world();
    let reads = 0;
    w.extractDocument = async () => {
      await reading.promise;
      reads += 1;
      return { kind: 'wordless', reader: 'PDF' };
    };
    w.write('a.pdf', 'slow', 'document');
    w.write('b.txt', 'hello');
    await w.confirmed('b.txt');
    expect(w.statusOf('a.pdf')).toBe('pending');
    reading.resolve();
    await w.until(() => w.statusOf('a.pdf') === 'skipped', 'the document was read');
    // The reason is logged once, even if the file changes.
    w.write('a.pdf', 'again', 'document');
    await w.until(() => reads === 2 && w.statusOf('a.pdf') === 'skipped', 'it was read again');
    const skipped = w.logged.filter((line) => line.includes('skipped'));
    expect(skipped).toEqual([
      expect.stringMatching(/^info: skipped inbox\/a\.pdf: There is no text in the file/),
    ]);
  });

  it('does not wait for documents that are being read, however many there are', async () => {
    const reading = deferred();
    const w = await world();
    w.extractDocument = async () => {
      await reading.promise;
      return { kind: 'wordless', reader: 'PDF' };
    };
    const documents = Array.from({ length: 100 }, (_, i) => `${i}.pdf`);
    for (const path of documents) w.write(path, 'slow', 'document');
    const { concurrency = 0 } = w.settings.documents;
    await w.until(() => w.uplink.status().documents.reading > 0, 'documents are read');
    for (const path of ['a.txt', 'b.txt', 'c.txt']) {
      w.write(path, 'hello');
      await w.confirmed(path);
    }
    expect(w.uplink.status()).toMatchObject({
      inFlight: 0,
      documents: { reading: concurrency, waiting: documents.length - concurrency },
    });
    reading.resolve();
    for (const path of documents)
      await w.until(() => w.statusOf(path) === 'skipped', 'the documents were read');
  });

  it('has as many pushes beside it while a document is read as at other times', async () => {
    const w = await world({ push: { maxItems: 1 } });
    const reading = deferred();
    w.extractDocument = async () => {
      await reading.promise;
      return { kind: 'wordless', reader: 'PDF' };
    };
    const release = w.peer.hold('push');
    const { concurrency } = QUICK.push;
    w.write('a.pdf', 'slow', 'document');
    await w.until(() => w.uplink.status().documents.reading === 1, 'the document is read');
    w.writeMany(20);
    // The limit of concurrent pushes, and one batch that is ready.
    await w.until(() => w.uplink.status().inFlight === concurrency + 1, 'another one is ready');
    reading.resolve();
    release();
    await w.allConfirmed(20);
  });

  it('needs little more than one look-up if the peer shows documents with a delay', async () => {
    const w = await world(patient());
    w.peer.visibleAfterMs = 200;
    for (const round of [1, 2, 3, 4]) {
      w.writeMany(50, `r${round}f`);
      await w.allConfirmed(50 * round);
    }
    expect(w.peer.lookUps / 200).toBeLessThan(2);
  });

  it.each<[string, (file: string) => void]>([
    ['is not that version any more', (file) => writeFileSync(file, 'two!')],
    ['vanished', unlinkSync],
    [
      'became a directory',
      (file) => {
        unlinkSync(file);
        mkdirSync(file);
      },
    ],
  ])('is put off and looked at again when its file %s', async (_, happens) => {
    const w = await world();
    w.write('a.txt', 'one');
    happens(join(w.root, 'a.txt'));
    await w.until(() => w.rechecked.includes('a.txt'), 'looked at again');
    expect(w.peer.pushes).toEqual([]);
    expect(w.statusOf('a.txt')).toBe('pending');
  });

  it('is quarantined if its file cannot be read, and pushed once it can, even without a change', async () => {
    const w = await world();
    w.packResult = [{ kind: 'unreadable', code: 'EACCES' }];
    w.write('a.txt', 'one');
    expect(await w.quarantined('a.txt')).toMatchObject({ code: 'UNREADABLE' });
    expect(w.warnings).toEqual([
      expect.stringMatching(/quarantined inbox\/a\.txt: .*could not be read/),
    ]);
    w.packResult = undefined;
    w.record('a.txt', 'one');
    await w.confirmed('a.txt');
  });

  it('arrives as UTF-8, even if it is larger than a batch and is streamed', async () => {
    const w = await world();
    const large = 'äöü€ '.repeat(200_000);
    w.write('u16', Buffer.from('\ufeffGrüße €', 'utf16le'), 'utf-16le');
    w.write('w1252', Buffer.from([0x47, 0x72, 0xfc, 0xdf, 0x65, 0x80]), 'windows-1252');
    w.write('large', large);
    w.write('large16', Buffer.from(`\ufeff${large}`, 'utf16le'), 'utf-16le');
    await w.allConfirmed(4);
    const textOf = (path: string) => w.peer.documents.get(w.url(path))?.text;
    expect([textOf('u16'), textOf('w1252')]).toEqual(['Grüße €', 'Grüße€']);
    expect([textOf('large') === large, textOf('large16') === large]).toEqual([true, true]);
  });
});

describe('items in a large state', () => {
  it('that are pending among many others are pushed together', async () => {
    const files = [1_000, 3_000, 5_000, 7_000].map((i) => `f${i}`);
    const known = deferred<true>();
    const w = await world({
      push: { linger: 5_000, maxItems: 4 },
      dialect: { known: () => known.promise },
    });
    for (let i = 0; i < 8_000; i += 1) {
      if (files.includes(`f${i}`)) w.write(`f${i}`, `content ${i}`);
      else w.state.put(gone(pendingRecord(`f${i}`), w.clock.now()));
    }
    known.resolve(true);
    await w.until(() => w.peer.pushes.length > 0, 'a push');
    expect(w.peer.pushes[0]).toEqual(files.map((path) => w.url(path)));
  });

  it('that were delayed and then removed are not waited for', async () => {
    const w = await world();
    await w.until(() => w.uplink.isIdle, 'it follows the state');
    const items = Array.from({ length: 100 }, (_, i) => pendingRecord(`late${i}`));
    for (const item of items) w.state.put({ ...item, notBefore: w.clock.now() + 60_000 });
    expect(w.uplink.isIdle).toBe(false);
    for (const item of items) w.state.put(gone(item, w.clock.now()));
    expect(w.uplink.isIdle).toBe(true);
  });
});

describe('a changed file', () => {
  it('is pushed and confirmed again; an older version shown meanwhile does not confirm it', async () => {
    const w = await world({ ...patient(), clock: new FakeClock() });
    w.write('a.txt', 'one');
    await w.confirmed('a.txt');
    // Accepted, but the peer shows the old document for some more look-ups.
    w.peer.onPush = drops;
    let lookups = 0;
    w.peer.onLookUp = (url) => {
      lookups += 1;
      if (lookups === 3) w.peer.show(url, 'two');
    };
    w.write('a.txt', 'two');
    await w.confirmed('a.txt');
    expect(lookups).toBeGreaterThanOrEqual(3);
    expect(w.peer.pushes.length).toBe(2);
  });

  it('that goes back to the version the peer was sent is looked up and not pushed, even if its batch was being filled', async () => {
    const w = await world({ push: { linger: 200 } });
    w.write('a.txt', 'one');
    await w.confirmed('a.txt');
    w.state.put({ ...w.write('a.txt', 'two'), notBefore: Date.now() + 60_000 } as never);
    w.write('a.txt', 'one');
    await w.confirmed('a.txt');
    w.write('a.txt', 'two');
    await w.until(() => w.uplink.isInFlight({ folder: 'inbox', path: 'a.txt' }), 'taken');
    w.write('a.txt', 'one');
    expect(w.statusOf('a.txt')).toBe('accepted');
    await w.confirmed('a.txt');
    expect(w.peer.pushes.length).toBe(1);
  });

  it('that is removed during its push and comes back unchanged is looked up and not pushed', async () => {
    const w = await world();
    const release = w.peer.hold('push');
    w.write('a.txt', 'one');
    await w.until(() => w.peer.pushes.length === 1, 'the push travels');
    w.remove('a.txt');
    release();
    await w.until(() => w.uplink.status().inFlight === 0, 'the push has landed');
    w.write('a.txt', 'one');
    await w.confirmed('a.txt');
    expect(w.peer.pushes.length).toBe(1);
  });

  it('that is removed while its batch waits in the queue is not pushed, and the rest of the batch is', async () => {
    const w = await world();
    w.beforePack = () => {
      w.beforePack = () => {};
      w.queue.pause({ since: Date.now() });
    };
    w.write('a.txt', 'a');
    w.write('b.txt', 'b');
    await w.until(() => w.queue.status().lanes.push.waiting === 1, 'the batch waits');
    w.remove('a.txt');
    w.queue.resume();
    await w.confirmed('b.txt');
    expect(w.peer.pushes).toEqual([[w.url('b.txt')]]);
    expect(w.statusOf('a.txt')).toBe('gone');
  });

  it('that goes back to a version the peer has dropped is pushed at once, with no attempt spent', async () => {
    const w = await world({ ...patient(), clock: new FakeClock() });
    w.write('a.txt', 'one');
    await w.confirmed('a.txt');
    w.remove('a.txt');
    w.peer.documents.clear();
    const attempts: number[] = [];
    w.peer.onPush = () => void attempts.push(w.pending('a.txt').attempts);
    const { status, since } = w.write('a.txt', 'one');
    expect(status).toBe('accepted');
    await w.confirmed('a.txt');
    expect(attempts).toEqual([0]);
    expect(w.clock.now() - since).toBeLessThan(60_000);
  });

  it('whose older version is still being pushed is pushed after it, and is confirmed in its last version', async () => {
    const w = await world({ clock: new FakeClock() });
    // Allows two pushes at a time.
    w.write('first', '1');
    await w.confirmed('first');
    const release = w.peer.hold('push');
    w.write('a.txt', 'one');
    await w.until(() => w.peer.pushes.length === 2, 'the first push travels');
    w.peer.onPush = takes;
    w.write('a.txt', 'two');
    w.write('b.txt', 'b');
    await w.confirmed('b.txt');
    await w.until(() => w.clock.now() > w.pending('a.txt').notBefore, 'its time has come');
    expect(w.peer.pushes.slice(1)).toEqual([[w.url('a.txt')], [w.url('b.txt')]]);
    release();
    await w.confirmed('a.txt');
    expect(w.peer.documents.get(w.url('a.txt'))?.text).toBe('two');
  });
});

describe('a push that fails', () => {
  it('because the peer is away spends no attempt, and is repeated when it is back', async () => {
    const w = await world();
    let tries = 0;
    w.peer.onPush = () => {
      tries += 1;
      if (tries < 8) throw unreachable('no');
      return undefined;
    };
    w.write('a.txt', 'one');
    await w.confirmed('a.txt');
    expect(tries).toBe(8);
    expect(statuses(w, 'a.txt')).toEqual(['pending', 'accepted', 'confirmed']);
  });

  it('without an answer is followed by a look-up, timed from its end, and not repeated if the peer has the item', async () => {
    const w = await world({ ...patient(300), clock: new FakeClock() });
    const times = { unanswered: 0, looked: 0 };
    w.peer.visibleAfterMs = 1_000;
    w.peer.onPush = async ([url = '']) => {
      await w.clock.sleep(5_500);
      w.peer.show(url, 'one');
      times.unanswered = w.clock.now();
      throw unreachable('maybe');
    };
    w.peer.onLookUp = () => {
      times.looked ||= w.clock.now();
    };
    w.write('a.txt', 'one');
    await w.confirmed('a.txt');
    expect(w.peer.pushes.length).toBe(1);
    expect(times.looked - times.unanswered).toBeGreaterThanOrEqual(300);
  });

  it.each<[string, () => Error]>([
    ['fails (500)', () => failing()],
    ['is forbidden (403) by what stands before the peer', () => failing('PEER_AUTH', 403)],
    ['is cut short', () => unreachable('no', 'ECONNRESET')],
  ])(
    'as a batch that %s for two items is split until only those two are quarantined, and the others are confirmed',
    async (_, error) => {
      const w = await world();
      w.peer.onPush = fails(error, 'bad');
      w.writeMany(8);
      for (const path of ['bad1', 'bad2']) w.write(path, 'x');
      await w.allConfirmed(8);
      for (const path of ['bad1', 'bad2'])
        expect((await w.quarantined(path))?.message).toContain(error().message.split(' ').at(-1));
    },
  );

  it('for one item of a batch does not open the circuit', async () => {
    const w = await world();
    const circuits = new Set<string>();
    w.peer.onPush = (urls) => {
      circuits.add(w.circuit);
      if (urls.some((url) => url.endsWith('bad'))) throw failing();
      return undefined;
    };
    w.write('bad', 'x');
    w.writeMany(9);
    await w.quarantined('bad');
    expect([...circuits]).toEqual(['closed']);
  });

  it('without an answer whenever one item is in it leads to that item alone in quarantine, and the others are confirmed', async () => {
    const w = await world({ clock: new FakeClock() });
    w.peer.onPush = fails(() => unreachable('maybe'), 'bad');
    w.writeMany(5);
    w.write('bad', 'x');
    await w.allConfirmed(5);
    expect(await w.quarantined('bad')).toMatchObject({ code: 'UNANSWERED' });
    expect(w.peer.pushes).toContainEqual([w.url('bad')]);
  });

  it.each(['all pushes', 'all pushes but an empty one'])(
    'as %s fail quarantines no item, however long that lasts',
    async (which) => {
      const w = await world();
      let isBroken = true;
      w.peer.onPush = (urls) => {
        if (urls.length === 0 && which !== 'all pushes') return { results: [] };
        if (isBroken) throw failing();
        return undefined;
      };
      w.writeMany(6);
      await w.until(
        () => w.peer.pushes.filter((urls) => urls.length === 1).length > 15,
        'many tries',
      );
      expect(w.state.counts()).toMatchObject({ pending: 6, quarantined: 0 });
      isBroken = false;
      await w.allConfirmed(6);
    },
  );

  it('because the page does not exist quarantines no item, and splits no batch', async () => {
    const w = await world();
    w.peer.onPush = fails(() => failing('PEER_REFUSED', 404));
    w.writeMany(20);
    await w.until(() => w.peer.pushes.length > 10, 'some tries');
    expect(w.peer.pushes.every((urls) => urls.length === 10)).toBe(true);
    expect(w.state.counts()).toMatchObject({ pending: 20, quarantined: 0 });
    w.peer.onPush = takes;
    await w.allConfirmed(20);
  });

  it.each(['is being pushed', 'waits'])(
    'is forgotten when its file is removed while it %s',
    async (when) => {
      const w = await world();
      let failures = 0;
      w.peer.onPush = (urls) => {
        if (urls.length > 0) failures += 1;
        if (failures === 2 && when === 'is being pushed') w.remove('bad');
        throw failing();
      };
      w.write('bad', 'x');
      await w.until(() => failures > 1 && w.uplink.status().inFlight === 0, 'it failed');
      if (when === 'waits') w.state.remove('inbox', 'bad');
      w.peer.onPush = takes;
      for (const name of ['a', 'bad', 'b']) w.write(name, 'other');
      // Otherwise it would wait because its previous version was pushed.
      w.state.put({ ...w.pending('bad'), notBefore: 0 });
      await w.allConfirmed(3);
      expect(w.peer.pushes.at(-1)).toHaveLength(3);
    },
  );

  it('for one item of an answered batch spends its attempts, and quarantines it with the message of the peer', async () => {
    const w = await world();
    w.peer.onPush = refuses('URL not parseable');
    w.write('bad', 'x');
    expect((await w.quarantined('bad'))?.message).toContain('URL not parseable');
    expect(w.peer.pushes.length).toBe(QUICK.push.attempts);
  });

  it('because it is too large for the peer quarantines the item at once', async () => {
    const w = await world();
    w.peer.onPush = fails(() => failing('PEER_TOO_LARGE'), 'big');
    w.write('big', 'x');
    await w.quarantined('big');
    expect(w.peer.pushes.length).toBe(1);
  });
});

describe('an accepted item', () => {
  it('that is never shown is pushed again, and quarantined after push.attempts', async () => {
    const w = await world();
    w.peer.onPush = drops;
    w.write('a.txt', 'one');
    expect(await w.quarantined('a.txt')).toMatchObject({ code: 'NOT_SHOWN' });
    expect(w.peer.pushes.length).toBe(QUICK.push.attempts);
  });

  it('gives the time-to-visible, which is unknown before the first one is shown', async () => {
    const w = await world({
      timeToVisibleMs: undefined,
      peer: new FakePeer({ visibleAfterMs: 100_000 }),
    });
    w.write('a.txt', 'one');
    await w.until(() => w.peer.lookUps > 0, 'looked up');
    expect(w.uplink.status().timeToVisibleMs).toBeUndefined();
    w.peer.visibleAfterMs = 0;
    await w.confirmed('a.txt');
    expect(w.uplink.status().timeToVisibleMs).toBeGreaterThan(0);
  });

  it('is looked up as soon as the peer shows it, however long its push takes', async () => {
    const w = await world();
    w.peer.onPush = () => w.clock.sleep(100).then(() => undefined);
    for (let i = 0; i < 8; i += 1) {
      w.write(`f${i}`, `content ${i}`);
      await w.confirmed(`f${i}`);
    }
    expect(w.uplink.status().timeToVisibleMs).toBeLessThan(100);
  });

  it('was sent with the modification time of its file to the embedded peer, and without it to others', async () => {
    for (const onLookUps of [undefined, async () => {}]) {
      const w = await world({ onLookUps });
      w.write('a.txt', 'a');
      utimesSync(join(w.root, 'a.txt'), 1e9, 1e9);
      w.record('a.txt', 'a');
      await w.confirmed('a.txt');
      expect(w.peer.items.get(w.url('a.txt'))?.lastModified).toBe(onLookUps && 1e12);
    }
  });

  it('is looked up in one request with others if the peer can do that, each with its own result', async () => {
    const asked: (readonly string[])[] = [];
    const w = await world({
      ...patient(),
      onLookUps: async (urls) => {
        asked.push(urls);
        await systemClock.sleep(20);
        if (asked.length < 3) throw unreachable('no');
      },
    });
    w.peer.onPush = ([url]) =>
      url?.endsWith('lost.txt') ? { results: [{ ok: true }] } : undefined;
    w.write('lost.txt', 'lost');
    await w.until(() => w.statusOf('lost.txt') === 'accepted', 'accepted');
    w.writeMany(100);
    await w.allConfirmed(100);
    const most = Math.max(...asked.map(({ length }) => length));
    expect([most > 1, most <= 20]).toEqual([true, true]);
    asked.length = 3;
    for (const name of 'abcdefgh') w.write(name, name, 'utf-8', `https://h/${name.repeat(5_000)}`);
    await w.allConfirmed(108);
    expect(Math.max(...asked.slice(3).map((urls) => urls.join('').length))).toBeLessThan(15_500);
    expect(w.statusOf('lost.txt')).toBe('accepted');
  });

  it('that is due is looked up as soon as the push under way has ended', async () => {
    const w = await world({ clock: new FakeClock(), timeToVisibleMs: 200 });
    const began = w.clock.now();
    w.peer.onPush = async (urls) => {
      if (urls.every((url) => !url.endsWith('b.txt'))) return undefined;
      await w.clock.sleep(500);
      return { results: [{ ok: false, message: 'no' }] };
    };
    w.write('a.txt', 'a');
    await w.until(() => w.statusOf('a.txt') === 'accepted', 'accepted');
    w.write('b.txt', 'b');
    await w.confirmed('a.txt');
    expect(w.clock.now() - began).toBeLessThan(5_000);
  });

  it('is not looked up within confirm.hold if the peer may take it back, and then once', async () => {
    const w = await world(patient(400, 20));
    const pushed = w.clock.now();
    let first = 0;
    w.peer.onLookUp = () => {
      first ||= w.clock.now() - pushed;
    };
    w.writeMany(20);
    await w.allConfirmed(20);
    expect(first).toBeGreaterThanOrEqual(400);
    expect(w.peer.lookUps).toBe(20);
  });

  it('that the peer indexed late is confirmed only when confirm.hold has passed since the peer loaded it', async () => {
    const HOLD_MS = 20_000;
    const w = await world({ ...patient(HOLD_MS), clock: new FakeClock(), tickMs: 500 });
    const loadDate = w.clock.now() + 15_000;
    const peerdoc = w.peer.peerdoc.bind(w.peer);
    w.peer.peerdoc = async (query) => {
      const doc = await peerdoc(query);
      return doc && { ...doc, loadDate, peerAt: w.clock.now() };
    };
    w.write('a.txt', 'one');
    await w.confirmed('a.txt');
    // The load date is in whole seconds, so 2 s of the hold are not waited for.
    expect(w.clock.now() - loadDate).toBeGreaterThanOrEqual(HOLD_MS - 2_000);
    expect(w.peer.lookUps).toBe(2);
  });

  it('whose look-up after confirm.hold failed is confirmed by the first answer that shows it', async () => {
    const HOLD_MS = 20_000;
    const w = await world({ ...patient(HOLD_MS), clock: new FakeClock(), tickMs: 500 });
    let failures = 2;
    w.peer.onLookUp = () => {
      failures -= 1;
      if (failures >= 0) throw failing();
    };
    w.write('a.txt', 'one');
    const began = w.clock.now();
    await w.confirmed('a.txt');
    expect(w.clock.now() - began).toBeGreaterThanOrEqual(HOLD_MS);
    expect(w.clock.now() - began).toBeLessThan(1.5 * HOLD_MS);
    expect(w.peer.lookUps).toBe(3);
  });

  it('that was missing after confirm.hold is confirmed only if it is still shown another hold later', async () => {
    const w = await world(patient(100, 20));
    let lookups = 0;
    w.peer.onLookUp = (url) => {
      lookups += 1;
      if (lookups === 1 || lookups === 3) w.peer.documents.delete(url);
      else w.peer.show(url, 'one');
      expect(w.statusOf('a.txt')).toBe('accepted');
    };
    w.write('a.txt', 'one');
    await w.confirmed('a.txt');
    expect(lookups).toBe(5);
  });

  it('whose look-ups fail while others are answered is quarantined in the end', async () => {
    const w = await world();
    w.peer.onLookUp = (url) => {
      if (url.endsWith('bad')) throw failing();
    };
    w.write('bad', 'x');
    let i = 0;
    await w.until(() => {
      if (w.state.counts().pending + w.state.counts().accepted <= 1) w.write(`f${i++}`, `${i}`);
      return w.statusOf('bad') === 'quarantined';
    }, 'quarantined');
    expect((await w.quarantined('bad'))?.message).toContain('answered with an error');
  });

  it.each([3, 12])(
    'whose look-ups fail %i times like all others is not quarantined',
    async (times) => {
      const w = await world({ confirm: { timeout: 100, maxInterval: 100 } });
      let failures = 0;
      w.peer.onLookUp = () => {
        failures += 1;
        if (failures <= times) throw failing();
      };
      w.write('a.txt', 'one');
      await w.confirmed('a.txt');
      expect(w.peer.pushes.length).toBe(1);
    },
  );

  it('does not time out while the peer does not answer', async () => {
    const w = await world({ clock: new FakeClock() });
    w.peer.onLookUp = () => {
      throw unreachable('no');
    };
    w.write('a.txt', 'one');
    await w.until(() => w.statusOf('a.txt') === 'accepted', 'accepted');
    const end = w.clock.now() + 10 * QUICK.confirm.timeout;
    await w.until(() => w.clock.now() > end, 'it is away for long');
    expect(w.statusOf('a.txt')).toBe('accepted');
    w.peer.onLookUp = () => {};
    await w.confirmed('a.txt');
    expect(w.peer.pushes.length).toBe(1);
  });
});

describe('after a restart', () => {
  it('an item whose push left and that the peer has is confirmed without another push', async () => {
    const w = await world();
    w.peer.hold('push');
    w.write('a.txt', 'one');
    await w.until(() => w.peer.pushes.length === 1, 'pushed');
    expect(w.pending('a.txt').inFlight).toBeDefined();
    w.peer.show(w.url('a.txt'), 'one');
    await w.stop();
    w.peer.onPush = takes;
    await w.start();
    await w.confirmed('a.txt');
    expect(w.peer.pushes.length).toBe(1);
  });

  it('an item whose push left and that the peer does not have is pushed again', async () => {
    const w = await world({ clock: new FakeClock() });
    w.write('a.txt', 'one');
    const item = w.pending('a.txt');
    await w.stop();
    w.peer.documents.clear();
    const pushed = w.peer.pushes.length;
    await w.start();
    w.state.put(leaving(item, { ...sentOf(item), at: w.clock.now() }));
    await w.until(() => w.peer.pushes.length > pushed, 'pushed again');
    expect(w.state.get('inbox', 'a.txt')).toMatchObject({ attempts: 0 });
    await w.confirmed('a.txt');
  });
});

describe('more accepted items than fit in memory', () => {
  const MAX_IN_MEMORY = 100;

  /** Starts a world with so many accepted items; the peer shows the last ones. */
  function holding(hidden: number, shown: number, hold: number): Promise<UplinkWorld> {
    return world({
      confirm: { timeout: 600_000, maxInterval: 60_000, hold },
      clock: new FakeClock(),
      maxInMemory: MAX_IN_MEMORY / 2,
      tickMs: 1_000,
      fill: (w) => {
        for (let i = 0; i < hidden + shown; i += 1) {
          const item = { ...pendingRecord(`f${i}`), ...w.destination(`f${i}`) };
          const digest = createHash('sha256').update(item.path).digest('hex');
          w.state.put(accepted(item, { ...sentOf(item), digest }, w.clock.now()));
          if (i >= hidden) w.peer.show(item.url, item.path);
        }
      },
    });
  }

  it('are all looked up, though most of them are never shown', async () => {
    const w = await holding(1.55 * MAX_IN_MEMORY, 5, 0);
    await w.allConfirmed(5);
    expect(w.state.counts().accepted).toBe(1.55 * MAX_IN_MEMORY);
    expect(w.uplink.isIdle).toBe(false);
    expect(w.peer.pushes).toEqual([]);
  });

  it('are not confirmed sooner if they are touched after they were dropped from memory', async () => {
    const w = await holding(1.3 * MAX_IN_MEMORY, 0, 1_000);
    const looked = new Map<string, number>();
    w.peer.onLookUp = (url) => void looked.set(url, (looked.get(url) ?? 0) + 1);
    const left = () =>
      [...looked.keys()]
        .map((url) => url.slice(w.url('').length))
        .find((path) => w.uplink.nextLookUp({ folder: 'inbox', path }) === undefined);
    await w.until(
      () => w.peer.lookUps > 1.3 * MAX_IN_MEMORY && left() !== undefined,
      'one left its place',
    );
    const path = left() ?? '';
    const item = w.state.get('inbox', path);
    if (item?.status !== 'accepted') throw new Error('not accepted');
    looked.delete(w.url(path));
    w.peer.show(w.url(path), path);
    w.state.put({ ...item, version: { ...item.version, mtimeMs: item.version.mtimeMs + 1 } });
    await w.confirmed(path);
    // It is not confirmed at its first showing. There is a third look-up if the second one was just
    // before the end of the hold.
    expect(looked.get(w.url(path))).toBeGreaterThanOrEqual(2);
  });
});

describe('a peer that takes files', () => {
  const quick = { ...DIALECTS.yacy, holdMs: 50 };
  const taking = (dialect = quick) =>
    world({ dialect: { current: dialect }, peer: new FakePeer({ showsDigest: false }) });

  it('gets them byte for byte with their types, small ones and large ones', async () => {
    const w = await taking();
    const bytes = Buffer.from(
      Array.from({ length: 100_000 }, (_, i) => (i * 167 + (i >> 8)) % 256),
    );
    const small = Buffer.concat([Buffer.from('%PDF-1.4\n'), bytes]);
    const large = Buffer.concat([Buffer.from('PK\x03\x04'), bytes, bytes, bytes]);
    w.write('small', small, 'binary');
    w.write('large.docx', large, 'binary');
    w.write('note.md', `# a < b\n${'long '.repeat(100_000)}`);
    await w.allConfirmed(3);
    const [pdf, docx, note] = ['small', 'large.docx', 'note.md'].map((name) =>
      w.peer.items.get(w.url(name)),
    );
    expect([pdf?.bytes.equals(small), pdf?.contentType]).toEqual([true, 'application/pdf']);
    expect(docx?.bytes.equals(large)).toBe(true);
    expect(docx?.contentType).toContain('wordprocessingml');
    expect(note?.bytes.toString().startsWith('# a ‹ b\n')).toBe(true);
    expect(note?.contentType).toBe('text/plain; charset=UTF-8');
  });

  it('does not get a file that is larger than it accepts, which is quarantined with the reason', async () => {
    const w = await taking({ ...quick, content: { ...quick.content, maxBytes: 1_000 } });
    w.write('large', 'x'.repeat(1_001));
    w.write('small', 'x'.repeat(1_000));
    expect(await w.quarantined('large')).toMatchObject({ code: 'TOO_LARGE_FOR_PEER' });
    await w.confirmed('small');
    expect([...w.peer.items.keys()]).toEqual([w.url('small')]);
  });

  it('does not get a document whose text is larger than it accepts, and the reason names that size', async () => {
    const content = { ...quick.content, maxBytes: 1_000 };
    const w = await taking({ ...quick, content });
    w.extracts = true;
    w.write('a.rtf', `{\\rtf1 ${'words '.repeat(200)}}`, 'document');
    expect(await w.quarantined('a.rtf')).toMatchObject({
      code: 'TOO_LARGE_FOR_PEER',
      message: expect.stringMatching(
        /^The text of the file has 1[23]\d\d bytes, .* takes 1000 at most/,
      ),
    });
  });

  it('has a longer hold than a YaCy was measured to take documents back after (18.5 s)', () => {
    expect(DIALECTS.yacy.holdMs).toBeGreaterThanOrEqual(18_500);
  });

  it('shows their last modification as evidence, unless it would not keep that date', async () => {
    const w = await taking();
    const write = (name: string, modified: Date) => {
      writeFileSync(join(w.root, name), name);
      utimesSync(join(w.root, name), modified, modified);
      w.record(name, name);
    };
    write('old', new Date('2024-02-29T12:00:00.7Z'));
    write('of the future', new Date(Date.now() + 86_400_000));
    write('ancient', new Date('1960-01-01T00:00:00Z'));
    await w.allConfirmed(3);
    const evidence = (kind: string) => ({ evidence: { kind } });
    expect(w.state.get('inbox', 'old')).toMatchObject(evidence('lastModified'));
    expect(w.state.get('inbox', 'of the future')).toMatchObject(evidence('loadDate'));
    expect(w.state.get('inbox', 'ancient')).toMatchObject(evidence('loadDate'));
    expect(w.state.get('inbox', 'old')?.sent?.lastModified).toBe(Date.UTC(2024, 1, 29, 12));
  });

  it('that turns out to accept only text is not sent a file read as binary, which is looked at again', async () => {
    const w = await taking();
    w.dialect.redetect = async () => {
      const isNews = w.dialect.current !== DIALECTS.standard;
      w.dialect.current = DIALECTS.standard;
      return isNews;
    };
    w.peer.onPush = () => {
      if (w.dialect.current !== DIALECTS.standard) throw failing('PEER_REFUSED', 404);
      return undefined;
    };
    w.write('text', 'text < more');
    w.write('picture', Buffer.from([0, 1, 2]), 'binary');
    await w.confirmed('text');
    expect(w.peer.items.get(w.url('text'))?.bytes.toString()).toBe('text < more');
    await w.until(() => w.rechecked.includes('picture'), 'looked at again');
    expect(w.peer.items.has(w.url('picture'))).toBe(false);
  });
});
