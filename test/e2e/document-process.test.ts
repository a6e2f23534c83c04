import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { NO_PROGRAMS } from '../../src/content/helpers/programs.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { type Frame, FrameReader } from '../../src/lib/pipe-messages.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import type { DocumentRequest } from '../../src/uplink/document-answer.js';
import { DocumentProcesses } from '../../src/uplink/document-processes.js';
import type { DocumentOrder } from '../../src/uplink/documents.js';
import { slowPdf } from '../content/documents.js';
import { afterwards } from '../support/afterwards.js';
import { Running } from '../support/cli.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const PROGRAM = resolve(import.meta.dirname, '../../dist/document-process.js');

/**
 * Starts the process that reads documents, as it is shipped, from a program that waits; the first
 * order makes it run `loop`.
 */
async function looping(loop: string) {
  const directory = temporaryDirectory();
  const [preload, parent] = [join(directory, 'preload.mjs'), join(directory, 'parent.mjs')];
  writeFileSync(
    preload,
    `import { isMainThread } from 'node:worker_threads';
     import { writeSync } from 'node:fs';
     if (isMainThread) JSON.parse = () => { writeSync(1, 'loops'); const all = []; for (;;) { ${loop} } };`,
  );
  writeFileSync(
    parent,
    `import { spawn } from 'node:child_process';
     const args = ['--import', ${JSON.stringify(preload)}, ${JSON.stringify(PROGRAM)}, String(process.pid)];
     const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
     console.log('pid ' + child.pid);
     child.stdout.on('data', (text) => console.log(String(text)));
     child.stdout.once('data', () => child.stdin.write('{}\\n'));
     child.on('exit', (code, signal) => console.log('ended by ' + signal));
     setInterval(() => {}, 1000);`,
  );
  const starter = new Running([], { program: parent });
  await starter.says('loops');
  const pid = Number(/pid (\d+)/.exec(starter.stdout)?.[1]);
  afterwards('test', () => {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It is gone, as it should be.
    }
  });
  return { pid, starter };
}

it.skipIf(!existsSync('/proc'))(
  'ends when its daemon was killed, even in an endless loop',
  async () => {
    const { pid, starter } = await looping('');
    // A stop of the service reaches it, and is no reason to end before the daemon says so.
    process.kill(pid, 'SIGTERM');
    await new Promise((done) => setTimeout(done, 100));
    expect(runs(pid)).toBe(true);
    await starter.kill('SIGKILL');
    await until(() => !runs(pid), 'the process is gone', 20_000);
  },
);

it.skipIf(!existsSync('/proc'))(
  'ends itself when it takes too much memory beside its heap',
  async () => {
    const { pid, starter } = await looping('all.push(Buffer.alloc(1_000_000, 1))');
    let most = 0;
    while (runs(pid) && !starter.stdout.includes('ended by')) {
      most = Math.max(most, mostMemory(pid));
      await new Promise((done) => setTimeout(done, 2));
    }
    // V8 ends a process by others, and so does the system when the machine lacks memory.
    await starter.says('ended by SIGUSR2');
    console.log(`most memory ${Math.round(most)} MB`);
    expect(most).toBeGreaterThan(100);
    expect(most).toBeLessThan(700);
  },
);

it('ends at once if its parent is not the expected daemon', async () => {
  const child = spawn(process.execPath, [PROGRAM, '1'], { stdio: 'ignore' });
  expect(await new Promise((done) => child.on('exit', done))).toBe(1);
});

it('ends without an answer when a program was ended from outside', async () => {
  const args = ['-c', 'kill -KILL $$ # {file}'];
  const command = { program: '/bin/sh', name: 'sh', args, output: 'text' } as const;
  const programs = { commands: { '.rtf': { ...command, isConfigured: true as const } } };
  expect(await answerTo({ order: { ...orderOf(), programs } })).toBe('SIGKILL');
});

/** An order to read a small document that is there. */
function orderOf(
  name = 'a.rtf',
  content: string | Uint8Array = '{\\rtf1 hello world}',
): DocumentOrder {
  const file = join(temporaryDirectory(), name);
  writeFileSync(file, content);
  const { ctimeMs, ino, mtimeMs, size } = statSync(file);
  const sha256 = hash('sha256', readFileSync(file), 'hex');
  const version = { size, mtimeMs, ctimeMs, ino, sha256, encoding: 'document' as const };
  return {
    file,
    version,
    rules: DIALECTS.standard.content,
    wanted: 'text',
    programs: NO_PROGRAMS,
  };
}

/**
 * Sends one request to the process as it is shipped. @returns its answer, or the signal by which it
 * ended
 */
async function answerTo(
  request: Partial<DocumentRequest>,
  program = PROGRAM,
): Promise<Frame | NodeJS.Signals> {
  const child = spawn(process.execPath, [program, `${process.pid}`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const frames = new FrameReader(1_000_000);
  return await new Promise((resolve, reject) => {
    child.on('exit', (_, signal) => resolve(signal ?? 'SIGUNUSED'));
    child.stdout.on('data', (bytes: Buffer) => {
      try {
        for (const frame of frames.take(bytes)) {
          const whole = {
            id: 0,
            mostBytes: 1_000,
            mostCpuMs: 60_000,
            order: orderOf(),
            directory: temporaryDirectory(),
            pages: temporaryDirectory(),
            ...request,
          };
          if (JSON.stringify(frame.header).includes('ready'))
            child.stdin.write(`${JSON.stringify(whole)}\n`);
          else resolve(frame);
        }
      } catch (error) {
        reject(error);
      }
    });
  });
}

/** A program that runs some code before the one that is shipped. */
function preceded(code: string): string {
  const program = join(temporaryDirectory(), 'program.mjs');
  writeFileSync(program, `${code}\nawait import(${JSON.stringify(PROGRAM)});`);
  return program;
}

it('answers with the text of a document', async () => {
  const answer = await answerTo({});
  expect(answer).toMatchObject({ header: { id: 0, isLast: false, result: { kind: 'extracted' } } });
});

it('refuses a document whose text is too large', async () => {
  const failure = { code: 'DOCUMENT_TOO_LARGE', message: expect.stringContaining('too much text') };
  const answer = await answerTo({ mostBytes: 10 });
  expect(answer).toMatchObject({ header: { result: { kind: 'refused', failure } } });
});

it('ends itself when a document takes too much processor time', async () => {
  const loops = `
    import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    const { openSync } = fs;
    fs.openSync = (path, ...rest) => {
      if (String(path).endsWith('loops.rtf')) for (;;);
      return openSync(path, ...rest);
    };
    syncBuiltinESMExports();`;
  const order = orderOf('loops.rtf');
  expect(await answerTo({ mostCpuMs: 500, order }, preceded(loops))).toBe('SIGVTALRM');
});

it('has the processor time for each page of a PDF anew', async () => {
  const order = orderOf('slow.pdf', slowPdf(120, 100_000));
  expect(await answerTo({ mostCpuMs: 2_000, order })).toMatchObject({ header: { id: 0 } });
});

it('keeps what readers write to the console out of its answers', async () => {
  const noise = `
    const { parse } = JSON;
    JSON.parse = (...words) => {
      for (const level of ['log', 'info', 'debug', 'warn', 'error']) console[level]('a reader says');
      return parse(...words);
    };`;
  const answer = await answerTo({}, preceded(noise));
  expect(answer).toMatchObject({ header: { result: { kind: 'extracted' } } });
});

/**
 * Reads two documents. @param code runs first in each process. @returns the ids of the processes
 * that started
 */
async function pidsOfTwo(code: string): Promise<readonly number[]> {
  const pids = join(temporaryDirectory(), 'pids');
  const start = `
    import { appendFileSync } from 'node:fs';
    import { isMainThread } from 'node:worker_threads';
    if (isMainThread) appendFileSync(${JSON.stringify(pids)}, process.pid + '\\n');`;
  const program = pathToFileURL(preceded(`${start}${code}`));
  const documents = new DocumentProcesses(
    program,
    join(temporaryDirectory(), 'reading'),
    join(temporaryDirectory(), 'extracts'),
    systemClock,
    silentLogger,
  );
  onTestFinished(() => documents.close());
  for (let i = 0; i < 2; i += 1)
    expect(await documents.read(orderOf())).toMatchObject({ kind: 'extracted', words: 2 });
  return readFileSync(pids, 'utf8').trim().split('\n').map(Number);
}

it.skipIf(!existsSync('/proc'))(
  'is the first process that the system ends if memory runs out',
  async () => {
    const [pid] = await pidsOfTwo('');
    expect(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8').trim()).toBe('1000');
  },
);

it('reads the next document in the same process, and in a new one after a document that left much memory', async () => {
  expect(await pidsOfTwo('')).toHaveLength(1);
  // It is not what a document leaves, but as much.
  const [first, second] = await pidsOfTwo('globalThis.left = Buffer.alloc(130 * 2 ** 20, 1);');
  expect(second).not.toBe(first);
  expect(second).toBeGreaterThan(0);
});

/**
 * Whether a process is there and has not ended; one that ended stays in the table until somebody
 * asks for its end.
 */
function runs(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** The most memory that a process has taken, in MB; 0 once it is gone. */
function mostMemory(pid: number): number {
  try {
    return (
      Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
    );
  } catch {
    return 0;
  }
}
