import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import type { Logger } from '../../src/lib/logger.js';
import { silentLogger } from '../../src/lib/logger.js';
import { DIALECTS } from '../../src/peer/dialects.js';
import type { Version } from '../../src/state/entry.js';
import { DocumentProcesses } from '../../src/uplink/document-processes.js';
import { type DocumentOrder, packAll } from '../../src/uplink/documents.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

/** A program whose documents say by their names what they do to it. */
const PROGRAM = `
  import { createInterface } from 'node:readline';
  const write = (header, body = '') =>
    process.stdout.write(JSON.stringify({ ...header, bytes: body.length }) + '\\n' + body);
  const digest = 'a'.repeat(64);
  const extracted = { reader: 'PDF', words: 2 };
  const content = { kind: 'content', size: 10, digest, type: '', words: 2, extracted };
  let fault = false;
  write({ ready: true });
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, order: { file } } = JSON.parse(line);
    const answer = (packed, body) => write({ id, packed, isLast: file === 'last' }, body);
    if (fault) process.exit(1);
    fault = file === 'leaves a fault';
    if (file === 'hangs') for (;;);
    if (file === 'fills the heap') for (const all = []; ; ) all.push(Array(1e5).fill({}));
    if (file === 'breaks') throw new Error('a bug');
    if (file === 'environment') answer({ kind: 'wordless', reader: JSON.stringify(process.env) });
    else if (file === 'pid') answer({ kind: 'wordless', reader: String(process.pid) });
    else if (file === 'large') answer(content, '0123456789');
    else if (file === 'too little') answer(content, '012345678');
    else if (file === 'wrong shape') answer({ kind: 'content', size: -1 });
    else if (file === 'wrong code') answer({ kind: 'refused', trouble: { code: 'X', message: 'x', hint: 'x' } });
    else if (file === 'no JSON') process.stdout.write('{{{\\n');
    else if (file === 'endless line') process.stdout.write('x'.repeat(200_000));
    else if (file === 'says too much') process.stdout.write('{"bytes":1000000000}\\n');
    else if (file === 'answers twice') { answer({ kind: 'stale' }); answer({ kind: 'stale' }); }
    else answer({ kind: 'wordless', reader: file });
    if (file === 'last') process.stdout.write('', () => process.exit(0));
  }`;

function processes(clock: FakeClock, program = PROGRAM, log: Logger = silentLogger) {
  const path = join(temporaryDirectory(), 'process.mjs');
  writeFileSync(path, program);
  const documents = new DocumentProcesses(pathToFileURL(path), clock, log);
  onTestFinished(() => documents.close());
  const read = (file: string) => documents.read({ file, rules: DIALECTS.standard.content } as DocumentOrder);
  return { read, documents, path };
}

const refused = (code: string, why: string) => ({
  kind: 'refused',
  trouble: { code, message: expect.stringContaining(why) },
});
const fine = { kind: 'wordless', reader: 'fine' };

it('a document whose reading never ends costs that item a minute, and the next one is read', async () => {
  const clock = new FakeClock();
  const { read } = processes(clock);
  expect(await read('fine')).toEqual(fine);
  const [hangs, next] = [read('hangs'), read('fine')];
  let found: unknown;
  void hangs.then((packed) => {
    found = packed;
  });
  await clock.advance(59_000);
  expect(found).toBeUndefined();
  await clock.advance(1_500);
  expect(await hangs).toMatchObject(refused('DOCUMENT_TOO_LARGE', 'longer than 60 s'));
  expect(await next).toEqual(fine);
});

it('a document that fills the heap of its process is refused, and the next one is read', async () => {
  const { read } = processes(new FakeClock());
  expect(await read('fills the heap')).toMatchObject(refused('DOCUMENT_TOO_LARGE', 'too much memory'));
  expect(await read('fine')).toEqual(fine);
}, 60_000);

it.each(['breaks', 'wrong shape', 'wrong code', 'too little', 'no JSON', 'endless line', 'says too much'])(
  'a document that makes its process answer wrongly or not at all is refused (%s), and the next one is read',
  async (file) => {
    const { read } = processes(new FakeClock());
    expect(await read(file)).toMatchObject(refused('DOCUMENT_BROKEN', 'the program that reads it failed'));
    expect(await read('fine')).toEqual(fine);
  },
);

it('an answer that nobody asked for is no answer to the next document', async () => {
  const { read } = processes(new FakeClock());
  await read('answers twice');
  expect(await read('fine')).toEqual(fine);
});

it('what a document left in its process is not the fault of the next one', async () => {
  const { read } = processes(new FakeClock());
  await read('leaves a fault');
  expect(await read('fine')).toEqual(fine);
});

it('one process reads many documents, and a new one follows the last answer of another', async () => {
  const { read } = processes(new FakeClock());
  expect(await read('pid')).toEqual(await read('pid'));
  const first = await read('pid');
  expect(await read('last')).toEqual({ kind: 'wordless', reader: 'last' });
  expect(await read('pid')).not.toEqual(first);
});

it('the environment of the daemon, which may hold passwords, does not reach a process', async () => {
  process.env.PEERSYNC_TEST_PASSWORD = 'geheim';
  onTestFinished(() => void delete process.env.PEERSYNC_TEST_PASSWORD);
  const { read } = processes(new FakeClock());
  const found = await read('environment');
  expect(JSON.stringify(found)).not.toContain('geheim');
  expect(JSON.stringify(found)).not.toContain('HOME');
});

it('a program that does not start is the fault of no document: each one waits until it does', async () => {
  const clock = new FakeClock();
  const said: string[] = [];
  const log = { ...silentLogger, error: (_: object, message: string) => void said.push(message) };
  const { path, read } = processes(clock, 'process.exit(7);', log);
  const reading = read('fine');
  await until(() => said.length > 0, 'the failure is said');
  expect(said[0]).toContain('does not start: it ended with code 7');
  writeFileSync(path, PROGRAM);
  await until(async () => {
    await clock.advance(1_000);
    return (await Promise.race([reading, 'waits'])) !== 'waits';
  }, 'the document is read');
  expect(await reading).toEqual(fine);
});

it('a stop does not wait for documents', async () => {
  const { documents, read } = processes(new FakeClock());
  const waiting = [read('hangs'), read('hangs'), read('fine')];
  await documents.close();
  expect(await Promise.all(waiting)).toEqual(Array(3).fill({ kind: 'stale' }));
});

it('of small documents that become large texts a batch takes as many as fill it, and leaves the others', async () => {
  const clock = new FakeClock();
  const { documents } = processes(clock);
  const packers = { clock, pack: async () => [], packDocument: documents.read.bind(documents) };
  const large = { file: 'large', version: { encoding: 'document', size: 1 } as Version };
  const rules = DIALECTS.standard.content;
  const packed = await packAll(packers, { rules, files: Array(9).fill(large), maxBytes: 35 });
  const taken = packed.filter((each) => each !== undefined);
  expect(packed.indexOf(undefined)).toBe(taken.length);
  expect(taken.length).toBe(4);
});
