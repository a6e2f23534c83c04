import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { DIALECTS } from '../../src/peer/dialects.js';
import type { Version } from '../../src/state/entry.js';
import { DocumentThreads } from '../../src/uplink/document-threads.js';
import { type DocumentOrder, packAll } from '../../src/uplink/documents.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';

/** What stands in a file is what its reader does. */
function threads(clock: FakeClock, memory?: () => number) {
  const program = join(temporaryDirectory(), 'thread.mjs');
  writeFileSync(
    program,
    `import { parentPort } from 'node:worker_threads';
     parentPort.on('message', ({ order: { file } }) => {
       if (file === 'hangs') for (;;);
       if (file === 'fills the heap') for (const all = []; ; ) all.push(Array(1e5).fill({}));
       if (file === 'breaks') throw new Error('a bug');
       if (file === 'large') parentPort.postMessage({ kind: 'content', size: 10 });
       else parentPort.postMessage({ kind: 'wordless', reader: file });
     });`,
  );
  const documents = new DocumentThreads(pathToFileURL(program), clock, memory);
  onTestFinished(() => documents.close());
  const read = (file: string) => documents.read({ file } as DocumentOrder);
  return { read, documents };
}

const tooLarge = (why: string) => ({
  kind: 'refused',
  trouble: { code: 'DOCUMENT_TOO_LARGE', message: expect.stringContaining(why) },
});
const fine = { kind: 'wordless', reader: 'fine' };

it('a document whose reading never ends costs that item a minute, and the next one is read', async () => {
  const clock = new FakeClock();
  const { read } = threads(clock);
  const [hangs, next] = [read('hangs'), read('fine')];
  let found: unknown;
  void hangs.then((packed) => {
    found = packed;
  });
  await clock.advance(59_000);
  expect(found).toBeUndefined();
  await clock.advance(1_500);
  expect(await hangs).toMatchObject(tooLarge('longer than 60 s'));
  expect(await next).toEqual(fine);
});

it('a document that fills the heap of its thread is refused, and the next one is read', async () => {
  const { read } = threads(new FakeClock());
  expect(await read('fills the heap')).toMatchObject(tooLarge('too much memory'));
  expect(await read('fine')).toEqual(fine);
}, 60_000);

it('a document that fills the memory beside the heap is refused', async () => {
  const clock = new FakeClock();
  let memory = 0;
  const { read } = threads(clock, () => memory);
  const hangs = read('hangs');
  await clock.advance(1_000);
  memory = 2 ** 30;
  await clock.advance(1_000);
  expect(await hangs).toMatchObject(tooLarge('too much memory'));
});

it('a bug of a reader costs the item, and the next one is read', async () => {
  const { read } = threads(new FakeClock());
  expect(await read('breaks')).toMatchObject({ kind: 'refused', trouble: { code: 'DOCUMENT_BROKEN' } });
  expect(await read('fine')).toEqual(fine);
});

it('a stop does not wait for documents', async () => {
  const { documents, read } = threads(new FakeClock());
  const waiting = [read('hangs'), read('hangs'), read('fine')];
  await documents.close();
  expect(await Promise.all(waiting)).toEqual(Array(3).fill({ kind: 'stale' }));
});

it('of small documents that become large texts a batch takes as many as fill it, and leaves the others', async () => {
  const clock = new FakeClock();
  const { documents } = threads(clock);
  const packers = { clock, pack: async () => [], packDocument: documents.read.bind(documents) };
  const large = { file: 'large', version: { encoding: 'document', size: 1 } as Version };
  const rules = DIALECTS.standard.content;
  const packed = await packAll(packers, { rules, files: Array(9).fill(large), maxBytes: 35 });
  const taken = packed.filter((each) => each !== undefined);
  expect(packed.indexOf(undefined)).toBe(taken.length);
  // What the threads read meanwhile is taken, too.
  expect([4, 5, 6]).toContain(taken.length);
});
