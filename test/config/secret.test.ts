import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/config/config.js';
import type { Secret } from '../../src/config/fields.js';
import { resolveSecret } from '../../src/config/secret.js';
import { type Logger, silentLogger } from '../../src/lib/logger.js';
import { temporaryDirectory } from '../support/temp.js';

async function errorOf(secret: Secret, env: Record<string, string> = {}): Promise<ConfigError> {
  const error: unknown = await resolveSecret(secret, env).catch((thrown: unknown) => thrown);
  if (error instanceof ConfigError) return error;
  throw new Error(`no ConfigError but ${String(error)}`);
}

function secretFile(content: string | Uint8Array, mode = 0o600): string {
  const path = join(temporaryDirectory(), 'secret');
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

describe('a secret', () => {
  it('is found in an environment variable', async () => {
    expect(await resolveSecret({ env: 'PW' }, { PW: 'hunter2' })).toBe('hunter2');
  });

  it('is found in a file', async () => {
    expect(await resolveSecret({ file: secretFile('hunter2') }, {})).toBe('hunter2');
  });

  it('is found among the credentials of systemd', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'peer-password'), 'hunter2', { mode: 0o400 });
    const env = { CREDENTIALS_DIRECTORY: directory };
    expect(await resolveSecret({ credential: 'peer-password' }, env)).toBe('hunter2');
  });

  it.each([
    ['hunter2\n', 'hunter2'],
    ['hunter2\r\n', 'hunter2'],
    ['hunter2\n\n', 'hunter2\n'],
    [' hunter 2 ', ' hunter 2 '],
    ['pässwörd🎉\n', 'pässwörd🎉'],
  ])('%j loses one line break at its end and nothing else', async (content, secret) => {
    expect(await resolveSecret({ file: secretFile(content) }, {})).toBe(secret);
  });

  it('in a file that everybody may read is used, with a warning that does not hold it', async () => {
    const said: string[] = [];
    const warn: Logger['warn'] = (fields, message) => said.push(`${JSON.stringify(fields)} ${message}`);
    const log = { ...silentLogger, warn };
    const path = secretFile('hunter2', 0o644);
    expect(await resolveSecret({ file: path }, {}, log)).toBe('hunter2');
    expect(said).toEqual([expect.stringContaining(`${path} can be read by every user`)]);
    expect(said[0]).not.toContain('hunter2');
    await resolveSecret({ file: secretFile('hunter2', 0o640) }, {}, log);
    expect(said).toHaveLength(1);
  });
});

describe('a secret that is not there', () => {
  it('is an environment variable to set', async () => {
    const error = await errorOf({ env: 'PW' });
    expect(error.code).toBe('SECRET_MISSING');
    expect(error.exitCode).toBe(2);
    expect(error.message).toBe('The environment variable PW is not set.');
  });

  it('is a file to make', async () => {
    const path = join(temporaryDirectory(), 'none');
    const error = await errorOf({ file: path });
    expect(error.code).toBe('SECRET_MISSING');
    expect(error.message).toContain(path);
  });

  it('is a credential of a unit that has none, or not this one', async () => {
    expect((await errorOf({ credential: 'pw' })).message).toContain('LoadCredential=');
    const error = await errorOf({ credential: 'pw' }, { CREDENTIALS_DIRECTORY: temporaryDirectory() });
    expect(error.code).toBe('SECRET_MISSING');
  });

  it.each(['', '\n', '\r\n'])('is empty when it is %j', async (content) => {
    expect((await errorOf({ env: 'PW' }, { PW: content })).code).toBe('SECRET_EMPTY');
    expect((await errorOf({ file: secretFile(content) })).code).toBe('SECRET_EMPTY');
  });
});

describe('what cannot hold a secret', () => {
  it('is a directory', async () => {
    const path = join(temporaryDirectory(), 'directory');
    mkdirSync(path);
    const error = await errorOf({ file: path });
    expect(error.code).toBe('SECRET_UNREADABLE');
    expect(error.message).toContain('not a regular file');
  });

  it('is a pipe that nobody writes to, and it does not keep us waiting', async () => {
    const path = join(temporaryDirectory(), 'pipe');
    expect(spawnSync('mkfifo', [path]).status).toBe(0);
    expect((await errorOf({ file: path })).code).toBe('SECRET_UNREADABLE');
  });

  it('is a file too large for one', async () => {
    const error = await errorOf({ file: secretFile('hunter2'.repeat(10_000)) });
    expect(error.code).toBe('SECRET_UNREADABLE');
    expect(inspect(error)).not.toContain('hunter2');
  });

  it('is a file that is not text', async () => {
    const error = await errorOf({ file: secretFile(Buffer.from('hunter2\xff', 'latin1')) });
    expect(error.code).toBe('SECRET_UNREADABLE');
    expect(inspect(error)).not.toContain('hunter2');
  });
});
