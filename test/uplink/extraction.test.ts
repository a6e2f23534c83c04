import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Programs } from '../../src/content/helpers/programs.js';
import type { PageProgress } from '../../src/content/readers/document-reader.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import { extractDocument } from '../../src/uplink/document-text.js';
import type { DocumentOrder, Extracted } from '../../src/uplink/documents.js';
import { retryItems } from '../../src/uplink/retry.js';
import { rtf, zipped } from '../content/documents.js';
import { command, OCR } from '../content/programs.js';
import { FakeClock } from '../support/fake-clock.js';
import { fails, takes, unreachable } from '../support/fake-peer.js';
import { temporaryDirectory } from '../support/temp.js';
import type { UplinkWorld, UplinkWorldOptions } from '../support/uplink-world.js';
import { deferred } from '../support/wait.js';
import { world } from '../support/world.js';

const OLE = Buffer.from('d0cf11e0a1b11ae1', 'hex');
const CATDOC: Programs = { commands: { '.doc': command('catdoc') }, noOcr: 'missing' };
const WITH_OCR: Programs = { commands: {}, ocr: OCR };

const names = (count: number, extension: string) =>
  Array.from({ length: count }, (_, i) => `${i}${extension}`);

const textOf = (text: string): Extracted => ({
  kind: 'extracted',
  words: 2,
  page: { bytes: Buffer.from(text), extracted: { reader: 'PDF', words: 2 } },
});

/**
 * Counts the readings of a world. The content of a document is its text. Documents with `slow` in
 * their text wait for `release`.
 */
function counting(w: UplinkWorld) {
  const read: string[] = [];
  const slow = deferred();
  let running = 0;
  const counts = { most: 0 };
  w.extractDocument = async ({ file }: DocumentOrder) => {
    running += 1;
    counts.most = Math.max(counts.most, running);
    const text = readFileSync(file, 'utf8');
    read.push(text);
    if (text.includes('slow')) await slow.promise;
    running -= 1;
    return textOf(`<p>${text}`);
  };
  return { counts, read, release: () => slow.resolve() };
}

async function countingWorld(options: UplinkWorldOptions = {}) {
  const w = await world(options);
  return { w, ...counting(w) };
}

const document = (w: UplinkWorld, path: string, text: string | Uint8Array) =>
  w.write(path, text, 'document');
const sent = (w: UplinkWorld, path: string) => w.peer.items.get(w.url(path))?.bytes.toString();
const documents = (w: UplinkWorld) => w.uplink.status().documents;
const allRead = (w: UplinkWorld) =>
  w.until(() => documents(w).reading + documents(w).waiting === 0, 'all are read');

/** Changes something while no batch is being sent that was read before. */
const betweenPushes = (w: UplinkWorld, change: () => void) =>
  w.until(() => {
    if (w.uplink.status().inFlight > 0) return false;
    change();
    return true;
  }, 'no batch is being sent');

/** A peer that is away until `back`. */
function away(w: UplinkWorld) {
  w.peer.onPush = fails(() => unreachable('no'));
  return {
    back: () => {
      w.peer.onPush = takes;
    },
  };
}

it('a slow document holds up neither notes nor other documents', async () => {
  const { w, release } = await countingWorld({ documents: { concurrency: 2 } });
  document(w, 'slow.pdf', 'a slow document');
  const notes = names(10, '.txt');
  for (const path of notes) w.write(path, `the note ${path}`);
  for (const path of names(5, '.pdf')) document(w, path, `the document ${path}`);
  await w.confirmed(...notes, ...names(5, '.pdf'));
  expect(w.statusOf('slow.pdf')).toBe('pending');
  expect(documents(w)).toEqual({
    waiting: 0,
    reading: 1,
    longest: { file: 'inbox/slow.pdf', since: expect.any(Number) },
  });
  release();
  await w.confirmed('slow.pdf');
  expect(sent(w, 'slow.pdf')).toBe('<p>a slow document');
});

it('as many documents are read at the same time as the configuration says, and a reload changes that', async () => {
  const limits: { concurrency: number; cacheSize: number } = { concurrency: 2, cacheSize: 1e9 };
  const { w, counts, release } = await countingWorld();
  Object.assign(w.settings, { documents: limits });
  for (const path of names(6, '.pdf')) document(w, path, `slow ${path}`);
  await w.until(() => counts.most === 2, 'two are read');
  expect(documents(w)).toMatchObject({ reading: 2, waiting: 4 });
  limits.concurrency = 3;
  w.uplink.configured();
  await w.until(() => counts.most === 3, 'three are read');
  release();
  await w.allConfirmed(6);
  expect(counts.most).toBe(3);
});

it('texts and documents that were read share a batch', async () => {
  // Longer than the backoff of the documents.
  const { w } = await countingWorld({ push: { linger: 200 } });
  const { back } = away(w);
  for (const path of names(3, '.pdf')) document(w, path, `document ${path}`);
  await allRead(w);
  await betweenPushes(w, () => {
    w.writeMany(3);
    back();
  });
  await w.allConfirmed(6);
  const isMixed = (urls: readonly string[]) =>
    urls.some((url) => url.endsWith('.pdf')) && urls.some((url) => !url.endsWith('.pdf'));
  expect(w.peer.pushes.some(isMixed)).toBe(true);
});

it('the same document under several names is read once, also at the same time', async () => {
  const { w, read, release } = await countingWorld({ documents: { concurrency: 2 } });
  for (const path of ['a.pdf', 'b.pdf', 'c.pdf']) document(w, path, 'a slow document');
  await w.until(() => documents(w).reading === 1, 'it is under way');
  // The copies take no place of another document while they wait.
  document(w, 'other.pdf', 'another document');
  await w.confirmed('other.pdf');
  expect(documents(w)).toMatchObject({ reading: 1, waiting: 2 });
  release();
  await w.allConfirmed(4);
  document(w, 'd.pdf', 'a slow document');
  await w.allConfirmed(5);
  expect(read).toHaveLength(2);
  // Another kind of document has another reader.
  document(w, 'd.eml', 'a slow document');
  await w.allConfirmed(6);
  expect(read).toHaveLength(3);
});

it('a copy that changes while it waits for the reading is read by itself', async () => {
  const { w, release } = await countingWorld({ documents: { concurrency: 2 } });
  for (const path of ['a.pdf', 'b.pdf']) document(w, path, 'a slow document');
  await w.until(() => documents(w).waiting === 1, 'a copy waits');
  document(w, 'b.pdf', 'a newer text');
  await w.confirmed('b.pdf');
  release();
  await w.confirmed('a.pdf');
  expect([sent(w, 'a.pdf'), sent(w, 'b.pdf')]).toEqual(['<p>a slow document', '<p>a newer text']);
});

it.each<[string, string | Uint8Array, Programs, number]>([
  ['a.pdf', '%PDF-1.7', CATDOC, 1],
  ['a.pdf', '%PDF-1.7', WITH_OCR, 2],
  ['a.rtf', '{\\rtf1 text}', WITH_OCR, 1],
  ['a.doc', OLE, WITH_OCR, 1],
  ['a.doc', OLE, CATDOC, 2],
  ['a.zip', zipped({ 'note.txt': 'text' }), CATDOC, 2],
])(
  'a document that waits to be pushed is read again only if another program may read it: %s',
  async (path, content, programs, readings) => {
    const { w, read } = await countingWorld();
    const { back } = away(w);
    document(w, path, content);
    await allRead(w);
    await w.stop();
    w.programs = programs;
    back();
    await w.start();
    await w.confirmed(path);
    expect(read).toHaveLength(readings);
  },
);

it('a text that lacks a part for the moment is sent, and is not used for a copy or a retry', async () => {
  const w = await world();
  let readings = 0;
  w.extractDocument = async () => {
    readings += 1;
    const text = textOf(`<p>reading ${readings}`);
    return { ...text, ...(readings === 1 && { lacks: ['time'] }) } as Extracted;
  };
  for (const path of ['a.pdf', 'b.pdf', 'c.pdf']) {
    document(w, path, 'a document');
    await w.confirmed(path);
  }
  expect(['a.pdf', 'b.pdf', 'c.pdf'].map((path) => sent(w, path))).toEqual([
    '<p>reading 1',
    '<p>reading 2',
    '<p>reading 2',
  ]);
  const { clock, state, stateDir } = w;
  const extracts = join(stateDir, 'extracts');
  expect(await retryItems({ clock, extracts, state }, undefined)).toMatchObject({ retried: 1 });
  await w.until(() => sent(w, 'a.pdf') === '<p>reading 2', 'it is read again');
  await w.confirmed('a.pdf');
});

it('a document that was read without a program is read again where that is there', async () => {
  const w = await world();
  const read: string[] = [];
  w.extractDocument = async ({ programs }) => {
    const isThere = programs.commands['.doc'] !== undefined;
    read.push(isThere ? 'with' : 'without');
    return { ...textOf('<p>text'), ...(!isThere && { lacks: ['.doc'] }) } as Extracted;
  };
  document(w, 'a.pdf', '%PDF-1.7');
  await w.confirmed('a.pdf');
  expect(w.state.get('inbox', 'a.pdf')).toMatchObject({ sent: { lacks: ['.doc'] } });
  const { back } = away(w);
  document(w, 'b.pdf', '%PDF-1.7 b');
  await allRead(w);
  await betweenPushes(w, () => {
    w.programs = CATDOC;
    back();
  });
  document(w, 'c.pdf', '%PDF-1.7');
  await w.confirmed('b.pdf', 'c.pdf');
  expect(read).toEqual(['without', 'without', 'with', 'with']);
  expect(w.state.get('inbox', 'b.pdf')?.sent).not.toHaveProperty('lacks');
});

it('a file that only a command of the configuration read is looked at again without it', async () => {
  const w = await world();
  w.extractDocument = extractDocument;
  document(w, 'plan.dwg', 'some bytes');
  await w.until(() => w.rechecked.includes('plan.dwg'), 'it is looked at again');
  expect(w.statusOf('plan.dwg')).toBe('pending');
});

const failing = (code: string) => ({
  kind: 'refused' as const,
  failure: { code, message: 'No text can be read from the file.', hint: 'Save it anew.' },
});

/** A world in which every reading has this result, and the number of readings. */
async function worldWith(result: Extracted) {
  const w = await world();
  const readings = { count: 0 };
  w.extractDocument = async () => {
    readings.count += 1;
    return result;
  };
  return { w, readings };
}

it.each([
  ['quarantined', failing('DOCUMENT_BROKEN')],
  ['quarantined', failing('DOCUMENT_ENCRYPTED')],
  ['quarantined', failing('DOCUMENT_TOO_LARGE')],
  ['skipped', { kind: 'wordless', reader: 'PDF' }],
] as const)('a copy of a document that is %s is not read again: %j', async (status, result) => {
  const { w, readings } = await worldWith(result);
  const are = (...paths: readonly string[]) =>
    w.until(() => paths.every((path) => w.statusOf(path) === status), `they are ${status}`);
  document(w, 'a.pdf', 'a document');
  document(w, 'b.pdf', 'a document');
  await are('a.pdf', 'b.pdf');
  await w.stop();
  await w.start();
  document(w, 'c.pdf', 'a document');
  await are('c.pdf');
  expect(readings.count).toBe(1);
});

it('a document that is retried is read again', async () => {
  const { w, readings } = await worldWith(failing('DOCUMENT_BROKEN'));
  document(w, 'a.pdf', 'a document');
  await w.until(() => w.statusOf('a.pdf') === 'quarantined', 'it cannot be read');
  w.extractDocument = async () => textOf('<p>read at last');
  const { clock, state, stateDir } = w;
  await retryItems({ clock, extracts: join(stateDir, 'extracts'), state }, undefined);
  await w.confirmed('a.pdf');
  expect([sent(w, 'a.pdf'), readings.count]).toEqual(['<p>read at last', 1]);
});

it.each<[string, Extracted, string]>([
  [
    'that failed for lack of time or memory',
    { ...failing('DOCUMENT_TOO_LARGE'), isMomentary: true },
    'quarantined',
  ],
  ['that lacks a program', failing('NO_OCR'), 'skipped'],
])('a copy of a document %s is read', async (_, result, status) => {
  const { w, readings } = await worldWith(result);
  for (const path of ['a.pdf', 'b.pdf']) {
    document(w, path, 'a document');
    await w.until(() => w.statusOf(path) === status, `it is ${status}`);
  }
  expect(readings.count).toBe(2);
});

it('an archive under another name has that name as its title', async () => {
  const w = await world();
  w.extractDocument = extractDocument;
  const bytes = zipped({ 'note.txt': 'some words in an archive' });
  for (const path of ['a.zip', 'b.zip']) document(w, path, bytes);
  await w.confirmed('a.zip', 'b.zip');
  expect(sent(w, 'a.zip')).toContain('<title>a.zip</title>');
  expect(sent(w, 'b.zip')).toContain('<title>b.zip</title>');
});

it('a document is not read again after a restart', async () => {
  const { w, read } = await countingWorld();
  const { back } = away(w);
  for (const path of names(3, '.pdf')) document(w, path, `document ${path}`);
  await allRead(w);
  await w.stop();
  back();
  await w.start();
  await w.allConfirmed(3);
  expect(read).toHaveLength(3);
  expect(sent(w, '0.pdf')).toBe('<p>document 0.pdf');
});

it.each<[string, (page: string) => void]>([
  ['has another text', (page) => writeFileSync(page, readFileSync(page, 'utf8').toUpperCase())],
  ['is torn', (page) => writeFileSync(page, '<p>')],
  ['is gone', rmSync],
])(
  'a document is read again if its page %s, whether it was found before a restart or not',
  async (_, damage) => {
    for (const isRestarted of [false, true]) {
      const { w, read } = await countingWorld();
      const { back } = away(w);
      document(w, 'a.pdf', 'a document');
      await allRead(w);
      if (isRestarted) await w.stop();
      const extracts = join(w.stateDir, 'extracts');
      const [page = ''] = readdirSync(extracts).filter((name) => name.endsWith('.html'));
      const changed = () => {
        damage(join(extracts, page));
        back();
      };
      if (isRestarted) changed();
      else await betweenPushes(w, changed);
      if (isRestarted) await w.start();
      await w.confirmed('a.pdf');
      expect([sent(w, 'a.pdf'), read.length]).toEqual(['<p>a document', 2]);
      await w.stop();
    }
  },
);

it('a page is found where the directory of the state is reached by a link', async () => {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'there'));
  symlinkSync('there', join(directory, 'link'));
  const { w, read } = await countingWorld({ directory: join(directory, 'link') });
  const large = 'many words '.repeat(100_000);
  document(w, 'a.pdf', 'a document');
  document(w, 'b.pdf', large);
  // Files of a folder are read at a path without links.
  w.fileOf = ({ path }) => join(directory, 'there', 'files', path);
  await w.confirmed('a.pdf', 'b.pdf');
  expect([sent(w, 'a.pdf'), sent(w, 'b.pdf'), read.length]).toEqual([
    '<p>a document',
    `<p>${large}`,
    2,
  ]);
});

it('a page that is too large for memory is sent whole', async () => {
  const { w } = await countingWorld();
  const text = 'many words '.repeat(100_000);
  document(w, 'a.pdf', text);
  await w.confirmed('a.pdf');
  expect(sent(w, 'a.pdf')).toBe(`<p>${text}`);
});

it('a peer that turns out to be of another kind gets the form that it reads', async () => {
  const w = await world({ extracts: true });
  w.extractDocument = extractDocument;
  const { back } = away(w);
  document(w, 'a.rtf', rtf('a < b'));
  await allRead(w);
  await betweenPushes(w, () => {
    w.dialect.current = DIALECTS.yacy;
    back();
  });
  await w.confirmed('a.rtf');
  expect(sent(w, 'a.rtf')).toContain('<p>a ‹ b');
  // The cache has both forms.
  w.dialect.current = DIALECTS.standard;
  document(w, 'b.rtf', rtf('a < b'));
  await w.confirmed('b.rtf');
  expect(sent(w, 'b.rtf')).toContain('<p>a &lt; b');
});

it('a document that changes after it was read is not pushed in its old version', async () => {
  const { w } = await countingWorld();
  const { back } = away(w);
  document(w, 'a.pdf', 'the old text');
  await allRead(w);
  await betweenPushes(w, () => {
    writeFileSync(join(w.root, 'a.pdf'), 'the new text');
    back();
  });
  await w.until(() => w.rechecked.includes('a.pdf'), 'it is looked at again');
  expect(sent(w, 'a.pdf')).toBeUndefined();
  w.record('a.pdf', 'the new text', 'document');
  await w.confirmed('a.pdf');
  expect(sent(w, 'a.pdf')).toBe('<p>the new text');
});

it('a document that changes or is removed while it is read holds up neither', async () => {
  const { w, release } = await countingWorld({ documents: { concurrency: 2 } });
  document(w, 'a.pdf', 'a slow text');
  document(w, 'b.pdf', 'another slow text');
  await w.until(() => documents(w).reading === 2, 'they are read');
  w.remove('b.pdf');
  document(w, 'a.pdf', 'a newer text');
  release();
  await w.confirmed('a.pdf');
  await allRead(w);
  expect(sent(w, 'a.pdf')).toBe('<p>a newer text');
  expect([w.statusOf('b.pdf'), sent(w, 'b.pdf')]).toEqual(['gone', undefined]);
});

it('no more documents are read ahead than the cache has room for', async () => {
  const { w, read } = await countingWorld({ documents: { cacheSize: 256 * 1024 } });
  const { back } = away(w);
  for (const path of names(20, '.pdf')) document(w, path, `${path} ${'words '.repeat(5_000)}`);
  await w.until(() => read.length === 5, 'the room is used up');
  await new Promise((done) => setTimeout(done, 100));
  expect(read).toHaveLength(5);
  back();
  await w.allConfirmed(20);
  expect(read).toHaveLength(20);
});

it('while the disk takes no text, documents wait and texts go on, and status says so', async () => {
  const { w, read } = await countingWorld({ clock: new FakeClock() });
  const extracts = join(w.stateDir, 'extracts');
  writeFileSync(extracts, 'in the way');
  document(w, 'a.pdf', 'a document');
  w.write('a.txt', 'a text');
  await w.confirmed('a.txt');
  await w.until(() => w.uplink.status().readersFailure !== undefined, 'it is told');
  expect(w.uplink.status().readersFailure).toMatchObject({
    code: 'DOCUMENTS_NOT_STORED',
    message: expect.stringContaining('ENOTDIR'),
  });
  rmSync(extracts);
  await w.confirmed('a.pdf');
  expect([read.length, w.uplink.status().readersFailure]).toEqual([1, undefined]);
});

it('documents of a folder that is missing wait for it, and are read when it is back', async () => {
  const { w, read } = await countingWorld();
  let state: 'there' | 'missing' = 'missing';
  w.folderState = () => state;
  w.uplink.foldersChanged();
  document(w, 'a.pdf', 'a document');
  w.uplink.foldersChanged();
  await new Promise((done) => setTimeout(done, 50));
  expect(read).toEqual([]);
  state = 'there';
  w.uplink.foldersChanged();
  await w.confirmed('a.pdf');
});

describe('a document that lacks a program', () => {
  const without = (code: string): Extracted => ({
    kind: 'refused',
    failure: { code, message: 'The file is a scan.', hint: 'Install it.' },
  });

  it.each(['NO_OCR', 'NO_HELPER'])('is skipped, and that is logged once: %s', async (code) => {
    const w = await world();
    w.extractDocument = async () => without(code);
    for (let again = 0; again < 2; again += 1) {
      document(w, 'scan.pdf', `a scan ${again}`);
      await w.until(() => w.statusOf('scan.pdf') === 'skipped', 'it is skipped');
    }
    expect(w.state.get('inbox', 'scan.pdf')).toMatchObject({ failure: { code } });
    expect(w.logged.filter((line) => line.includes('skipped'))).toEqual([
      'info: skipped inbox/scan.pdf: The file is a scan. Install it.',
    ]);
    expect(w.peer.pushes).toEqual([]);
  });

  it('is looked at again if other programs were found while it was read', async () => {
    const w = await world();
    w.extractDocument = async () => {
      w.programs = { commands: {}, ocr: OCR };
      return without('NO_OCR');
    };
    document(w, 'scan.pdf', 'a scan');
    await w.until(() => w.rechecked.includes('scan.pdf'), 'it is looked at again');
    expect(w.statusOf('scan.pdf')).toBe('pending');
  });

  it('is quarantined for any other reason', async () => {
    const w = await world();
    w.extractDocument = async () => without('DOCUMENT_BROKEN');
    document(w, 'scan.pdf', 'a scan');
    expect(await w.quarantined('scan.pdf')).toMatchObject({ code: 'DOCUMENT_BROKEN' });
  });
});

describe('the progress of a reading', () => {
  /** A document of pages, of which a test reads one after the other. */
  async function paged(options: UplinkWorldOptions = {}) {
    const w = await world(options);
    const end = deferred();
    let report: ((progress: PageProgress) => void) | undefined;
    w.extractDocument = async (_, onProgress) => {
      report = onProgress;
      await end.promise;
      return {
        kind: 'extracted',
        words: 2,
        page: {
          bytes: Buffer.from('<p>text'),
          extracted: { reader: 'PDF', words: 2, pages: 500, ocrPages: 30 },
        },
      };
    };
    document(w, 'book.pdf', 'a book');
    await w.until(() => report !== undefined, 'it is read');
    return { w, read: (page: number) => report?.({ page, pages: 500 }), end: () => end.resolve() };
  }

  it('is told with its page, and counts as work that goes on', async () => {
    const { end, read, w } = await paged();
    const [check] = w.uplink.health.filter(({ name }) => name === 'documents');
    const since = documents(w).longest?.since ?? 0;
    expect(documents(w).longest).toEqual({ file: 'inbox/book.pdf', since });
    expect(w.uplink.extractionOf(w.pending('book.pdf'))).toEqual({ since });
    check?.look(0);
    check?.look(1_000);
    read(37);
    expect(documents(w).longest).toEqual({ file: 'inbox/book.pdf', since, page: 37, pages: 500 });
    expect(w.uplink.extractionOf(w.pending('book.pdf'))).toEqual({ since, page: 37, pages: 500 });
    expect(check?.look(2_000)).toBe(0);
    end();
    await w.confirmed('book.pdf');
    expect(documents(w).longest).toBeUndefined();
    expect(w.uplink.readTotals).toEqual({ documents: 1, pages: 500, ocrPages: 30 });
  });

  it('is told as documents and pages a minute, of the last minutes', async () => {
    const clock = new FakeClock();
    const { end, read, w } = await paged({ clock });
    expect(documents(w).perMinute).toBeUndefined();
    for (let page = 1; page <= 61; page += 1) {
      read(page);
      await clock.advance(1_000);
    }
    expect(documents(w).perMinute).toEqual({ documents: 0, pages: 59 });
    // A process that reads it anew counts no page twice.
    read(1);
    expect(w.uplink.readTotals.pages).toBe(61);
    await clock.advance(6 * 60_000);
    expect(documents(w).perMinute).toBeUndefined();
    read(90);
    await clock.advance(10_000);
    read(100);
    expect(documents(w).perMinute).toEqual({ documents: 0, pages: 60 });
    end();
    await w.confirmed('book.pdf');
    expect(documents(w)).toEqual({ waiting: 0, reading: 0 });
  });
});

it('the lane of documents has a health check, for which a slow document is no fault', async () => {
  const { w, release } = await countingWorld();
  document(w, 'a.pdf', 'a slow document');
  await w.until(() => documents(w).reading === 1, 'it is read');
  const [check] = w.uplink.health.filter(({ name }) => name === 'documents');
  expect(check?.busy).toBe(true);
  // Two readings of ten minutes, on a machine where that takes as long again.
  expect(check?.options.limitMs).toBeGreaterThan(20 * 60_000);
  release();
  await w.confirmed('a.pdf');
  expect(check?.busy).toBe(false);
});
