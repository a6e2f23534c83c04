import createIgnore from 'ignore';
import { DEFAULT_IGNORE } from '../../lib/default-ignore.js';

const DEFAULTS = createIgnore({ ignorecase: true, allowRelativePaths: true }).add([
  ...DEFAULT_IGNORE,
]);

/** The text in place of one that is kept out of the index. */
export const KEPT_OUT = '(a secret, which is kept out)';

/**
 * Whether a file within a document has a name that no folder takes by default.
 *
 * @param name a name, perhaps with directories
 */
export function isKeptOut(name: string): boolean {
  return name !== '' && DEFAULTS.ignores(name);
}
