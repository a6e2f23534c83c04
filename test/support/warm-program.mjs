// Runs command lines of peersync one after the other, each as if it had the process for itself.
// Loads the hundred modules of the program once. That takes most of the time of a start.
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';

const CLI = new URL('../../dist/cli.js', import.meta.url);

/** Marks the end of the output of the running command. */
let mark;
let isSettled = false;

process.on('message', async ({ args, cwd, env, mark: itsMark }) => {
  mark = itsMark;
  isSettled = false;
  // From now on the process has nothing to live for but the command.
  process.channel.unref();
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
  process.argv = [process.execPath, fileURLToPath(CLI), ...args];
  // Another URL, another module: it is run from its top each time, and what it imports is loaded
  // already.
  CLI.search = randomUUID();
  await import(CLI.href);
  isSettled = true;
});

const before = process.stdout.listeners('error');

// Here the process of a command would end.
process.on('beforeExit', () => {
  // Node's own code for a program that waits for what can never be.
  const code = isSettled ? (process.exitCode ?? 0) : 13;
  process.exitCode = 0;
  process.chdir('/');
  for (const listener of process.stdout.listeners('error'))
    if (!before.includes(listener)) process.stdout.off('error', listener);
  process.channel.ref();
  process.stdout.write(mark);
  process.stderr.write(`${mark}${code}\n`);
});
