import { basename } from 'node:path';
import type { z } from 'zod';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { writtenPath } from '../lib/home.js';
import type { Secret } from './fields.js';
import type { configSchema } from './schema.js';
import { fileBase } from './url.js';

/**
 * A configuration as the schema leaves it: paths as they are given, folders perhaps without a name
 * or a URL.
 */
export type ParsedConfig = z.output<typeof configSchema>;

/**
 * The whole configuration: checked, complete, all paths absolute, all URLs in normal form, all
 * durations in ms and all sizes in bytes; frozen. Nobody asks "was it given?" behind this.
 */
export type Config = DeepReadonly<
  Omit<ParsedConfig, '$schema' | 'folders'> & { readonly folders: readonly FolderConfig[] }
>;
/**
 * One watched folder; the name is unique among the folders, and the URL a base for `documentUrl`.
 */
export type FolderConfig = DeepReadonly<
  ParsedConfig['folders'][number] & {
    readonly name: string;
    readonly url: string;
  }
>;
export type MirrorConfig = Config['mirror'];
/**
 * A mirror of a shared object, or of every one that a pattern matches. `path` may hold `{data}`.
 */
export type ShareMirrorConfig = MirrorConfig['shares'][number];
/** A mirror of a table, or of every table that a pattern matches. `path` may hold `{table}`. */
export type TableMirrorConfig = MirrorConfig['tables'][number];
/** A mirror of the citations of one folder. `path` holds `{path}`, perhaps `{folder}`. */
export type CitationsMirrorConfig = MirrorConfig['citations'][number];

type DeepReadonly<T> = T extends string | number | boolean | undefined
  ? T
  : { readonly [K in keyof T]: DeepReadonly<T[K]> };

/**
 * Makes every path absolute, as seen from `directory`, and gives each folder its name and URL base.
 */
export function complete({ $schema: _, ...parsed }: ParsedConfig, directory: string): Config {
  const { peer, folders, state, mirror, status } = parsed;
  const at = (path: string): string => writtenPath(path, directory);
  const secretAt = (secret: Secret): Secret =>
    'file' in secret ? { file: at(secret.file) } : secret;
  return deepFreeze({
    ...parsed,
    peer: {
      ...peer,
      ...(peer.auth && { auth: { ...peer.auth, password: secretAt(peer.auth.password) } }),
      tls: peer.tls.ca === undefined ? {} : { ca: at(peer.tls.ca) },
      embedded: { ...peer.embedded, dir: at(peer.embedded.dir) },
    },
    folders: folders.map((folder) => {
      const path = at(folder.path);
      const { name = basename(path), url = fileBase(path) } = folder;
      return { ...folder, path, name, url };
    }),
    state: { ...state, dir: at(state.dir) },
    mirror: { ...mirror, root: at(mirror.root) },
    status: { ...status, ...(status.token && { token: secretAt(status.token) }) },
  });
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value))
    if (typeof inner === 'object' && inner !== null) deepFreeze(inner);
  return Object.freeze(value);
}

const HINTS = {
  CONFIG_MISSING: 'Run `peersync init` to write one, or name another with --config.',
  CONFIG_UNREADABLE: 'Name a file that this user may read with --config.',
  CONFIG_SYNTAX:
    'Mend the file at that place; `peersync schema` helps an editor to show such errors while you type.',
  CONFIG_INVALID:
    'Mend the file; `peersync schema` helps an editor to show such errors while you type.',
  CONFIG_NEEDS_RESTART:
    'Nothing changed. Restart peersync with this file, or change the rest of it first.',
  SECRET_MISSING:
    'Provide it, or let peer.auth.password name another place: an environment variable, file or credential.',
  SECRET_UNREADABLE:
    'Make it a regular file that holds only the secret and that this user may read.',
  SECRET_EMPTY: 'Put the secret there.',
} as const;

/** The configuration, or a secret that it names, cannot be used. Never holds a secret. */
export class ConfigError extends PeersyncError {
  declare readonly code: keyof typeof HINTS;

  constructor(
    code: keyof typeof HINTS,
    message: string,
    details: Readonly<Record<string, unknown>> = {},
  ) {
    super({ code, message, hint: HINTS[code], details, exitCode: EXIT.usage });
  }
}
