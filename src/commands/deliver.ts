import { mkdtemp, realpath, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../config/config.js';
import { fingerprint } from '../content/reader.js';
import { queueLimits } from '../daemon/parts.js';
import { systemClock } from '../lib/clock.js';
import { PeersyncError, systemCode } from '../lib/errors.js';
import { fileStat } from '../lib/file.js';
import type { Logger } from '../lib/logger.js';
import type { ContentRules, Dialect } from '../peer/dialect.js';
import type { EvidenceKind } from '../peer/peerdoc.js';
import { RequestQueue } from '../queue/request-queue.js';
import type { Entry, Trouble, Version } from '../state/entry.js';
import { State } from '../state/state.js';
import { read } from '../state/transitions.js';
import { classify } from '../uplink/batch-sender.js';
import type { UplinkPeer } from '../uplink/deps.js';
import { cannotTravel, pack } from '../uplink/documents.js';
import { Uplink } from '../uplink/uplink.js';
import { trouble } from '../watch/rules.js';
import { lastingTrouble, peerInTrouble } from './daemon-access.js';

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

/** Reads a file; returns what keeps it from the peer, where something does. */
export async function readTarget(target: Target, rules: ContentRules): Promise<ReadFile | Trouble> {
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
    const { version } = found;
    return cannotTravel(version.encoding, rules) ?? { ...target, path, version };
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
  | { readonly status: 'refused'; readonly message: string }
  | { readonly status: 'failed'; readonly error: PeersyncError };

export interface DeliverOptions {
  readonly config: Config;
  readonly collection: string;
  /** How long all may take, in ms. */
  readonly timeoutMs: number;
  /** Whether it is waited until the peer shows a file. @default true */
  readonly wait?: boolean;
  readonly log: Logger;
  readonly signal: AbortSignal;
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
  { collection, config, log, signal, timeoutMs, wait = true }: DeliverOptions,
  tell: (file: File, outcome: Outcome, entry: Entry | undefined) => void,
): Promise<void> {
  const clock = systemClock;
  const deadline = clock.now() + timeoutMs;
  const ending = new AbortController();
  const over = AbortSignal.any([signal, ending.signal]);
  const directory = await mkdtemp(join(tmpdir(), 'peersync-push-'));
  const state = await State.open(directory, { clock, log });
  const queue = new RequestQueue({ ...queueLimits(config), classify, clock, log, peerName: 'The peer' });
  const changed = new Set<string>();
  const uplink = new Uplink({
    ...{ state, queue, peer, clock, log, commit: () => state.commit(), pack: async (order) => pack(order) },
    dialect: { current: dialect, known: async () => true, misfits: async () => false },
    settings: { ...config, push: { ...config.push, attempts: 1, maxItems: 1, linger: 0 } },
    pathOf: ({ path }) => files[Number(path)]?.path,
    standing: () => 'there',
    look: ({ path }) => void changed.add(path),
  });
  const outcomeOf = (entry: Entry | undefined): Outcome | undefined => {
    if (entry === undefined || entry.status === 'gone') return undefined;
    const { path, status } = entry;
    if (status === 'confirmed') return { status, evidence: evidenceText(entry.evidence) };
    if (status === 'quarantined' || status === 'passed') return refusal(entry.trouble);
    if (status === 'accepted' && !wait) return { status };
    if (changed.has(path)) return { status: 'failed', error: new PeersyncError(CHANGING) };
    const lasting = lastingTrouble(queue.status().circuit, clock.now());
    if (lasting !== undefined) return { status: 'failed', error: peerInTrouble(lasting) };
    if (clock.now() < deadline) return undefined;
    if (entry.trouble !== undefined) return refusal(entry.trouble);
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
      for (const [i, file] of open) {
        const entry = state.get(FOLDER, `${i}`);
        const outcome = outcomeOf(entry);
        if (outcome !== undefined && open.delete(i)) tell(file, outcome, entry);
      }
      if (open.size > 0) await clock.sleep(POLL_MS, over);
    }
  } finally {
    const stopped = uplink.stop();
    await queue.stop(0);
    await stopped;
    await state.close();
    await rm(directory, { recursive: true });
  }
}

function evidenceText({ kind, shown }: { readonly kind: EvidenceKind; readonly shown: string }) {
  return { kind, shown };
}

function refusal(why: Trouble): Outcome {
  if (why.code !== 'REFUSED') return { status: 'failed', error: new PeersyncError(why) };
  return { status: 'refused', message: why.message.replace(/^The peer refused it: /, '') };
}
