import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { systemCode } from '../lib/errors.js';
import type { OpenFile } from './directory.js';

/** The part of the newest journal that was known to be on disk at the last acknowledged write. */
export interface Acknowledged {
  readonly generation: number;
  /** In bytes from the start of that journal. */
  readonly end: number;
}

const NAME = 'acknowledged';
/** Texts are padded to this length, so that one write replaces the text before. */
const TEXT_LENGTH = 40;
const LENGTH = 8 + 1 + TEXT_LENGTH + 1;

/**
 * Keeps in a small file how much of the journal was acknowledged. It tells a torn end from lost
 * data: lines torn by a crash were never acknowledged.
 *
 * The file is written after the journal is synced and before the write is acknowledged. It is not
 * synced itself. After `kill -9` it is exact. After a power cut it may be older: then a lost end
 * may pass for a torn one, and nothing worse.
 */
export class AcknowledgedFile {
  #file: FileHandle | undefined;

  constructor(
    private readonly dir: string,
    private readonly open: OpenFile,
  ) {}

  async write({ generation, end }: Acknowledged): Promise<void> {
    this.#file ??= await this.#opened();
    const text = `${generation} ${end}`.padEnd(TEXT_LENGTH);
    await this.#file.write(Buffer.from(`${checksumOf(text)} ${text}\n`), 0, LENGTH, 0);
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  async #opened(): Promise<FileHandle> {
    const path = join(this.dir, NAME);
    return await this.open(path, 'r+').catch((error: unknown) => {
      if (systemCode(error) === 'ENOENT') return this.open(path, 'wx+', 0o600);
      throw error;
    });
  }
}

/** Reads the file `acknowledged`; undefined if it is missing or damaged. */
export async function readAcknowledged(
  dir: string,
  open: OpenFile,
): Promise<Acknowledged | undefined> {
  const file = await open(join(dir, NAME), 'r').catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '')) return undefined;
    throw error;
  });
  if (file === undefined) return undefined;
  try {
    const [checksum, ...rest] = (await file.readFile('utf8')).slice(0, LENGTH - 1).split(' ');
    const text = rest.join(' ');
    if (checksum !== checksumOf(text)) return undefined;
    const [generation = 0, end = 0] = text.split(' ').map(Number);
    return { generation, end };
  } finally {
    await file.close();
  }
}

function checksumOf(text: string): string {
  return crc32(text).toString(16).padStart(8, '0');
}
