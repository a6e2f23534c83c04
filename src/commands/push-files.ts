import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { FolderConfig } from '../config/config.js';
import { documentUrl, fileBase, normaliseBase } from '../config/url.js';
import { fingerprint } from '../content/reader.js';
import { PeersyncError, systemCode } from '../lib/errors.js';
import { fileStat } from '../lib/file.js';
import { comparableUrl } from '../peer/answer.js';
import type { ContentRules } from '../peer/dialect.js';
import type { Text } from '../peer/form.js';
import type { Trouble } from '../state/entry.js';
import { cannotTravel, streamed, withoutWords } from '../uplink/documents.js';
import { trouble } from '../watch/rules.js';
import { UsageError } from './context.js';

/** A file and the URL of the document that it is to become. */
export interface Target {
  /** As it was given. */
  readonly file: string;
  readonly url: string;
}

/** A file that can go to the peer. */
export interface ReadyFile extends Target {
  readonly text: Text;
  /** Bytes of what travels. */
  readonly size: number;
  /** sha256 of what travels. */
  readonly digest: string;
  /** Media type, where files travel with one; '' otherwise. */
  readonly type: string;
  /** ms since the epoch. */
  readonly mtimeMs: number;
}

/**
 * The URL of each file: `url` where that is for one file, `url` and the file's name where it ends in "/", and the `file://` URL
 * of the file where none is given.
 *
 * @throws UsageError for a URL that is none, that is for one file where there are several, that two files would share, or
 *   that belongs to a watched folder
 */
export function targetsOf(
  files: readonly string[],
  url: string | undefined,
  folders: readonly FolderConfig[],
): readonly Target[] {
  const targets = files.map((file) => ({ file, url: urlOf(file, url, files.length) }));
  for (const [i, target] of targets.entries()) {
    const twin = targets.slice(0, i).find((other) => other.url === target.url);
    if (twin !== undefined)
      throw new UsageError(
        `${twin.file} and ${target.file} would both become the document ${target.url}.`,
        'Push them one by one, each with a --url of its own.',
      );
    const folder = folders.find((each) => comparableUrl(target.url).startsWith(comparableUrl(each.url)));
    if (folder !== undefined)
      throw new UsageError(
        `The document ${target.url} belongs to the folder ${folder.name}, whose files are pushed by themselves.`,
        `Give another --url, or put the file into ${folder.path}.`,
      );
  }
  return targets;
}

const SCHEMES = new Set(['http:', 'https:', 'ftp:', 'file:']);

function urlOf(file: string, url: string | undefined, count: number): string {
  const path = resolve(file);
  if (url === undefined) return documentUrl(fileBase(dirname(path)), basename(path));
  if (url.endsWith('/')) {
    const base = normaliseBase(url);
    if (base !== undefined) return documentUrl(base, basename(path));
  } else if (count > 1) {
    throw new UsageError(
      `--url: received "${url}" for ${count} files.`,
      'Give a base that ends in "/"; each file has its name behind it.',
    );
  } else if (URL.canParse(url)) {
    const { protocol, username, password, href } = new URL(url);
    if (SCHEMES.has(protocol) && username === '' && password === '') return href;
  }
  throw new UsageError(
    `--url: received "${url}".`,
    'Give an http, https, ftp or file URL without credentials, such as https://files.example.org/report.md.',
  );
}

/**
 * Reads the files and finds out whether each can go to the peer.
 *
 * @throws PeersyncError for a file that cannot, with the words that are used for files of folders; an AggregateError for
 *   several
 */
export async function readyFiles(
  targets: readonly Target[],
  rules: ContentRules,
): Promise<readonly ReadyFile[]> {
  const ready: ReadyFile[] = [];
  const failures: PeersyncError[] = [];
  for (const target of targets) {
    const found = await readyFile(target, rules);
    if ('code' in found) failures.push(fileError(target.file, found));
    else ready.push(found);
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, 'some files cannot be pushed');
  return ready;
}

async function readyFile(target: Target, rules: ContentRules): Promise<ReadyFile | Trouble> {
  try {
    const path = await realpath(target.file);
    const stats = await stat(path);
    if (stats.isFile() && stats.size === 0) return EMPTY;
    const found = await fingerprint({ file: path, stat: fileStat(stats) });
    if (found.kind === 'unreadable') return trouble.unreadable(found.code);
    if (found.kind === 'vanished') return NO_SUCH_FILE;
    if (found.kind === 'notRegular') return NOT_A_FILE;
    if (found.kind !== 'version') return CHANGING;
    const refused = cannotTravel(found.version.encoding, rules);
    if (refused !== undefined) return refused;
    const packed = await streamed(path, found.version, rules);
    if (packed.kind === 'unreadable') return trouble.unreadable(packed.code);
    if (packed.kind === 'stale') return CHANGING;
    if (packed.kind === 'wordless') return withoutWords();
    const { text, size, digest, type } = packed;
    return { ...target, text, size, digest, type, mtimeMs: found.version.mtimeMs };
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    return code === 'ENOENT' || code === 'ENOTDIR' ? NO_SUCH_FILE : trouble.unreadable(code);
  }
}

const EMPTY: Trouble = { ...trouble.empty(), hint: 'Push it when something is in it.' };
const NO_SUCH_FILE: Trouble = {
  code: 'NO_SUCH_FILE',
  message: 'There is no such file.',
  hint: 'Name files that exist.',
};
const NOT_A_FILE: Trouble = {
  code: 'NOT_A_FILE',
  message: 'It is a directory or a device, and no file.',
  hint: 'Name files; a whole directory is what `folders` of the configuration are for.',
};
const CHANGING: Trouble = {
  code: 'FILE_CHANGING',
  message: 'The file is being changed at this moment.',
  hint: 'Push it again when it is at rest.',
};

function fileError(file: string, { code, message, hint }: Trouble): PeersyncError {
  return new PeersyncError({ code, message: `${file}: ${message}`, hint, details: { file } });
}
