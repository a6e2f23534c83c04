import type { ShareOptions, ShareStream } from '../peer/share.js';
import { type ConditionCode, isTooLarge } from './errors.js';
import { type FollowOptions, type FollowResult, ListedMirror } from './mirror.js';
import { dataOf, type SharePlan } from './plan.js';
import type { MirrorRecord, ShareVersion } from './record.js';
import { replaceWhole, sameStamp, stampOfTarget } from './whole-file.js';

/**
 * After this time an object is downloaded even if the peer says that it did not change, in ms. An
 * object that is replaced by an older file looks unchanged.
 */
const FULL_DOWNLOAD_MS = 7 * 86_400_000;
/** The resolution of times of the peer, in ms. A change just before an answer may look older. */
const TIME_RESOLUTION_MS = 2_000;

/**
 * Mirrors a shared object of the peer to a file.
 *
 * The answer is checked before it is written. Another kind of content (see `checkContent`), more
 * than `maxSize`, or a missing object is a condition. If the peer tells versions apart, a known
 * object is downloaded only after it changed.
 */
export class ShareMirror extends ListedMirror<SharePlan> {
  async follow(before: MirrorRecord | undefined, options: FollowOptions): Promise<FollowResult> {
    const { peer, requests } = this.deps;
    const { c, maxSize } = this.plan.settings;
    const maxBytes = options.accepted.includes('MIRROR_TOO_LARGE')
      ? Number.MAX_SAFE_INTEGER
      : maxSize;
    const known = this.known(before);
    const validators = await this.#validators(known);
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
          { maxBytes, signal, ...validators },
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

  /** Returns the validators of a conditional request, if the file is still the known one. */
  async #validators({ version, file }: Partial<MirrorRecord> = {}): Promise<ShareOptions> {
    if (file === undefined || version?.of !== this.#of) return {};
    if (this.deps.clock.now() - version.at > FULL_DOWNLOAD_MS) return {};
    if (!sameStamp(await stampOfTarget(this.target), file)) return {};
    return { ifNoneMatch: version.etag, ifModifiedSince: version.asOf };
  }

  /** Returns the version of an answer, undefined if the peer gives no validators. */
  #versionOf({ etag, lastModified, peerAt }: ShareStream): ShareVersion | undefined {
    const before = peerAt === undefined ? undefined : peerAt - TIME_RESOLUTION_MS;
    const asOf =
      lastModified === undefined ? before : Math.min(lastModified, before ?? lastModified);
    if (etag === undefined && asOf === undefined) return undefined;
    return { of: this.#of, at: this.deps.clock.now(), etag, asOf };
  }

  /** Identifies the object and its peer. */
  get #of(): string {
    return JSON.stringify([
      this.deps.peer.baseUrl,
      this.plan.settings.c ?? null,
      dataOf(this.plan),
    ]);
  }
}

/** The kind of content, as far as it shows mistakes: by media type, first bytes, or file name. */
type ContentKind = 'html' | 'xml' | 'json' | 'text' | 'other';

/** The bytes that identify the kind of an object. */
const HEAD_BYTES = 4096;

/** The result of a check: the media type to remember, or the condition. */
type Checked =
  | { readonly type: string }
  | { readonly condition: ConditionCode; readonly detail: string };

/**
 * Checks that a shared object is of the same kind as before, as far as its first bytes tell. It is
 * not if the answer is empty, an HTML page where there was none, or text, XML or JSON where there
 * was something else: errors look like that. A new object is of the kind that its name says. A
 * short one that mentions an error is refused.
 *
 * @param head the result of `withHead`
 * @param said the media type of the answer
 * @param data the name in the peer
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
  // An empty answer says nothing about the kind of the object.
  return { type: isNothing ? (known ?? type) : type };
}

/** Returns the first HEAD_BYTES of a stream, fewer if it is shorter, and the whole stream. */
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

/** Trusts the bytes before the media type: gateways send login pages with any type. */
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
