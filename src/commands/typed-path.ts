import { isThere } from '../cli/global-options.js';
import type { Config } from '../config/config.js';
import { writtenPath } from '../lib/home.js';
import { fromVisible } from '../lib/text.js';
import { locate } from '../report/items.js';

/**
 * Returns what a person typed as the daemon understands it: the absolute path of a file that
 * exists, or else `FOLDER/path` or the bare name of a known file.
 */
export async function typedPath(config: Config, text: string): Promise<string> {
  const path = writtenPath(text);
  if (await isThere(path)) return path;
  const meant = writtenPath(fromVisible(text));
  if (meant !== path && (await isThere(meant))) return meant;
  if (config.folders.some(({ name }) => text.startsWith(`${name}/`))) return text;
  const isName = !text.includes('/') && (await locate(config, path)) === undefined;
  return isName ? text : path;
}
