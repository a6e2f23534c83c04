import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { BusboyFileStream } from '@fastify/busboy';
import { formParser, limitBody, Refusal, unreadable } from './form.js';
import type { Context } from './server.js';
import { type Share, type ShareStore, shareSegments, type Upload } from './share-store.js';

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
export async function receiveShare(
  { request: { raw } }: Context,
  store: ShareStore,
): Promise<Share> {
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
