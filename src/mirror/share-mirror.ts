import { join, posix } from 'node:path';
import type { ShareMirrorConfig } from '../config/config.js';
import { PeerError } from '../peer/errors.js';
import type { ShareOptions, ShareRemainder, ShareStream } from '../peer/share.js';
import { type AlarmCode, MirrorAlarm } from './alarms.js';
import {
  beginDownload,
  type Download,
  discard,
  downloadOf,
  isStale,
  keepDownload,
  stands,
} from './download.js';
import { MirrorError } from './errors.js';
import type { Facts, Identity } from './life.js';
import { errorWords, likenessOf, likenessOfName, likenessOfType, SMALL_BYTES, typeFor } from './likeness.js';
import type { Followed, FollowOptions, Mirror, MirrorTools } from './parts.js';
import type { Place } from './place.js';
import { placeNotes } from './place-notes.js';
import { quoted } from './quoted.js';
import type { MirrorRecord, ShareVersion } from './record.js';
import type { Spot } from './root.js';
import { throughDoor } from './through-door.js';
import { removeWhole, replaceWhole, sameStamp, stampAt } from './whole-file.js';

export interface ShareMirrorParts {
  readonly name: string;
  readonly settings: ShareMirrorConfig;
  /** Its name in the peer, where a pattern brought it here: accepted as gone, it is forgotten and not waited for. */
  readonly matched: string | undefined;
  readonly place: Place;
  readonly tools: MirrorTools;
}

/**
 * A shared object of the peer as a file.
 *
 * The answer is looked at before it is written: nothing at all, a page of HTML where there was none, XML or JSON where there was
 * something else, a short text about an error, or more than `maxSize` is an alarm, and so is an object that the peer has no more. Accepting the latter removes
 * the file, and the mirror waits for the object to come back.
 *
 * Where the peer tells versions apart, an object that is here already is asked for only if it changed. A large one that
 * breaks off, or that the end of the process cuts short, is kept (see `Download`), and the next run asks for its end alone;
 * one that changed meanwhile comes whole.
 */
export class ShareMirror implements Mirror {
  readonly name: string;
  readonly identity: Identity;
  readonly every: number;
  readonly #settings: ShareMirrorConfig;
  readonly #tools: MirrorTools;
  readonly #what: string;
  readonly #notes: readonly string[];

  constructor({ name, settings, matched, place, tools }: ShareMirrorParts) {
    const { every, data, c } = settings;
    this.name = name;
    this.identity = {
      kind: 'share',
      path: place.path,
      ...(matched === undefined ? {} : { share: matched }),
    };
    this.#notes = placeNotes(place);
    this.every = every;
    this.#settings = settings;
    this.#tools = tools;
    this.#what = `the shared object ${quoted(c === undefined ? data : `${c}/${data}`)}`;
  }

  async follow(before: MirrorRecord | undefined, options: FollowOptions): Promise<Followed> {
    const { peer, door } = this.#tools;
    const { data, c, maxSize } = this.#settings;
    const maxBytes = options.accepted.includes('MIRROR_TOO_LARGE') ? Number.MAX_SAFE_INTEGER : maxSize;
    const begun = await this.#begun();
    const conditions = begun === undefined ? await this.#conditions(before) : { resume: remainderOf(begun) };
    try {
      const followed = await throughDoor(door, options.signal, (signal) =>
        peer.share(
          { data, ...(c === undefined ? {} : { c }) },
          (share) =>
            share.isUnchanged
              ? this.#unchanged(before)
              : this.#take(share, { before, begun, maxBytes, accepted: options.accepted, signal }),
          { maxBytes, signal, ...conditions },
        ),
      );
      if (followed !== undefined) return followed;
      await this.#forget();
      return await this.#gone(before, options);
    } catch (error) {
      // Asked for its end alone, a peer may fail for ever.
      const isStuck = begun !== undefined && downloadOf(this.#tools.state, this.name)?.bytes === begun.bytes;
      if (isTooLarge(error) || (isStuck && isAboutRequest(error))) await this.#forget();
      if (isTooLarge(error)) throw this.#alarm('MIRROR_TOO_LARGE', `${maxSize} bytes`);
      throw error;
    }
  }

  async #take(share: ShareStream, { before, begun, maxBytes, accepted, signal }: Taking): Promise<Followed> {
    const { versions } = this.#settings;
    const { state } = this.#tools;
    const isResumed = begun !== undefined && share.from !== undefined && share.from > 0;
    const came = isResumed ? { ...begun, all: share.chunks } : await this.#begin(share, before, accepted);
    const { all, type, version } = came;
    const download = isResumed ? begun : beginDownload(this.#spot, share, type, version);
    const { changed, sha256, bytes, file } = await replaceWhole(this.#spot, all, {
      before: knownFile(before, this.#spot.path),
      versions,
      maxBytes,
      signal,
      begun: download && {
        name: posix.basename(download.file),
        bytes: download.bytes,
        safe: async (bytes) => {
          keepDownload(state, this.name, { ...download, bytes });
          await state.commit();
        },
      },
    });
    keepDownload(state, this.name, undefined);
    const facts = { sha256, bytes, file, type, ...(version && { version }) };
    const notes = this.#notes.length > 0 ? { notes: this.#notes } : {};
    return { kind: 'followed', changed, facts: { ...facts, ...notes } };
  }

  /** Looks at an object that comes from its beginning. */
  async #begin(share: ShareStream, before: MirrorRecord | undefined, accepted: readonly string[]) {
    await this.#forget();
    const { head, all } = await withHead(share.chunks);
    const type = this.#check(head, share.type, before, accepted);
    return { all, type, version: versionOf(share, this.#source, this.#tools.clock.now()) };
  }

  /** The peer says that the file is what it has. */
  async #unchanged(before: MirrorRecord | undefined): Promise<Followed> {
    const { sha256, bytes, file, type, version } = before ?? {};
    const notes = this.#notes.length > 0 ? { notes: this.#notes } : {};
    const facts = {
      ...(sha256 === undefined ? {} : { sha256 }),
      ...(bytes === undefined ? {} : { bytes }),
      ...(file && { file }),
      ...(type === undefined ? {} : { type }),
      ...(version && { version }),
    };
    return { kind: 'followed', changed: false, facts: { ...facts, ...notes } };
  }

  /** Only another version is asked for, where the file is still the one that is known. */
  async #conditions(before: MirrorRecord | undefined): Promise<ShareOptions> {
    const known = knownFile(before, this.#spot.path);
    const version = before?.version;
    if (known === undefined || version === undefined || version.of !== this.#source) return {};
    const age = this.#tools.clock.now() - version.at;
    if (age < 0 || age > WHOLE_EVERY_MS) return {};
    const stamp = await stampAt(join(this.#spot.root, this.#spot.path)).catch(() => undefined);
    if (stamp === undefined || !sameStamp(stamp, known.file)) return {};
    const { etag, asOf } = version;
    return {
      ...(etag === undefined ? {} : { ifNoneMatch: etag }),
      ...(asOf === undefined ? {} : { ifModifiedSince: asOf }),
    };
  }

  /** What can be gone on with of an object that broke off. */
  async #begun(): Promise<Download | undefined> {
    const { state, clock } = this.#tools;
    const download = downloadOf(state, this.name);
    if (download === undefined || download.version.of !== this.#source) return undefined;
    return !isStale(download, clock.now()) && (await stands(this.#spot, download)) ? download : undefined;
  }

  async #forget(): Promise<void> {
    const { state } = this.#tools;
    const download = downloadOf(state, this.name);
    if (download === undefined) return;
    await discard(this.#spot, download);
    keepDownload(state, this.name, undefined);
  }

  get #spot(): Spot {
    return { root: this.#tools.root, path: this.identity.path };
  }

  /** Which object of which peer. */
  get #source(): string {
    const { data, c } = this.#settings;
    return JSON.stringify([this.#tools.peer.baseUrl, c ?? null, data]);
  }

  /** @returns the media type to remember it by */
  #check(
    head: Uint8Array,
    said: string | undefined,
    before: MirrorRecord | undefined,
    accepted: readonly string[],
  ): string {
    const likeness = likenessOf(said, head);
    const was =
      before?.type === undefined ? likenessOfName(this.#settings.data) : likenessOfType(before.type);
    if (head.length === 0 && before?.bytes !== 0 && !accepted.includes('SHARE_EMPTY'))
      throw this.#alarm('SHARE_EMPTY');
    if (likeness === 'html' && was !== 'html' && !accepted.includes('SHARE_HTML'))
      throw this.#alarm('SHARE_HTML');
    const isSmall = head.length < SMALL_BYTES;
    if (isSmall && likeness !== was && likeness !== 'other' && !accepted.includes('SHARE_ERROR_PAGE')) {
      const words = errorWords(head);
      if (words !== undefined) throw this.#alarm('SHARE_ERROR_PAGE', words);
    }
    const type = typeFor(likeness, said);
    const isOther =
      before?.type !== undefined &&
      before.bytes !== 0 &&
      likeness !== was &&
      (likeness === 'xml' || likeness === 'json');
    const isTaken = accepted.includes('SHARE_TYPE') || accepted.includes('SHARE_ERROR_PAGE');
    if (isOther && !isTaken) throw this.#alarm('SHARE_TYPE', `${before.type} before, ${type} now`);
    // An empty answer tells nothing of what the object is.
    return head.length === 0 && before?.type !== undefined ? before.type : type;
  }

  async #gone(before: MirrorRecord | undefined, { accepted }: FollowOptions): Promise<Followed> {
    const { absentSince } = before ?? {};
    if (absentSince !== undefined) return { kind: 'followed', changed: false, facts: { absentSince } };
    if (before?.file === undefined) {
      throw new MirrorError('MIRROR_NOTHING', { what: this.#what, detail: 'shared object' });
    }
    if (!accepted.includes('SHARE_GONE')) throw this.#alarm('SHARE_GONE');
    const { versions } = this.#settings;
    const changed = await removeWhole(this.#spot, { versions });
    if (this.identity.share !== undefined) return { kind: 'over' };
    return { kind: 'followed', changed, facts: { absentSince: this.#tools.clock.now() } };
  }

  #alarm(code: AlarmCode, detail?: string): MirrorAlarm {
    return new MirrorAlarm(code, this.name, {
      what: this.#what,
      ...(detail === undefined ? {} : { detail }),
    });
  }
}

/** How an object is taken. */
interface Taking extends FollowOptions {
  readonly before: MirrorRecord | undefined;
  /** What is here of it, where its end was asked for. */
  readonly begun: Download | undefined;
  readonly maxBytes: number;
}

/**
 * How long the word of a peer is taken that an object did not change, in ms: one that was replaced by an older file looks
 * as if it had not.
 */
const WHOLE_EVERY_MS = 7 * 86_400_000;
/** What the peer changes so shortly before it answers may look as if it had not changed after, in ms. */
const SAME_MOMENT_MS = 2_000;

/** Undefined where the peer says nothing by which it could be known again. */
function versionOf(
  { etag, lastModified, peerAt }: ShareStream,
  of: string,
  at: number,
): ShareVersion | undefined {
  const before = peerAt === undefined ? undefined : peerAt - SAME_MOMENT_MS;
  const asOf = lastModified === undefined ? before : Math.min(lastModified, before ?? lastModified);
  if (etag === undefined && asOf === undefined) return undefined;
  return {
    of,
    at,
    ...(etag === undefined ? {} : { etag }),
    ...(lastModified === undefined ? {} : { lastModified }),
    ...(asOf === undefined ? {} : { asOf }),
  };
}

function remainderOf({ bytes, size, version }: Download): ShareRemainder {
  const { etag, lastModified, asOf } = version;
  return { from: bytes, size, etag, lastModified, asOf };
}

/** What the record says of the file that stands at this path. */
export function knownFile(
  record: MirrorRecord | undefined,
  path: string,
): { readonly sha256: string; readonly file: NonNullable<Facts['file']> } | undefined {
  if (record?.sha256 === undefined || record.file === undefined || record.path !== path) return undefined;
  return { sha256: record.sha256, file: record.file };
}

/** Whether an error says that there is more than was asked for, whoever noticed it first. */
export function isTooLarge(error: unknown): boolean {
  return (
    (error instanceof PeerError && error.code === 'PEER_ANSWER_TOO_LARGE') ||
    (error instanceof MirrorError && error.code === 'MIRROR_TOO_LARGE')
  );
}

/** Whether the peer was there, and failed at what was asked. */
function isAboutRequest(error: unknown): boolean {
  return error instanceof PeerError && ['PEER_ANSWER', 'PEER_REFUSED', 'PEER_FAILED'].includes(error.code);
}

/** The first SMALL_BYTES of a stream, fewer only where it is shorter, and the whole of it. */
async function withHead(
  chunks: AsyncIterable<Uint8Array>,
): Promise<{ readonly head: Uint8Array; readonly all: AsyncIterable<Uint8Array> }> {
  const iterator = chunks[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  let size = 0;
  while (size < SMALL_BYTES) {
    const next = await iterator.next();
    if (next.done) break;
    first.push(next.value);
    size += next.value.length;
  }
  async function* all(): AsyncGenerator<Uint8Array> {
    try {
      yield* first;
      for (;;) {
        const next = await iterator.next();
        if (next.done) return;
        yield next.value;
      }
    } finally {
      await iterator.return?.();
    }
  }
  return { head: Buffer.concat(first).subarray(0, SMALL_BYTES), all: all() };
}
