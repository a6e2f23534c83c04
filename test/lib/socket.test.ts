import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { listenInPrivate, openSocketPath } from '../../src/lib/socket.js';
import { afterwards } from '../support/afterwards.js';
import { temporaryDirectory } from '../support/temp.js';

/**
 * Listens in `own` below a directory, and greets each connection. @returns a function that stops it
 */
async function listening(directory: string): Promise<() => Promise<void>> {
  const server = createServer((socket) => socket.end('here'));
  const socket = await listenInPrivate(server, join(directory, 'own'), 'socket');
  const close = async () => {
    if (server.listening) await new Promise((resolve) => server.close(resolve));
    await socket.close();
  };
  afterwards('test', close);
  return close;
}

/** Returns the greeting of the socket in `own` below a directory. */
async function heard(directory: string): Promise<string> {
  const { path, close } = await openSocketPath(directory, 'own/socket');
  try {
    return await new Promise((resolve, reject) => {
      let text = '';
      const socket = connect(path).on('error', reject);
      socket.on('data', (chunk) => {
        text += chunk;
      });
      socket.on('end', () => resolve(text));
    });
  } finally {
    await close();
  }
}

describe('a private socket', () => {
  it.each([10, 60, 107, 200])(
    'works in a directory with a name of %i characters more, and leaves nothing',
    async (length) => {
      const directory = join(temporaryDirectory(), 'x'.repeat(length));
      mkdirSync(directory);
      const close = await listening(directory);
      expect(await heard(directory)).toBe('here');
      await close();
      expect(existsSync(join(directory, 'own'))).toBe(false);
    },
  );

  it('is accessible to this user alone, also if its directory was open to all', async () => {
    const directory = temporaryDirectory();
    const own = join(directory, 'own');
    mkdirSync(own);
    chmodSync(own, 0o777);
    await listening(directory);
    expect(statSync(own).mode & 0o777).toBe(0o700);
  });

  it('goes on after a connection that it could not accept', async () => {
    const directory = temporaryDirectory();
    const server = createServer((socket) => socket.end('here'));
    const socket = await listenInPrivate(server, join(directory, 'own'), 'socket');
    afterwards('test', async () => {
      await new Promise((resolve) => server.close(resolve));
      await socket.close();
    });
    server.emit('error', Object.assign(new Error('too many open files'), { code: 'EMFILE' }));
    expect(await heard(directory)).toBe('here');
  });

  it('replaces the socket of a killed process, and a link but not its target', async () => {
    const directory = temporaryDirectory();
    const [own, other] = [join(directory, 'own'), join(directory, 'other')];
    mkdirSync(own);
    writeFileSync(other, 'kept');
    for (const leave of [
      () => symlinkSync(other, join(own, 'socket')),
      () => writeFileSync(join(own, 'socket'), ''),
    ]) {
      leave();
      const close = await listening(directory);
      expect(await heard(directory)).toBe('here');
      await close();
      mkdirSync(own);
    }
    expect(readFileSync(other, 'utf8')).toBe('kept');
  });

  it('is not created through a link in place of its directory', async () => {
    const [directory, elsewhere] = [temporaryDirectory(), temporaryDirectory()];
    chmodSync(elsewhere, 0o755);
    symlinkSync(elsewhere, join(directory, 'own'));
    await expect(listening(directory)).rejects.toMatchObject({
      code: expect.stringMatching(/ELOOP|ENOTDIR/),
    });
    expect(existsSync(join(elsewhere, 'socket'))).toBe(false);
    expect(statSync(elsewhere).mode & 0o777).toBe(0o755);
    expect(lstatSync(join(directory, 'own')).isSymbolicLink()).toBe(true);
  });
});
