import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Command, NO_PROGRAMS } from '../../src/content/helpers/programs.js';
import type { JobEnd } from '../../src/fleet/job-queue.js';
import { Keys } from '../../src/fleet/protocol.js';
import { SharedReaders } from '../../src/fleet/shared-readers.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { DocumentOrder, Extracted } from '../../src/uplink/documents.js';
import { deferred, until } from '../support/wait.js';

const SHA256 = 'a'.repeat(64);
const CATDOC: Command = {
  name: 'catdoc',
  program: '/usr/bin/catdoc',
  args: ['{file}'],
  output: 'text',
};

function orderOf(path: string): DocumentOrder {
  return {
    file: `/srv/inbox/${path}`,
    item: { folder: 'inbox', path },
    version: { size: 1, mtimeMs: 1, ctimeMs: 1, ino: 1, sha256: SHA256, encoding: 'document' },
    rules: {
      encoding: 'base64',
      takesBinary: true,
      readsTextAsHtml: false,
      convertHere: [],
      showsWords: false,
    },
    wanted: 'text',
    programs: { ...NO_PROGRAMS, commands: { '.doc': CATDOC } },
  };
}

const EXTRACTED = { reader: 'pdf', words: 1, ms: 1 };
const textOf = (text: string): Extracted => ({
  kind: 'extracted',
  words: 1,
  page: { bytes: Buffer.from(text), extracted: EXTRACTED },
});
/** A result of a worker whose text is at a key. */
const resultAt = (text?: string): JobEnd => ({
  kind: 'done',
  value: {
    kind: 'read',
    result: { kind: 'extracted', words: 1, extracted: EXTRACTED },
    ...(text !== undefined && { text }),
  },
});
const notHere = (why: string): JobEnd => ({ kind: 'done', value: { kind: 'notHere', why } });
const of = (result: object): JobEnd => ({ kind: 'done', value: { kind: 'read', result } });

interface Reading<End> {
  readonly path: string;
  readonly end: (end: End) => void;
}

/** Readers whose workers and whose own machine are the test. */
function setUp({ slots = 1, slotsHere = 1 } = {}) {
  const here: Reading<Extracted>[] = [];
  const elsewhere: Reading<JobEnd>[] = [];
  const texts = new Map<string, Buffer>();
  const keys = new Keys('p');
  const owner = {
    slots,
    keys,
    abilities: { digestOf: async () => SHA256 },
    refreshed: 0,
    refresh: async () => {
      owner.refreshed += 1;
    },
    looked: Promise.resolve(),
    /** The ids of jobs of an earlier run, by the path. */
    earlier: new Map<string, string>(),
    takeEarlier: ({ path }: { path: string }) => {
      const id = owner.earlier.get(path);
      owner.earlier.delete(path);
      return id;
    },
    redis: {
      strlen: async (key: string) => texts.get(key)?.length ?? 0,
      getdelBuffer: async (key: string) => {
        const text = texts.get(key) ?? null;
        texts.delete(key);
        return text;
      },
    },
    jobs: {
      run: async (job: { path: string }) => {
        const end = await new Promise<JobEnd>((end) => elsewhere.push({ path: job.path, end }));
        return end;
      },
      resume: async (id: string) =>
        await new Promise<JobEnd>((end) => elsewhere.push({ path: `resumed ${id}`, end })),
    },
  };
  const settings = { slotsHere };
  const readers = new SharedReaders({
    owner: owner as never,
    jobs: owner.jobs,
    log: silentLogger,
    here: async (order) =>
      await new Promise((end) => here.push({ path: order.item?.path ?? '', end })),
    slotsHere: () => settings.slotsHere,
    slotsElsewhere: () => owner.slots,
  });
  const read = (path: string) => readers.extractDocument(orderOf(path));
  const storeText = (key: string, text: string) => texts.set(keys.text(key), gzipSync(text));
  return { elsewhere, here, owner, read, readers, settings, storeText, texts };
}

/** Takes the next reading, once there is one. */
async function next<End>(readings: Reading<End>[]): Promise<Reading<End>> {
  await until(() => readings.length > 0, 'a reading');
  return readings.shift() as Reading<End>;
}

describe('shared readers', () => {
  it('read here while there is room, then elsewhere, and else wait', async () => {
    const { elsewhere, here, read, storeText } = setUp();
    const results = [read('a'), read('b'), read('c')];
    const a = await next(here);
    expect(a.path).toBe('a');
    const b = await next(elsewhere);
    expect(b.path).toBe('b');
    storeText('job', 'text of b');
    b.end(resultAt('job'));
    expect(await results[1]).toEqual(textOf('text of b'));
    // The place of a worker is free again.
    const c = await next(elsewhere);
    expect(c.path).toBe('c');
    c.end(of({ kind: 'wordless', reader: 'pdf' }));
    expect(await results[2]).toEqual({ kind: 'wordless', reader: 'pdf' });
    a.end(textOf('a'));
    expect(await results[0]).toEqual(textOf('a'));
  });

  it('wait for the job of an earlier run, although there is room here, and give a lost one to others', async () => {
    const { elsewhere, here, owner, read, storeText } = setUp();
    owner.earlier.set('a', 'epoch-1').set('b', 'epoch-2');
    const results = [read('a'), read('b')];
    const [a, b] = [await next(elsewhere), await next(elsewhere)];
    expect([a.path, b.path]).toEqual(['resumed epoch-1', 'resumed epoch-2']);
    expect(here).toEqual([]);
    storeText('epoch-1', 'text of a');
    a.end(resultAt('epoch-1'));
    expect(await results[0]).toEqual(textOf('text of a'));
    b.end({ kind: 'lost' });
    (await next(here)).end(textOf('b'));
    expect(await results[1]).toEqual(textOf('b'));
  });

  it('read nothing until it is known which jobs of an earlier run there are', async () => {
    const { here, owner, read } = setUp();
    const { promise, resolve } = deferred();
    owner.looked = promise;
    void read('a');
    await new Promise((settled) => setImmediate(settled));
    expect(here).toEqual([]);
    resolve();
    expect((await next(here)).path).toBe('a');
  });

  it('give a document to workers again whose text Redis has forgotten', async () => {
    const { elsewhere, here, read } = setUp();
    void read('busy');
    void read('a');
    (await next(elsewhere)).end(resultAt('gone'));
    expect((await next(elsewhere)).path).toBe('a');
    expect(here.map(({ path }) => path)).toEqual(['busy']);
  });

  it('start what waits when workers come, and when more may be read here', async () => {
    const { elsewhere, here, owner, read, readers, settings } = setUp({ slots: 0 });
    for (const path of ['a', 'b', 'c', 'd']) void read(path);
    await until(() => here.length === 1, 'one is read here');
    expect(elsewhere).toEqual([]);
    owner.slots = 2;
    readers.startWaiting();
    await until(() => elsewhere.length === 2, 'two are read elsewhere');
    settings.slotsHere = 2;
    readers.startWaiting();
    await until(() => here.length === 2, 'two are read here');
  });

  it('give a lost document to workers again, and read it here after three times', async () => {
    const { elsewhere, here, read } = setUp();
    void read('busy');
    void read('a');
    for (let time = 0; time < 3; time += 1) (await next(elsewhere)).end({ kind: 'lost' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(elsewhere).toEqual([]);
    here.shift()?.end(textOf('busy'));
    expect((await next(here)).path).toBe('a');
    expect(elsewhere).toEqual([]);
  });

  it('give the document of a worker that stops to others, after a look at who is left', async () => {
    const { elsewhere, owner, read } = setUp();
    void read('busy');
    void read('a');
    (await next(elsewhere)).end(notHere('stopping'));
    await next(elsewhere);
    expect(owner.refreshed).toBe(1);
  });

  it('have room for others beside documents that wait for this machine alone', async () => {
    const { elsewhere, read, readers } = setUp({ slots: 2 });
    for (const path of ['busy', 'a', 'b']) void read(path);
    expect(readers.elsewhere).toBe(2);
    for (let i = 0; i < 2; i += 1) (await next(elsewhere)).end({ kind: 'failed' });
    await until(() => readers.elsewhere === 4, 'two wait for this machine');
    for (let i = 0; i < 2; i += 1) void read(`more ${i}`);
    for (let i = 0; i < 2; i += 1) (await next(elsewhere)).end({ kind: 'failed' });
    expect(readers.elsewhere).toBe(4);
  });

  for (const [what, end] of [
    ['it ended two workers', { kind: 'failed' }],
    ['the worker lacks a program', notHere('program')],
    ['its text is too large', notHere('too large')],
    ['the worker sees another version', of({ kind: 'stale' })],
    ['the worker may not read it', of({ kind: 'unreadable', code: 'EACCES' })],
    [
      'the worker has no OCR',
      of({ kind: 'refused', failure: { code: 'NO_OCR', message: '', hint: '' } }),
    ],
    ['the result has no text', resultAt()],
    ['its text is damaged', resultAt('damaged')],
    ['its text is larger than those of workers', resultAt('large')],
    ['the result is of another form', { kind: 'done', value: { kind: 'read', result: 7 } }],
    [
      'the worker lacked a program that is here',
      {
        kind: 'done',
        value: {
          kind: 'read',
          result: { kind: 'extracted', words: 1, lacks: ['.doc'], extracted: EXTRACTED },
          text: 'whole',
        },
      },
    ],
    ['the worker counted words instead of reading', of({ kind: 'extracted', words: 1 })],
  ] as const satisfies readonly (readonly [string, JobEnd])[])
    it(`read a document here if ${what}`, async () => {
      const { elsewhere, here, read, texts } = setUp();
      texts.set(new Keys('p').text('damaged'), Buffer.from('no gzip'));
      texts.set(new Keys('p').text('large'), gzipSync(randomBytes(2 ** 20 + 1)));
      texts.set(new Keys('p').text('whole'), gzipSync('of the worker'));
      void read('busy');
      const result = read('a');
      (await next(elsewhere)).end(end);
      here.shift()?.end(textOf('busy'));
      const reading = await next(here);
      expect(reading.path).toBe('a');
      reading.end(textOf('a'));
      expect(await result).toEqual(textOf('a'));
      expect(elsewhere).toEqual([]);
    });

  it('read every document once to its end, never more at a time than there is room, whatever workers do', async () => {
    const ends = ['text', 'lost', 'failed', 'stopping', 'stale'] as const;
    const act = fc.oneof(
      fc.record({ kind: fc.constant('drop' as const) }),
      fc.record({ kind: fc.constant('here' as const), which: fc.nat(9) }),
      fc.record({
        kind: fc.constant('end' as const),
        which: fc.nat(9),
        end: fc.constantFrom(...ends),
      }),
      fc.record({ kind: fc.constant('slots' as const), slots: fc.nat(3) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 60 }), async (acts) => {
        const { elsewhere, here, owner, read, readers, storeText } = setUp({
          slots: 2,
          slotsHere: 2,
        });
        const results: Promise<Extracted>[] = [];
        const settle = () => new Promise((resolve) => setTimeout(resolve, 0));
        const take = <End>(readings: Reading<End>[], which: number) =>
          readings.splice(which % Math.max(1, readings.length), 1)[0];
        const endElsewhere = async (which: number, end: (typeof ends)[number]) => {
          const reading = take(elsewhere, which);
          if (reading === undefined) return;
          storeText(reading.path, reading.path);
          if (end === 'text') reading.end(resultAt(reading.path));
          else if (end === 'stale') reading.end(of({ kind: 'stale' }));
          else reading.end(end === 'stopping' ? notHere('stopping') : { kind: end });
        };
        const endHere = (which: number) => {
          const reading = take(here, which);
          reading?.end(textOf(reading.path));
        };
        for (const each of acts) {
          if (each.kind === 'drop') results.push(read(`${results.length}`));
          else if (each.kind === 'here') endHere(each.which);
          else if (each.kind === 'end') await endElsewhere(each.which, each.end);
          else {
            const before = owner.slots;
            owner.slots = each.slots;
            // Documents that are out stay out when workers go.
            if (elsewhere.length > each.slots) owner.slots = before;
            readers.startWaiting();
          }
          await settle();
          expect(here.length).toBeLessThanOrEqual(2);
          expect(elsewhere.length).toBeLessThanOrEqual(owner.slots);
        }
        for (let turn = 0; here.length + elsewhere.length > 0 && turn < 500; turn += 1) {
          endHere(0);
          await endElsewhere(0, 'text');
          for (let i = 0; i < 3; i += 1) await settle();
        }
        const read_ = await Promise.all(results);
        expect(read_).toEqual(results.map((_, i) => textOf(`${i}`)));
      }),
      { numRuns: 60 },
    );
  });
});
