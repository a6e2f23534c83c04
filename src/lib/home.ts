import { homedir } from 'node:os';
import { resolve } from 'node:path';

/**
 * The path that a person wrote, absolute: `~` and `~/x` are in the home of this user, others
 * relative to `directory`.
 */
export function writtenPath(path: string, directory = process.cwd()): string {
  const isAtHome = path === '~' || path.startsWith('~/');
  return isAtHome ? resolve(homedir(), `.${path.slice(1)}`) : resolve(directory, path);
}
