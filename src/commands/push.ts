import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { define } from '../cli/command.js';
import { consent, onThisTerminal } from '../cli/consent.js';
import { type GlobalOptions, isThere, prepare } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { answer, complain } from '../cli/output.js';
import { counted, safe } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import type { FolderConfig } from '../config/config.js';
import { collection as collectionField } from '../config/fields.js';
import { documentUrl, fileBase, normaliseBase } from '../config/url.js';
import { fingerprint } from '../content/file-reader.js';
import { NO_PROGRAMS, type Programs } from '../content/helpers/programs.js';
import { encodingWith } from '../content/helpers/readable.js';
import { EXIT, PeersyncError, systemCode } from '../lib/errors.js';
import { fileStat } from '../lib/file.js';
import { writtenPath } from '../lib/home.js';
import { parseUrl, quoted, sentence } from '../lib/text.js';
import type { PeerClient } from '../peer/client.js';
import type { ContentRules, Dialect } from '../peer/dialects/dialect.js';
import { dialectNamed } from '../peer/dialects/dialects.js';
import { REMOVED_COLLECTION } from '../peer/dialects/standard.js';
import { comparableUrl } from '../peer/url.js';
import type { Failure } from '../state/entry.js';
import { cannotTravel } from '../uplink/documents.js';
import { failures } from '../watch/rules/failures.js';
import {
  CHANGING,
  type Outcome,
  type OutgoingFile,
  OwnUplink,
  type RemovalOutcome,
} from './own-uplink.js';
import { withPeer } from './peer.js';

/**
 * Pushes single files outside of all folders, and waits until the peer shows them; or removes such
 * documents.
 */
export const pushCommand = define({
  output: z.object({
    file: z.string(),
    url: z.string(),
    code: z.string().optional(),
    message: z.string().optional(),
    evidence: z.object({ kind: z.string(), shown: z.string() }).optional(),
    status: z.enum(['accepted', 'confirmed', 'unseen', 'failed']),
  }),
  outputWith: {
    '--remove': z.object({
      url: z.string(),
      code: z.string().optional(),
      message: z.string().optional(),
      status: z.enum(['removed', 'emptied', 'remains', 'failed']),
    }),
  },
  positionals: {
    file: option.several(
      'Files; text, unless the peer takes others. With --remove: files that were pushed, or URLs',
    ),
  },
  options: {
    collection: option.value('The collection that their documents are tagged with'),
    url: option.value(
      'The URL of the document, or a base that ends in "/"; the file:// URL unless given',
    ),
    remove: option.flag(
      'Remove the documents from the peer again, and wait until it does not show them any more',
    ),
    yes: option.flag('With --remove: without asking'),
    timeout: option.preset('2m', 'How long the peer may take to show them, or their removal'),
    wait: option.unlessNo('Wait until the peer shows them; --no-wait: do not'),
  },
  examples: [
    ['$0 push a.md --collection notes --url https://example.org/a.md', 'One file'],
    [
      '$0 push *.md --collection notes --url https://example.org/notes/',
      'Several, each with its name',
    ],
    [
      '$0 push --remove a.md --url https://example.org/a.md',
      'Removes the document of the first again',
    ],
    ['$0 push --remove https://example.org/notes/b.md', 'The same by its URL'],
  ],
  run: async (options) => {
    if (options.file.length === 0) throw new UsageError('No file was named.');
    return options.remove ? await removeDocuments(options) : await pushFiles(options);
  },
});

interface PushOptions extends GlobalOptions {
  readonly file: readonly string[];
  readonly collection: string | undefined;
  readonly url: string | undefined;
  readonly timeout: string;
  readonly wait: boolean;
  readonly yes: boolean;
}

async function pushFiles(options: PushOptions) {
  const { collection, wait, yes } = options;
  if (yes) throw new UsageError('--yes is for --remove.', 'Leave it out: pushing asks nothing.');
  if (collection === undefined)
    throw new UsageError('No collection was given.', 'Name one, as with --collection notes.');
  const right = collectionField().safeParse(collection);
  if (!right.success)
    throw new UsageError(
      `--collection: received "${collection}".`,
      `Give ${right.error.issues[0]?.message ?? 'a collection'}.`,
    );
  const timeoutMs = option.duration('--timeout', options.timeout);
  const { config, log } = await prepare(options);
  const targets = targetsOf(options.file, options.url, config.folders);
  const outcomes: Outcome[] = [];
  const onOutcome = ({ file, url }: Target, outcome: Outcome) => {
    outcomes.push(outcome);
    const { status } = outcome;
    const shown = outcome.status === 'failed' ? { status, ...wordsOf(outcome.error) } : outcome;
    answer(options, { file, url, ...shown }, () => [
      `${status.padEnd(9)}  ${safe(file)}  ${safe(url)}${reasonOf(outcome)}`,
    ]);
  };
  await withPeer(config, log, async (client, signal) => {
    const dialect = dialectNamed(client.dialect ?? (await client.detect({ signal })));
    const uplink = await OwnUplink.open(client, dialect, { config, timeoutMs, log, signal });
    try {
      const files: ReadFile[] = [];
      for (const target of targets)
        files.push(await readTarget(target, dialect.content, uplink.programs));
      await uplink.push(files, { collection, wait }, onOutcome);
    } finally {
      await uplink.close();
    }
  });
  const failure = failureOf(outcomes, options.timeout);
  if (failure !== undefined) throw failure;
  return EXIT.done;
}

/** Removes documents that were pushed by hand; after it was shown which, and a person agreed. */
async function removeDocuments(options: PushOptions) {
  const { collection, json, wait, yes } = options;
  if (collection !== undefined || !wait)
    throw new UsageError(
      '--collection and --no-wait are for pushing.',
      'Leave them out: --remove goes by the URL of a document, and waits until it is gone.',
    );
  const timeoutMs = option.duration('--timeout', options.timeout);
  const { config, log } = await prepare(options);
  const urls = await urlsToRemove(options.file, options.url, config.folders);
  const outcomes = new Map<string, RemovalOutcome>();
  const onOutcome = (url: string, outcome: RemovalOutcome) => {
    outcomes.set(url, outcome);
    const { status } = outcome;
    const shown = outcome.status === 'failed' ? { status, ...wordsOf(outcome.error) } : outcome;
    answer(options, { url, ...shown }, () => [
      `${status.padEnd(9)}  ${safe(url)}${whyLeft(outcome)}`,
    ]);
  };
  await withPeer(config, log, async (client, signal) => {
    const dialect = dialectNamed(client.dialect ?? (await client.detect({ signal })));
    for (const url of urls) await assertThere(client, dialect, url, signal);
    const list = urls.map((url) => `  ${safe(url)}\n`).join('');
    if (!yes && !json) complain(list);
    const question = `Remove ${counted(urls.length, 'document')} from the peer? Type "yes": `;
    if (!yes) await consent(question, 'yes', onThisTerminal(), signal, 'Nothing was removed');
    const uplink = await OwnUplink.open(client, dialect, { config, timeoutMs, log, signal });
    await uplink.remove(urls, onOutcome).finally(() => uplink.close());
  });
  for (const outcome of outcomes.values()) if (outcome.status === 'failed') throw outcome.error;
  const left = [...outcomes].filter(([, { status }]) => status === 'remains');
  if (left.length === 0) return EXIT.done;
  throw new PeersyncError({
    code: 'TIMEOUT',
    message: `The peer did not show within ${options.timeout} that ${counted(left.length, 'document is', 'documents are')} gone.`,
    hint: '`peersync doc URL` looks again later; a longer --timeout waits longer.',
  });
}

/**
 * The URLs of documents that are to be removed, each once: as they were given, or by the files that
 * were pushed, which need not be there any more.
 *
 * @throws UsageError for a URL that is none, or of a file that a watched folder has
 */
export async function urlsToRemove(
  named: readonly string[],
  url: string | undefined,
  folders: readonly FolderConfig[],
): Promise<readonly string[]> {
  const isFile = (each: string) => !/^[a-z]+:\/\//i.test(each);
  const files = named.filter(isFile).length;
  if (url !== undefined && files === 0)
    throw new UsageError('--url is for files, and no file was named.', 'Leave it out.');
  const urls = named.map((each) => {
    const found = isFile(each) ? urlOf(each, url, files) : wholeUrl(each);
    if (found !== undefined) return found;
    throw new UsageError(
      `"${each}" is no URL of a document.`,
      'Name a file, or a URL as results show it.',
    );
  });
  for (const each of urls) await assertNoFile(each, folders);
  return [...new Set(urls)];
}

/** @throws PeersyncError NOT_FOUND: nothing is removed then */
async function assertThere(
  client: PeerClient,
  dialect: Dialect,
  url: string,
  signal: AbortSignal,
): Promise<void> {
  const doc = await client.peerdoc({ url }, { signal });
  if (doc !== undefined && !dialect.isRemoved(doc)) return;
  const late =
    dialect.holdMs > 0
      ? ' One that was pushed less than half a minute ago may not be shown yet.'
      : '';
  throw new PeersyncError({
    code: 'NOT_FOUND',
    message: `The peer has no document ${url}; nothing was removed.`,
    hint: `\`peersync search WORDS\` shows the URLs of documents.${late}`,
    details: { url },
  });
}

function whyLeft(outcome: RemovalOutcome): string {
  if (outcome.status === 'failed') return `: ${safe(outcome.error.message)}`;
  if (outcome.status === 'remains') return `: ${safe(outcome.message)}`;
  if (outcome.status === 'removed') return ': the peer does not show it any more';
  return `: this peer cannot remove documents; an empty one stands in its place, in the collection "${REMOVED_COLLECTION}"`;
}

const wordsOf = ({ code, message }: PeersyncError) => ({ code, message });

function reasonOf(outcome: Outcome): string {
  if (outcome.status === 'failed') return `: ${safe(outcome.error.message)}`;
  if ('message' in outcome) return `: ${safe(outcome.message)}`;
  return outcome.status === 'confirmed'
    ? ` (${outcome.evidence.kind}: ${safe(outcome.evidence.shown)})`
    : '';
}

/** The first failure, else that the peer did not show all in time. */
function failureOf(outcomes: readonly Outcome[], timeout: string): PeersyncError | undefined {
  const failed = outcomes.find((outcome) => outcome.status === 'failed');
  if (failed !== undefined) return failed.error;
  const unseen = outcomes.filter((outcome) => outcome.status === 'unseen');
  if (unseen[0] === undefined) return undefined;
  const all = counted(outcomes.length, 'file');
  return new PeersyncError({
    code: 'TIMEOUT',
    message: `The peer took ${unseen.length} of ${all} and did not show that within ${timeout}: ${sentence(unseen[0].message)}`,
    hint: '`peersync doc URL` looks again later; a longer --timeout waits longer.',
  });
}

/**
 * The URL of each file: `url` where that is for one file, `url` and the file's name where it ends
 * in "/", and the `file://` URL of the file where none is given.
 *
 * @throws UsageError for a URL that is none, that is for one file where there are several, that two
 *   files would share, or that belongs to a watched folder
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
    const folder = folderOf(target.url, folders);
    if (folder !== undefined)
      throw new UsageError(
        `The document ${target.url} belongs to the folder ${quoted(folder.name)}, whose files are pushed by themselves.`,
        `Give another --url, or put the file into ${folder.path}.`,
      );
  }
  return targets;
}

/** The watched folder below whose URL a document lies. */
function folderOf(url: string, folders: readonly FolderConfig[]): FolderConfig | undefined {
  return folders.find((each) => comparableUrl(url).startsWith(comparableUrl(each.url)));
}

/** @throws UsageError for the document of a file that a watched folder has, or may have */
async function assertNoFile(url: string, folders: readonly FolderConfig[]): Promise<void> {
  const folder = folderOf(url, folders);
  if (folder === undefined) return;
  const path = url.startsWith(folder.url) ? decodedPath(url.slice(folder.url.length)) : undefined;
  const isKnown = path !== undefined && (await isThere(folder.path));
  if (isKnown && !(await isThere(join(folder.path, path)))) return;
  throw new UsageError(
    `The document ${url} belongs to a file of the folder ${quoted(folder.name)}.`,
    'Remove the file: with `"onDelete": "remove"` for the folder, its document goes with it.',
  );
}

function decodedPath(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}

const SCHEMES = new Set(['http:', 'https:', 'ftp:', 'file:']);

function urlOf(file: string, url: string | undefined, count: number): string {
  const path = writtenPath(file);
  if (url === undefined) return documentUrl(fileBase(dirname(path)), basename(path));
  if (url.endsWith('/')) {
    const base = normaliseBase(url);
    if (base !== undefined) return documentUrl(base, basename(path));
  } else if (count > 1) {
    throw new UsageError(
      `--url: received "${url}" for ${count} files.`,
      'Give a base that ends in "/"; each file has its name behind it.',
    );
  } else {
    const whole = wholeUrl(url);
    if (whole !== undefined) return whole;
  }
  throw new UsageError(
    `--url: received "${url}".`,
    'Give an http, https, ftp or file URL without credentials, such as https://files.example.org/report.md.',
  );
}

/** A URL in normal form, if it can be that of a document. */
function wholeUrl(url: string): string | undefined {
  const { protocol = '', username, password, href } = parseUrl(url) ?? {};
  return SCHEMES.has(protocol) && username === '' && password === '' ? href : undefined;
}

/** A file and the URL of the document that it is to become. */
export interface Target {
  /** The argument as it was given. */
  readonly file: string;
  readonly url: string;
}

/** A file that can go to the peer. */
export interface ReadFile extends Target, OutgoingFile {}

/**
 * Reads a file.
 *
 * @throws PeersyncError the reason why it cannot be pushed, in the words that are used for files of
 *   folders
 */
export async function readTarget(
  target: Target,
  rules: ContentRules,
  programs: Programs = NO_PROGRAMS,
): Promise<ReadFile> {
  const { file } = target;
  const refused = ({ code, hint, message }: Failure) =>
    new PeersyncError({ code, message: `${file}: ${message}`, hint, details: { file } });
  try {
    const path = await realpath(writtenPath(file));
    const stats = await stat(path);
    if (!stats.isFile()) throw refused(NOT_A_FILE);
    if (stats.size === 0)
      throw refused({ ...failures.empty(), hint: 'Push it when something is in it.' });
    const found = await fingerprint({ file: path, stat: fileStat(stats) });
    if (found.kind === 'unreadable') throw refused(failures.unreadable(found.code));
    if (found.kind !== 'version') throw refused(CHANGING);
    const { typeName, version } = found;
    const encoding = encodingWith(programs, path, version.encoding);
    const kept = cannotTravel(encoding, rules, typeName);
    if (kept !== undefined) throw refused(kept);
    return { ...target, path, version: { ...version, encoding } };
  } catch (error) {
    const code = error instanceof PeersyncError ? undefined : systemCode(error);
    if (code === undefined) throw error;
    throw refused(
      code === 'ENOENT' || code === 'ENOTDIR' ? NO_SUCH_FILE : failures.unreadable(code),
    );
  }
}

const NOT_A_FILE: Failure = {
  code: 'NOT_A_FILE',
  message: 'It is a directory or a device, and no file.',
  hint: 'Name files; a whole directory is what `folders` of the configuration are for.',
};

const NO_SUCH_FILE: Failure = {
  code: 'NO_SUCH_FILE',
  message: 'There is no such file.',
  hint: 'Name files that exist.',
};
