import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BuiltDaemon } from '../support/built-daemon.js';
import { plant } from './corpus.js';
import type { SearchDocument } from './document.js';
import { type Answer, type Engine, SHOWN } from './engine.js';
import type { JudgedQuery } from './relevance.js';

const LIMIT_MS = 900_000;
const BASE = 'https://search.example/';

/** An answer of `/search.json`, as far as it is read here. */
interface Found {
  /** The words that were searched instead. */
  readonly corrected?: string;
  /** The words that were left out. */
  readonly without?: readonly string[];
  readonly items: readonly { readonly url: string }[];
}

/**
 * The built daemon with the embedded peer, whose folder has all documents.
 *
 * @param cli the path of the built `cli.js`
 * @param directory a directory for its files
 */
export async function embeddedPeer(
  documents: readonly SearchDocument[],
  cli: string,
  directory: string,
): Promise<Engine> {
  plant(documents, join(directory, 'corpus'));
  const folder = { name: 'corpus', url: BASE, settle: '0s' };
  const parts = { folders: [folder], push: { linger: '250ms' } };
  const daemon = await BuiltDaemon.of({ cli, directory, parts });
  await daemon.start();
  try {
    await daemon.confirmed(documents.length, LIMIT_MS);
  } catch (error) {
    await daemon.kill();
    throw error;
  }
  const base = searchBase(join(directory, 'log'));
  return {
    name: 'peersync',
    async ask(query): Promise<Answer> {
      const answer = await fetch(searchUrl(base, query));
      if (!answer.ok) throw new Error(`${query.query}: the peer answered ${answer.status}`);
      const found = (await answer.json()) as Found;
      return {
        files: found.items.map(({ url }) => fileOf(url)),
        isAnnounced: isAnnounced(found),
      };
    },
    async end() {
      await daemon.kill();
    },
  };
}

function searchUrl(base: string, query: JudgedQuery): URL {
  const url = new URL('search.json', base);
  url.searchParams.set('query', query.query);
  url.searchParams.set('limit', String(SHOWN));
  // As the page asks while somebody types.
  if (query.typed === true) url.searchParams.set('typing', 'true');
  return url;
}

/** Whether the answer says that it is not to the words of the query. */
function isAnnounced(found: Found): boolean {
  return found.corrected !== undefined || found.without !== undefined;
}

function fileOf(url: string): string {
  return decodeURIComponent(url.slice(BASE.length));
}

/** The address of the search page, from the log of the daemon. */
function searchBase(log: string): string {
  const base = /search it at (http:\/\/127\.0\.0\.1:\d+\/)/.exec(readFileSync(log, 'utf8'))?.[1];
  if (base === undefined) throw new Error('the log does not name the address of the search page');
  return base;
}
