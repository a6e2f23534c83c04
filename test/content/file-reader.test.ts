import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs, {
  appendFileSync,
  lstatSync,
  mkdirSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { EncodingDetector } from '../../src/content/encoding.js';
import {
  type Fingerprint,
  fingerprint,
  fingerprintNow,
  type ReadOrder,
} from '../../src/content/file-reader.js';
import { fileStat } from '../../src/lib/file.js';
import { temporaryDirectory } from '../support/temp.js';

const PIECE = 1_048_576;

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

const statOf = (path: string) => fileStat(lstatSync(path));

function written(content: string | Buffer): string {
  const path = join(temporaryDirectory(), 'f');
  writeFileSync(path, content);
  return path;
}

describe.each<[string, (order: ReadOrder) => Fingerprint | Promise<Fingerprint>]>([
  ['in pieces', (order) => fingerprint(order)],
  ['at once', fingerprintNow],
])('a fingerprint taken %s', (_how, read) => {
  const readAsIs = async (file: string) => await read({ file, stat: statOf(file) });

  it.each([
    ['an empty file', Buffer.alloc(0)],
    ['a file of exactly one piece', Buffer.alloc(PIECE, 'gulls')],
    [
      'a file of several pieces',
      Buffer.concat([Buffer.alloc(2_500_000, 'gulls\0'), Buffer.from('end')]),
    ],
    ['a character across a border', Buffer.from(`${'x'.repeat(PIECE - 1)}ü${'y'.repeat(100)}`)],
  ])('is the stat, the hash and the encoding of %s', async (_what, content) => {
    const path = written(content);
    const sha256 = createHash('sha256').update(content).digest('hex');
    const version = { ...statOf(path), sha256, encoding: content.includes(0) ? 'binary' : 'utf-8' };
    expect(await readAsIs(path)).toEqual({ kind: 'version', version, holdsPrivateKey: false });
  });

  const letters = 'MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEA'.repeat(2);
  const pem = `-----BEGIN RSA PRIVATE KEY-----\n${letters}\n-----END RSA PRIVATE KEY-----\n`;
  const jwk = { kty: 'EC', crv: 'P-256', x: letters, d: letters };

  it.each<[string, string | Buffer]>([
    ['OpenSSH', '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n'],
    ['PEM behind a blank line', '\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n'],
    ['PEM behind a byte order mark', '\ufeff-----BEGIN PRIVATE KEY-----\r\nMIIEow\r\n'],
    ['PEM behind what is not seen', `\u200b${pem}`],
    ['PEM in UTF-16', Buffer.from(`\ufeff${pem}`, 'utf16le')],
    ['PEM in UTF-16, the other way', Buffer.from(`\ufeff${pem}`, 'utf16le').swap16()],
    ['PEM behind attributes', `Bag Attributes\n    friendlyName: me\n${pem}`],
    ['PEM behind a comment', `# of the web server\n${pem}`],
    [
      'PEM behind long certificates',
      `${`-----BEGIN CERTIFICATE-----\n${letters}\n`.repeat(60)}${pem}`,
    ],
    [
      'encrypted PEM in a manual',
      `Use this:\n${pem.replace('\n', '\nProc-Type: 4,ENCRYPTED\n\n')}`,
    ],
    ['indented PEM', pem.replaceAll(/^/gm, '    ')],
    ['PEM in JSON', JSON.stringify({ type: 'service_account', private_key: pem })],
    ['OpenPGP', '-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF\n'],
    ['SSH2', `---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: "x"\n${letters}\n`],
    ['PuTTY', 'PuTTY-User-Key-File-3: ssh-ed25519\n'],
    ['age', `# created: today\nAGE-SECRET-KEY-1${'Q'.repeat(58)}\n`],
    ['WireGuard', `[Interface]\nPrivateKey = ${letters.slice(0, 43)}=\n`],
    ['a JSON Web Key', JSON.stringify({ keys: [jwk] })],
  ])('holds a private key: %s', async (_what, content) => {
    expect(await readAsIs(written(content))).toMatchObject({ holdsPrivateKey: true });
  });

  it.each([
    ['a certificate', '-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----\n'],
    ['a public key', `-----BEGIN PUBLIC KEY-----\n${letters}\n`],
    ['a manual', 'A PRIVATE KEY begins with\n-----BEGIN PRIVATE KEY-----\nMIIEow...\n'],
    ['a public JSON Web Key', JSON.stringify({ keys: [{ ...jwk, d: undefined }] })],
    ['an interface without its key', '[Interface]\nPrivateKey = ...\n'],
    // These took years and seconds, and kept the thread from reading other files.
    ['many headers', `x\n-----BEGIN PRIVATE KEY-----\n${'a: b\n'.repeat(100)}`],
    ['many empty lines', `${'\n'.repeat(65_000)}PrivateKey`],
  ])('holds no private key: %s', async (_what, content) => {
    expect(await readAsIs(written(content))).toMatchObject({ holdsPrivateKey: false });
  });

  it('is discarded if the file is not the one that was found at rest', async () => {
    const file = written('one');
    const before = statOf(file);
    appendFileSync(file, 'two');
    expect(await read({ file, stat: before })).toEqual({ kind: 'raced' });
    const found = statOf(file);
    writeFileSync(`${file}.new`, 'onetwo');
    utimesSync(`${file}.new`, before.mtimeMs / 1_000, before.mtimeMs / 1_000);
    renameSync(`${file}.new`, file);
    expect(await read({ file, stat: found })).toEqual({ kind: 'raced' });
  });

  it('is refused for a file that vanished or is not a regular file, without waiting', async () => {
    const file = written('x');
    const at = (name: string) => join(file, '..', name);
    for (const none of [at('none'), at('f/none')])
      expect(await read({ file: none, stat: statOf(file) })).toEqual({ kind: 'vanished' });
    symlinkSync('f', at('link'));
    mkdirSync(at('directory'));
    execFileSync('mkfifo', [at('pipe')]);
    const server = createServer().listen(at('socket'));
    await new Promise((resolve) => server.once('listening', resolve));
    for (const other of [at('link'), at('directory'), at('pipe'), at('socket'), '/dev/zero'])
      expect(await readAsIs(other), other).toEqual({ kind: 'notRegular' });
    server.close();
  });

  it('is refused for a file behind a link that replaced a directory', async () => {
    const root = temporaryDirectory();
    mkdirSync(join(root, 'private'));
    writeFileSync(join(root, 'private/secret'), 'hunter2');
    symlinkSync('private', join(root, 'swapped'));
    const file = join(root, 'swapped/secret');
    expect(await read({ file, stat: statOf(file) })).toEqual({ kind: 'raced' });
  });

  it('is taken of a file behind links if links are followed, and refused for a file outside', async () => {
    const root = temporaryDirectory();
    mkdirSync(join(root, 'folder/files'), { recursive: true });
    mkdirSync(join(root, 'private'));
    writeFileSync(join(root, 'folder/files/note'), 'gulls');
    writeFileSync(join(root, 'private/secret'), 'hunter2');
    symlinkSync('files', join(root, 'folder/inside'));
    symlinkSync('note', join(root, 'folder/files/again'));
    symlinkSync('../private', join(root, 'folder/outside'));
    const through = async (path: string) => {
      const file = join(root, 'folder', path);
      return await read({
        file,
        stat: fileStat(statSync(file)),
        linksWithin: join(root, 'folder'),
      });
    };
    expect(await through('inside/note')).toMatchObject({ kind: 'version' });
    expect(await through('inside/again')).toMatchObject({ kind: 'version' });
    expect(await through('outside/secret')).toEqual({ kind: 'notRegular' });
  });

  it("is refused with the message of an error that is not the system's", async () => {
    vi.spyOn(EncodingDetector.prototype, 'write').mockImplementation(() => {
      throw new Error('no such luck');
    });
    expect(await readAsIs(written('x'))).toEqual({ kind: 'unreadable', code: 'no such luck' });
  });
});

it.each([
  ['grows', (path: string) => appendFileSync(path, 'more')],
  ['is replaced', (path: string) => renameSync(written('new'), path)],
])('a file that %s while it is read has no fingerprint', async (_, disturb) => {
  const file = written(Buffer.alloc(8 * PIECE));
  let pieces = 0;
  const found = await fingerprint({ file, stat: statOf(file) }, () => {
    pieces += 1;
    if (pieces === 2) disturb(file);
  });
  expect(found).toEqual({ kind: 'raced' });
});

it.each([
  ['grows', (path: string) => appendFileSync(path, 'more')],
  ['is replaced', (path: string) => renameSync(written('new'), path)],
])('a small file that %s right after it was read has no fingerprint', (_, disturb) => {
  const file = written('gulls');
  const { readSync } = fs;
  vi.spyOn(fs, 'readSync').mockImplementation((...args: unknown[]) => {
    const bytes = Reflect.apply(readSync, fs, args) as number;
    disturb(file);
    return bytes;
  });
  syncBuiltinESMExports();
  expect(fingerprintNow({ file, stat: statOf(file) })).toEqual({ kind: 'raced' });
});
