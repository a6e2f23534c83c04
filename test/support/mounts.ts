import { execFileSync } from 'node:child_process';
import { afterwards } from './afterwards.js';

export const run = (...[command = '', ...options]: readonly string[]) =>
  execFileSync(command, options, { stdio: 'ignore' });

/** Whether this user may mount file systems. */
export const canMount = (() => {
  try {
    run('unshare', '--mount', 'mount', '-t', 'tmpfs', 'x', '/mnt');
    return true;
  } catch {
    return false;
  }
})();

/**
 * Mounts a file system of its own, or another directory, on one; taken away at the end unless that
 * was done.
 */
export function mount(path: string, ...options: readonly string[]): () => void {
  run(
    'mount',
    ...(options.length > 0 ? options : ['-t', 'tmpfs', '-o', 'size=1m', 'peersync-test']),
    path,
  );
  let isMounted = true;
  // At once, also while the watcher, which looks at its own times, has a directory of it open.
  const unmount = () => {
    if (isMounted) run('umount', '--lazy', path);
    isMounted = false;
  };
  afterwards('test', unmount);
  return unmount;
}
