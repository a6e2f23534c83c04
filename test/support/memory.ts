import { readFileSync } from 'node:fs';

/** RSS of a process and of all that it started, in MB. */
export function memoryMb(pid: number): number {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    const own =
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
    return children
      .split(' ')
      .reduce((sum, child) => sum + (child === '' ? 0 : memoryMb(Number(child))), own);
  } catch {
    // It ended meanwhile.
    return 0;
  }
}
