import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { WorkerReaders } from '../../src/fleet/worker-readers.js';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { afterwards } from '../support/afterwards.js';
import { temporaryDirectory } from '../support/temp.js';

const PROGRAM = new URL('file:///nowhere/program.js');

describe('the private directories of workers', () => {
  /** The directory for temporary files, with old directories of workers. */
  const setUp = () => {
    const tmp = temporaryDirectory();
    vi.stubEnv('TMPDIR', tmp);
    afterwards('test', () => void vi.unstubAllEnvs());
    const leave = (name: string, mode: number, fill: (lock: string) => void = () => {}) => {
      const directory = join(tmp, `peersync-worker-${name}`);
      mkdirSync(directory);
      fill(join(directory, 'lock'));
      chmodSync(directory, mode);
      utimesSync(directory, 0, 0);
      return directory;
    };
    const open = async () => {
      const readers = await WorkerReaders.open(PROGRAM, systemClock, silentLogger);
      afterwards('test', async () => {
        await readers.close();
        await readers.remove();
      });
      return readers;
    };
    return { leave, open };
  };

  it('are removed when their worker was killed', async () => {
    const { leave, open } = setUp();
    const starting = leave('starting', 0o700);
    const killed = leave('killed', 0o700, (lock) => writeFileSync(lock, 'of nobody'));
    const { directory } = await open();
    expect([starting, killed, directory].map(existsSync)).toEqual([false, false, true]);
  });

  it('stay if others may write to them, or if their lock is no file, which is not read', async () => {
    const { leave, open } = setUp();
    const shared = leave('shared', 0o777, (lock) => writeFileSync(lock, 'of nobody'));
    const waits = leave('waits', 0o700, (lock) => void execFileSync('mkfifo', [lock]));
    await open();
    expect([shared, waits].map(existsSync)).toEqual([true, true]);
  });
});
