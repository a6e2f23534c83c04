import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  opendir,
  realpath,
  rename,
  rm,
  stat,
} from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { BusboyFileStream } from '@fastify/busboy';
import mime from 'mime';
import { syncDirectory } from '../lib/atomic.js';
import { systemCode } from '../lib/errors.js';
import { counted } from '../lib/text.js';
import { formatBytes } from '../lib/units.js';
import { escapeMarkup, nameMarkup } from '../web/markup.js';
import {
  formParser,
  isMultipartForm,
  limitBody,
  Refusal,
  refuseCompressed,
  unreadable,
} from './form.js';
import { timeOf } from './markup.js';
import type { Body, Context } from './server.js';

/** A shared object, as it is listed. */
interface Share {
  /**
   * The group, which is the first folder; empty where the object stands directly in the folder of
   * shares.
   */
  readonly c: string;
  /** The rest of the path, with `/` between folders. */
  readonly data: string;
  /** Bytes. */
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly lastModified: number;
}

/** A shared object that is open for reading; whoever has it closes the handle. */
interface OpenShare extends Share {
  readonly handle: FileHandle;
}

interface Listing {
  readonly shares: readonly Share[];
  /** Whether there are more than MOST_LISTED. */
  readonly more: boolean;
}

/** Objects of a listing. */
const MOST_LISTED = 10_000;
/** Folders and file of a name; what lies deeper is no object. */
const MOST_SEGMENTS = 32;
/** Bytes; what Linux file systems take. */
const LONGEST_SEGMENT = 255;
const INCOMING = /^\.upload-[0-9a-f]{16}\.tmp$/;
/** What the system says of a path that holds no file that can be shared. */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'ENXIO', 'EISDIR']);

/**
 * The shared objects: files under `shares/`, put there by a copy or by `place`. Links are not
 * followed, except that `shares` itself may be one. Hidden files are nobody's objects: a file that
 * comes in stands under a hidden name until it is whole and on disk.
 */
export class ShareStore {
  readonly #root: string;

  private constructor(root: string) {
    this.#root = root;
  }

  /** Makes the folder where it is missing and removes what a broken-off upload left. */
  static async open(dir: string): Promise<ShareStore> {
    const root = join(dir, 'shares');
    await mkdir(root, { recursive: true, mode: 0o700 });
    for await (const { name } of await opendir(root))
      if (INCOMING.test(name)) await rm(join(root, name), { force: true });
    return new ShareStore(root);
  }

  /** undefined where there is no such file, or the way to it leads over a link. */
  async get(segments: readonly string[]): Promise<OpenShare | undefined> {
    const path = join(this.#root, ...segments);
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const handle = await open(path, flags).catch(absent);
    if (!handle) return undefined;
    const found = await handle.stat();
    const real = await realpath(path).catch(absent);
    const there = await stat(path).catch(absent);
    const isPlace = real === join(await realpath(this.#root), ...segments);
    if (found.isFile() && isPlace && there?.dev === found.dev && there.ino === found.ino)
      return { ...shareOf(segments, found), handle };
    await handle.close();
    return undefined;
  }

  /**
   * The objects under `folder` by their names, at most MOST_LISTED; undefined where there is no
   * such folder.
   */
  async list(folder: readonly string[]): Promise<Listing | undefined> {
    const top = await lstat(join(this.#root, ...folder)).catch(absent);
    if (folder.length > 0 && !top?.isDirectory()) return undefined;
    const shares: Share[] = [];
    const isAll = await this.#walk(folder, shares);
    return { shares: shares.sort(byName), more: !isAll };
  }

  /** Whether all is in `shares`. */
  async #walk(folder: readonly string[], shares: Share[]): Promise<boolean> {
    const entries = await opendir(join(this.#root, ...folder)).catch(absent);
    for await (const { name } of entries ?? []) {
      // A name that is not UTF-8 cannot be asked for.
      if (troubleOf(name) !== undefined || name.includes('\ufffd')) continue;
      const segments = [...folder, name];
      const found = await lstat(join(this.#root, ...segments)).catch(absent);
      if (found?.isDirectory() && segments.length < MOST_SEGMENTS) {
        if (!(await this.#walk(segments, shares))) return false;
      } else if (found?.isFile()) {
        if (shares.length === MOST_LISTED) return false;
        shares.push(shareOf(segments, found));
      }
    }
    return true;
  }

  /** Opens a file for an upload, under a hidden name. */
  async incoming(): Promise<{ readonly path: string; readonly handle: FileHandle }> {
    const path = join(this.#root, `.upload-${randomBytes(8).toString('hex')}.tmp`);
    return { path, handle: await open(path, 'wx', 0o600) };
  }

  /**
   * Puts a whole file of `incoming` into its place, on disk when this resolves. @throws Refusal 409
   */
  async place(path: string, segments: readonly string[]): Promise<Share> {
    let folder = this.#root;
    for (const segment of segments.slice(0, -1)) {
      const parent = folder;
      folder = join(parent, segment);
      const made = await mkdir(folder, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
        if (systemCode(error) !== 'EEXIST') throw error;
      });
      if (!(await lstat(folder)).isDirectory()) throw new Refusal(409, `${segment} is no folder.`);
      if (made) await syncDirectory(parent);
    }
    const target = join(this.#root, ...segments);
    try {
      await rename(path, target);
    } catch (error) {
      if (systemCode(error) === 'EISDIR') throw new Refusal(409, `${segments.at(-1)} is a folder.`);
      throw error;
    }
    await syncDirectory(folder);
    return shareOf(segments, await lstat(target));
  }
}

function shareOf(
  segments: readonly string[],
  { size, mtimeMs }: { readonly size: number; readonly mtimeMs: number },
): Share {
  const [c = '', ...rest] = segments.length === 1 ? ['', ...segments] : segments;
  return { c, data: rest.join('/'), size, lastModified: mtimeMs };
}

/** As folders are walked by their names. */
function byName(a: Share, b: Share): number {
  const key = ({ c, data }: Share): string =>
    (c === '' ? data : `${c}/${data}`).replaceAll('/', '\0');
  return key(a) < key(b) ? -1 : 1;
}

function absent(error: unknown): undefined {
  if (!ABSENT.has(systemCode(error) ?? '')) throw error;
}

/**
 * The folders and the file that `c` and `data` name, from the folder of shares down; the way cannot
 * lead out of it. Without `data` the folder of the group, none where `c` is empty.
 *
 * @throws Refusal 400 for what cannot be a name, 404 for hidden files
 */
function shareSegments(c: string, data?: string): readonly string[] {
  const segments = data?.split('/') ?? [];
  if (c !== '') segments.unshift(c);
  if (c.includes('/')) throw new Refusal(400, 'The parameter c cannot hold a slash.');
  if (segments.length > MOST_SEGMENTS) throw new Refusal(400, 'The name has too many folders.');
  for (const segment of segments) {
    const failure = troubleOf(segment);
    if (failure === 'is hidden') throw new Refusal(404, 'There is no such shared object.');
    if (failure !== undefined) throw new Refusal(400, `The name of the shared object ${failure}.`);
  }
  return segments;
}

function troubleOf(segment: string): string | undefined {
  if (segment === '') return 'begins or ends with a slash, has two in a row, or is empty';
  if (segment === '.' || segment === '..') return 'leads to another folder';
  if (segment.includes('\\') || /\p{Cc}/u.test(segment))
    return 'holds a backslash or a character that cannot be seen';
  if (Buffer.byteLength(segment) > LONGEST_SEGMENT)
    return `names a file or folder with more than ${LONGEST_SEGMENT} bytes`;
  return segment.startsWith('.') ? 'is hidden' : undefined;
}

/** Bytes of an upload; it goes to disk as it comes, so memory sets no limit. */
const MOST_UPLOAD = 64 * 1_073_741_824;

/**
 * The endpoint of shared objects. With `data` (and its group `c`) it answers the object itself;
 * without, it lists the objects of `c`, or all. A multipart body with a file part `data` puts an
 * object there, which only the administrator may.
 */
export async function share(context: Context, store: ShareStore): Promise<Body> {
  if (isMultipartForm(context.request.headers['content-type'])) {
    refuseCompressed(context.request.headers);
    await context.requireAdministrator();
    context.requireChange();
    const placed = await receiveShare(context, store);
    return listing(context, { shares: [placed], more: false }, placed.c);
  }
  const form = await context.form();
  const c = form.text('c') ?? '';
  const data = form.text('data');
  if (data !== undefined) {
    const found = await store.get(shareSegments(c, data));
    if (!found) throw new Refusal(404, 'There is no such shared object.');
    return shareFile(found, context);
  }
  const found = await store.list(shareSegments(c));
  if (!found) throw new Refusal(404, 'There is no such group of shared objects.');
  return listing(context, found, c);
}

/** `c` is the group that was asked for, or empty. */
function listing(context: Context, { shares, more }: Listing, c: string): string {
  const listed = shares.map(({ lastModified, ...name }) => {
    const query = new URLSearchParams({ ...(name.c === '' ? {} : { c: name.c }), data: name.data });
    const url = `${context.baseUrl}/api/share.html?${query}`;
    return { ...name, lastModified: new Date(Math.round(lastModified)).toISOString(), url };
  });
  if (context.as === 'json') return context.record('', { shares: listed, more });
  const rows = listed.map(({ data, lastModified, size, url, ...share }) => {
    const cells = [nameMarkup(share.c), formatBytes(size), timeOf(Date.parse(lastModified))];
    const name = `<a href="${escapeMarkup(url)}">${nameMarkup(data)}</a>`;
    return `<tr><td>${[name, ...cells].join('</td><td>')}</td></tr>\n`;
  });
  const head = '<thead><tr><th>File</th><th>Group</th><th>Size</th><th>Changed</th></tr></thead>';
  const list =
    rows.length === 0
      ? '<p class="empty">No shared objects yet.</p>'
      : `<div class="scroll"><table>\n${head}\n<tbody>${rows.join('')}</tbody></table></div>`;
  const many = `${more ? 'More than ' : ''}${counted(shares.length, 'file')}${c === '' ? '' : ` in ${c}`}`;
  const top = `<h1>Shared objects</h1>\n<p class="hint">${nameMarkup(many)}</p>`;
  const body = `${list}\n${uploadForm(c)}`;
  return context.deps.site.page({ title: 'Shared objects', place: 'shares', top, body });
}

function uploadForm(c: string): string {
  return `<h2>Share a file</h2>
<form class="fields" action="/api/share.html" method="post" enctype="multipart/form-data">
<label>Group<input name="c" value="${escapeMarkup(c)}" maxlength="255" autocomplete="off"></label>
<label>File<input type="file" name="data" required></label>
<p><button class="primary" type="submit">Share</button></p>
</form>
<p class="hint">For the administrator only. A file of the same name is replaced.</p>
`;
}

const FILE_CHUNK = 262_144;
/** Nothing in a shared object may run or load anything as a page of this peer. */
const CONTENT_SECURITY_POLICY =
  "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; frame-ancestors 'none'";

/** The object itself, straight from disk; 304 where the client has it already. */
async function shareFile(found: OpenShare, { request, reply }: Context): Promise<Body> {
  const { headers } = request;
  const { data, size, lastModified, handle } = found;
  const type = mime.getType(`/${data}`) ?? 'application/octet-stream';
  const etag = `"${size.toString(16)}-${lastModified.toString(16)}"`;
  reply.type(type).headers({
    'cache-control': 'no-cache',
    'content-disposition': disposition(data, type),
    'content-security-policy': CONTENT_SECURITY_POLICY,
    etag,
    'last-modified': new Date(lastModified).toUTCString(),
  });
  if (isKnown(found, etag, headers)) {
    await handle.close();
    reply.code(304);
    return '';
  }
  reply.header('content-length', size);
  const chunks = Readable.from(read(found), { objectMode: false, highWaterMark: FILE_CHUNK });
  return chunks.once('close', () => void handle.close());
}

/** If-None-Match goes before If-Modified-Since (RFC 9110, 13.2.2). */
function isKnown(found: Share, etag: string, headers: IncomingHttpHeaders): boolean {
  const tags = headers['if-none-match'];
  if (tags !== undefined)
    return tags.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
  return (
    Math.floor(found.lastModified / 1000) * 1000 <= Date.parse(headers['if-modified-since'] ?? '')
  );
}

/**
 * @throws Error where the file changes while it is read, so that a mixture is never taken for the
 *   object
 */
async function* read({ handle, size, lastModified }: OpenShare): AsyncGenerator<Buffer> {
  let last: Buffer | undefined;
  const end = Math.max(0, size - 1);
  for await (const chunk of handle.createReadStream({
    end,
    highWaterMark: FILE_CHUNK,
    autoClose: false,
  })) {
    if (last !== undefined) yield last;
    last = chunk as Buffer;
  }
  const now = await handle.stat();
  if (now.size !== size || now.mtimeMs !== lastModified)
    throw new Error('the shared object changed while it was read');
  if (last !== undefined) yield last;
}

/** What a browser shows and does not run; all else is offered for download. */
const SHOWN = /^(text\/plain|text\/csv|application\/json|audio\/.*|video\/.*|image\/(?!svg).*)$/;

function disposition(data: string, type: string): string {
  const name = data.split('/').at(-1) ?? data;
  const plain = name.replace(/[^\w .()-]/g, '_');
  const encoded = encodeURIComponent(name).replace(
    /['()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16)}`,
  );
  return `${SHOWN.test(type) ? 'inline' : 'attachment'}; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

const LONGEST_GROUP = 1_000;

/** The file part of an upload, whole, on disk under a hidden name. */
interface Incoming {
  readonly filename: string;
  readonly path: string;
  readonly handle: FileHandle;
}

/**
 * Takes one object from a multipart body: the file part `data`, named by its filename, and the
 * group `c`, in any order. The bytes go to disk as they come, and into their place when all of them
 * are there.
 *
 * @throws Refusal 400, 409, 413, 507
 */
async function receiveShare({ request: { raw } }: Context, store: ShareStore): Promise<Share> {
  const parser = formParser(raw.headers['content-type'] ?? '', {
    preservePath: true,
    limits: { fieldNameSize: 200, fieldSize: LONGEST_GROUP + 1, parts: 10 },
  });
  const fail = (why: string) => void parser.destroy(new Refusal(400, why));
  let c = '';
  let part: BusboyFileStream | undefined;
  let upload: Promise<Incoming> | undefined;
  parser.on('field', (name, value) => {
    if (value.length > LONGEST_GROUP)
      fail(`The parameter ${name} is longer than ${LONGEST_GROUP} characters.`);
    else if (name === 'c') c = value;
  });
  parser.on('file', (name, stream, filename) => {
    stream.on('error', () => undefined);
    if (name !== 'data' || upload !== undefined)
      return fail('An upload is one file part named data.');
    part = stream;
    upload = takeFile(stream, filename, store);
    upload.catch((error: Error) => void parser.destroy(error));
  });
  try {
    await pipeline(limitBody(raw, MOST_UPLOAD), parser).catch((error: unknown) => {
      throw unreadable(error);
    });
    const incoming = await upload;
    if (!incoming) throw new Refusal(400, 'The upload has no file part named data.');
    await incoming.handle.sync();
    return await store.place(incoming.path, shareSegments(c, incoming.filename));
  } finally {
    part?.destroy();
    await upload?.then(remove, () => undefined);
  }
}

async function takeFile(
  stream: BusboyFileStream,
  filename: string,
  store: ShareStore,
): Promise<Incoming> {
  if (filename.includes('\ufffd'))
    throw new Refusal(400, 'The filename of the upload is not UTF-8.');
  shareSegments('', filename);
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
