import { mkdtemp, realpath, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import type { Config, FolderConfig } from '../config/config.js';
import { collection as collectionField } from '../config/fields.js';
import { documentUrl, fileBase, normaliseBase } from '../config/url.js';
import { fingerprint } from '../content/reader.js';
import { queueLimits } from '../daemon/parts.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, PeersyncError, systemCode } from '../lib/errors.js';
import { fileStat } from '../lib/file.js';
import type { Logger } from '../lib/logger.js';
import { parseUrl, sentence } from '../lib/text.js';
import { comparableUrl } from '../peer/answer.js';
import type { ContentRules, Dialect } from '../peer/dialect.js';
import { DIALECTS } from '../peer/dialects.js';
import { RequestQueue } from '../queue/request-queue.js';
import type { Entry, Evidence, Trouble, Version } from '../state/entry.js';
import { isAway, read } from '../state/entry.js';
import { State } from '../state/state.js';
import { classify } from '../uplink/batch-sender.js';
import type { UplinkPeer } from '../uplink/deps.js';
import { DocumentProcesses } from '../uplink/document-processes.js';
import { cannotTravel, type Packers, pack } from '../uplink/documents.js';
import { Uplink } from '../uplink/uplink.js';
import { trouble } from '../watch/rules.js';
import { answer, define, prepare, UsageError } from './context.js';
import { lastingTrouble, peerInTrouble } from './daemon-access.js';
import * as option from './option.js';
import { withPeer } from './peer.js';
import { counted, safe } from './text.js';

/** Pushes single files, outside of all folders, and waits until the peer shows them. */
export const pushCommand = define({
  positionals: { file: option.several('Files; text, unless the peer takes others') },
  options: {
    collection: option.needed('The collection that their documents are tagged with'),
    url: option.value('The URL of the document, or a base that ends in "/"; the file:// URL unless given'),
    timeout: option.preset('2m', 'How long the peer may take to show them'),
    wait: option.unlessNo('Wait until the peer shows them; --no-wait: do not'),
  },
  examples: [
    ['$0 push a.md --collection notes --url https://example.org/a.md', 'One file'],
    ['$0 push *.md --collection notes --url https://example.org/notes/', 'Several, each with its name'],
  ],
  run: async (options) => {
    const { collection } = options;
    if (options.file.length === 0) throw new UsageError('No file was named.');
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
    const tell = ({ file, url }: Target, outcome: Outcome) => {
      outcomes.push(outcome);
      const { status } = outcome;
      const shown = outcome.status === 'failed' ? { status, ...wordsOf(outcome.error) } : outcome;
      answer(options, { file, url, ...shown }, () => [
        `${status.padEnd(9)}  ${safe(file)}  ${safe(url)}${reasonOf(outcome)}`,
      ]);
    };
    await withPeer(config, log, async (client, signal) => {
      const dialect = DIALECTS[client.dialect ?? (await client.detect({ signal }))];
      const files: ReadFile[] = [];
      for (const target of targets) files.push(await readTarget(target, dialect.content));
      const { wait } = options;
      await deliver(client, dialect, files, { config, collection, timeoutMs, wait, log, signal }, tell);
    });
    const failure = failureOf(outcomes, options.timeout);
    if (failure !== undefined) throw failure;
    return EXIT.done;
  },
});

const wordsOf = ({ code, message }: PeersyncError) => ({ code, message });

function reasonOf(outcome: Outcome): string {
  if (outcome.status === 'failed') return `: ${safe(outcome.error.message)}`;
  if ('message' in outcome) return `: ${safe(outcome.message)}`;
  return outcome.status === 'confirmed' ? ` (${outcome.evidence.kind}: ${safe(outcome.evidence.shown)})` : '';
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
  } else {
    const { protocol = '', username, password, href } = parseUrl(url) ?? {};
    if (href !== undefined && SCHEMES.has(protocol) && username === '' && password === '') return href;
  }
  throw new UsageError(
    `--url: received "${url}".`,
    'Give an http, https, ftp or file URL without credentials, such as https://files.example.org/report.md.',
  );
}

/** A file and the URL of the document that it is to become. */
export interface Target {
  /** As it was given. */
  readonly file: string;
  readonly url: string;
}

/** A file that can go to the peer. */
export interface ReadFile extends Target {
  /** Absolute, behind all links. */
  readonly path: string;
  readonly version: Version;
}

/** Reads a file. @throws PeersyncError with what keeps it from the peer, in the words that are used for files of folders */
export async function readTarget(target: Target, rules: ContentRules): Promise<ReadFile> {
  const { file } = target;
  const refused = ({ code, hint, message }: Trouble) =>
    new PeersyncError({ code, message: `${file}: ${message}`, hint, details: { file } });
  try {
    const path = await realpath(file);
    const stats = await stat(path);
    if (!stats.isFile()) throw refused(NOT_A_FILE);
    if (stats.size === 0) throw refused({ ...trouble.empty(), hint: 'Push it when something is in it.' });
    const found = await fingerprint({ file: path, stat: fileStat(stats) });
    if (found.kind === 'unreadable') throw refused(trouble.unreadable(found.code));
    if (found.kind !== 'version') throw refused(CHANGING);
    const { version } = found;
    const kept = cannotTravel(version.encoding, rules);
    if (kept !== undefined) throw refused(kept);
    return { ...target, path, version };
  } catch (error) {
    const code = error instanceof PeersyncError ? undefined : systemCode(error);
    if (code === undefined) throw error;
    throw refused(code === 'ENOENT' || code === 'ENOTDIR' ? NO_SUCH_FILE : trouble.unreadable(code));
  }
}

const NOT_A_FILE: Trouble = {
  code: 'NOT_A_FILE',
  message: 'It is a directory or a device, and no file.',
  hint: 'Name files; a whole directory is what `folders` of the configuration are for.',
};

const NO_SUCH_FILE: Trouble = {
  code: 'NO_SUCH_FILE',
  message: 'There is no such file.',
  hint: 'Name files that exist.',
};

const CHANGING: Trouble = {
  code: 'FILE_CHANGING',
  message: 'The file is being changed at this moment.',
  hint: 'Push it again when it is at rest.',
};

const NOT_SENT: Trouble = {
  code: 'TIMEOUT',
  message: 'It could not be sent in time.',
  hint: 'A longer --timeout waits longer.',
};

/** What became of a file that was pushed. */
export type Outcome =
  | { readonly status: 'accepted' }
  | { readonly status: 'confirmed'; readonly evidence: Pick<Evidence, 'kind' | 'shown'> }
  /** The peer took it, and did not show it in time. */
  | { readonly status: 'unseen'; readonly message: string }
  | { readonly status: 'failed'; readonly error: PeersyncError };

export interface DeliverOptions {
  readonly config: Config;
  readonly collection: string;
  /** How long the peer may take until it accepts or shows another file, in ms. */
  readonly timeoutMs: number;
  /** Whether it is waited until the peer shows a file. @default true */
  readonly wait?: boolean;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Reads documents; in threads of its own unless given. */
  readonly packDocument?: Packers['packDocument'];
}

/** The folder of the items in the state that is gone afterwards; its paths are numbers. */
const FOLDER = 'pushed';
const POLL_MS = 50;

/**
 * Pushes files, each by itself, and waits until the peer shows them. It is the uplink of the daemon that does it, on a state of
 * its own that is gone afterwards: what is confirmed here is what the daemon confirms. There is one attempt.
 *
 * @param tell is given what became of each file, as soon as that is known
 * @throws what `signal` aborts with
 */
export async function deliver<File extends ReadFile>(
  peer: UplinkPeer,
  dialect: Dialect,
  files: readonly File[],
  { collection, config, log, packDocument, signal, timeoutMs, wait = true }: DeliverOptions,
  tell: (file: File, outcome: Outcome, entry: Entry | undefined) => void,
): Promise<void> {
  const clock = systemClock;
  let movedAt = clock.now();
  const ending = new AbortController();
  const over = AbortSignal.any([signal, ending.signal]);
  const directory = await mkdtemp(join(tmpdir(), 'peersync-push-'));
  const state = await State.open(directory, { clock, log });
  const queue = new RequestQueue({ ...queueLimits(config), classify, clock, log, peerName: 'The peer' });
  const documents = new DocumentProcesses(new URL('../document-process.js', import.meta.url), clock, log);
  const changed = new Set<string>();
  const uplink = new Uplink({
    ...{ state, queue, peer, clock, log, pack: async (order) => pack(order) },
    packDocument: packDocument ?? ((...order) => documents.read(...order)),
    linksWithin: () => undefined,
    extracts: () => false,
    dialect: { current: dialect, known: async () => true, misfits: async () => false },
    settings: { ...config, push: { ...config.push, attempts: 1, maxItems: 1, linger: 0 } },
    pathOf: ({ path }) => files[Number(path)]?.path,
    standing: () => 'there',
    look: ({ path }) => void changed.add(path),
  });
  const outcomeOf = (
    entry: Entry | undefined,
    lasting: ReturnType<typeof lastingTrouble>,
  ): Outcome | undefined => {
    if (entry === undefined || isAway(entry)) return undefined;
    const { path, status } = entry;
    movedAt = Math.max(movedAt, entry.since);
    if (status === 'confirmed') return { status, evidence: entry.evidence };
    if (status === 'quarantined' || status === 'skipped') return failed(entry.trouble);
    if (status === 'accepted' && !wait) return { status };
    if (changed.has(path)) return failed(CHANGING);
    if (lasting !== undefined) return { status: 'failed', error: peerInTrouble(lasting) };
    if (clock.now() < movedAt + timeoutMs) return undefined;
    if (status === 'pending' || entry.trouble !== undefined) return failed(entry.trouble ?? NOT_SENT);
    const answer = uplink.nextLook(entry)?.lastAnswer ?? 'the peer could not be asked in time';
    return { status: 'unseen', message: answer };
  };
  try {
    for (const [i, { url, version }] of files.entries())
      state.put(read(undefined, { folder: FOLDER, path: `${i}`, url, collection }, version, clock.now()));
    uplink.start((error) => ending.abort(error));
    const open = new Map(files.entries());
    while (open.size > 0) {
      over.throwIfAborted();
      const lasting = lastingTrouble(queue.status().circuit, clock.now());
      for (const [i, file] of open) {
        const entry = state.get(FOLDER, `${i}`);
        const outcome = outcomeOf(entry, lasting);
        if (outcome !== undefined && open.delete(i)) tell(file, outcome, entry);
      }
      if (open.size > 0) await clock.sleep(POLL_MS, over);
    }
  } finally {
    const stopped = uplink.stop();
    await queue.stop(0);
    await stopped;
    await documents.close();
    await state.close().finally(() => rm(directory, { recursive: true }));
  }
}

const failed = (why: Trouble): Outcome => ({ status: 'failed', error: new PeersyncError(why) });
