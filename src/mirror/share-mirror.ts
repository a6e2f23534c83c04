import type { ShareMirrorConfig } from '../config/config.js';
import { PeerError } from '../peer/errors.js';
import type { ShareStream } from '../peer/share.js';
import { type AlarmCode, MirrorAlarm } from './alarms.js';
import { MirrorError } from './errors.js';
import type { Facts, Identity } from './life.js';
import { errorWords, likenessOf, likenessOfName, likenessOfType, SMALL_BYTES, typeFor } from './likeness.js';
import type { Followed, FollowOptions, Mirror, MirrorTools } from './parts.js';
import type { Place } from './place.js';
import { placeNotes } from './place-notes.js';
import { quoted } from './quoted.js';
import type { MirrorRecord } from './record.js';
import { throughDoor } from './through-door.js';
import { removeWhole, replaceWhole } from './whole-file.js';

/**
 * A shared object of the peer as a file.
 *
 * The answer is looked at before it is written: nothing at all, a page of HTML where there was none, XML or JSON where there was
 * something else, a short text about an error, or more than `maxSize` is an alarm, and so is an object that the peer has no more. Accepting the latter removes
 * the file, and the mirror waits for the object to come back.
 */
export class ShareMirror implements Mirror {
  readonly name: string;
  readonly identity: Identity;
  readonly every: number;
  readonly #settings: ShareMirrorConfig;
  readonly #tools: MirrorTools;
  readonly #what: string;
  readonly #notes: readonly string[];

  constructor(settings: ShareMirrorConfig, place: Place, tools: MirrorTools) {
    const { name, every, data, c } = settings;
    this.name = name;
    this.identity = { kind: 'share', path: place.path };
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
    try {
      const followed = await throughDoor(door, options.signal, (signal) =>
        peer.share(
          { data, ...(c === undefined ? {} : { c }) },
          (share) => this.#take(share, before, { ...options, signal }, maxBytes),
          { maxBytes, signal },
        ),
      );
      return followed ?? (await this.#gone(before, options));
    } catch (error) {
      if (isTooLarge(error)) throw this.#alarm('MIRROR_TOO_LARGE', `${maxSize} bytes`);
      throw error;
    }
  }

  async #take(
    share: ShareStream,
    before: MirrorRecord | undefined,
    { accepted, signal }: FollowOptions,
    maxBytes: number,
  ): Promise<Followed> {
    const { head, all } = await withHead(share.chunks);
    const type = this.#check(head, share.type, before, accepted);
    const { versions } = this.#settings;
    const spot = { root: this.#tools.root, path: this.identity.path };
    const { changed, sha256, bytes, file } = await replaceWhole(spot, all, {
      before: knownFile(before, spot.path),
      versions,
      maxBytes,
      signal,
    });
    return {
      kind: 'followed',
      changed,
      facts: { sha256, bytes, file, type, ...(this.#notes.length > 0 ? { notes: this.#notes } : {}) },
    };
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
    const { root, clock } = this.#tools;
    const { versions } = this.#settings;
    const changed = await removeWhole({ root, path: this.identity.path }, { versions });
    return { kind: 'followed', changed, facts: { absentSince: clock.now() } };
  }

  #alarm(code: AlarmCode, detail?: string): MirrorAlarm {
    return new MirrorAlarm(code, this.name, {
      what: this.#what,
      ...(detail === undefined ? {} : { detail }),
    });
  }
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
