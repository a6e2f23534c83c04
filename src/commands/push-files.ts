import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { FolderConfig } from '../config/config.js';
import { documentUrl, fileBase, normaliseBase } from '../config/url.js';
import { fingerprint } from '../content/reader.js';
import type { Clock } from '../lib/clock.js';
import { PeersyncError, systemCode } from '../lib/errors.js';
import { fileStat } from '../lib/file.js';
import { comparableUrl } from '../peer/answer.js';
import type { ContentRules } from '../peer/dialect.js';
import { PeerError, type PeerErrorCode } from '../peer/errors.js';
import type { Text } from '../peer/form.js';
import {
  type EvidenceKind,
  evidenceOf,
  type Peerdoc,
  type PeerdocOptions,
  type PeerdocQuery,
  type SentVersion,
} from '../peer/peerdoc.js';
import type { PushAnswer, PushItem, PushOptions, PushResult } from '../peer/push.js';
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

/** What pushing asks of the peer; `PeerClient` is one. */
export interface PushPeer {
  push(items: readonly PushItem[], options: PushOptions): Promise<PushAnswer>;
  peerdoc(query: PeerdocQuery, options: PeerdocOptions): Promise<Peerdoc | undefined>;
}

const FIRST_PAUSE_MS = 200;
const PAUSE_GROWTH = 1.5;
/** Between two looks at a document of which it is measured when it is shown, in ms. */
const LONGEST_WATCHED_PAUSE_MS = 500;
/** A trouble of the peer that may pass by itself while there is time. */
const PASSING = new Set<PeerErrorCode>(['PEER_BUSY', 'PEER_TIMEOUT', 'PEER_UNREACHABLE', 'PEER_FAILED']);

/** Files that travel in one request: not more than `maxItems`, nor more bytes than `maxBytes` unless one alone has more. */
export function* batchesOf(
  files: readonly ReadyFile[],
  { maxItems, maxBytes }: { readonly maxItems: number; readonly maxBytes: number },
): Generator<readonly ReadyFile[]> {
  let batch: ReadyFile[] = [];
  let bytes = 0;
  for (const file of files) {
    if (batch.length === maxItems || (batch.length > 0 && bytes + file.size > maxBytes)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(file);
    bytes += file.size;
  }
  if (batch.length > 0) yield batch;
}

/**
 * Pushes files in one request; while the peer asks to wait, again.
 *
 * @returns for each file what the peer said, and what has to be shown by it
 */
export async function pushBatch(
  peer: PushPeer,
  files: readonly ReadyFile[],
  {
    collection,
    synchronous,
    commit,
  }: { readonly collection: string; readonly synchronous: boolean; readonly commit: boolean },
  parts: { readonly clock: Clock; readonly deadline: number; readonly signal: AbortSignal },
): Promise<readonly { readonly file: ReadyFile; readonly result: PushResult; readonly sent: SentVersion }[]> {
  const { clock, deadline, signal } = parts;
  const items = files.map(({ url, text, type, mtimeMs }) => ({
    ...{ url, collection, data: text },
    ...(type === '' ? {} : { contentType: type, lastModified: mtimeMs }),
  }));
  for (;;) {
    const at = clock.now();
    try {
      const { results, peerTime } = await peer.push(items, {
        ...(synchronous ? { synchronous } : {}),
        ...(commit ? { commit } : {}),
        signal,
      });
      return files.map((file, i) => ({
        file,
        result: results[i] ?? { ok: false, message: 'the peer did not answer for this item' },
        sent: {
          size: file.size,
          digest: file.digest,
          url: file.url,
          collection,
          at,
          ...(peerTime === undefined ? {} : { peerAt: peerTime }),
          ...dated(file, peerTime),
        },
      }));
    } catch (error) {
      const waitMs =
        error instanceof PeerError && error.code === 'PEER_BUSY' ? (error.retryAfterMs ?? 1_000) : undefined;
      if (waitMs === undefined || clock.now() + waitMs >= deadline) throw error;
      await clock.sleep(waitMs, signal);
    }
  }
}

/** The last modification, where it was told to the peer and will be kept: a time that is still to come is not. */
function dated({ type, mtimeMs }: ReadyFile, peerTime: number | undefined): { lastModified?: number } {
  const seconds = Math.floor(mtimeMs / 1000) * 1000;
  return type !== '' && peerTime !== undefined && seconds > 0 && seconds <= peerTime
    ? { lastModified: seconds }
    : {};
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
