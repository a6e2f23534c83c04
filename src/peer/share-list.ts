import { decoded, unusable } from './answer.js';
import type { Asking } from './asking.js';
import { PeerError } from './errors.js';
import { descendants, parseMarkup } from './markup-tree.js';
import { statusError } from './status.js';

/** Deeper directories, and more of them, are no list that a person made. */
const DEEPEST = 32;
const MOST_PAGES = 10_000;

/**
 * The files below a path, by the directory pages of the server: links to what stands directly in them. Names are given
 * decoded, with `/` between those of directories; empty where the path is not there.
 *
 * @throws PeerError PEER_ANSWER for what is no such page, PEER_ANSWER_TOO_LARGE for more than 10,000 of them
 */
export async function listShares(
  asking: Asking,
  root: string,
  signal: AbortSignal | undefined,
): Promise<readonly string[]> {
  const files: string[] = [];
  const directories = [''];
  for (let at = 0; at < directories.length; at += 1) {
    const directory = directories[at] ?? '';
    const path = root + directory.split('/').map(encodeURIComponent).join('/');
    if (at === MOST_PAGES) throw tooMany(asking.url(root));
    const answer = await asking.ask({ counted: 'other', method: 'GET', path, isProtected: false, signal });
    if (answer.status === 404) continue;
    const error = statusError(answer);
    if (error !== undefined) throw error;
    const names = namesIn(decoded(answer.body), answer.url, path);
    if (names === undefined) throw unusable(answer, 'does not show the list of what it shares');
    for (const name of names) {
      if (!name.endsWith('/')) files.push(directory + name);
      else if (directory.split('/').length <= DEEPEST) directories.push(directory + name);
    }
  }
  return files;
}

/** Undefined for a page that is no list of a directory. */
function namesIn(text: string, url: string, path: string): readonly string[] | undefined {
  if (!/\bDirectory:/i.test(text)) return undefined;
  const { root } = parseMarkup(text, false);
  const names = new Set<string>();
  for (const { attributes } of descendants(root, ['a'])) {
    const name = attributes.href === undefined ? undefined : nameIn(attributes.href, url, path);
    if (name !== undefined) names.add(name);
  }
  return [...names];
}

/** The name of what stands directly below the page, with a `/` at its end where it is a directory. */
function nameIn(href: string, url: string, path: string): string | undefined {
  if (!URL.canParse(href, url)) return undefined;
  const { pathname } = new URL(href, url);
  const [, parent = '', name = ''] = /^(.*\/)([^/]+\/?)$/.exec(pathname) ?? [];
  // Behind a proxy the links may lack what stands before the path there.
  const here = [new URL(url).pathname, path].map(unescaped);
  if (name === '' || !here.includes(unescaped(parent))) return undefined;
  const decodedName = unescaped(name);
  const isName = !/[/\\\0]/.test(decodedName.replace(/\/$/, '')) && !/^\.{1,2}\/?$/.test(decodedName);
  return isName ? decodedName : undefined;
}

function unescaped(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function tooMany(url: string): PeerError {
  const what = `shares files in more than ${MOST_PAGES} directories`;
  return new PeerError('PEER_ANSWER_TOO_LARGE', { url, what, delivered: 'no' });
}
