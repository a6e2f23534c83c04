import { expect, it } from 'vitest';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import type { PendingItem } from '../../src/state/entry.js';
import { accepted, lost } from '../../src/state/transitions.js';
import type { Extracted } from '../../src/uplink/documents.js';
import { LOST } from '../../src/uplink/isolation.js';
import { sentOf } from '../state/records.js';
import type { UplinkWorld } from '../support/uplink-world.js';
import { deferred } from '../support/wait.js';
import { world } from '../support/world.js';

const HOLD_MS = 200;

const TEXT: Extracted = {
  kind: 'extracted',
  words: 2,
  page: { bytes: Buffer.from('<p>a b'), extracted: { reader: 'PDF', words: 2 } },
};

/** An uplink to a peer that loses documents together, and an item that is not shown waits. */
const YACY = {
  dialect: { current: DIALECTS.yacy },
  confirm: { timeout: 600_000, hold: HOLD_MS },
};

/** Writes a new file, which the peer accepted and lost. */
function lose(w: UplinkWorld, path: string, encoding: 'utf-8' | 'document' = 'utf-8'): void {
  const item = w.write(path, `the content of ${path}`, encoding) as PendingItem;
  const taken = accepted(item, sentOf(item), w.clock.now());
  // Otherwise the backlog would still have it.
  w.state.put(taken);
  w.state.put(lost(taken, LOST, w.clock.now()));
}

const pushed = (w: UplinkWorld) => w.peer.pushes.flat();

async function pushesAnother(w: UplinkWorld, why: string): Promise<void> {
  const before = pushed(w).length;
  w.write(`text${before}.txt`, `another text that is number ${before}`);
  await w.until(() => pushed(w).includes(w.url(`text${before}.txt`)), why);
}

it('texts are pushed while documents are read, and a lost text is pushed in isolation', async () => {
  const reading = deferred();
  const w = await world({ ...YACY, extracts: true });
  const filesRead = new Set<string>();
  w.extractDocument = async ({ file }) => {
    await reading.promise;
    filesRead.add(file);
    return { kind: 'wordless', reader: 'PDF' };
  };
  for (let i = 0; i < 20; i += 1) w.write(`${i}.pdf`, 'slow', 'document');
  await w.until(() => w.uplink.status().documents.reading > 0, 'documents are read');
  lose(w, 'lost.txt');
  await w.until(() => pushed(w).includes(w.url('lost.txt')), 'the lost text is pushed');
  await pushesAnother(w, 'texts go on');
  expect(filesRead.size).toBe(0);
  reading.resolve();
  await w.until(() => w.state.counts().skipped === 20, 'the documents were read');
});

it('an item is not lost before the index was committed once more, and the commit may show it', async () => {
  const w = await world(YACY);
  w.peer.visibleAfterMs = 3_600_000;
  w.peer.onCommit = () => {
    w.peer.visibleAfterMs = 0;
  };
  w.write('slow.txt', 'a text that the peer indexes late');
  await w.confirmed('slow.txt');
  expect(w.peer.pushes).toEqual([[w.url('slow.txt')]]);
});

it('each lost item has a push of its own, and the index is committed between two of them', async () => {
  const w = await world(YACY);
  let events = '';
  w.peer.onPush = () => {
    events += 'push ';
    return undefined;
  };
  // Look-ups may have the index committed as well.
  w.peer.onCommit = () => {
    events = `${events.replace(/commit $/, '')}commit `;
  };
  for (const path of ['a.txt', 'b.txt', 'c.txt']) lose(w, path);
  await w.until(() => /(push.*){3}commit $/.test(events), 'all are pushed');
  expect(w.peer.pushes).toEqual([[w.url('a.txt')], [w.url('b.txt')], [w.url('c.txt')]]);
  expect(events).toMatch(/^(commit )?(push commit ){3}$/);
});

it('a lost document is read before its round, and then pushed in isolation', async () => {
  const reading = deferred<Extracted>();
  const w = await world({ ...YACY, extracts: true });
  w.extractDocument = async () => await reading.promise;
  lose(w, 'lost.pdf', 'document');
  await w.until(() => w.uplink.status().documents.reading > 0, 'it is read');
  for (let i = 0; i < 3; i += 1) await pushesAnother(w, 'texts go on while it is read');
  expect(pushed(w)).not.toContain(w.url('lost.pdf'));
  reading.resolve(TEXT);
  await w.until(() => pushed(w).includes(w.url('lost.pdf')), 'it is pushed');
  expect(w.peer.pushes).toContainEqual([w.url('lost.pdf')]);
  await pushesAnother(w, 'texts go on afterwards');
});

it('a lost document that cannot be read any more is quarantined for that', async () => {
  const w = await world({ ...YACY, extracts: true });
  const failure = {
    code: 'DOCUMENT_BROKEN',
    message: 'No text can be read from the file.',
    hint: '',
  };
  w.extractDocument = async () => ({ kind: 'refused', failure });
  lose(w, 'lost.pdf', 'document');
  expect(await w.quarantined('lost.pdf')).toEqual(failure);
});

it('documents that are read during a round are pushed after it', async () => {
  const reading = deferred();
  const w = await world({ ...YACY, extracts: true });
  w.extractDocument = async () => {
    await reading.promise;
    return TEXT;
  };
  w.write('slow.pdf', 'slow', 'document');
  await w.until(() => w.uplink.status().documents.reading > 0, 'the document is read');
  const release = w.peer.hold('push');
  lose(w, 'lost.txt');
  await w.until(() => pushed(w).includes(w.url('lost.txt')), 'the round is under way');
  reading.resolve();
  await new Promise((done) => setTimeout(done, 100));
  expect(pushed(w)).toEqual([w.url('lost.txt')]);
  release();
  await w.until(() => pushed(w).includes(w.url('slow.pdf')), 'the document follows');
});
