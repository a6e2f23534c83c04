import { pathBelow } from '../config/url.js';
import { claims, type Entry, type Item } from '../state/entry.js';
import type { UplinkState } from './parts.js';

const ASCII = /^[\0-\x7f]*$/;

/**
 * The *conflicts* of an item: other files of which the peer was sent a document at the same address. No two files share an address
 * in one configuration; those of an earlier one may have, whose folders had other names, URLs or places. The last push to an
 * address is what the peer has there, so one that leaves makes what was sent for its conflicts count no more.
 *
 * An index of all addresses would cost much memory. What is kept is by which bases each folder's files were ever sent, which
 * are few: with those an address tells the paths that its conflicts must have.
 */
export class UrlConflicts {
  readonly #state: Pick<UplinkState, 'get'>;
  readonly #bases = new Map<string, string[]>();

  constructor(state: Pick<UplinkState, 'get'>) {
    this.#state = state;
  }

  /** To be told of every record that there is at the start, and of each that is about to leave. */
  met(entry: Entry): void {
    if (entry.sent !== undefined) this.#met(entry, entry.sent.url);
    if (entry.status === 'pending' && entry.doubt !== undefined) this.#met(entry, entry.doubt.url);
  }

  of({ folder, path, url }: Pick<Item, 'folder' | 'path' | 'url'>): Entry[] {
    const conflicts: Entry[] = [];
    for (const [name, bases] of this.#bases) {
      for (const base of bases) {
        if (!url.startsWith(base)) continue;
        for (const other of name === folder && isBaseOf(base, url, path)
          ? twins(path)
          : pathsBelow(base, url)) {
          const entry = this.#state.get(name, other);
          if (entry !== undefined && claims(entry, url)) conflicts.push(entry);
        }
      }
    }
    return conflicts;
  }

  #met({ folder, path }: Entry, url: string): void {
    const bases = this.#bases.get(folder);
    if (bases?.some((base) => isBaseOf(base, url, path))) return;
    const base = baseOf(url, path);
    if (bases === undefined) this.#bases.set(folder, [base]);
    else bases.push(base);
  }
}

/** The other forms of a path that have the same URL. */
function twins(path: string): string[] {
  if (ASCII.test(path)) return [];
  return [path.normalize('NFC'), path.normalize('NFD')].filter((form) => form !== path);
}

function pathsBelow(base: string, url: string): string[] {
  const path = pathBelow(base, url);
  return path === undefined ? [] : [path, ...twins(path)];
}

/** Whether the URL is that of the path with this base: a URL has as many slashes as its base and its path. */
function isBaseOf(base: string, url: string, path: string): boolean {
  if (!url.startsWith(base)) return false;
  // Most paths need no escapes, and that is told sooner.
  if (url.length === base.length + path.length && url.endsWith(path)) return true;
  return slashes(url, base.length) === slashes(path, 0);
}

/** What stands before the path in a URL, which has as many slashes as its base and its path. */
export function baseOf(url: string, path: string): string {
  let end = url.lastIndexOf('/');
  for (let more = slashes(path, 0); more > 0; more -= 1) end = url.lastIndexOf('/', end - 1);
  return url.slice(0, end + 1);
}

function slashes(text: string, from: number): number {
  let count = 0;
  for (let at = text.indexOf('/', from); at >= 0; at = text.indexOf('/', at + 1)) count += 1;
  return count;
}
