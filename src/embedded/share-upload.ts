import { type FileHandle, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { BusboyFileStream, BusboyInstance } from '@fastify/busboy';
import { systemCode } from '../lib/errors.js';
import { Refusal } from './answer.js';
import { multipartParser, type RequestForm, tooLarge, unreadableMultipart } from './form.js';
import { type Share, type ShareStore, shareName } from './share-store.js';

const LONGEST_FIELD = 1_000;
const FULL = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO']);

/** The file part of an upload, on disk under a hidden name. */
interface Incoming {
  readonly filename: string;
  readonly path: string;
  readonly handle: FileHandle;
  readonly written: Promise<void>;
  readonly stream: BusboyFileStream;
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
  const upload = new Upload(form, store);
  try {
    await upload.receive(request, mostBytes);
    return await upload.place();
  } catch (error) {
    if (FULL.has(systemCode(error) ?? ''))
      throw new Refusal(507, 'The disk of the peer is full or failing; nothing was kept.');
    throw error;
  } finally {
    await upload.tidy();
  }
}

class Upload {
  readonly #form: RequestForm;
  readonly #store: ShareStore;
  #incoming: Promise<Incoming> | undefined;
  /** What went wrong first; nothing more is read then. */
  #failure: unknown;

  constructor(form: RequestForm, store: ShareStore) {
    this.#form = form;
    this.#store = store;
  }

  async receive(request: IncomingMessage, mostBytes: number): Promise<void> {
    const parser = this.#parser(request);
    try {
      await pipeline(this.#bytes(request, mostBytes), parser);
    } catch (error) {
      if (error === this.#failure || error instanceof Refusal) throw error;
      if (request.destroyed && !request.complete) throw error;
      throw unreadableMultipart(error);
    }
    this.#throwFailure();
  }

  async place(): Promise<Share> {
    const incoming = await this.#incoming;
    if (!incoming) throw new Refusal(400, 'The upload has no file part named data.');
    await incoming.written;
    this.#throwFailure();
    const name = shareName(this.#form.text('c') ?? '', incoming.filename);
    await incoming.handle.sync();
    return this.#store.place(incoming.path, name);
  }

  async tidy(): Promise<void> {
    const incoming = await this.#incoming?.catch(() => undefined);
    if (!incoming) return;
    incoming.stream.destroy();
    await incoming.written.catch(() => undefined);
    await incoming.handle.close();
    await rm(incoming.path, { force: true });
  }

  #parser(request: IncomingMessage): BusboyInstance {
    const parser = multipartParser(request, {
      preservePath: true,
      limits: { fieldNameSize: 200, fieldSize: LONGEST_FIELD + 1, parts: 10 },
    });
    parser.on('field', (name, value) => this.#attempt(() => this.#field(name, value)));
    parser.on('file', (name, stream, filename) => {
      stream.on('error', () => undefined);
      this.#attempt(() => this.#file(name, stream, filename));
      if (this.#failure) stream.resume();
    });
    return parser;
  }

  #attempt(take: () => void): void {
    try {
      take();
    } catch (error) {
      this.#failure ??= error;
    }
  }

  #field(name: string, value: string): void {
    if (value.length > LONGEST_FIELD)
      throw new Refusal(400, `The parameter ${name} is longer than ${LONGEST_FIELD} characters.`);
    this.#form.begin(name).push(Buffer.from(value));
  }

  #file(name: string, stream: BusboyFileStream, filename: string): void {
    if (name !== 'data' || this.#incoming) throw new Refusal(400, 'An upload is one file part named data.');
    if (filename.includes('\ufffd')) throw new Refusal(400, 'The filename of the upload is not UTF-8.');
    shareName('', filename);
    this.#incoming = this.#store.incoming().then(({ path, handle }) => {
      const written = pipeline(stream, this.#writer(handle));
      written.catch(() => undefined);
      return { filename, path, handle, written, stream };
    });
    this.#incoming.catch((error: unknown) => {
      this.#failure ??= error;
      stream.resume();
    });
  }

  /** A stream that failed would stop the parser for ever: the bytes after a failure are let go. */
  #writer(handle: FileHandle): Writable {
    return new Writable({
      highWaterMark: 1_048_576,
      write: (chunk: Buffer, _encoding, done) => {
        if (this.#failure) {
          done();
          return;
        }
        const write = handle.writeFile(chunk).catch((error: unknown) => {
          this.#failure ??= error;
        });
        void write.then(() => done());
      },
    });
  }

  async *#bytes(request: IncomingMessage, most: number): AsyncGenerator<Buffer> {
    let size = 0;
    // The request has to stay open after a refusal, so that the answer can be read.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      this.#throwFailure();
      size += (chunk as Buffer).length;
      if (size > most) throw tooLarge(most);
      yield chunk as Buffer;
    }
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure;
  }
}
