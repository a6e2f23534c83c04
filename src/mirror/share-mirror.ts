import { join, posix } from 'node:path';
import type { ShareMirrorConfig } from '../config/config.js';
import { PeerError } from '../peer/errors.js';
import type { ShareOptions, ShareStream } from '../peer/share.js';
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
import { isTooLarge, MirrorError } from './errors.js';
import { impressionOf, withHead } from './head.js';
import type { Identity } from './life.js';
import type { Followed, FollowOptions, Mirror, MirrorTools } from './parts.js';
import type { Place } from './place.js';
import { placeNotes } from './place-notes.js';
import { quoted } from './quoted.js';
import { knownFile, type MirrorRecord } from './record.js';
import type { Spot } from './root.js';
import { otherThan, remainderOf, versionOf } from './share-version.js';
import { throughQueue } from './through-queue.js';
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
 * The answer is looked at before it is written: what is not what it was (see `impressionOf`), or more than `maxSize`, is an
 * alarm, and so is an object that the peer has no more. Accepting the latter removes the file, and the mirror waits for the
 * object to come back.
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
    const { peer, queue } = this.#tools;
    const { data, c, maxSize } = this.#settings;
    const maxBytes = options.accepted.includes('MIRROR_TOO_LARGE') ? Number.MAX_SAFE_INTEGER : maxSize;
    const begun = await this.#begun();
    const conditions = begun === undefined ? await this.#conditions(before) : { resume: remainderOf(begun) };
    try {
      const followed = await throughQueue(queue, options.signal, (signal) =>
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
    const { data } = this.#settings;
    const impression = impressionOf(head, share.type, { data, before, accepted });
    if ('alarm' in impression) throw this.#alarm(impression.alarm, impression.detail);
    return { all, type: impression.type, version: versionOf(share, this.#source, this.#tools.clock.now()) };
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
    const conditions = otherThan(before?.version, this.#source, this.#tools.clock.now());
    if (known === undefined || conditions === undefined) return {};
    const stamp = await stampAt(join(this.#spot.root, this.#spot.path)).catch(() => undefined);
    return stamp !== undefined && sameStamp(stamp, known.file) ? conditions : {};
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

  async #gone(before: MirrorRecord | undefined, { accepted }: FollowOptions): Promise<Followed> {
    const { absentSince } = before ?? {};
    if (absentSince !== undefined) return { kind: 'followed', changed: false, facts: { absentSince } };
    if (before?.file === undefined) {
      throw new MirrorError('MIRROR_NOTHING', { what: this.#what, detail: 'shared object' });
    }
    if (!accepted.includes('SHARE_GONE')) throw this.#alarm('SHARE_GONE');
    const { versions } = this.#settings;
    const changed = await removeWhole(this.#spot, { versions });
    if (this.identity.share !== undefined) return { kind: 'over', changed };
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

/** Whether the peer was there, and failed at what was asked. */
function isAboutRequest(error: unknown): boolean {
  return error instanceof PeerError && ['PEER_ANSWER', 'PEER_REFUSED', 'PEER_FAILED'].includes(error.code);
}
