import { resolve } from 'node:path';
import type { Config } from '../config/config.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import type { Scope } from '../uplink/retry.js';
import { LISTED_STATUSES, type ListFilter } from './list.js';
import { locate } from './locate.js';

// What comes along with a question to the daemon, read from its parameters; a command reads them itself where no daemon runs.

/** What `list` is about. @throws PeersyncError UNKNOWN_FOLDER */
export function listFilter(config: Config, parameters: Readonly<Record<string, unknown>>): ListFilter {
  const { status, folder } = parameters;
  const known = LISTED_STATUSES.find((s) => s === status);
  return {
    ...(known ? { status: known } : {}),
    ...(typeof folder === 'string' ? { folder: knownFolder(config, folder) } : {}),
  };
}

/** What `retry` is about: `all`, or absolute paths of files and directories. */
export async function scopesOf(
  config: Config,
  parameters: Readonly<Record<string, unknown>>,
): Promise<Scope[] | undefined> {
  if (parameters.all === true) return undefined;
  const paths = texts(parameters.paths);
  return await Promise.all(paths.map((path) => scopeOf(config, path)));
}

async function scopeOf(config: Config, path: string): Promise<Scope> {
  const located = await locate(config, path);
  if (located) return { folder: located.folder.name, path: located.path };
  throw new PeersyncError({
    code: 'OUTSIDE',
    message: `${resolve(path)} is in none of the watched folders.`,
    hint: `Name a path in ${config.folders.map((f) => f.path).join(' or ')}.`,
    exitCode: EXIT.usage,
  });
}

/** @throws PeersyncError UNKNOWN_FOLDER */
export function knownFolder(config: Config, name: string): string {
  if (config.folders.some((folder) => folder.name === name)) return name;
  throw new PeersyncError({
    code: 'UNKNOWN_FOLDER',
    message: `There is no folder named "${name}".`,
    hint: `The configuration names: ${config.folders.map((folder) => folder.name).join(', ')}.`,
    exitCode: EXIT.usage,
  });
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(text) : [];
}
