import { join } from 'node:path';
import { PACKAGE_ROOT } from './process.js';

/**
 * The pages of the documentation that messages and the manual page refer to. The package contains
 * them.
 */
export const PAGES = [
  'README.md',
  'src/config/README.md',
  'src/mirror/README.md',
  'src/report/README.md',
] as const;
type Page = (typeof PAGES)[number];

/** Returns the path of a page on this machine. */
export function pagePath(page: Page): string {
  return join(PACKAGE_ROOT, page);
}

/** Returns the name of a page for a reader on another machine, where the path is of no use. */
export function pageInPackage(page: Page): string {
  return `${page} of the package peersync`;
}

/** Returns the path of a page for a shell, on any machine with a global installation. */
export function pageInShell(page: Page): string {
  return `$(npm root -g)/peersync/${page}`;
}
