import type { ShareOptions, ShareStream } from '../peer/share.js';
import { type AlarmCode, isTooLarge, MirrorAlarm, MirrorError, quoted } from './errors.js';
import { type Followed, type FollowOptions, PlannedMirror } from './mirror.js';
import { dataOf, type Plan } from './plan.js';
import { defined, type Facts, type MirrorRecord, type ShareVersion } from './record.js';
import { checkContent, withHead } from './share-content.js';
import { removeWhole, replaceWhole, sameStamp, stampOfTarget } from './whole-file.js';

/**
 * How long the word of a peer is taken that an object did not change, in ms: one that was replaced by an older file looks
 * as if it had not.
 */
const WHOLE_EVERY_MS = 7 * 86_400_000;
/** What the peer changes so shortly before it answers may look as if it had not changed after, in ms. */
const SAME_MOMENT_MS = 2_000;

/**
 * A shared object of the peer as a file.
 *
 * The answer is looked at before it is written: what is not what it was (see `checkContent`), or more than `maxSize`, is an
 * alarm, and so is an object that the peer has no more. Accepting the latter removes the file, and the mirror waits for the
 * object to come back; where a pattern brought it here, the mirror is over.
 *
 * Where the peer tells versions apart, an object that is here already is asked for only if it changed.
 */
export class ShareMirror extends PlannedMirror<Extract<Plan, { kind: 'share' }>> {
  async follow(before: MirrorRecord | undefined, options: FollowOptions): Promise<Followed> {
    const { peer, ask } = this.deps;
    const { c, maxSize } = this.plan.settings;
    const maxBytes = options.accepted.includes('MIRROR_TOO_LARGE') ? Number.MAX_SAFE_INTEGER : maxSize;
    const conditions = await this.#conditions(before);
    try {
      const followed = await ask(options.signal, (signal) =>
        peer.share(
          { data: dataOf(this.plan), ...defined({ c }) },
          (share) => this.#take(share, before, maxBytes, { ...options, signal }),
          { maxBytes, signal, ...conditions },
        ),
      );
      return followed ?? (await this.#gone(before, options));
    } catch (error) {
      throw isTooLarge(error) ? this.#alarm('MIRROR_TOO_LARGE', `${maxSize} bytes`) : error;
    }
  }

  async #take(
    share: ShareStream,
    before: MirrorRecord | undefined,
    maxBytes: number,
    { accepted, signal }: FollowOptions,
  ): Promise<Followed> {
    if (share.isUnchanged) {
      const { sha256, bytes, file, type, version } = before ?? {};
      const facts = { ...defined({ sha256, bytes, file, type, version }), ...this.#pathNotes };
      return { kind: 'followed', changed: false, facts };
    }
    const { head, all } = await withHead(share.chunks);
    const checked = checkContent(head, share.type, { data: dataOf(this.plan), before, accepted });
    if ('alarm' in checked) throw this.#alarm(checked.alarm, checked.detail);
    const version = versionOf(share, this.#of, this.deps.clock.now());
    const { changed, sha256, bytes, file } = await replaceWhole(this.target, all, {
      before: before?.path === this.identity.path ? before : undefined,
      versions: this.plan.settings.versions,
      maxBytes,
      signal,
    });
    const facts = { sha256, bytes, file, type: checked.type, ...defined({ version }), ...this.#pathNotes };
    return { kind: 'followed', changed, facts };
  }

  /** Only another version is asked for, where the file is still the one that is known. */
  async #conditions(before: MirrorRecord | undefined): Promise<ShareOptions> {
    const { version, file, path } = before ?? {};
    if (version === undefined || file === undefined || path !== this.identity.path) return {};
    const stamp = await stampOfTarget(this.target);
    if (stamp === undefined || !sameStamp(stamp, file)) return {};
    return otherThan(version, this.#of, this.deps.clock.now());
  }

  get #pathNotes(): Pick<Facts, 'notes'> {
    return this.notes.length > 0 ? { notes: this.notes } : {};
  }

  get #what(): string {
    return `the shared object ${quoted(this.plan.source)}`;
  }

  /** Which object of which peer. */
  get #of(): string {
    return JSON.stringify([this.deps.peer.baseUrl, this.plan.settings.c ?? null, dataOf(this.plan)]);
  }

  async #gone(before: MirrorRecord | undefined, { accepted }: FollowOptions): Promise<Followed> {
    const { absentSince } = before ?? {};
    if (absentSince !== undefined) return { kind: 'followed', changed: false, facts: { absentSince } };
    if (before?.file === undefined) throw new MirrorError('MIRROR_NOTHING', this.#what, 'shared object');
    if (!accepted.includes('SHARE_GONE')) throw this.#alarm('SHARE_GONE');
    const changed = await removeWhole(this.target, { versions: this.plan.settings.versions });
    if (this.plan.role === 'member') return { kind: 'over', changed };
    return { kind: 'followed', changed, facts: { absentSince: this.deps.clock.now() } };
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
  if (version.of !== of || now - version.at > WHOLE_EVERY_MS) return {};
  return defined({ ifNoneMatch: version.etag, ifModifiedSince: version.asOf });
}
