import type { Clock, Timer } from '../lib/clock.js';
import { type Encoding, fileStat, sameStat } from '../lib/file.js';
import type { OriginalAnswer, PeerDaemon } from './daemon-link.js';
import { findDocument } from './document-endpoints.js';
import { disposition, streamOf } from './file-body.js';
import { Refusal } from './form.js';
import type { Body, Context } from './server.js';

/** The most files that are open at a time. With its buffers, one takes about 300 kB. */
const MAX_OPEN = 32;
const CHUNK_BYTES = 65_536;
/** The longest wait until a client takes the next chunk, in ms. */
const MAX_STALL_MS = 30_000;
/** The longest wait until the daemon has opened a file, in ms. */
const MAX_OPENING_MS = 10_000;
const NOT_OPENED: OriginalAnswer = {
  kind: 'refused',
  status: 503,
  message:
    'The file was not opened within 10 seconds: its disk or network mount does not answer. Try again later.',
};

/** The types of files that a browser shows, none of which runs as a page of this peer. */
const SHOWN_TYPES: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
};
/** The extensions of files that are shown as plain text. */
const TEXT_EXTENSIONS: ReadonlySet<string> = new Set(
  'txt text log md markdown rst org tex csv tsv json yaml yml toml ini conf cfg'.split(' '),
);
/** The encodings without a name that browsers know. */
const NOT_TEXT: ReadonlySet<Encoding> = new Set(['binary', 'document', 'unknown-8bit']);

/**
 * An original may not run or load anything as a page of this peer. The PDF viewer of Chromium works
 * in this sandbox.
 */
const CONTENT_SECURITY_POLICY =
  "sandbox; default-src 'none'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/**
 * Answers `/original`: the file of a confirmed document, for reading. The daemon decides whether it
 * is served, and opens it. A peer that runs alone has no files.
 *
 * Every open file is counted from the question to the daemon until it is closed. It is closed when
 * it has been sent, when the client goes away, and when the client takes nothing for a while. A
 * file that is not opened soon is counted no longer, and closed if it is opened after all.
 */
export class Originals {
  #open = 0;

  constructor(
    private readonly daemon: PeerDaemon,
    private readonly clock: Clock,
  ) {}

  /** @throws Refusal */
  async answer(context: Context): Promise<Body> {
    const { method } = context.request;
    if (method !== 'GET' && method !== 'HEAD')
      throw new Refusal(405, 'A file is only read, by GET.', { allow: 'GET, HEAD' });
    context.requireOwnSite();
    const { url } = findDocument(await context.form(), 'urlhash', context.deps.documents);
    const { facts } = this.daemon;
    if (facts === undefined)
      throw new Refusal(
        404,
        'This peer has no files: it runs alone, or its daemon is starting. Open the file by its path.',
      );
    if (this.#open >= MAX_OPEN)
      throw new Refusal(503, `${MAX_OPEN} files are being sent already. Try again in a moment.`, {
        'retry-after': '5',
      });
    this.#open += 1;
    const release = (): void => {
      this.#open -= 1;
    };
    let answer: OriginalAnswer;
    try {
      answer = await this.#opened(facts.openOriginal(url));
    } catch (error) {
      release();
      throw error;
    }
    if (answer.kind === 'opened') return this.#send(answer, context, release);
    release();
    throw new Refusal(answer.status, answer.message);
  }

  /** Returns the answer of the daemon, or a refusal if it takes too long. */
  async #opened(opening: Promise<OriginalAnswer>): Promise<OriginalAnswer> {
    const wait = new AbortController();
    const late = this.clock.sleep(MAX_OPENING_MS, wait.signal).then(() => undefined);
    const answer = await Promise.race([opening, late]).finally(() => wait.abort());
    if (answer !== undefined) return answer;
    const closeLate = async (opened: OriginalAnswer): Promise<void> => {
      if (opened.kind === 'opened') await opened.handle.close();
    };
    // The client has its answer. A late failure leaves nothing open.
    opening.then(closeLate).catch(() => {});
    return NOT_OPENED;
  }

  /** @param release called once, when the file is closed */
  #send(
    { encoding, handle, name, sha256, stat }: Extract<OriginalAnswer, { kind: 'opened' }>,
    { request, reply }: Context,
    release: () => void,
  ): Body {
    const etag = `"${sha256}"`;
    const range = rangeOf(request.headers, etag, stat.size);
    const type = shownType(name, encoding);
    let stall: Timer | undefined;
    const body = streamOf({
      handle,
      ...(range ?? { start: 0, length: stat.size }),
      chunkBytes: CHUNK_BYTES,
      isUnchanged: async () => sameStat(fileStat(await handle.stat()), stat),
      onWait: (isWaiting) => {
        stall?.cancel();
        stall = isWaiting
          ? this.clock.after(MAX_STALL_MS, () => reply.raw.destroy(), { background: true })
          : undefined;
      },
    });
    body.once('close', () => {
      stall?.cancel();
      release();
    });
    if (range?.length === 0) {
      body.destroy();
      throw new Refusal(416, `The file has ${stat.size} bytes. Ask for a part of these.`, {
        'content-range': `bytes */${stat.size}`,
      });
    }
    reply.type(type ?? 'application/octet-stream').headers({
      'accept-ranges': 'bytes',
      'content-disposition': disposition(type === undefined ? 'attachment' : 'inline', name),
      'content-length': range?.length ?? stat.size,
      'content-security-policy': CONTENT_SECURITY_POLICY,
      etag,
    });
    if (range === undefined) return body;
    const { length, start } = range;
    reply.code(206).header('content-range', `bytes ${start}-${start + length - 1}/${stat.size}`);
    return body;
  }
}

/** Returns the content type of a file that a browser shows; undefined for a download. */
function shownType(name: string, encoding: Encoding): string | undefined {
  const extension = /\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? '';
  if (Object.hasOwn(SHOWN_TYPES, extension)) return SHOWN_TYPES[extension];
  if (!TEXT_EXTENSIONS.has(extension) || NOT_TEXT.has(encoding)) return undefined;
  return `text/plain; charset=${encoding}`;
}

/**
 * Returns the part of a file that a request asks for (RFC 9110, 14.2), with the length 0 if the
 * file has no such part. Undefined if the whole file is to be sent: several parts at once, and a
 * part of another version, are not.
 */
function rangeOf(
  headers: Context['request']['headers'],
  etag: string,
  size: number,
): { readonly start: number; readonly length: number } | undefined {
  const { range, 'if-range': version = etag } = headers;
  const [, from = '', to = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range ?? '') ?? [];
  if (version !== etag || from + to === '') return undefined;
  if (from === '') {
    const length = Math.min(Number(to), size);
    return { start: size - length, length };
  }
  const start = Number(from);
  if (to !== '' && Number(to) < start) return undefined;
  const end = to === '' ? size : Math.min(Number(to) + 1, size);
  return { start, length: Math.max(0, end - start) };
}
