import { rm } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { BusboyFileStream } from '@fastify/busboy';
import mime from 'mime';
import { counted } from '../lib/text.js';
import { formatBytes } from '../lib/units.js';
import { escapeMarkup, nameMarkup } from '../web/markup.js';
import { disposition, streamOf } from './file-body.js';
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
import {
  type Listing,
  type OpenShare,
  type Share,
  type ShareStore,
  shareSegments,
  type Upload,
} from './share-store.js';

/**
 * The endpoint of shared objects.
 *
 * - With `data` (and its group `c`), it answers the object itself.
 * - Without `data`, it lists the objects of `c`, or all.
 * - A multipart body with a file part `data` uploads an object. Only the administrator may do that.
 */
export async function share(context: Context, store: ShareStore): Promise<Body> {
  if (isMultipartForm(context.request.headers['content-type'])) {
    refuseCompressed(context.request.headers);
    await context.requireAdministrator();
    context.requireChange();
    const uploaded = await receiveShare(context, store);
    return listing(context, { shares: [uploaded], more: false }, uploaded.c);
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

/** @param c the requested group, or empty */
function listing(context: Context, { shares, more }: Listing, c: string): string {
  const listed = shares.map(({ lastModified, ...share }) => {
    const query = new URLSearchParams(
      share.c === '' ? { data: share.data } : { c: share.c, data: share.data },
    );
    const url = `${context.baseUrl}/api/share.html?${query}`;
    return { ...share, lastModified: new Date(Math.round(lastModified)).toISOString(), url };
  });
  if (context.as === 'json') return context.record('', { shares: listed, more });
  const rows = listed.map(({ data, lastModified, size, url, ...share }) => {
    const cells = [
      `<a href="${escapeMarkup(url)}">${nameMarkup(data)}</a>`,
      nameMarkup(share.c),
      formatBytes(size),
      timeOf(Date.parse(lastModified)),
    ];
    return `<tr><td>${cells.join('</td><td>')}</td></tr>\n`;
  });
  const head = '<thead><tr><th>File</th><th>Group</th><th>Size</th><th>Changed</th></tr></thead>';
  const list =
    rows.length === 0
      ? '<p class="empty">No shared objects yet.</p>'
      : `<div class="scroll"><table>\n${head}\n<tbody>${rows.join('')}</tbody></table></div>`;
  const many = `${more ? 'More than ' : ''}${counted(shares.length, 'file')}`;
  const count = c === '' ? many : `${many} in ${c}`;
  return context.deps.site.page({
    title: 'Shared objects',
    section: 'shares',
    top: `<h1>Shared objects</h1>\n<p class="hint">${nameMarkup(count)}</p>`,
    body: `${list}\n${uploadForm(c)}`,
  });
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

const CHUNK_BYTES = 262_144;
/** A shared object may not run or load anything as a page of this peer. */
const CONTENT_SECURITY_POLICY =
  "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; frame-ancestors 'none'";

/** Answers the object itself, streamed from disk; 304 if the client has it already. */
async function shareFile(found: OpenShare, { request, reply }: Context): Promise<Body> {
  const { data, size, lastModified, handle } = found;
  const type = mime.getType(`/${data}`) ?? 'application/octet-stream';
  const etag = `"${size.toString(16)}-${lastModified.toString(16)}"`;
  reply.type(type).headers({
    'cache-control': 'no-cache',
    'content-disposition': disposition(
      SHOWN_TYPES.test(type) ? 'inline' : 'attachment',
      data.split('/').at(-1) ?? data,
    ),
    'content-security-policy': CONTENT_SECURITY_POLICY,
    etag,
    'last-modified': new Date(lastModified).toUTCString(),
  });
  if (isCached(found, etag, request.headers)) {
    await handle.close();
    reply.code(304);
    return '';
  }
  reply.header('content-length', size);
  const isUnchanged = async (): Promise<boolean> => {
    const now = await handle.stat();
    return now.size === size && now.mtimeMs === lastModified;
  };
  return streamOf({ handle, start: 0, length: size, chunkBytes: CHUNK_BYTES, isUnchanged });
}

/**
 * Whether the client has this version. If-None-Match takes precedence over If-Modified-Since (RFC
 * 9110, 13.2.2).
 */
function isCached(found: Share, etag: string, headers: IncomingHttpHeaders): boolean {
  const tags = headers['if-none-match'];
  if (tags !== undefined)
    return tags.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
  const since = Date.parse(headers['if-modified-since'] ?? '');
  return Math.floor(found.lastModified / 1000) * 1000 <= since;
}

/** The types that a browser shows without running them. Others are offered for download. */
const SHOWN_TYPES =
  /^(text\/plain|text\/csv|application\/json|audio\/.*|video\/.*|image\/(?!svg).*)$/;

/** The largest upload, in bytes. Memory sets no limit, because the bytes are streamed to disk. */
const MAX_UPLOAD_BYTES = 64 * 1_073_741_824;
const MAX_GROUP_CHARS = 1_000;

/** The file part of an upload, completely received. */
interface ReceivedFile extends Upload {
  readonly filename: string;
}

/**
 * Receives one object from a multipart body: a file part `data`, named by its filename, and the
 * group `c`, in any order. The bytes are streamed to a hidden file, which replaces the object when
 * it is complete.
 *
 * @throws Refusal 400, 409, 413, 507
 */
async function receiveShare({ request: { raw } }: Context, store: ShareStore): Promise<Share> {
  const parser = formParser(raw.headers['content-type'] ?? '', {
    preservePath: true,
    limits: { fieldNameSize: 200, fieldSize: MAX_GROUP_CHARS + 1, parts: 10 },
  });
  const fail = (why: string): void => void parser.destroy(new Refusal(400, why));
  let c = '';
  let part: BusboyFileStream | undefined;
  let receiving: Promise<ReceivedFile> | undefined;
  parser.on('field', (name, value) => {
    if (value.length > MAX_GROUP_CHARS)
      fail(`The parameter ${name} is longer than ${MAX_GROUP_CHARS} characters.`);
    else if (name === 'c') c = value;
  });
  parser.on('file', (name, stream, filename) => {
    stream.on('error', () => undefined);
    if (name !== 'data' || receiving !== undefined)
      return fail('An upload is one file part named data.');
    part = stream;
    receiving = receiveFile(stream, filename, store);
    receiving.catch((error: Error) => void parser.destroy(error));
  });
  try {
    await pipeline(limitBody(raw, MAX_UPLOAD_BYTES), parser).catch((error: unknown) => {
      throw unreadable(error);
    });
    const file = await receiving;
    if (!file) throw new Refusal(400, 'The upload has no file part named data.');
    await file.handle.sync();
    return await store.publish(file.path, shareSegments(c, file.filename));
  } finally {
    part?.destroy();
    await receiving?.then(discard, () => undefined);
  }
}

async function receiveFile(
  stream: BusboyFileStream,
  filename: string,
  store: ShareStore,
): Promise<ReceivedFile> {
  if (filename.includes('\ufffd'))
    throw new Refusal(400, 'The filename of the upload is not UTF-8.');
  shareSegments('', filename);
  const upload = await store.createUpload();
  try {
    for await (const chunk of stream) await upload.handle.writeFile(chunk as Buffer);
    return { ...upload, filename };
  } catch (error) {
    await discard(upload);
    throw error;
  }
}

/** Closes an upload, and removes its file unless it was published. */
async function discard({ handle, path }: Upload): Promise<void> {
  await handle.close();
  await rm(path, { force: true });
}
