import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { EncodingDetector } from '../../src/content/encoding.js';
import { fingerprint, fingerprintNow } from '../../src/content/reader.js';
import { type FileStat, fileStat } from '../../src/lib/file.js';
import { temporaryDirectory } from '../support/temp.js';

const pieces = { read: (file: string, stat: FileStat) => fingerprint({ file, stat }) };
const READERS = [
  ['in pieces', pieces],
  ['at once', { read: async (file: string, stat: FileStat) => fingerprintNow({ file, stat }) }],
] as const;

afterEach(() => {
  vi.restoreAllMocks();
});

function statOf(path: string) {
  return fileStat(lstatSync(path));
}

describe.each(READERS)('a fingerprint taken %s', (_how, reader) => {
  it.each([
    ['an empty file', Buffer.alloc(0)],
    ['a small file', Buffer.from('Grüße')],
    ['a file of exactly one piece', randomBytes(1_048_576)],
    ['a file of several pieces', Buffer.concat([randomBytes(2_500_000), Buffer.from('end')])],
  ])('is the stat, the hash and the encoding of %s', async (_what, content) => {
    const path = join(temporaryDirectory(), 'f');
    writeFileSync(path, content);
    const sha256 = createHash('sha256').update(content).digest('hex');
    const encoding = content.includes(0) ? 'binary' : 'utf-8';
    expect(await reader.read(path, statOf(path))).toEqual({
      kind: 'version',
      version: { ...statOf(path), sha256, encoding },
    });
  });

  it('finds a character that lies across the border of two pieces', async () => {
    const path = join(temporaryDirectory(), 'f');
    writeFileSync(path, `${'x'.repeat(1_048_575)}ü${'y'.repeat(100)}`);
    expect(await reader.read(path, statOf(path))).toMatchObject({ version: { encoding: 'utf-8' } });
  });

  it('is thrown away when the file is not the one that was found at rest', async () => {
    const directory = temporaryDirectory();
    const path = join(directory, 'f');
    writeFileSync(path, 'one');
    const before = statOf(path);
    appendFileSync(path, 'two');
    expect(await reader.read(path, before)).toEqual({ kind: 'raced' });
    writeFileSync(join(directory, 'g'), 'onetwo');
    const { mtimeMs } = before;
    const found = statOf(path);
    utimesSync(join(directory, 'g'), mtimeMs / 1_000, mtimeMs / 1_000);
    renameSync(join(directory, 'g'), path);
    expect(await reader.read(path, found)).toEqual({ kind: 'raced' });
  });

  it('is none of what vanished, nor of a link', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'f'), 'x');
    const stat = statOf(join(directory, 'f'));
    symlinkSync('f', join(directory, 'link'));
    mkdirSync(join(directory, 'd'));
    expect(await reader.read(join(directory, 'none'), stat)).toEqual({ kind: 'vanished' });
    expect(await reader.read(join(directory, 'f/none'), stat)).toEqual({ kind: 'vanished' });
    expect(await reader.read(join(directory, 'link'), stat)).toEqual({ kind: 'notRegular' });
    expect(await reader.read(join(directory, 'd'), stat)).toEqual({ kind: 'notRegular' });
  });

  it("is none where the reading fails for a reason that is not the system's, and that is said", async () => {
    const path = join(temporaryDirectory(), 'f');
    writeFileSync(path, 'x');
    vi.spyOn(EncodingDetector.prototype, 'write').mockImplementation(() => {
      throw new Error('no such luck');
    });
    expect(await reader.read(path, statOf(path))).toEqual({ kind: 'unreadable', code: 'no such luck' });
  });

  it('does not wait for a pipe, a socket or a device', async () => {
    const directory = temporaryDirectory();
    execFileSync('mkfifo', [join(directory, 'pipe')]);
    const server = createServer().listen(join(directory, 'socket'));
    await new Promise((resolve) => server.once('listening', resolve));
    for (const path of [join(directory, 'pipe'), join(directory, 'socket'), '/dev/zero']) {
      expect(await reader.read(path, statOf(path)), path).toEqual({ kind: 'notRegular' });
    }
    server.close();
  });
});

describe('a fingerprint', () => {
  it('is thrown away when the file is written or replaced while it is read', async () => {
    const directory = temporaryDirectory();
    for (const disturb of [
      (path: string) => appendFileSync(path, 'more'),
      (path: string) => {
        const file = openSync(path, 'r+');
        writeSync(file, 'the same size, and the end was not read yet', 63 * 1_048_576);
        closeSync(file);
      },
      (path: string) => {
        writeFileSync(`${path}.new`, 'new');
        renameSync(`${path}.new`, path);
      },
    ]) {
      const path = join(directory, 'f');
      writeFileSync(path, '');
      truncateSync(path, 64 * 1_048_576);
      const reading = pieces.read(path, statOf(path));
      // Some way into the reading, which takes several times as long.
      await new Promise((resolve) => setTimeout(resolve, 10));
      disturb(path);
      expect(await reading).toEqual({ kind: 'raced' });
    }
  });
});
