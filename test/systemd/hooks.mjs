// Changes the daemon from within for tests, without hooks in the product. Loaded by
// NODE_OPTIONS=--import.
//
// HOLD_START=FILE: it does not become ready before FILE is there. AT_SIGUSR2=deaf: the queue starts
// nothing any more. =spin: the event loop is blocked for good. =probe: tries to write to each path
// of PROBE (with ':' between), and leaves what came of it in PROBE_RESULT.
import { existsSync, writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const { AT_SIGUSR2, DIST, HOLD_START, PROBE = '', PROBE_RESULT = '' } = process.env;

if (isMainThread && process.argv.includes('run')) {
  const { Daemon } = await import(`${DIST}/chunks/daemon.js`);
  const start = Daemon.prototype.start;
  let queue;
  Daemon.prototype.start = async function held() {
    queue = this.parts.queue;
    if (HOLD_START !== undefined) process.stdout.write('held back\n');
    while (HOLD_START !== undefined && !existsSync(HOLD_START))
      await new Promise((resolve) => setTimeout(resolve, 50));
    await start.call(this);
  };
  const acts = {
    deaf: () => {
      queue.ready = () => new Promise(() => {});
    },
    spin: () => {
      for (;;);
    },
    probe: () => {
      const results = PROBE.split(':').map((path) => [path, tried(path)]);
      writeFileSync(PROBE_RESULT, JSON.stringify(Object.fromEntries(results)));
    },
  };
  if (AT_SIGUSR2 !== undefined) process.on('SIGUSR2', acts[AT_SIGUSR2]);
}

function tried(path) {
  try {
    writeFileSync(path, 'x');
    return 'written';
  } catch (error) {
    return error.code;
  }
}
