import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { FolderConfig } from '../config/config.js';
import { collection as collectionField } from '../config/fields.js';
import { documentUrl, fileBase, normaliseBase } from '../config/url.js';
import { fingerprint } from '../content/reader.js';
import { type Clock, systemClock } from '../lib/clock.js';
import { EXIT, PeersyncError, systemCode } from '../lib/errors.js';
import { fileStat } from '../lib/file.js';
import { sentence } from '../lib/text.js';
import { comparableUrl } from '../peer/answer.js';
import { DIALECTS, type PeerClient } from '../peer/client.js';
import type { ContentRules } from '../peer/dialect.js';
import { PeerError, type PeerErrorCode } from '../peer/errors.js';
import type { Text } from '../peer/form.js';
import { type EvidenceKind, evidenceOf, type SentVersion } from '../peer/peerdoc.js';
import type { Trouble } from '../state/entry.js';
import { cannotTravel, streamed, withoutWords } from '../uplink/documents.js';
import { trouble } from '../watch/rules.js';
import {
  define,
  duration,
  needed,
  prepare,
  preset,
  print,
  printJson,
  several,
  UsageError,
  unlessNo,
  value,
} from './context.js';
import { withPeer } from './peer.js';
import { counted, safe } from './text.js';

/** Pushes single files, outside of all folders, and waits until the peer shows them. */
export const pushCommand = define({
  positionals: {
    file: several('Files; text, unless the peer takes others'),
  },
  options: {
    collection: needed('The collection that their documents are tagged with'),
    url: value('The URL of the document, or a base that ends in "/"; the file:// URL unless given'),
    timeout: preset('2m', 'How long the peer may take to show them'),
    wait: unlessNo('Wait until the peer shows them; --no-wait: do not'),
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
    const timeoutMs = duration('--timeout', options.timeout);
    const { config, log } = await prepare(options);
    const { folders, push, confirm } = config;
    const targets = targetsOf(options.file, options.url, folders);
    const outcomes: Outcome[] = [];
    const tell = (file: ReadyFile, outcome: Outcome) => {
      outcomes.push(outcome);
      if (options.json) printJson({ file: file.file, url: file.url, ...outcome });
      else print(`${outcome.status.padEnd(9)}  ${safe(file.file)}  ${safe(file.url)}${reasonOf(outcome)}`);
    };
    await withPeer(config, log, async (client, signal) => {
      const dialect = DIALECTS[client.dialect ?? (await client.detect({ signal }))];
      const files = await readyFiles(targets, dialect.content);
      const clock = systemClock;
      const waits: (() => Promise<void>)[] = [];
      for (const file of files) {
        const deadline = clock.now() + timeoutMs;
        const sent = await pushFile(client, file, { ...push, collection }, { clock, deadline, signal });
        if ('refused' in sent) tell(file, { status: 'refused', message: sent.refused });
        else if (!options.wait) tell(file, { status: 'accepted' });
        const patience = { deadline, maxInterval: confirm.maxInterval, hold: confirm.hold ?? dialect.holdMs };
        if (!('refused' in sent) && options.wait)
          waits.push(async () => tell(file, await untilShown(client, sent, patience, { clock, signal })));
      }
      // One after the other: when the first is shown, the others mostly are.
      for (const wait of waits) await wait();
    });
    const failure = failureOf(outcomes, options.timeout);
    if (failure !== undefined) throw failure;
    return EXIT.done;
  },
});

function reasonOf(outcome: Outcome): string {
  if (outcome.status === 'refused' || outcome.status === 'unseen') return `: ${safe(outcome.message)}`;
  return outcome.status === 'confirmed' ? ` (${outcome.evidence.kind}: ${safe(outcome.evidence.shown)})` : '';
}

function failureOf(outcomes: readonly Outcome[], timeout: string): PeersyncError | undefined {
  const refused = outcomes.filter((outcome) => outcome.status === 'refused');
  const unseen = outcomes.filter((outcome) => outcome.status === 'unseen');
  if (refused[0] !== undefined)
    return new PeersyncError({
      code: 'REFUSED',
      message: `The peer refused ${refused.length} of ${counted(outcomes.length, 'file')}: ${sentence(refused[0].message)}`,
      hint: 'Mend what the peer complains about, then push again.',
    });
  if (unseen[0] === undefined) return undefined;
  return new PeersyncError({
    code: 'TIMEOUT',
    message: `The peer took ${unseen.length} of ${counted(outcomes.length, 'file')} and did not show that within ${timeout}: ${sentence(unseen[0].message)}`,
    hint: '`peersync doc URL` looks again later; a longer --timeout waits longer.',
  });
}

/** A file and the URL of the document that it is to become. */
type Target = Pick<ReadyFile, 'file' | 'url'>;

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
    if ('code' in found) {
      const { code, hint, message } = found;
      const { file } = target;
      failures.push(new PeersyncError({ code, message: `${file}: ${message}`, hint, details: { file } }));
    } else ready.push(found);
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, 'some files cannot be pushed');
  return ready;
}

async function readyFile(target: Target, rules: ContentRules): Promise<ReadyFile | Trouble> {
  try {
    const path = await realpath(target.file);
    const stats = await stat(path);
    if (!stats.isFile()) return NOT_A_FILE;
    if (stats.size === 0) return { ...trouble.empty(), hint: 'Push it when something is in it.' };
    const found = await fingerprint({ file: path, stat: fileStat(stats) });
    if (found.kind === 'unreadable') return trouble.unreadable(found.code);
    if (found.kind !== 'version') return CHANGING;
    const refused = cannotTravel(found.version.encoding, rules);
    if (refused !== undefined) return refused;
    const packed = await streamed(path, found.version, rules);
    if (packed.kind === 'unreadable') return trouble.unreadable(packed.code);
    if (packed.kind === 'stale') return CHANGING;
    if (packed.kind === 'wordless') return withoutWords();
    return { ...target, ...packed, mtimeMs: found.version.mtimeMs };
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    return code === 'ENOENT' || code === 'ENOTDIR' ? NO_SUCH_FILE : trouble.unreadable(code);
  }
}

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

/** A file that can go to the peer. */
export interface ReadyFile {
  /** As it was given. */
  readonly file: string;
  /** Of the document that it is to become. */
  readonly url: string;
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

/** What became of a file that was pushed. */
export type Outcome =
  | { readonly status: 'accepted' }
  | {
      readonly status: 'confirmed';
      readonly evidence: { readonly kind: EvidenceKind; readonly shown: string };
    }
  /** The peer took it, and did not show it in time. */
  | { readonly status: 'unseen'; readonly message: string }
  | { readonly status: 'refused'; readonly message: string };

export interface PushPatience {
  /** In ms since the epoch. */
  readonly deadline: number;
  /** Longest pause between two look-ups of one document, in ms. */
  readonly maxInterval: number;
  /** So long after a push the peer may take back what it shows, in ms. A later first sight must hold as long. */
  readonly hold: number;
  /** Called when the peer begins to show the document. Where it is given, look-ups begin at once and stay frequent. */
  readonly onShown?: (at: number) => void;
}

/** What pushing asks of the peer. */
export type PushPeer = Pick<PeerClient, 'push' | 'peerdoc'>;

const FIRST_PAUSE_MS = 200;
const PAUSE_GROWTH = 1.5;
/** Between two looks at a document of which it is measured when it is shown, in ms. */
const LONGEST_WATCHED_PAUSE_MS = 500;
/** A trouble of the peer that may pass by itself while there is time. */
const PASSING = new Set<PeerErrorCode>(['PEER_BUSY', 'PEER_TIMEOUT', 'PEER_UNREACHABLE', 'PEER_FAILED']);

/**
 * Pushes a file by itself; while the peer asks to wait, again.
 *
 * @returns what has to be shown by the peer, or why it refused the file
 */
export async function pushFile(
  peer: PushPeer,
  file: ReadyFile,
  how: { readonly collection: string; readonly synchronous?: boolean; readonly commit?: boolean },
  {
    clock,
    deadline,
    signal,
  }: { readonly clock: Clock; readonly deadline: number; readonly signal: AbortSignal },
): Promise<SentVersion | { readonly refused: string }> {
  const { collection, synchronous = false, commit = false } = how;
  const { digest, mtimeMs, size, text, type, url } = file;
  const dated = type === '' ? {} : { contentType: type, lastModified: mtimeMs };
  for (;;) {
    const at = clock.now();
    try {
      const { results, peerTime } = await peer.push([{ url, collection, data: text, ...dated }], {
        ...(synchronous ? { synchronous } : {}),
        ...(commit ? { commit } : {}),
        signal,
      });
      const [result] = results;
      if (result?.ok !== true) return { refused: result?.message ?? 'the peer did not answer for this item' };
      const sent = { size, digest, url, collection, at };
      if (peerTime === undefined) return sent;
      // Where the last modification was told it will be kept, unless it is a time that is still to come.
      const seconds = Math.floor(mtimeMs / 1000) * 1000;
      const isKept = type !== '' && seconds > 0 && seconds <= peerTime;
      return { ...sent, peerAt: peerTime, ...(isKept ? { lastModified: seconds } : {}) };
    } catch (error) {
      const waitMs =
        error instanceof PeerError && error.code === 'PEER_BUSY' ? (error.retryAfterMs ?? 1_000) : undefined;
      if (waitMs === undefined || clock.now() + waitMs >= deadline) throw error;
      await clock.sleep(waitMs, signal);
    }
  }
}

/**
 * Looks a document up until the peer shows the version that was pushed, or the time is over.
 *
 * @throws PeerError when the last look-up before the end of the time failed, or one fails in a way that does not pass
 */
export async function untilShown(
  peer: PushPeer,
  sent: SentVersion,
  { deadline, maxInterval, hold, onShown }: PushPatience,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Outcome> {
  let firstShown: number | undefined;
  let wasMissed = false;
  const heldUntil = sent.at + hold;
  const wait = Math.min(heldUntil, deadline) - clock.now();
  if (wait > 0 && onShown === undefined) await clock.sleep(wait, signal);
  const longest = onShown === undefined ? maxInterval : LONGEST_WATCHED_PAUSE_MS;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * PAUSE_GROWTH, longest)) {
    let trouble: PeerError | undefined;
    let message = '';
    try {
      const doc = await peer.peerdoc({ url: sent.url }, { signal });
      const seen = evidenceOf(doc, sent);
      if (seen.shown) {
        if (firstShown === undefined) onShown?.(clock.now());
        firstShown ??= clock.now();
        if ((!wasMissed && clock.now() >= heldUntil) || clock.now() - firstShown >= hold)
          return { status: 'confirmed', evidence: { kind: seen.kind, shown: seen.text } };
        message = 'the peer shows the document, but not yet for long enough (confirm.hold)';
      } else {
        firstShown = undefined;
        wasMissed ||= clock.now() >= heldUntil;
        message = seen.why;
      }
    } catch (error) {
      if (!(error instanceof PeerError) || !PASSING.has(error.code)) throw error;
      trouble = error;
    }
    const left = deadline - clock.now();
    if (left <= 0) {
      if (trouble !== undefined) throw trouble;
      return { status: 'unseen', message };
    }
    await clock.sleep(Math.min(Math.max(pause, trouble?.retryAfterMs ?? 0), left), signal);
  }
}
