import { constants } from 'node:fs';
import { unlink } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { PeerError } from '../peer/errors.js';
import type { ShareOptions, ShareStream } from '../peer/share.js';
import { type AlarmCode, isTooLarge, MirrorAlarm, MirrorError, quoted } from './errors.js';
import type { Followed, FollowOptions, Mirror, MirrorDeps } from './mirror.js';
import { dataOf, KeptOfMirrors, type Plan } from './plan.js';
import { defined, type Facts, type Identity, type MirrorRecord, type ShareVersion } from './record.js';
import { checkContent, withHead } from './share-content.js';
import { pathNotes, type TargetPath } from './target-path.js';
import {
  reach,
  removeWhole,
  replaceWhole,
  sameStamp,
  stampOfTarget,
  statsAt,
  type Target,
  temporaryName,
} from './whole-file.js';

/** What is here of a shared object that has not come whole yet. Times are ms since the epoch. */
export interface Download {
  /** The temporary file that it stands in: beside the target, below the root. */
  readonly file: string;
  /** So many bytes of it are safe. */
  readonly bytes: number;
  /** Of the whole object. */
  readonly size: number;
  /** The media type that the object is remembered by. */
  readonly type: string;
  readonly version: ShareVersion;
}

/** The downloads that broke off. */
export const downloads = new KeptOfMirrors<Download>('mirror-download/', 'file', 'version');

/** Smaller objects are soon asked for again. */
const SMALLEST_RESUMED = 2 ** 20;
/**
 * How long the word of a peer is taken that an object did not change, and how long a part of one is kept, in ms: an object that was
 * replaced by an older file looks as if it had not changed.
 */
const WHOLE_EVERY_MS = 7 * 86_400_000;
/** What the peer changes so shortly before it answers may look as if it had not changed after, in ms. */
const SAME_MOMENT_MS = 2_000;

/** Whether a version came too long ago to be built on. */
export function isOld({ at }: ShareVersion, now: number): boolean {
  return now - at > WHOLE_EVERY_MS;
}

/**
 * A shared object of the peer as a file.
 *
 * The answer is looked at before it is written: what is not what it was (see `checkContent`), or more than `maxSize`, is an
 * alarm, and so is an object that the peer has no more. Accepting the latter removes the file, and the mirror waits for the
 * object to come back; where a pattern brought it here, the mirror is over.
 *
 * Where the peer tells versions apart, an object that is here already is asked for only if it changed. A large one that
 * breaks off, or that the end of the process cuts short, is kept (see `Download`), and the next run asks for its end alone;
 * one that changed meanwhile comes whole.
 */
export class ShareMirror implements Mirror {
  readonly name: string;
  readonly identity: Identity;
  readonly every: number;
  readonly #plan: Extract<Plan, { kind: 'share' }>;
  readonly #deps: MirrorDeps;
  readonly #target: Target;
  readonly #what: string;
  readonly #notes: Pick<Facts, 'notes'>;
  /** Which object of which peer. */
  readonly #of: string;

  constructor(plan: Extract<Plan, { kind: 'share' }>, { path, changed }: TargetPath, deps: MirrorDeps) {
    const { name, settings, source, role } = plan;
    this.name = name;
    this.identity = { kind: 'share', path, ...(role === 'member' ? { share: source } : {}) };
    this.every = settings.every;
    this.#plan = plan;
    this.#deps = deps;
    this.#target = { root: deps.root, path };
    this.#what = `the shared object ${quoted(source)}`;
    this.#notes = changed.length > 0 ? { notes: pathNotes({ path, changed }) } : {};
    this.#of = JSON.stringify([deps.peer.baseUrl, settings.c ?? null, dataOf(plan)]);
  }

  async follow(before: MirrorRecord | undefined, options: FollowOptions): Promise<Followed> {
    const { peer, ask, state } = this.#deps;
    const { c, maxSize } = this.#plan.settings;
    const maxBytes = options.accepted.includes('MIRROR_TOO_LARGE') ? Number.MAX_SAFE_INTEGER : maxSize;
    const begun = await this.#begun();
    const conditions = begun === undefined ? await this.#conditions(before) : { resume: remainderOf(begun) };
    try {
      const followed = await ask(options.signal, (signal) =>
        peer.share(
          { data: dataOf(this.#plan), ...defined({ c }) },
          (share) => this.#take(share, begun, maxBytes, before, { ...options, signal }),
          { maxBytes, signal, ...conditions },
        ),
      );
      if (followed !== undefined) return followed;
      await this.#forget();
      return await this.#gone(before, options);
    } catch (error) {
      // Asked for its end alone, a peer may fail for ever.
      const isStuck = begun !== undefined && downloads.of(state, this.name)?.bytes === begun.bytes;
      if (isTooLarge(error) || (isStuck && isAboutRequest(error))) await this.#forget();
      if (isTooLarge(error)) throw this.#alarm('MIRROR_TOO_LARGE', `${maxSize} bytes`);
      throw error;
    }
  }

  /** @param begun what is here of it, where its end was asked for */
  async #take(
    share: ShareStream,
    begun: Download | undefined,
    maxBytes: number,
    before: MirrorRecord | undefined,
    { accepted, signal }: FollowOptions,
  ): Promise<Followed> {
    const { state, commit, clock } = this.#deps;
    if (share.isUnchanged) {
      const { sha256, bytes, file, type, version } = before ?? {};
      const facts = { ...defined({ sha256, bytes, file, type, version }), ...this.#notes };
      return { kind: 'followed', changed: false, facts };
    }
    const resumed = begun !== undefined && (share.from ?? 0) > 0 ? begun : undefined;
    if (resumed === undefined) await this.#forget();
    const { type, all } = resumed
      ? { type: resumed.type, all: share.chunks }
      : await this.#checked(share, before, accepted);
    const version = resumed?.version ?? versionOf(share, this.#of, clock.now());
    const download = resumed ?? this.#beginDownload(share, type, version);
    const written = await replaceWhole(this.#target, all, {
      before: before?.path === this.identity.path ? before : undefined,
      versions: this.#plan.settings.versions,
      maxBytes,
      signal,
      begun: download && {
        name: posix.basename(download.file),
        bytes: download.bytes,
        safe: async (bytes) => {
          downloads.keep(state, this.name, { ...download, bytes });
          await commit();
        },
      },
    });
    downloads.keep(state, this.name, undefined);
    const { changed, sha256, bytes, file } = written;
    return {
      kind: 'followed',
      changed,
      facts: { sha256, bytes, file, type, ...defined({ version }), ...this.#notes },
    };
  }

  /** Looks at an object that comes from its beginning. */
  async #checked(share: ShareStream, before: MirrorRecord | undefined, accepted: readonly string[]) {
    const { head, all } = await withHead(share.chunks);
    const checked = checkContent(head, share.type, { data: dataOf(this.#plan), before, accepted });
    if ('alarm' in checked) throw this.#alarm(checked.alarm, checked.detail);
    return { type: checked.type, all };
  }

  /** Only another version is asked for, where the file is still the one that is known. */
  async #conditions(before: MirrorRecord | undefined): Promise<ShareOptions> {
    const { version, file, path } = before ?? {};
    if (version === undefined || file === undefined || path !== this.identity.path) return {};
    const stamp = await stampOfTarget(this.#target);
    if (stamp === undefined || !sameStamp(stamp, file)) return {};
    return otherThan(version, this.#of, this.#deps.clock.now());
  }

  /** What can be gone on with of an object that broke off. */
  async #begun(): Promise<Download | undefined> {
    const { state, clock } = this.#deps;
    const download = downloads.of(state, this.name);
    if (download === undefined || download.version.of !== this.#of || download.bytes === 0) return undefined;
    const path = isOld(download.version, clock.now()) ? undefined : await this.#realPath(download);
    const stats = path === undefined ? undefined : await statsAt(path).catch(() => undefined);
    if (!stats?.isFile() || stats.size < download.bytes) return undefined;
    return (stats.mode & constants.S_IWUSR) === 0 ? undefined : download;
  }

  /** A download of an object that begins to come; undefined where it could not be gone on with, or need not. */
  #beginDownload(
    { size }: ShareStream,
    type: string,
    version: ShareVersion | undefined,
  ): Download | undefined {
    if (size === undefined || size < SMALLEST_RESUMED || version === undefined) return undefined;
    const file = posix.join(posix.dirname(this.identity.path), temporaryName());
    return { file, bytes: 0, size, type, version };
  }

  async #forget(): Promise<void> {
    const { state } = this.#deps;
    const download = downloads.of(state, this.name);
    if (download === undefined) return;
    const path = await this.#realPath(download);
    if (path !== undefined) await unlink(path).catch(() => undefined);
    downloads.keep(state, this.name, undefined);
  }

  /** Of the temporary file; undefined where it is not beside the target. */
  async #realPath({ file }: Download): Promise<string | undefined> {
    if (posix.dirname(file) !== posix.dirname(this.identity.path)) return undefined;
    return join(dirname(await reach(this.#target)), posix.basename(file));
  }

  async #gone(before: MirrorRecord | undefined, { accepted }: FollowOptions): Promise<Followed> {
    const { absentSince } = before ?? {};
    if (absentSince !== undefined) return { kind: 'followed', changed: false, facts: { absentSince } };
    if (before?.file === undefined) throw new MirrorError('MIRROR_NOTHING', this.#what, 'shared object');
    if (!accepted.includes('SHARE_GONE')) throw this.#alarm('SHARE_GONE');
    const changed = await removeWhole(this.#target, { versions: this.#plan.settings.versions });
    if (this.#plan.role === 'member') return { kind: 'over', changed };
    return { kind: 'followed', changed, facts: { absentSince: this.#deps.clock.now() } };
  }

  #alarm(code: AlarmCode, detail?: string): MirrorAlarm {
    return new MirrorAlarm(code, this.name, this.#what, detail);
  }
}

/**
 * By what a version of an object is known again.
 *
 * @param of which object of which peer
 * @param at when it came, by our clock
 * @returns undefined where the peer says nothing by which it could be
 */
export function versionOf(
  { etag, lastModified, peerAt }: Pick<ShareStream, 'etag' | 'lastModified' | 'peerAt'>,
  of: string,
  at: number,
): ShareVersion | undefined {
  const before = peerAt === undefined ? undefined : peerAt - SAME_MOMENT_MS;
  const asOf = lastModified === undefined ? before : Math.min(lastModified, before ?? lastModified);
  if (etag === undefined && asOf === undefined) return undefined;
  return { of, at, ...defined({ etag, lastModified, asOf }) };
}

/**
 * Asks for an object only if it is another version than this one; nothing where it has to be asked for as it is.
 *
 * @param of which object of which peer
 */
export function otherThan(
  version: ShareVersion,
  of: string,
  now: number,
): Pick<ShareOptions, 'ifNoneMatch' | 'ifModifiedSince'> {
  if (version.of !== of || isOld(version, now)) return {};
  return defined({ ifNoneMatch: version.etag, ifModifiedSince: version.asOf });
}

/** Asks for the end of an object that broke off. */
function remainderOf({ bytes, size, version }: Download): NonNullable<ShareOptions['resume']> {
  const { etag, lastModified, asOf } = version;
  return { from: bytes, size, etag, lastModified, asOf };
}

/** Whether the peer was there, and failed at what was asked. */
function isAboutRequest(error: unknown): boolean {
  return error instanceof PeerError && ['PEER_ANSWER', 'PEER_REFUSED', 'PEER_FAILED'].includes(error.code);
}
