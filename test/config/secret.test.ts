import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { resolveSecret, secretPlace } from '../../src/config/secret.js';
import { silentLogger } from '../../src/lib/logger.js';
import { temporaryDirectory } from '../support/temp.js';
import { configErrorOf } from './setup.js';

function secretFile(content: string | Uint8Array, mode = 0o600): string {
  const path = join(temporaryDirectory(), 'secret');
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

function pipe(): string {
  const path = join(temporaryDirectory(), 'pipe');
  expect(spawnSync('mkfifo', [path]).status).toBe(0);
  return path;
}

describe('a secret', () => {
  it('is read from an environment variable, and from the credentials of systemd', async () => {
    expect(await resolveSecret({ env: 'PW' }, { PW: 'hunter2' })).toBe('hunter2');
    const env = { CREDENTIALS_DIRECTORY: join(secretFile('hunter2', 0o400), '..') };
    expect(await resolveSecret({ credential: 'secret' }, env)).toBe('hunter2');
  });

  it.each([
    ['hunter2', 'hunter2'],
    ['hunter2\n', 'hunter2'],
    ['hunter2\r\n', 'hunter2'],
    ['hunter2\n\n', 'hunter2\n'],
    ['pässwörd🎉\n', 'pässwörd🎉'],
  ])('in a file, %j, is used without one line break at its end', async (content, secret) => {
    expect(await resolveSecret({ file: secretFile(content) }, {})).toBe(secret);
  });

  it('in a file that everybody may read is used, with a warning that does not contain it', async () => {
    const logged: string[] = [];
    const warn = (fields: object, message: string) =>
      logged.push(`${JSON.stringify(fields)} ${message}`);
    const log = { ...silentLogger, warn };
    const path = secretFile('hunter2', 0o644);
    expect(await resolveSecret({ file: path }, {}, log)).toBe('hunter2');
    await resolveSecret({ file: secretFile('hunter2', 0o640) }, {}, log);
    expect(logged).toEqual([expect.stringContaining(`${path} can be read by every user`)]);
    expect(logged[0]).not.toContain('hunter2');
  });
});

describe('a secret that cannot be read', () => {
  it.each([
    [
      'a variable',
      () => ({ env: 'PW' }),
      'SECRET_MISSING',
      'The environment variable PW is not set.',
    ],
    ['a file', () => ({ file: '/none/at/all' }), 'SECRET_MISSING', '/none/at/all'],
    ['a credential', () => ({ credential: 'pw' }), 'SECRET_MISSING', 'LoadCredential='],
    ['an empty file', () => ({ file: secretFile('') }), 'SECRET_EMPTY', ''],
    ['a file with a line break', () => ({ file: secretFile('\r\n') }), 'SECRET_EMPTY', ''],
    [
      'a directory',
      () => ({ file: temporaryDirectory() }),
      'SECRET_UNREADABLE',
      'not a regular file',
    ],
    ['a pipe that nobody writes to', () => ({ file: pipe() }), 'SECRET_UNREADABLE', ''],
    [
      'a large file',
      () => ({ file: secretFile('hunter2'.repeat(10_000)) }),
      'SECRET_UNREADABLE',
      '',
    ],
    [
      'no text',
      () => ({ file: secretFile(Buffer.from('hunter2\xff', 'latin1')) }),
      'SECRET_UNREADABLE',
      '',
    ],
  ])('causes an error that does not contain it: %s', async (_, secret, code, words) => {
    const error = await configErrorOf(resolveSecret(secret(), {}));
    expect(error).toMatchObject({ code, exitCode: 2, message: expect.stringContaining(words) });
    expect(inspect(error)).not.toContain('hunter2');
  });
});

it('a message names the place of a secret with its key', () => {
  const place = (secret: Parameters<typeof secretPlace>[0]) => secretPlace(secret, 'status.token');
  expect(place({ file: '/etc/to\u202eken' })).toBe(
    'in the file `/etc/to\\u202eken` (`status.token.file`)',
  );
  expect(place({ env: 'TOKEN' })).toBe('in the environment variable `TOKEN` (`status.token.env`)');
  expect(place({ credential: 'token' })).toBe(
    'in the systemd credential `token` (`status.token.credential`)',
  );
});
