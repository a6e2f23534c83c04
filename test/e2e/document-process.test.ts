import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { afterwards } from '../support/afterwards.js';
import { Running } from '../support/cli.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

const PROGRAM = resolve(import.meta.dirname, '../../dist/document-process.js');

/** Starts the process that reads documents, as it is shipped, from a program that waits; the first order makes it run `loop`. */
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

it.skipIf(!existsSync('/proc'))('ends in an endless loop, too, when what started it was killed', async () => {
  const { pid, starter } = await looping('');
  // A stop of the service reaches it, and is no reason to end before the daemon says so.
  process.kill(pid, 'SIGTERM');
  await new Promise((done) => setTimeout(done, 100));
  expect(runs(pid)).toBe(true);
  await starter.kill('SIGKILL');
  await until(() => !runs(pid), 'the process is gone', 20_000);
});

it.skipIf(!existsSync('/proc'))('ends itself when it takes too much memory beside its heap', async () => {
  const { pid, starter } = await looping('all.push(Buffer.alloc(1_000_000, 1))');
  let most = 0;
  while (runs(pid) && !starter.stdout.includes('ended by')) {
    most = Math.max(most, mostMemory(pid));
    await new Promise((done) => setTimeout(done, 2));
  }
  await starter.says('ended by SIGKILL');
  console.log(`most memory ${Math.round(most)} MB`);
  expect(most).toBeGreaterThan(100);
  expect(most).toBeLessThan(700);
});

it('ends at once when another process than the one that it is told started it', async () => {
  const child = spawn(process.execPath, [PROGRAM, '1'], { stdio: 'ignore' });
  expect(await new Promise((done) => child.on('exit', done))).toBe(1);
});

/** Whether a process is there and has not ended; one that ended stays in the table until somebody asks for its end. */
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
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}
