import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { messageOf, systemCode } from '../lib/errors.js';
import { parseJson } from '../lib/json.js';
import { checkConfig } from './check.js';
import type { Config } from './config.js';
import { ConfigError } from './errors.js';

export interface LoadedConfig {
  /** The file, absolute. */
  readonly path: string;
  readonly config: Config;
}

const LARGEST_FILE_BYTES = 2 ** 20;

/**
 * Reads, checks and completes a configuration file. Secrets are not looked up.
 *
 * @throws ConfigError CONFIG_MISSING, CONFIG_UNREADABLE, CONFIG_SYNTAX, or CONFIG_INVALID with all problems at once
 */
export async function loadConfig(path: string): Promise<LoadedConfig> {
  const absolute = resolve(path);
  const parsed = parseJson(await readConfigFile(absolute));
  if ('fault' in parsed) {
    const { line, column, what } = parsed.fault;
    const message = `${absolute} is not JSON at line ${line}, column ${column}: ${what}.`;
    throw new ConfigError('CONFIG_SYNTAX', message, { path: absolute, line, column });
  }
  return { path: absolute, config: await checkConfig(parsed.value, absolute) };
}

async function readConfigFile(path: string): Promise<string> {
  const content = await readAtMost(path, LARGEST_FILE_BYTES + 1);
  if (content.length > LARGEST_FILE_BYTES) {
    throw new ConfigError(
      'CONFIG_UNREADABLE',
      `${path} is larger than 1 MiB: this is no configuration file.`,
      { path },
    );
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch {
    throw new ConfigError('CONFIG_UNREADABLE', `${path} is not text in UTF-8.`, { path });
  }
}

async function readAtMost(path: string, limit: number): Promise<Buffer> {
  try {
    const handle = await open(path, 'r');
    try {
      const chunks: Buffer[] = [];
      for (let left = limit; left > 0; ) {
        const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(left, 65_536)));
        if (bytesRead === 0) break;
        chunks.push(buffer.subarray(0, bytesRead));
        left -= bytesRead;
      }
      return Buffer.concat(chunks);
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): ConfigError {
  const code = systemCode(error);
  if (code === 'ENOENT') {
    return new ConfigError('CONFIG_MISSING', `There is no configuration file ${path}.`, { path });
  }
  const why =
    code === 'EISDIR'
      ? 'it is a directory'
      : code === 'EACCES'
        ? 'this user may not read it'
        : messageOf(error);
  return new ConfigError('CONFIG_UNREADABLE', `The configuration file ${path} cannot be read: ${why}.`, {
    path,
    code,
  });
}
