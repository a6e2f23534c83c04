import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { WorkThread } from '../../src/lib/work-thread.js';
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
