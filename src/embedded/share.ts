import { type FileHandle, rm } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { BusboyFileStream } from '@fastify/busboy';
import mime from 'mime';
import { systemCode } from '../lib/errors.js';
import { formParser, isMultipartForm, limitBody, Refusal, refuseCompressed, unreadable } from './form.js';
import { escapeMarkup } from './markup.js';
import type { Body, Context } from './server.js';
import { type Listing, type OpenShare, type Share, type ShareStore, shareSegments } from './share-store.js';

/** Bytes of an upload; it goes to disk as it comes, so memory sets no limit. */
const MOST_UPLOAD = 64 * 1_073_741_824;

/**
 * The endpoint of shared objects. With `data` (and its group `c`) it answers the object itself; without, it lists the objects of
 * `c`, or all. A multipart body with a file part `data` puts an object there, which only the administrator may.
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
  return context.record('Shared objects', { shares: listed, more }, uploadForm(c));
}

function uploadForm(c: string): string {
  return `<h2>Share a file</h2>
<form action="/api/share.html" method="post" enctype="multipart/form-data">
<label>Group<input name="c" value="${escapeMarkup(c)}" maxlength="255" autocomplete="off"></label>
<label>File<input type="file" name="data" required></label>
<p><button type="submit">Share</button></p>
</form>
<p class="dim">The administrator only. A file of the same name is replaced.</p>
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
  return Math.floor(found.lastModified / 1000) * 1000 <= Date.parse(headers['if-modified-since'] ?? '');
}

/** @throws Error where the file changes while it is read, so that a mixture is never taken for the object */
async function* read({ handle, size, lastModified }: OpenShare): AsyncGenerator<Buffer> {
  for (let at = 0; at < size; ) {
    const length = Math.min(FILE_CHUNK, size - at);
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(length), 0, length, at);
    at += bytesRead;
    if (at === size || bytesRead === 0) {
      const now = await handle.stat();
      if (now.size !== size || now.mtimeMs !== lastModified)
        throw new Error('the shared object changed while it was read');
    }
    yield buffer.subarray(0, bytesRead);
  }
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

const LONGEST_GROUP = 1_000;
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
    if (name !== 'data' || upload !== undefined) return fail('An upload is one file part named data.');
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
  } catch (error) {
    if (FULL.has(systemCode(error) ?? ''))
      throw new Refusal(507, 'The disk of the peer is full or failing; nothing was kept.');
    throw error;
  } finally {
    part?.destroy();
    await upload?.then(remove, () => undefined);
  }
}

async function takeFile(stream: BusboyFileStream, filename: string, store: ShareStore): Promise<Incoming> {
  if (filename.includes('\ufffd')) throw new Refusal(400, 'The filename of the upload is not UTF-8.');
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
