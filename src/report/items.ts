import { realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path';
import type { Config, FolderConfig } from '../config/config.js';
import { badRequest } from '../lib/errors.js';
import { withFile } from '../lib/hint.js';
import { nextTurn, Pace } from '../lib/slices.js';
import { fromVisible, isWithin, quoted } from '../lib/text.js';
import type { EntriesReader } from '../state/entries-reader.js';
import { type Entry, keptOutFor } from '../state/entry.js';
import { decode, plainItem, statusOf, type UrlBases } from '../state/line.js';
import { type SortedLine, sortedLines } from '../state/sorting.js';
import type { StateView } from '../state/state.js';
import type { Scope } from '../uplink/retry.js';
import { look } from '../watch/lister.js';

/** The statuses of items that `list` can show, in the order of an item's life. */
export const LISTED_STATUSES = [
  'pending',
  'accepted',
  'confirmed',
  'quarantined',
  'gone',
  'removing',
  'removed',
  'skipped',
] as const;

// Which items a person asks for: by path, by folder and status, or page by page.

export interface ListFilter {
  readonly status?: Entry['status'] | undefined;
  readonly folder?: string | undefined;
}

/** One line of `list`. */
export interface ListedEntry {
  readonly folder: string;
  readonly path: string;
  readonly status: Entry['status'];
  /** When the status began, in ms since the epoch. */
  readonly since: number;
  readonly size: number;
  /** The hash of the bytes that the status is about; absent if they were never read. */
  readonly sha256?: string | undefined;
  readonly url?: string | undefined;
  readonly attempts?: number | undefined;
  /** Set if the file is skipped, and an older version of it is still searchable. */
  readonly isOlderSearchable?: true | undefined;
  /** Why the file is quarantined or skipped, or the error of its last try. */
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  readonly hint?: string | undefined;
}

function listed(entry: Entry): ListedEntry {
  const { folder, path, status, since, version } = entry;
  const failure = entry.failure ?? keptOutFor(entry);
  return {
    folder,
    path,
    status,
    since,
    size: version.size,
    sha256: 'sha256' in version ? version.sha256 : undefined,
    url: 'url' in entry ? entry.url : undefined,
    attempts: 'attempts' in entry ? entry.attempts : undefined,
    isOlderSearchable: status === 'skipped' && entry.sent !== undefined ? true : undefined,
    code: failure?.code,
    message: failure?.message,
    hint: failure && withFile(failure.hint, `${folder}/${path}`),
  };
}

/**
 * Yields the lines of `list` by folder and path, in lots. Other work proceeds between two lots.
 * Consume each lot before you ask for the next.
 */
export async function* listEntries(
  state: StateView,
  { folder, status }: ListFilter,
): AsyncGenerator<Iterable<ListedEntry>> {
  const { entries } = state;
  for await (const slice of sortedLines(entries, { folder, status }))
    yield lotOf(slice, entries.bases);
}

/** Most records are plain. A list of them takes a third of the time that decoding them takes. */
function* lotOf(lines: Iterable<SortedLine>, bases: UrlBases): Iterable<ListedEntry> {
  for (const { folder, path, line } of lines) {
    const plain = plainItem(line, path, bases);
    yield plain === undefined
      ? listed(decode(line, folder, path, bases))
      : { folder, path, ...plain, attempts: 0 };
  }
}

/** A line of `list` with the absolute path. */
export type ItemLine = ListedEntry & { readonly file: string };

export interface ItemsPage {
  readonly items: readonly ItemLine[];
  /** The `after` of the page that follows; absent on the last one. */
  readonly next?: string | undefined;
}

/**
 * Returns one page of files, in the order of the state. Nothing is kept between two pages: each
 * passes over the records up to the `next` of the page before. If that record no longer exists, the
 * list begins again: files may come twice, but none is left out.
 *
 * @param limit 1 or more
 */
export async function itemsPage(
  { folders }: Pick<Config, 'folders'>,
  entries: EntriesReader,
  filter: ListFilter & {
    readonly after?: string | undefined;
    readonly limit: number;
    /** A part of the path, in upper or lower case. */
    readonly name?: string | undefined;
  },
): Promise<ItemsPage> {
  const { after, folder: only, limit, name: wanted, status } = filter;
  if (status !== undefined && entries.counts(only)[status] === 0) return { items: [] };
  const items: ItemLine[] = [];
  let isPast = after === undefined;
  const pace = new Pace();
  let mark = '';
  for (const [folder, directory, name, line] of entries.lines(only)) {
    if (pace.step()) await nextTurn();
    const isWanted = status === undefined || statusOf(line) === status;
    if (isPast && !isWanted) continue;
    const path = directory === '' ? name : `${directory}/${name}`;
    if (isPast && wanted !== undefined && !path.toLowerCase().includes(wanted.toLowerCase()))
      continue;
    const here = `${folder}/${path}`;
    const entry = isPast ? entries.get(folder, path) : undefined;
    isPast ||= here === after;
    if (entry === undefined) continue;
    if (items.length === limit) return { items, next: mark };
    mark = here;
    const root = folders.find((one) => one.name === folder)?.path ?? folder;
    items.push({ ...listed(entry), file: join(root, path) });
  }
  return isPast
    ? { items }
    : await itemsPage({ folders }, entries, { ...filter, after: undefined });
}

/**
 * Returns the name of a configured folder, or undefined if none is given.
 *
 * @throws PeersyncError UNKNOWN_FOLDER
 */
export function knownFolder({ folders }: Config, name: string | undefined): string | undefined {
  if (name === undefined || folders.some((folder) => folder.name === name)) return name;
  const names = folders.map((folder) => quoted(folder.name)).join(', ');
  throw badRequest(
    'UNKNOWN_FOLDER',
    `There is no folder named ${quoted(name)}.`,
    `The configuration names: ${names}.`,
  );
}

/** A path in one of some folders, such as the configured ones. */
export interface Located<F = FolderConfig> {
  readonly folder: F;
  /** Relative to the folder; `''` is the folder itself. */
  readonly path: string;
}

/**
 * Finds the folder that a path is in, also where links lead there by another way than the
 * configuration names: a shell that stands in a linked directory gives its files by their real
 * path. What a link in a folder leads to outside of it is in none.
 */
export async function locate<F extends { readonly path: string }>(
  { folders }: { readonly folders: readonly F[] },
  file: string,
): Promise<Located<F> | undefined> {
  const absolute = resolve(file);
  const [named, real] = await realOf(absolute);
  for (const folder of folders) {
    if (!isWithin(absolute, folder.path)) continue;
    const [, root] = await realOf(folder.path);
    if (folder.path === absolute || isWithin(dirname(named), root))
      return { folder, path: relative(folder.path, absolute) };
  }
  for (const folder of folders) {
    const [, root] = await realOf(folder.path);
    for (const path of [named, real])
      if (isWithin(path, root)) return { folder, path: relative(root, path) };
  }
  return undefined;
}

/**
 * Returns the real path of the name in its directory, and that of its target. The name may be a
 * link, or missing.
 */
async function realOf(path: string): Promise<readonly [named: string, real: string]> {
  const above = dirname(path);
  if (above === path) return [path, path];
  const directory = await realpath(above).catch(async () => (await realOf(above))[1]);
  const named = join(directory, basename(path));
  return [named, await realpath(named).catch(() => named)];
}

/** The longest that Linux takes, in bytes. */
const LONGEST_PATH = 4_096;

const NAMING = 'Give its path, or name it as `peersync list` does: FOLDER/path.';

/**
 * Returns the absolute paths that texts name: such a path, `FOLDER/path`, or a bare name that only
 * one known file has. Each may be spelled as peersync prints it; see `visible`.
 *
 * @throws PeersyncError BAD_REQUEST, UNKNOWN_FILE, AMBIGUOUS
 */
export async function namedPaths(
  config: Config,
  entries: EntriesReader,
  texts: readonly string[],
): Promise<string[]> {
  const { folders } = config;
  const roots = new Map(folders.map(({ name, path }) => [name, path]));
  const written = texts.map((text) => writtenPath(folders, text));
  const bare = new Map<string, string[]>();
  for (const [i, text] of texts.entries())
    if (written[i] === undefined) for (const name of [text, fromVisible(text)]) bare.set(name, []);
  const pace = new Pace();
  for (const [folder, directory, name] of bare.size === 0 ? [] : entries.lines()) {
    if (pace.step()) await nextTurn();
    const root = roots.get(folder);
    if (root !== undefined) bare.get(name)?.push(join(root, directory, name));
  }
  return await Promise.all(
    texts.map(async (text, i) => {
      const path = written[i];
      if (path !== undefined) return await spelledPath(config, entries, path);
      const found = bare.get(text) ?? [];
      return onlyOne(text, found.length > 0 ? found : bare.get(fromVisible(text)));
    }),
  );
}

/**
 * Returns the path or, if only that exists or is known, the path that peersync prints like this.
 */
async function spelledPath(config: Config, entries: EntriesReader, path: string): Promise<string> {
  const meant = fromVisible(path);
  if (meant === path || (await isKnown(config, entries, path))) return path;
  return (await isKnown(config, entries, meant)) ? meant : path;
}

/** Returns whether something is at the path, or a record has it. */
async function isKnown(config: Config, entries: EntriesReader, absolute: string): Promise<boolean> {
  if (!('code' in (await look(absolute)))) return true;
  const located = await locate(config, absolute);
  return located !== undefined && entries.line(located.folder.name, located.path) !== undefined;
}

/** @returns undefined for a bare name */
function writtenPath(folders: Config['folders'], text: string): string | undefined {
  const isPath = text !== '' && !text.includes('\0') && Buffer.byteLength(text) <= LONGEST_PATH;
  if (isPath && isAbsolute(text)) return text;
  const folder = isPath ? folders.find(({ name }) => text.startsWith(`${name}/`)) : undefined;
  if (folder !== undefined) return join(folder.path, text.slice(folder.name.length + 1));
  if (isPath && !text.includes('/')) return undefined;
  throw badRequest('BAD_REQUEST', 'That is no path of a file.', NAMING);
}

function onlyOne(text: string, [first, ...others]: readonly string[] = []): string {
  if (first === undefined)
    throw badRequest('UNKNOWN_FILE', `No known file is named "${text}".`, NAMING);
  if (others.length === 0) return first;
  const named = `${[first, ...others].slice(0, 3).join(', ')}${others.length > 2 ? ', …' : ''}`;
  const message = `${others.length + 1} files are named "${text}": ${named}.`;
  throw badRequest('AMBIGUOUS', message, 'Give the path of one.');
}

/** Files, and directories with all below, as `retry` takes them. @throws PeersyncError OUTSIDE */
export async function scopesOf(
  config: Config,
  entries: EntriesReader,
  paths: readonly string[],
): Promise<Scope[]> {
  const absolutes = await namedPaths(config, entries, paths);
  return await Promise.all(
    absolutes.map(async (absolute) => {
      const located = await locate(config, absolute);
      if (located) return { folder: located.folder.name, path: located.path };
      const hint = `Name a path in ${config.folders.map((folder) => folder.path).join(' or ')}.`;
      throw badRequest('OUTSIDE', `${absolute} is in none of the watched folders.`, hint);
    }),
  );
}
