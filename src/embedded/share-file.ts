import type { IncomingHttpHeaders } from 'node:http';
import { type Answer, Refusal, type StreamedBody } from './answer.js';
import { isShownOnly, mediaType } from './media-types.js';
import type { OpenShare } from './share-store.js';
import type { Visit } from './visit.js';

const CHUNK = 262_144;
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
  const type = mediaType(share.data);
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
        const length = Math.min(CHUNK, end - at);
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
  const name = data.split('/').at(-1) ?? data;
  const plain = name.replace(/[^\w .()-]/g, '_');
  const encoded = encodeURIComponent(name).replace(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
  return `${isShownOnly(type) ? 'inline' : 'attachment'}; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
