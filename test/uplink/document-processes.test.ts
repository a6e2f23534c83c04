import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import type { PageProgress } from '../../src/content/readers/document-reader.js';
import type { Logger } from '../../src/lib/logger.js';
import { silentLogger } from '../../src/lib/logger.js';
import { nextTurn } from '../../src/lib/slices.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import { DocumentProcesses, usualConcurrency } from '../../src/uplink/document-processes.js';
import type { DocumentOrder } from '../../src/uplink/documents.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

/** A program that does what the name of its document says. */
const PROGRAM = `
  import { spawn } from 'node:child_process';
  import { appendFileSync, existsSync } from 'node:fs';
  import { createInterface } from 'node:readline';
  import { getHeapStatistics } from 'node:v8';
  const write = (header, body = '') =>
    process.stdout.write(JSON.stringify({ ...header, bytes: body.length }) + '\\n' + body);
  const extracted = { reader: 'PDF', words: 2 };
  let fault = false;
  write({ ready: true });
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, order: { file } } = JSON.parse(line);
    const answer = (result, body) => write({ id, result, isLast: file.startsWith('last') }, body);
    if (fault) process.exit(1);
    fault = file === 'leaves a fault';
    const begun = process.argv[1] + '.' + file;
    const isFirst = !existsSync(begun);
    appendFileSync(begun, process.pid + '\\n');
    if (file === 'hangs') for (;;);
    if (file.startsWith('waits for')) {
      const other = process.argv[1] + '.waits for ' + (file.endsWith('a') ? 'b' : 'a');
      while (!existsSync(other)) await new Promise((done) => setTimeout(done, 5));
    }
    if (file === 'killed always' || (file === 'killed once' && isFirst)) process.kill(process.pid, 'SIGKILL');
    if (file.startsWith('SIG')) process.kill(process.pid, file);
    if (file === 'shares its pipes') {
      const child = spawn('sleep', ['60'], { stdio: ['ignore', 'inherit', 'inherit'], detached: true });
      appendFileSync(begun + '.child', String(child.pid));
      process.exit(1);
    }
    if (file === 'fills the heap') for (const all = []; ; ) all.push(Array(1e5).fill({}));
    if (file === 'breaks') throw new Error('a bug');
    if (file === 'reports pages')
      for (let page = 1; page <= 3; page += 1) write({ id, progress: { page, pages: 3 } });
    if (file === 'reports a page and hangs') {
      // Its limit begins anew with the page.
      write({ id, progress: { page: 1, pages: 3 } });
      for (;;);
    }
    if (file === 'leaves a program' || file === 'a program and a crash') {
      const child = spawn('sleep', ['600'], { stdio: 'ignore' });
      appendFileSync(begun + '.child', String(child.pid));
      if (file === 'a program and a crash') process.exit(1);
    }
    if (file === 'environment') answer({ kind: 'wordless', reader: JSON.stringify(process.env) });
    else if (file === 'heap') answer({ kind: 'wordless', reader: String(getHeapStatistics().heap_size_limit) });
    else if (file === 'pid' || file === 'last, and loops') answer({ kind: 'wordless', reader: String(process.pid) });
    else if (file === 'text') answer({ kind: 'extracted', words: 2, extracted }, 'a page');
    else if (file === 'no page') answer({ kind: 'extracted', words: 2 });
    else if (file === 'wrong shape') answer({ kind: 'extracted', words: -1 });
    else if (file === 'wrong code') answer({ kind: 'refused', trouble: { code: 'X', message: 'x', hint: 'x' } });
    else if (file === 'no JSON') process.stdout.write('{{{\\n');
    else if (file === 'endless line') process.stdout.write('x'.repeat(200_000));
    else if (file === 'says too much') process.stdout.write('{"bytes":1000000000}\\n');
    else if (file === 'answers twice') { answer({ kind: 'stale' }); answer({ kind: 'stale' }); }
    else answer({ kind: 'wordless', reader: file });
    // A pipe is written synchronously, so the answer has left.
    if (file === 'leaves a loop' || file === 'last, and loops') for (;;);
  }`;

function processes(
  clock: FakeClock,
  program = PROGRAM,
  log: Logger = silentLogger,
  directory = join(temporaryDirectory(), 'reading'),
) {
  const path = join(temporaryDirectory(), 'process.mjs');
  writeFileSync(path, program);
  const documents = new DocumentProcesses(
    pathToFileURL(path),
    directory,
    join(directory, '../extracts'),
    clock,
    log,
  );
  onTestFinished(() => documents.close());
  const read = (file: string, onProgress?: (progress: PageProgress) => void) =>
    documents.read(
      { file, rules: DIALECTS.standard.content, wanted: 'text' } as DocumentOrder,
      onProgress,
    );
  const begunFile = (file: string) => `${path}.${file}`;
  /** The processes that began to read this document, the earliest first. */
  const pidsOf = (file: string) =>
    existsSync(begunFile(file))
      ? readFileSync(begunFile(file), 'utf8').trim().split('\n').map(Number)
      : [];
  return { begunFile, documents, path, pidsOf, read };
}

const refused = (code: string, why: string) => ({
  kind: 'refused',
  failure: { code, message: expect.stringContaining(why) },
  isMomentary: true,
});

it('files that a process of an earlier daemon left are removed', async () => {
  const directory = join(temporaryDirectory(), 'reading');
  mkdirSync(join(directory, '7'), { recursive: true });
  const { documents, read } = processes(new FakeClock(), PROGRAM, silentLogger, directory);
  await documents.removeLeftovers();
  await read('fine');
  expect(readdirSync(directory)).toEqual(['1']);
  await read('SIGUSR2');
  await until(() => readdirSync(directory).length < 2, 'the files of the process are removed');
});

it('the text of a document is answered as a page', async () => {
  const { read } = processes(new FakeClock());
  expect(await read('text')).toEqual({
    kind: 'extracted',
    words: 2,
    page: { bytes: Buffer.from('a page'), extracted: { reader: 'PDF', words: 2 } },
  });
});

it.each(['\u2028', '\u2029', '"\\\n'])('a document with %j in its name is read', async (within) => {
  const { read } = processes(new FakeClock());
  expect(await read(`a${within}b`)).toEqual({ kind: 'wordless', reader: `a${within}b` });
});

const fine = { kind: 'wordless', reader: 'fine' };

/** A logger that keeps the messages of errors. */
function listening() {
  const logged: string[] = [];
  const log = { ...silentLogger, error: (_: object, message: string) => void logged.push(message) };
  return { log, logged };
}

function runs(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 0);
  } catch {
    return false;
  }
}

it('a document whose reading never ends is refused after ten minutes, and the next one is read', async () => {
  const clock = new FakeClock();
  const { pidsOf, read } = processes(clock);
  const hangs = read('hangs');
  let found: unknown;
  void hangs.then((packed) => {
    found = packed;
  });
  await until(() => pidsOf('hangs').length === 1, 'it is read');
  await clock.advance(599_000);
  expect(found).toBeUndefined();
  await clock.advance(1_500);
  expect(await hangs).toMatchObject(refused('DOCUMENT_TOO_LARGE', 'longer than 10 min'));
  expect(await read('fine')).toEqual(fine);
});

it('the pages of a document are reported while it is read', async () => {
  const { read } = processes(new FakeClock());
  const pages: PageProgress[] = [];
  expect(await read('reports pages', (page) => void pages.push(page))).toMatchObject({
    reader: 'reports pages',
  });
  expect(pages).toEqual([1, 2, 3].map((page) => ({ page, pages: 3 })));
});

it('a document with pages is refused when none was read for ten minutes', async () => {
  const clock = new FakeClock();
  const { read } = processes(clock);
  let pages = 0;
  const hangs = read('reports a page and hangs', () => {
    pages += 1;
  });
  await until(() => pages === 1, 'a page is reported');
  await clock.advance(599_000);
  let isOver = false;
  void hangs.then(() => {
    isOver = true;
  });
  await nextTurn();
  expect(isOver).toBe(false);
  await clock.advance(2_000);
  expect(await hangs).toMatchObject(refused('DOCUMENT_TOO_LARGE', 'longer than 10 min'));
});

const childOf = (begun: string) => Number(readFileSync(`${begun}.child`, 'utf8'));

it('programs that a process started end with it', async () => {
  const { begunFile, documents, read } = processes(new FakeClock());
  await read('leaves a program');
  const left = childOf(begunFile('leaves a program'));
  expect(runs(left)).toBe(true);
  await read('a program and a crash');
  const ofCrash = childOf(begunFile('a program and a crash'));
  await until(() => !runs(ofCrash), 'the program of the process that crashed has ended');
  await documents.close();
  await until(() => !runs(left), 'the program has ended');
});

it('a loop that a document left in its process is not blamed on the next document', async () => {
  const clock = new FakeClock();
  const { pidsOf, read } = processes(clock);
  await read('leaves a loop');
  const next = read('hangs');
  await clock.advance(601_000);
  await until(() => pidsOf('hangs').length === 1, 'it is read by a new process');
  expect(pidsOf('hangs')).not.toEqual(pidsOf('leaves a loop'));
  await clock.advance(601_000);
  expect(await next).toMatchObject(refused('DOCUMENT_TOO_LARGE', 'longer than 10 min'));
});

it.each([
  ['SIGUSR2', 'too much memory'],
  ['SIGVTALRM', '60 s of processor time'],
])('a document whose process ends itself by %s is refused: %s', async (signal, why) => {
  const { pidsOf, read } = processes(new FakeClock());
  expect(await read(signal)).toMatchObject(refused('DOCUMENT_TOO_LARGE', why));
  expect(pidsOf(signal)).toHaveLength(1);
});

it('a document whose process the system kills is read once more, and refused after a second kill', async () => {
  const { pidsOf, read } = processes(new FakeClock());
  expect(await read('killed once')).toEqual({ kind: 'wordless', reader: 'killed once' });
  expect(await read('killed always')).toMatchObject(
    refused('DOCUMENT_TOO_LARGE', 'the system killed'),
  );
  // The first process had read another document; two new ones follow.
  expect(pidsOf('killed always')).toHaveLength(3);
});

it('a process that accepts no further order ends before the next one starts', async () => {
  const { pidsOf, read } = processes(new FakeClock());
  await read('last, and loops');
  expect(runs(pidsOf('last, and loops')[0])).toBe(false);
  expect(await read('fine')).toEqual(fine);
});

it('a process counts as ended even if another program holds its pipes open', async () => {
  const { begunFile, documents, read } = processes(new FakeClock());
  expect(await read('shares its pipes')).toMatchObject(
    refused('DOCUMENT_BROKEN', 'ended with code 1'),
  );
  const other = Number(readFileSync(`${begunFile('shares its pipes')}.child`, 'utf8'));
  onTestFinished(() => void process.kill(other, 'SIGKILL'));
  expect(runs(other)).toBe(true);
  expect(await read('fine')).toEqual(fine);
  await documents.close();
});

it('the heap of a process is bounded', async () => {
  const { read } = processes(new FakeClock());
  const { reader } = (await read('heap')) as { readonly reader: string };
  const bytes = Number(reader);
  expect(bytes).toBeGreaterThan(200 * 2 ** 20);
  expect(bytes).toBeLessThan(300 * 2 ** 20);
});

it('a process is ended when it was idle for half a minute', async () => {
  const clock = new FakeClock();
  const { pidsOf, read } = processes(clock);
  await read('fine');
  const [pid] = pidsOf('fine');
  await clock.advance(29_000);
  expect(runs(pid)).toBe(true);
  await clock.advance(2_000);
  await until(() => !runs(pid), 'it is gone');
  expect(await read('fine')).toEqual(fine);
});

it('a document that fills the heap of its process is refused, and the next one is read', async () => {
  const { read } = processes(new FakeClock());
  expect(await read('fills the heap')).toMatchObject(
    refused('DOCUMENT_TOO_LARGE', 'too much memory'),
  );
  expect(await read('fine')).toEqual(fine);
}, 60_000);

it.each([
  'breaks',
  'wrong shape',
  'wrong code',
  'no page',
  'no JSON',
  'endless line',
  'says too much',
])(
  'a document whose process gives an invalid answer or none (%s) is refused, and the next one is read',
  async (file) => {
    const { read } = processes(new FakeClock());
    expect(await read(file)).toMatchObject(
      refused('DOCUMENT_BROKEN', 'the program that reads it failed'),
    );
    expect(await read('fine')).toEqual(fine);
  },
);

it('an unrequested answer is not used for the next document', async () => {
  const { read } = processes(new FakeClock());
  await read('answers twice');
  expect(await read('fine')).toEqual(fine);
});

it('damage that a document did to its process is not blamed on the next document', async () => {
  const { read } = processes(new FakeClock());
  await read('leaves a fault');
  expect(await read('fine')).toEqual(fine);
});

it('one process reads many documents, and is replaced when it accepts no further order', async () => {
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
  const found = (await read('environment')) as { readonly kind: string; readonly reader: string };
  expect(found.kind).toBe('wordless');
  const names = Object.keys(JSON.parse(found.reader));
  expect(names).toContain('MALLOC_ARENA_MAX');
  const usual = ['LANG', 'MALLOC_ARENA_MAX', 'PATH', 'TZ'];
  expect(names.filter((name) => !usual.includes(name))).toEqual([]);
});

it('no document is blamed for a program that does not start: all wait until it does', async () => {
  const clock = new FakeClock();
  const { log, logged } = listening();
  const { documents, path, read } = processes(
    clock,
    'throw new TypeError("no such library");',
    log,
  );
  const reading = read('fine');
  await until(() => logged.length > 0, 'the failure is logged');
  const why = 'does not start: it ended with code 1 (TypeError: no such library).';
  expect(logged[0]).toContain(why);
  expect(documents.failure).toMatchObject({
    code: 'DOCUMENTS_UNREADABLE',
    message: expect.stringContaining(why),
  });
  writeFileSync(path, PROGRAM);
  await until(async () => {
    await clock.advance(1_000);
    return (await Promise.race([reading, 'waits'])) !== 'waits';
  }, 'the document is read');
  expect(await reading).toEqual(fine);
  expect(documents.failure).toBeUndefined();
});

it('a program that is not ready after half a minute is ended, and started again', async () => {
  const clock = new FakeClock();
  const { log, logged } = listening();
  const { documents, read } = processes(clock, 'setInterval(() => {}, 1000);', log);
  const reading = read('fine');
  await clock.advance(29_000);
  expect(logged).toEqual([]);
  await clock.advance(2_000);
  await until(() => logged.length > 0, 'the failure is logged');
  expect(logged[0]).toContain('it was not ready after 30 s');
  await documents.close();
  expect(await reading).toEqual({ kind: 'stale' });
});

it('no document is blamed for a system that cannot start a process', async () => {
  const clock = new FakeClock();
  const { log, logged } = listening();
  const { read } = processes(clock, PROGRAM, log);
  const { execPath } = process;
  onTestFinished(() => {
    process.execPath = execPath;
  });
  // `spawn` itself throws if a part of the path is a file.
  process.execPath = `${execPath}/node`;
  const reading = read('fine');
  await until(() => logged.length > 0, 'the failure is logged');
  expect(logged[0]).toContain('does not start: spawn ENOTDIR');
  process.execPath = execPath;
  await clock.advance(1_000);
  expect(await reading).toEqual(fine);
});

it('a stop does not wait for documents', async () => {
  const { documents, read } = processes(new FakeClock());
  const waiting = [read('hangs'), read('hangs'), read('fine')];
  await documents.close();
  expect(await Promise.all(waiting)).toEqual(Array(3).fill({ kind: 'stale' }));
});

it('documents are read at the same time by processes of their own, which serve the next ones', async () => {
  const { begunFile, pidsOf, read } = processes(new FakeClock());
  const pair = [read('waits for b'), read('waits for a')];
  expect(await Promise.all(pair)).toEqual([
    { kind: 'wordless', reader: 'waits for b' },
    { kind: 'wordless', reader: 'waits for a' },
  ]);
  const pids = [...pidsOf('waits for a'), ...pidsOf('waits for b')];
  expect(new Set(pids).size).toBe(2);
  expect(existsSync(begunFile('fine'))).toBe(false);
  await read('fine');
  expect(pids).toContain(pidsOf('fine')[0]);
});

it.each([
  [1, 64, 1],
  [2, 64, 1],
  [8, 64, 7],
  [16, 2, 2],
  [16, 0.5, 1],
])(
  'with %i cores and %d GiB of memory, %i documents are read at the same time',
  (cores, gib, count) => {
    expect(usualConcurrency(cores, gib * 2 ** 30)).toBe(count);
  },
);

it('a stop ends all processes', async () => {
  const { documents, pidsOf, read } = processes(new FakeClock());
  const pair = [read('hangs'), read('leaves a loop'), read('hangs')];
  await until(() => pidsOf('hangs').length === 2, 'they are read');
  await pair[1];
  await documents.close();
  for (const pid of [...pidsOf('hangs'), ...pidsOf('leaves a loop')]) expect(runs(pid)).toBe(false);
});
