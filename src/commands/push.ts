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
import { type EvidenceKind, evidenceOf, type SentVersion } from '../peer/peerdoc.js';
import type { Trouble } from '../state/entry.js';
import { cannotTravel, type Packed, streamed, withoutWords } from '../uplink/documents.js';
import { trouble } from '../watch/rules.js';
import {
  answer,
  define,
  duration,
  needed,
  prepare,
  preset,
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
    const tell = ({ file, url }: Target, outcome: Outcome) => {
      outcomes.push(outcome);
      answer(options, { file, url, ...outcome }, () => [
        `${outcome.status.padEnd(9)}  ${safe(file)}  ${safe(url)}${reasonOf(outcome)}`,
      ]);
    };
    await withPeer(config, log, async (client, signal) => {
      const dialect = DIALECTS[client.dialect ?? (await client.detect({ signal }))];
      const clock = systemClock;
      const waiting: { readonly file: ReadyFile; readonly sent: SentVersion; readonly deadline: number }[] =
        [];
      for (const file of await readyFiles(targets, dialect.content)) {
        const deadline = clock.now() + timeoutMs;
        const sent = await pushFile(client, file, { ...push, collection }, { clock, deadline, signal });
        if ('refused' in sent) tell(file, { status: 'refused', message: sent.refused });
        else if (options.wait) waiting.push({ file, sent, deadline });
        else tell(file, { status: 'accepted' });
      }
      const { hold = dialect.holdMs, maxInterval } = confirm;
      // One after the other: when the first is shown, the others mostly are.
      for (const { file, sent, deadline } of waiting)
        tell(file, await untilShown(client, sent, { deadline, maxInterval, hold }, { clock, signal }));
    });
    const failure = failureOf(outcomes, options.timeout);
    if (failure !== undefined) throw failure;
    return EXIT.done;
  },
});

function reasonOf(outcome: Outcome): string {
  if ('message' in outcome) return `: ${safe(outcome.message)}`;
  return outcome.status === 'confirmed' ? ` (${outcome.evidence.kind}: ${safe(outcome.evidence.shown)})` : '';
}

function failureOf(outcomes: readonly Outcome[], timeout: string): PeersyncError | undefined {
  const of = (status: Outcome['status']) =>
    outcomes.flatMap((outcome) => ('message' in outcome && outcome.status === status ? outcome.message : []));
  const [refused, unseen] = [of('refused'), of('unseen')];
  const all = counted(outcomes.length, 'file');
  if (refused[0] !== undefined)
    return new PeersyncError({
      code: 'REFUSED',
      message: `The peer refused ${refused.length} of ${all}: ${sentence(refused[0])}`,
      hint: 'Mend what the peer complains about, then push again.',
    });
  if (unseen[0] === undefined) return undefined;
  return new PeersyncError({
    code: 'TIMEOUT',
    message: `The peer took ${unseen.length} of ${all} and did not show that within ${timeout}: ${sentence(unseen[0])}`,
    hint: '`peersync doc URL` looks again later; a longer --timeout waits longer.',
  });
}

/** A file and the URL of the document that it is to become. */
interface Target {
  /** As it was given. */
  readonly file: string;
  readonly url: string;
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
    if (!('code' in found)) ready.push(found);
    else {
      const { file } = target;
      const message = `${file}: ${found.message}`;
      failures.push(new PeersyncError({ code: found.code, message, hint: found.hint, details: { file } }));
    }
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) throw new AggregateError(failures, 'some files cannot be pushed');
  return ready;
}

/** A file that can go to the peer, and what of it travels. */
export type ReadyFile = Target &
  Omit<Extract<Packed, { readonly kind: 'content' }>, 'kind' | 'words'> & {
    /** ms since the epoch. */
    readonly mtimeMs: number;
  };

async function readyFile(target: Target, rules: ContentRules): Promise<ReadyFile | Trouble> {
  try {
    const path = await realpath(target.file);
    const stats = await stat(path);
    if (!stats.isFile())
      return {
        code: 'NOT_A_FILE',
        message: 'It is a directory or a device, and no file.',
        hint: 'Name files; a whole directory is what `folders` of the configuration are for.',
      };
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
    if (code !== 'ENOENT' && code !== 'ENOTDIR') return trouble.unreadable(code);
    return { code: 'NO_SUCH_FILE', message: 'There is no such file.', hint: 'Name files that exist.' };
  }
}

const CHANGING: Trouble = {
  code: 'FILE_CHANGING',
  message: 'The file is being changed at this moment.',
  hint: 'Push it again when it is at rest.',
};

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
}

/** What pushing asks of the peer. */
export type PushPeer = Pick<PeerClient, 'push' | 'peerdoc'>;

const FIRST_PAUSE_MS = 200;
const PAUSE_GROWTH = 1.5;
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
  const options = { ...(synchronous && { synchronous }), ...(commit && { commit }), signal };
  for (;;) {
    const at = clock.now();
    try {
      const { results, peerTime } = await peer.push([{ url, collection, data: text, ...dated }], options);
      const [result] = results;
      if (result?.ok !== true) return { refused: result?.message ?? 'the peer did not answer for this item' };
      const sent = { size, digest, url, collection, at };
      if (peerTime === undefined) return sent;
      // Where the last modification was told it will be kept, unless it is a time that is still to come.
      const seconds = Math.floor(mtimeMs / 1000) * 1000;
      const isKept = type !== '' && seconds > 0 && seconds <= peerTime;
      return { ...sent, peerAt: peerTime, ...(isKept && { lastModified: seconds }) };
    } catch (error) {
      if (!(error instanceof PeerError) || error.code !== 'PEER_BUSY') throw error;
      const { retryAfterMs = 1_000 } = error;
      if (clock.now() + retryAfterMs >= deadline) throw error;
      await clock.sleep(retryAfterMs, signal);
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
  { deadline, maxInterval, hold }: PushPatience,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Outcome> {
  const heldUntil = sent.at + hold;
  let shownSince: number | undefined;
  /** It was not shown when the hold was over. */
  let isLate = false;
  const waitMs = Math.min(heldUntil, deadline) - clock.now();
  if (waitMs > 0) await clock.sleep(waitMs, signal);
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * PAUSE_GROWTH, maxInterval)) {
    let trouble: PeerError | undefined;
    let message = '';
    try {
      const seen = evidenceOf(await peer.peerdoc({ url: sent.url }, { signal }), sent);
      const now = clock.now();
      if (seen.shown) {
        shownSince ??= now;
        if ((!isLate && now >= heldUntil) || now - shownSince >= hold)
          return { status: 'confirmed', evidence: { kind: seen.kind, shown: seen.text } };
        message = 'the peer shows the document, but not yet for long enough (confirm.hold)';
      } else {
        shownSince = undefined;
        isLate = true;
        message = seen.why;
      }
    } catch (error) {
      if (!(error instanceof PeerError) || !PASSING.has(error.code)) throw error;
      trouble = error;
    }
    const left = deadline - clock.now();
    if (left > 0) await clock.sleep(Math.min(Math.max(pause, trouble?.retryAfterMs ?? 0), left), signal);
    else if (trouble !== undefined) throw trouble;
    else return { status: 'unseen', message };
  }
}
