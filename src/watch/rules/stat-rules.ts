import type { FolderConfig } from '../../config/config.js';
import type { FileStat } from '../../lib/file.js';
import type { Failure } from '../../state/entry.js';
import { failures } from './failures.js';

/**
 * Returns why a folder skips a file with this stat; undefined if it does not. The answer must
 * depend on the stat and the configuration alone: a directory that did not change since the last
 * scan is not compared again (`Scanner.#visit`), so a rule that depends on the time of day would
 * not be applied anew. The reconciler asks this before it reads the file.
 */
export function failureOfStat(
  { size }: FileStat,
  { maxFileSize }: FolderConfig,
): Failure | undefined {
  if (size === 0) return failures.empty();
  return size > maxFileSize ? failures.tooLarge(size, maxFileSize) : undefined;
}
