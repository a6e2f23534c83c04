import { readdirSync, writeFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, vi } from 'vitest';
import { WorkThread } from '../../src/lib/work-thread.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';

it('a thread is known to owe the answers that it does not give', async () => {
  const program = join(temporaryDirectory(), 'silent.mjs');
  writeFileSync(
    program,
    `import { parentPort } from 'node:worker_threads';
     parentPort.on('message', ({ order }) => { if (order !== 'be silent') parentPort.postMessage(order); });`,
  );
  const thread = new WorkThread(pathToFileURL(program));
  expect(thread.waiting).toBe(0);
  const answer = thread.ask('any', 'hello');
  expect(thread.waiting).toBe(1);
  expect(await answer).toBe('hello');
  expect(thread.waiting).toBe(0);
  const never = thread.ask('any', 'be silent');
  const ended = expect(never).rejects.toThrow('the thread ended');
  expect(thread.waiting).toBe(1);
  await thread.close();
  await ended;
  expect(thread.waiting).toBe(0);
});

it('a thread that has nothing to do ends after half a minute, and the next order starts another', async () => {
  const program = join(temporaryDirectory(), 'counting.mjs');
  writeFileSync(
    program,
    `import { parentPort } from 'node:worker_threads';
     let count = 0;
     parentPort.on('message', () => parentPort.postMessage((count += 1)));`,
  );
  const thread = new WorkThread(pathToFileURL(program));
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    expect(await thread.ask('any', '')).toBe(1);
    vi.advanceTimersByTime(29_000);
    expect(await thread.ask('any', '')).toBe(2);
    vi.advanceTimersByTime(29_000);
    expect(await thread.ask('any', '')).toBe(3);
    vi.advanceTimersByTime(31_000);
    expect(await thread.ask('any', '')).toBe(1);
  } finally {
    vi.useRealTimers();
    await thread.close();
  }
});

it.runIf(process.platform === 'linux')('a thread lets the event loop go first', async () => {
  const program = await compiledProgram(resolve(import.meta.dirname, '../../src/file-thread.ts'));
  const before = new Set(readdirSync('/proc/self/task'));
  const thread = new WorkThread(pathToFileURL(program));
  await thread.ask('read', []);
  const others = readdirSync('/proc/self/task').filter((task) => !before.has(task));
  expect(others.map((task) => getPriority(Number(task)))).toContain(getPriority(process.pid) + 5);
  await thread.close();
});
