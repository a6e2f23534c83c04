import type { ShareOptions, ShareStream } from '../peer/share.js';
import { type ConditionCode, isTooLarge } from './errors.js';
import { ListedMirror } from './listed-mirror.js';
import type { FollowOptions, FollowResult } from './mirror.js';
import { dataOf, type SharePlan } from './plan.js';
import type { MirrorRecord, ShareVersion } from './record.js';
import { replaceWhole, sameStamp, stampOfTarget } from './whole-file.js';

/**
 * How long the word of a peer is taken that an object did not change, in ms: one that was replaced
 * by an older file looks as if it had not.
 */
const WHOLE_EVERY_MS = 7 * 86_400_000;
/**
 * What the peer changes so shortly before it answers may look as if it had not changed after, in
 * ms.
 */
const SAME_MOMENT_MS = 2_000;

/**
 * A shared object of the peer as a file.
 *
 * The answer is looked at before it is written: what is not what it was (see `checkContent`), or
 * more than `maxSize`, is a condition, and so is an object that the peer has no more. Accepting the
 * latter removes the file, and the mirror waits for the object to come back; where a pattern
 * brought it here, the mirror is over.
 *
 * Where the peer tells versions apart, an object that is here already is asked for only if it
 * changed.
 */
export class ShareMirror extends ListedMirror<SharePlan> {
  async follow(before: MirrorRecord | undefined, options: FollowOptions): Promise<FollowResult> {
    const { peer, requests } = this.deps;
    const { c, maxSize } = this.plan.settings;
    const maxBytes = options.accepted.includes('MIRROR_TOO_LARGE')
      ? Number.MAX_SAFE_INTEGER
      : maxSize;
    const known = this.known(before);
    const conditions = await this.#conditions(known);
    try {
      const followed = await requests.run(options.signal, (signal) =>
        peer.share(
          { data: dataOf(this.plan), c },
          async (share): Promise<FollowResult> => {
            if (!share.isUnchanged)
              return await this.#take(share, before, maxBytes, { ...options, signal });
            const { sha256, bytes, file, type, version } = known ?? {};
            const facts = { sha256, bytes, file, type, version, notes: this.notes };
            return { kind: 'current', changed: false, facts };
          },
          { maxBytes, signal, ...conditions },
        ),
      );
      return followed ?? (await this.gone(before, options));
    } catch (error) {
      throw isTooLarge(error) ? this.condition('MIRROR_TOO_LARGE', `${maxSize} bytes`) : error;
    }
  }

  async #take(
    share: ShareStream,
    before: MirrorRecord | undefined,
    maxBytes: number,
    { accepted, signal }: FollowOptions,
  ): Promise<FollowResult> {
    const { head, all } = await withHead(share.chunks);
    const checked = checkContent(head, share.type, dataOf(this.plan), before, accepted);
    if ('condition' in checked) throw this.condition(checked.condition, checked.detail);
    const version = this.#versionOf(share);
    const { versions } = this.plan.settings;
    const known = this.known(before);
    const options = { before: known, versions, maxBytes, signal, onReplace: this.beforeReplace };
    const { changed, sha256, bytes, file } = await replaceWhole(this.target, all, options);
    const facts = { sha256, bytes, file, type: checked.type, version, notes: this.notes };
    return { kind: 'current', changed, facts };
  }

  /**
   * Only another version is asked for, where the file is still the one that is known; once a week
   * it is asked for as it is.
   */
  async #conditions({ version, file }: Partial<MirrorRecord> = {}): Promise<ShareOptions> {
    if (file === undefined || version?.of !== this.#of) return {};
    if (this.deps.clock.now() - version.at > WHOLE_EVERY_MS) return {};
    if (!sameStamp(await stampOfTarget(this.target), file)) return {};
    return { ifNoneMatch: version.etag, ifModifiedSince: version.asOf };
  }

  /**
   * By what the version is known again; undefined where the peer says nothing by which it could be.
   */
  #versionOf({ etag, lastModified, peerAt }: ShareStream): ShareVersion | undefined {
    const before = peerAt === undefined ? undefined : peerAt - SAME_MOMENT_MS;
    const asOf =
      lastModified === undefined ? before : Math.min(lastModified, before ?? lastModified);
    if (etag === undefined && asOf === undefined) return undefined;
    return { of: this.#of, at: this.deps.clock.now(), etag, asOf };
  }

  /** Which object of which peer. */
  get #of(): string {
    return JSON.stringify([
      this.deps.peer.baseUrl,
      this.plan.settings.c ?? null,
      dataOf(this.plan),
    ]);
  }
}

/**
 * What content is, as far as a mistake would show: told from its media type, its first bytes, or a
 * file name.
 */
type ContentKind = 'html' | 'xml' | 'json' | 'text' | 'other';

/** From so much one sees what an object is. */
const HEAD_BYTES = 4096;

/** An object may be taken, and is remembered by this media type; or it may not. */
type Checked =
  | { readonly type: string }
  | { readonly condition: ConditionCode; readonly detail: string };

/**
 * Whether a shared object is what it was, as far as its first bytes tell: not where nothing comes
 * at all, a page of HTML where there was none, or a text, XML or JSON where there was something
 * else, as errors are told. Where nothing was, its name says what it is, and only a short one that
 * speaks of an error may not be taken.
 *
 * @param head as `withHead` gives it
 * @param said the media type that the peer gave
 * @param data its name in the peer
 * @param accepted the conditions that a person accepts
 */
export function checkContent(
  head: Uint8Array,
  said: string | undefined,
  data: string,
  before: Pick<MirrorRecord, 'type' | 'bytes'> | undefined,
  accepted: readonly string[],
): Checked {
  const kind = kindOf(said, head);
  const known = before?.type;
  const isOther = kind !== (known === undefined ? kindOfName(data) : kindOfType(known));
  const isFirstError = known === undefined && head.length < HEAD_BYTES && ERROR.test(textOf(head));
  const type = said !== undefined && kindOfType(said) === kind ? said : CANONICAL[kind];
  const isNothing = head.length === 0;
  let found: ConditionCode | undefined;
  if (isNothing && before?.bytes !== 0) found = 'SHARE_EMPTY';
  else if (isOther && kind === 'html') found = 'SHARE_HTML';
  else if (
    isOther &&
    kind !== 'other' &&
    (isFirstError || (known !== undefined && before?.bytes !== 0))
  )
    found = 'SHARE_TYPE';
  if (found !== undefined && !accepted.includes(found)) {
    return { condition: found, detail: `${known ?? 'nothing'} before, ${type} now` };
  }
  // An empty answer tells nothing of what the object is.
  return { type: isNothing ? (known ?? type) : type };
}

/** The first HEAD_BYTES of a stream, fewer only where it is shorter, and the whole of it. */
async function withHead(
  chunks: AsyncIterable<Uint8Array>,
): Promise<{ readonly head: Uint8Array; readonly all: AsyncIterable<Uint8Array> }> {
  const iterator = chunks[Symbol.asyncIterator]();
  const first: Uint8Array[] = [];
  for (let size = 0; size < HEAD_BYTES; ) {
    const { done, value } = await iterator.next();
    if (done) break;
    first.push(value);
    size += value.length;
  }
  async function* all(): AsyncGenerator<Uint8Array> {
    yield* first;
    yield* { [Symbol.asyncIterator]: () => iterator };
  }
  return { head: Buffer.concat(first).subarray(0, HEAD_BYTES), all: all() };
}

const CANONICAL: Readonly<Record<ContentKind, string>> = {
  html: 'text/html',
  xml: 'application/xml',
  json: 'application/json',
  text: 'text/plain',
  other: 'application/octet-stream',
};

const HTML =
  /^(?:<!--[\s\S]*?-->|<\?[\s\S]*?\?>|\s)*<(?:!doctype\s+html|html|head|body|title|meta)[\s>]/i;
const XML = /^\s*<(?:\?xml|[a-z_!])/i;
const ERROR = /\b(?:error|exception|fault)\b/i;
const JSON_BEGIN = /^\s*(?:\{\s*["}]|\[\s*[[{"\]\d])/;

/** The bytes come before what the peer says of them: gateways put login pages under any type. */
function kindOf(type: string | undefined, head: Uint8Array): ContentKind {
  const text = textOf(head);
  const said = kindOfType(type);
  if (HTML.test(text) || said === 'html') return 'html';
  if (XML.test(text)) return 'xml';
  return JSON_BEGIN.test(text) ? 'json' : said;
}

function kindOfName(name: string): ContentKind {
  if (/\.x?html?$/i.test(name)) return 'html';
  if (/\.(?:xml|rss|atom|svg|xsl)$/i.test(name)) return 'xml';
  if (/\.(?:json|ndjson|jsonl|geojson)$/i.test(name)) return 'json';
  return /\.(?:txt|md|csv|tsv|log|ini|conf|ya?ml)$/i.test(name) ? 'text' : 'other';
}

function kindOfType(type: string | undefined): ContentKind {
  if (type === undefined) return 'other';
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html';
  if (/[/+]xml$/.test(type)) return 'xml';
  if (/[/+](?:nd)?json$/.test(type)) return 'json';
  return type.startsWith('text/') ? 'text' : 'other';
}

function textOf(bytes: Uint8Array): string {
  const [a, b] = bytes;
  const encoding =
    a === 0xff && b === 0xfe ? 'utf-16le' : a === 0xfe && b === 0xff ? 'utf-16be' : 'utf-8';
  return new TextDecoder(encoding).decode(bytes);
}
