import { readdirSync, writeFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, vi } from 'vitest';
import { WorkThread } from '../../src/lib/work-thread.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';

/** A thread that counts its orders, and does not answer `be silent`. */
function counting(): WorkThread {
  const program = join(temporaryDirectory(), 'counting.mjs');
  writeFileSync(
    program,
    `import { parentPort } from 'node:worker_threads';
     let count = 0;
     parentPort.on('message', ({ order }) => {
       count += 1;
       if (order !== 'be silent') parentPort.postMessage(count);
     });`,
  );
  return new WorkThread(pathToFileURL(program));
}

it('a thread counts the orders that it has not answered', async () => {
  const thread = counting();
  const answer = thread.ask('any', 'hello');
  expect(thread.waiting).toBe(1);
  expect(await answer).toBe(1);
  expect(thread.waiting).toBe(0);
  const ended = expect(thread.ask('any', 'be silent')).rejects.toThrow('the thread ended');
  expect(thread.waiting).toBe(1);
  await thread.close();
  await ended;
  expect(thread.waiting).toBe(0);
});

it('an idle thread ends after half a minute, and the next order starts another', async () => {
  const thread = counting();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    for (const [answer, idleMs] of [
      [1, 29_000],
      [2, 29_000],
      [3, 31_000],
      [1, 0],
    ] as const) {
      expect(await thread.ask('any', '')).toBe(answer);
      vi.advanceTimersByTime(idleMs);
    }
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
