import { createHash } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeFileAtomic } from '../../lib/atomic.js';
import { systemCode } from '../../lib/errors.js';
import { inSlices, nextTurn, withPauses } from '../../lib/slices.js';
import { onDisk } from '../errors.js';

/** The lines that are written or parsed between two pauses. */
const LINES_PER_SLICE = 500;
/** The bytes that are hashed between two pauses: a few milliseconds of work. */
const HASHED_PER_SLICE = 2 ** 21;

/** The content of a file of checked lines. */
export interface CheckedLines<Head, Line> {
  readonly head: Head;
  readonly lines: AsyncIterable<Line>;
}

/**
 * Replaces a file of JSON lines: the head, one line an item, and a last line with the sha256 of the
 * others. Directories are made with mode 0700.
 *
 * @throws MirrorError
 */
export async function writeCheckedLines<T>(
  path: string,
  head: object,
  items: Iterable<T>,
  lineOf: (item: T) => unknown,
): Promise<void> {
  async function* text(): AsyncGenerator<string> {
    const hash = createHash('sha256');
    let lines = `${JSON.stringify(head)}\n`;
    for await (const group of inSlices(items, LINES_PER_SLICE)) {
      hash.update(lines);
      yield lines;
      lines = group.map((item) => `${JSON.stringify(lineOf(item))}\n`).join('');
    }
    yield lines + checksumLine(hash.update(lines).digest('hex'));
  }
  await onDisk(path, async () => {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFileAtomic(path, text(), { temporary: `${path}.tmp` });
  });
}

/** Reads what `writeCheckedLines` wrote. Returns undefined if the file is missing or damaged. */
export async function readCheckedLines<Head, Line>(
  path: string,
): Promise<CheckedLines<Head, Line> | undefined> {
  const content = await readFile(path).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '')) return undefined;
    throw error;
  });
  if (content === undefined) return undefined;
  const checked = content.subarray(0, content.lastIndexOf('\n', -2) + 1);
  const checksum = content.toString('utf8', checked.length);
  if (checksum !== checksumLine(await sha256Of(checked))) return undefined;
  const lines = parsedLines(checked);
  const head = lines.next().value as Head;
  return { head, lines: withPauses(lines as Iterable<Line>, LINES_PER_SLICE) };
}

/** Returns the sha256 in lower-case hex. Pauses between slices of a large buffer. */
export async function sha256Of(bytes: Buffer): Promise<string> {
  const hash = createHash('sha256');
  for (let at = 0; at < bytes.length; at += HASHED_PER_SLICE) {
    hash.update(bytes.subarray(at, at + HASHED_PER_SLICE));
    await nextTurn();
  }
  return hash.digest('hex');
}

function checksumLine(sha256: string): string {
  return `${JSON.stringify({ sha256 })}\n`;
}

function* parsedLines(text: Buffer): Generator<unknown> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\n', at);
    yield JSON.parse(text.toString('utf8', at, end));
    at = end + 1;
  }
}
