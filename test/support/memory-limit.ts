import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemCode } from '../../src/lib/errors.js';
import { afterwards } from './afterwards.js';
import { until } from './wait.js';

/**
 * Mount points of versions 1 and 2 of the control groups, with the names of their files.
 */
const HIERARCHIES = [
  { root: '/sys/fs/cgroup/memory', limit: 'memory.limit_in_bytes', events: 'memory.oom_control' },
  { root: '/sys/fs/cgroup', limit: 'memory.max', events: 'memory.events' },
] as const;

/** A memory control group, as systemd makes one for `MemoryMax=`. It is removed after the test. */
export class MemoryLimit {
  private constructor(
    private readonly directory: string,
    private readonly events: string,
  ) {}

  /** @returns undefined where this process may not make one */
  static of(bytes: number): MemoryLimit | undefined {
    for (const { root, limit, events } of HIERARCHIES) {
      const directory = join(
        root,
        `peersync-test-${process.pid}-${Math.random().toString(36).slice(2)}`,
      );
      try {
        mkdirSync(directory);
      } catch {
        continue;
      }
      afterwards('test', () => until(() => removed(directory), 'the processes of the group ended'));
      if (!existsSync(join(directory, limit))) continue;
      writeFileSync(join(directory, limit), `${bytes}`);
      return new MemoryLimit(directory, events);
    }
    return undefined;
  }

  /** Puts a process into it, with all that it starts from now on. */
  take(pid: number): void {
    writeFileSync(join(this.directory, 'cgroup.procs'), `${pid}`);
  }

  /** Number of processes that the kernel killed because the group was full. */
  get killed(): number {
    const text = readFileSync(join(this.directory, this.events), 'utf8');
    return Number(/^oom_kill (\d+)$/m.exec(text)?.[1]);
  }
}

/** Removes a group unless processes are in it. */
function removed(directory: string): boolean {
  try {
    rmdirSync(directory);
  } catch (error) {
    if (systemCode(error) === 'EBUSY') return false;
    throw error;
  }
  return true;
}
