import { type FileHandle, rm } from 'node:fs/promises';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { BusboyFileStream } from '@fastify/busboy';
import mime from 'mime';
import { systemCode } from '../lib/errors.js';
import { type Answer, type AnswerForm, answer, Refusal, type StreamedBody, type Visit } from './answer.js';
import {
  type FormLimits,
  limitBody,
  multipartParser,
  type RequestForm,
  readBody,
  unreadableMultipart,
} from './form.js';
import { escapeMarkup, page } from './markup.js';
import {
  MOST_LISTED,
  type OpenShare,
  type Share,
  type ShareStore,
  shareGroup,
  shareName,
} from './share-store.js';

/** Bodies that only ask for something. */
const SMALL: FormLimits = { body: 65_536, fields: 20 };
/** Bytes of an upload; it goes to disk as it comes, so memory sets no limit. */
export const MOST_UPLOAD = 64 * 1_073_741_824;

/**
 * The endpoint of shared objects. With `data` (and its group `c`) it answers the object itself; without, it lists the objects of
 * `c`, or all. A multipart body with a file part `data` puts an object there, which only the administrator may.
 */
export class ShareEndpoint {
  readonly #store: ShareStore;
  readonly #uploaded = new WeakMap<RequestForm, Share>();

  constructor(store: ShareStore) {
    this.#store = store;
  }

  async receive(request: IncomingMessage, form: RequestForm, visit: Visit): Promise<void> {
    if (!/^multipart\/form-data\s*;/i.test(request.headers['content-type'] ?? ''))
      return readBody(request, form, SMALL);
    if (request.headers['content-encoding'] !== undefined)
      throw new Refusal(415, 'The body has to come without Content-Encoding.');
    visit.requireAdministrator();
    visit.requireChange();
    this.#uploaded.set(form, await receiveShare(request, form, this.#store, MOST_UPLOAD));
  }

  async handle(form: RequestForm, visit: Visit): Promise<Answer> {
    const uploaded = this.#uploaded.get(form);
    if (uploaded) return listing(only(uploaded), uploaded.c, visit);
    const c = form.text('c') ?? '';
    const data = form.text('data') ?? '';
    if (data !== '') {
      const share = await this.#store.get(shareName(c, data));
      if (!share) throw new Refusal(404, 'There is no such shared object.');
      return shareFile(share, visit);
    }
    const folder = shareGroup(c);
    if (!(await this.#store.has(folder))) throw new Refusal(404, 'There is no such group of shared objects.');
    return listing(this.#store.list(folder), c, visit);
  }
}

function listing(shares: Listing, c: string, { as }: Visit): Answer {
  return answer(as, { chunks: () => SHARE_WRITERS[as](shares, c) });
}

async function* only(share: Share): Listing {
  yield share;
  return false;
}

/** Objects as they are found; at its end it returns whether there are more. */
export type Listing = AsyncGenerator<Share, boolean>;

/** Characters that are sent at a time; object by object, each would travel alone. */
const CHUNK = 16_384;

/** Each gives the listing piece by piece; `c` is the group that was asked for, or empty. */
export const SHARE_WRITERS: Readonly<
  Record<AnswerForm, (listing: Listing, c: string) => AsyncIterable<string>>
> = {
  async *json(listing) {
    yield '{"shares":[';
    let separator = '\n';
    const more = yield* each(listing, (share) => {
      const line = `${separator}${JSON.stringify({ ...share, lastModified: iso(share) })}`;
      separator = ',\n';
      return line;
    });
    yield `\n],"more":${more}}\n`;
  },

  async *html(listing, c) {
    const [before = '', after = ''] = page('Shared objects', '\0').split('\0');
    const where = c === '' ? '' : ` <a href="/api/share.html">All groups</a> · `;
    yield `${before}<h1>Shared objects${c === '' ? '' : ` of ${escapeMarkup(c)}`}</h1>\n<p>${where}<a href="/">Search</a></p>
<table>\n<tr><th>Group</th><th>Object</th><th>Bytes</th><th>Last modified</th></tr>\n`;
    const more = yield* each(listing, row);
    yield '</table>\n';
    if (more) yield `<p class="dim">There are more than the ${MOST_LISTED} objects shown here.</p>\n`;
    yield `${uploadForm(c)}${after}`;
  },
};

async function* each(listing: Listing, write: (share: Share) => string): AsyncGenerator<string, boolean> {
  let lines = '';
  for (;;) {
    const next = await listing.next();
    if (!next.done) lines += write(next.value);
    if (next.done || lines.length > CHUNK) {
      yield lines;
      lines = '';
    }
    if (next.done) return next.value;
  }
}

function iso(share: Share): string {
  return new Date(Math.round(share.lastModified)).toISOString();
}

function row(share: Share): string {
  const { c, data, size } = share;
  const group = new URLSearchParams({ c });
  const object = new URLSearchParams(c === '' ? { data } : { c, data });
  const when = iso(share).slice(0, 16).replace('T', ' ');
  return (
    `<tr><td>${c === '' ? '' : link(group, c)}</td><td>${link(object, data)}</td>` +
    `<td>${size.toLocaleString('en')}</td><td>${when}</td></tr>\n`
  );
}

function link(query: URLSearchParams, text: string): string {
  return `<a href="/api/share.html?${escapeMarkup(query.toString())}">${escapeMarkup(text)}</a>`;
}

function uploadForm(c: string): string {
  return `<h2>Share a file</h2>
<form action="/api/share.html" method="post" enctype="multipart/form-data">
<label>Group<input name="c" value="${escapeMarkup(c)}" maxlength="255" autocomplete="off"></label>
<label>File<input type="file" name="data" required></label>
<p><button type="submit">Share</button></p>
</form>
<p class="dim">The administrator only. A file of the same name is replaced.</p>`;
}

const FILE_CHUNK = 262_144;
/** Nothing in a shared object may run or load anything as a page of this peer. */
const CONTENT_SECURITY_POLICY =
  "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; frame-ancestors 'none'";

/** The bytes from `start` up to, not including, `end`. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** The object itself, whole or the one range that was asked for, straight from disk; 304 where the client has it already. */
export async function shareFile(share: OpenShare, { headers }: Visit): Promise<Answer> {
  const type = mime.getType(`/${share.data}`) ?? 'application/octet-stream';
  const etag = `"${share.size.toString(16)}-${share.lastModified.toString(16)}"`;
  const common = {
    'accept-ranges': 'bytes',
    'cache-control': 'no-cache',
    'content-disposition': disposition(share.data, type),
    'content-security-policy': CONTENT_SECURITY_POLICY,
    etag,
    'last-modified': new Date(share.lastModified).toUTCString(),
  };
  if (isKnown(share, etag, headers)) {
    await share.handle.close();
    return { status: 304, type, body: '', headers: common };
  }
  const whole = { start: 0, end: share.size };
  const asked = isSameAs(headers['if-range'], share, etag) ? readRange(headers.range, share.size) : undefined;
  if (asked === 'outside') {
    await share.handle.close();
    throw new Refusal(416, 'The object has no such range.', { 'content-range': `bytes */${share.size}` });
  }
  if (!asked) return { status: 200, type, body: read(share, whole), headers: common };
  const range = `bytes ${asked.start}-${asked.end - 1}/${share.size}`;
  return { status: 206, type, body: read(share, asked), headers: { ...common, 'content-range': range } };
}

/** If-None-Match goes before If-Modified-Since (RFC 9110, 13.2.2). */
function isKnown(share: OpenShare, etag: string, headers: IncomingHttpHeaders): boolean {
  const tags = headers['if-none-match'];
  if (tags !== undefined)
    return tags.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
  const since = Date.parse(headers['if-modified-since'] ?? '');
  return wholeSeconds(share.lastModified) <= since;
}

function isSameAs(ifRange: IncomingHttpHeaders[string], share: OpenShare, etag: string): boolean {
  if (typeof ifRange !== 'string') return true;
  return ifRange === etag || Date.parse(ifRange) === wholeSeconds(share.lastModified);
}

function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}

/** The one range of a Range header; undefined where it asks for several or cannot be read, which means the whole. */
function readRange(header: string | undefined, size: number): Span | 'outside' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(Number(last) + 1, size);
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined;
  return start < end ? { start, end } : 'outside';
}

/** @throws Error from `chunks` where the file changes while it is read, so that a mixture is never taken for the object */
function read({ handle, size, lastModified }: OpenShare, { start, end }: Span): StreamedBody {
  return {
    size: end - start,
    async *chunks() {
      for (let at = start; at < end; ) {
        const length = Math.min(FILE_CHUNK, end - at);
        const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(length), 0, length, at);
        at += bytesRead;
        const now = at < end && bytesRead > 0 ? undefined : await handle.stat();
        if (now && (now.size !== size || now.mtimeMs !== lastModified))
          throw new Error('the shared object changed while it was read');
        yield buffer.subarray(0, bytesRead);
      }
    },
    end: () => handle.close(),
  };
}

/** What a browser would run is offered for download. */
function disposition(data: string, type: string): string {
  const isShownOnly = /^(text\/plain|text\/csv|application\/json|audio\/.*|video\/.*|image\/(?!svg).*)$/.test(
    type,
  );
  const name = data.split('/').at(-1) ?? data;
  const plain = name.replace(/[^\w .()-]/g, '_');
  const encoded = encodeURIComponent(name).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
  return `${isShownOnly ? 'inline' : 'attachment'}; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

const LONGEST_FIELD = 1_000;
const FULL = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO']);

/** The file part of an upload, whole, on disk under a hidden name. */
interface Incoming {
  readonly filename: string;
  readonly path: string;
  readonly handle: FileHandle;
}

/**
 * Takes one object from a multipart body: the file part `data`, named by its filename, and the group `c`, in any order. The
 * bytes go to disk as they come, and into their place when all of them are there.
 *
 * @throws Refusal 400, 409, 413, 507
 */
export async function receiveShare(
  request: IncomingMessage,
  form: RequestForm,
  store: ShareStore,
  mostBytes: number,
): Promise<Share> {
  const parser = multipartParser(request, {
    preservePath: true,
    limits: { fieldNameSize: 200, fieldSize: LONGEST_FIELD + 1, parts: 10 },
  });
  const fail = (error: Error) => void parser.destroy(error);
  let part: BusboyFileStream | undefined;
  let upload: Promise<Incoming> | undefined;
  parser.on('field', (name, value) => {
    if (value.length > LONGEST_FIELD)
      fail(new Refusal(400, `The parameter ${name} is longer than ${LONGEST_FIELD} characters.`));
    else attempt(() => form.begin(name).push(Buffer.from(value)), fail);
  });
  parser.on('file', (name, stream, filename) => {
    stream.on('error', () => undefined);
    if (name !== 'data' || upload !== undefined)
      return fail(new Refusal(400, 'An upload is one file part named data.'));
    part = stream;
    upload = takeFile(stream, filename, store);
    upload.catch(fail);
  });
  try {
    await pipeline(limitBody(request, mostBytes), parser).catch((error: unknown) => {
      throw error instanceof Refusal || systemCode(error) !== undefined ? error : unreadableMultipart(error);
    });
    const incoming = await upload;
    if (!incoming) throw new Refusal(400, 'The upload has no file part named data.');
    const name = shareName(form.text('c') ?? '', incoming.filename);
    await incoming.handle.sync();
    return await store.place(incoming.path, name);
  } catch (error) {
    if (FULL.has(systemCode(error) ?? ''))
      throw new Refusal(507, 'The disk of the peer is full or failing; nothing was kept.');
    throw error;
  } finally {
    part?.destroy();
    await upload?.then(remove, () => undefined);
  }
}

function attempt(work: () => void, fail: (error: Error) => void): void {
  try {
    work();
  } catch (error) {
    fail(error as Error);
  }
}

async function takeFile(stream: BusboyFileStream, filename: string, store: ShareStore): Promise<Incoming> {
  if (filename.includes('\ufffd')) throw new Refusal(400, 'The filename of the upload is not UTF-8.');
  shareName('', filename);
  const incoming = { filename, ...(await store.incoming()) };
  try {
    for await (const chunk of stream) await incoming.handle.writeFile(chunk as Buffer);
    return incoming;
  } catch (error) {
    await remove(incoming);
    throw error;
  }
}

/** Nothing is left of an upload but what was put into its place. */
async function remove({ handle, path }: Incoming): Promise<void> {
  await handle.close();
  await rm(path, { force: true });
}
