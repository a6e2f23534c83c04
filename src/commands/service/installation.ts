import { mkdir, readFile, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { writeFileAtomic } from '../../lib/atomic.js';
import { messageOf, PeersyncError, systemCode } from '../../lib/errors.js';
import { makeDirectoryFor, type Owner } from './made-directory.js';

/** By this a file is known to be ours to replace and to remove. */
const MARK =
  '# Written by `peersync service install`, which writes it anew each time; `peersync service uninstall` removes it.\n';

/** Where an installation stands. */
export interface Site {
  readonly scope: 'system' | 'user';
  /** `peersync.service`, or `peersync@NAME.service`. */
  readonly unit: string;
  /** The unit, or the template of the instance. */
  readonly unitFile: string;
  readonly dropInFile: string;
  /** The directory of units. */
  readonly directory: string;
  /** What a system service has besides: the snippets for its user and its directories. */
  readonly snippets: readonly { readonly file: string; readonly source: string }[];
  /** The name of the unit's source among ours. */
  readonly source: string;
}

export interface SiteOptions {
  readonly scope: 'system' | 'user';
  readonly name?: string | undefined;
  /** Of the user: where `.config` stands. */
  readonly configHome: string;
  /** Where `/etc` stands. @default "/" */
  readonly root?: string;
}

export function siteOf({ scope, name, configHome, root = '/' }: SiteOptions): Site {
  const base = name === undefined ? 'peersync.service' : 'peersync@.service';
  const unit = name === undefined ? base : `peersync@${name}.service`;
  const directory = scope === 'user' ? join(configHome, 'systemd/user') : join(root, 'etc/systemd/system');
  const snippet = (kind: string) => ({
    file: join(root, `etc/${kind}.d/peersync.conf`),
    source: `peersync.${kind}.conf`,
  });
  return {
    scope,
    unit,
    directory,
    unitFile: join(directory, base),
    dropInFile: join(directory, `${unit}.d`, '50-installed.conf'),
    snippets: scope === 'user' ? [] : [snippet('sysusers'), snippet('tmpfiles')],
    source: scope === 'user' ? 'peersync.user.service' : base,
  };
}

/** The text of one of our files, marked as ours. */
export function marked(text: string): string {
  return `${MARK}${text}`;
}

/** @throws PeersyncError SERVICE_FOREIGN where somebody else's file stands in the way */
export async function assertOurs(path: string): Promise<void> {
  const text = await textOf(path);
  if (text === undefined || text.startsWith(MARK)) return;
  throw new PeersyncError({
    code: 'SERVICE_FOREIGN',
    message: `${path} is there already, and was not written by \`peersync service install\`.`,
    hint: 'It was left as it is; move it away, or install under another name with --name.',
  });
}

export async function isOurs(path: string): Promise<boolean> {
  return (await textOf(path))?.startsWith(MARK) === true;
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR') return undefined;
    throw cannot(`${path} could not be read`, error);
  }
}

/** Writes a file of ours; readable by all, as units are. */
export async function write(path: string, content: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFileAtomic(path, content, { mode: 0o644 });
  } catch (error) {
    throw cannot(`${path} could not be written`, error);
  }
}

/** Removes a file, and its directory when nothing else is in it. */
export async function remove(path: string): Promise<void> {
  try {
    await rm(path, { force: true });
    if (path.endsWith('.d/50-installed.conf')) await rmdir(dirname(path)).catch(() => {});
  } catch (error) {
    throw cannot(`${path} could not be removed`, error);
  }
}

/**
 * Makes a directory with all above it that are missing; those are owned by `owner`. One that is there stays as it is.
 *
 * @returns whether it was missing
 */
export async function makeDirectory(path: string, mode: number, owner: Owner | undefined): Promise<boolean> {
  try {
    if (owner === undefined) return (await mkdir(path, { recursive: true, mode })) !== undefined;
    if (await isThere(path)) return false;
    await makeDirectoryFor(path, mode, owner);
    return true;
  } catch (error) {
    throw cannot(`the directory ${path} could not be made`, error);
  }
}

export async function isThere(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}

function cannot(what: string, error: unknown): PeersyncError {
  return new PeersyncError({
    code: 'SERVICE_FAILED',
    message: `${what}: ${messageOf(error)}.`,
    hint: 'See who may write there; what was done so far stays, and installing again goes on from there.',
    cause: error,
  });
}
