import { homedir } from 'node:os';
import { resolve } from 'node:path';

/**
 * Returns the absolute path for a path that a person wrote. `~` and `~/x` are in the home of this
 * user, and other paths are relative to `directory`.
 */
export function writtenPath(path: string, directory = process.cwd()): string {
  const isAtHome = path === '~' || path.startsWith('~/');
  return isAtHome ? resolve(homedir(), `.${path.slice(1)}`) : resolve(directory, path);
}
