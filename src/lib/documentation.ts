import { join } from 'node:path';
import { PACKAGE_ROOT } from './process.js';

/**
 * The pages of the documentation that messages and the manual page name. The package has them all.
 */
export const PAGES = [
  'README.md',
  'src/config/README.md',
  'src/mirror/README.md',
  'src/report/README.md',
] as const;
type Page = (typeof PAGES)[number];

/** Where a page stands on this machine, to be opened there. */
export function pagePath(page: Page): string {
  return join(PACKAGE_ROOT, page);
}

/** The same for somebody on another machine, whom the place on this one is of no use. */
export function pageInPackage(page: Page): string {
  return `${page} of the package peersync`;
}

/** The same in a shell on any machine where the package is installed for everybody. */
export function pageInShell(page: Page): string {
  return `$(npm root -g)/peersync/${page}`;
}
