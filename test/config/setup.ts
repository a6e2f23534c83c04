import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type Config, ConfigError } from '../../src/config/config.js';
import { loadConfig } from '../../src/config/load.js';
import { temporaryDirectory } from '../support/temp.js';

export const inbox = { path: 'inbox', collection: 'inbox' };

/** Writes a configuration into a fresh directory. */
export function written(config: unknown): { directory: string; file: string } {
  const directory = temporaryDirectory();
  const file = join(directory, 'peersync.json');
  const isText = typeof config === 'string' || config instanceof Uint8Array;
  writeFileSync(file, isText ? config : JSON.stringify(config));
  return { directory, file };
}

/**
 * Returns a configuration with one folder, in which a key such as `folders[0].name` has this value.
 */
export function withValue(key: string, value: unknown): object {
  const config = { folders: [{ ...inbox }] };
  const steps = key.split(/[.[\]]+/);
  const last = steps.pop() ?? '';
  let at: Record<string, unknown> = config;
  for (const step of steps) {
    at[step] ??= {};
    at = at[step] as Record<string, unknown>;
  }
  at[last] = value;
  return config;
}

export async function load(config: unknown): Promise<Config> {
  return (await loadConfig(written(config).file)).config;
}

export async function configErrorOf(refused: Promise<unknown>): Promise<ConfigError> {
  const error: unknown = await refused.catch((thrown: unknown) => thrown);
  if (error instanceof ConfigError) return error;
  throw new Error(`no ConfigError but ${String(error)}`);
}

/** Returns the lines of faults of a configuration that is refused. */
export async function problems(config: unknown): Promise<string[]> {
  const { code, exitCode, message } = await configErrorOf(load(config));
  expect([code, exitCode]).toEqual(['CONFIG_INVALID', 2]);
  const [, ...lines] = message.split('\n');
  return lines.map((line) => line.trim());
}

export function keysIn(lines: readonly string[]): string[] {
  return lines.map((line) => line.slice(0, line.indexOf(':')));
}
