import { join } from 'node:path';
import type { FolderConfig } from '../config/config.js';
import { documentUrl } from '../config/url.js';
import type { Item } from '../state/entry.js';

/**
 * Absolute path of the file that is to become this document; undefined where its folder is not configured any more, or gives
 * the file another address now, which the item has not got yet.
 */
export function pathOf(
  { folder, path, url }: Pick<Item, 'folder' | 'path' | 'url'>,
  folders: readonly Pick<FolderConfig, 'name' | 'path' | 'url'>[],
): string | undefined {
  const found = folders.find(({ name }) => name === folder);
  if (found === undefined || documentUrl(found.url, path) !== url) return undefined;
  return join(found.path, path);
}
