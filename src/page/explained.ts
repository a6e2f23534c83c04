import { realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import type { Config } from '../config/config.js';
import { locate } from '../report/locate.js';
import type { WhyReport } from '../report/why.js';
import { PageError } from './errors.js';

/** The longest that Linux takes, in bytes. */
const LONGEST_PATH = 4_096;

/**
 * The absolute path that a question names; `FOLDER/path` is one of a folder.
 *
 * @throws PageError BAD_REQUEST
 */
export function namedPath(text: string, { folders }: Pick<Config, 'folders'>): string {
  if (text === '' || text.includes('\0') || Buffer.byteLength(text) > LONGEST_PATH) {
    throw new PageError('BAD_REQUEST', { message: 'That is no path of a file.' });
  }
  if (isAbsolute(text)) return text;
  const folder = folders.find(({ name }) => text.startsWith(`${name}/`));
  if (folder !== undefined) return join(folder.path, text.slice(folder.name.length + 1));
  throw new PageError('BAD_REQUEST', { message: 'A path is absolute, or begins with the name of a folder.' });
}

/**
 * Whether a path really is in a folder: a directory below it may be a link to somewhere else, and what is there is nobody's
 * business who only sees this page.
 */
export async function isReallyInside(file: string, config: Config): Promise<boolean> {
  const located = await locate(config, file);
  if (located === undefined) return false;
  const { folder, path } = located;
  const root = await realpath(folder.path).catch(() => undefined);
  // Without its root there is nothing in a folder that a link could lead out of.
  if (root === undefined || path === '') return true;
  const directory = await deepestReal(dirname(join(folder.path, path)));
  return directory === root || directory.startsWith(`${root}/`);
}

/** What is said of everything that is in no folder, whether it exists or not. */
export function outside(file: string): WhyReport {
  return {
    file,
    verdict: 'outside',
    rule: 'It is in none of the watched folders.',
    history: [],
    next: 'Nothing, unless it is moved into one of them or its directory is added to `folders`.',
  };
}

async function deepestReal(path: string): Promise<string> {
  const above = dirname(path);
  if (above === path) return path;
  return await realpath(path).catch(async () => await deepestReal(above));
}
