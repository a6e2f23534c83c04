import { basename } from 'node:path';
import type { z } from 'zod';
import { type ErrorTable, EXIT, tableError } from '../lib/errors.js';
import { writtenPath } from '../lib/home.js';
import type { Secret } from './fields.js';
import type { configSchema } from './schema.js';
import { fileBase } from './url.js';

/**
 * A configuration that the schema has parsed. Paths are as they were given, and folders may lack a
 * name or URL.
 */
export type ParsedConfig = z.output<typeof configSchema>;

/**
 * The whole configuration: checked, complete and frozen. Paths are absolute, URLs are in normal
 * form, durations are in ms, sizes in bytes. No later code asks whether a value was given.
 */
export type Config = DeepReadonly<
  Omit<ParsedConfig, '$schema' | 'folders'> & { readonly folders: readonly FolderConfig[] }
>;
/**
 * One watched folder. Its name is unique among the folders. Its URL is a base for `documentUrl`.
 */
export type FolderConfig = DeepReadonly<
  ParsedConfig['folders'][number] & {
    readonly name: string;
    readonly url: string;
  }
>;
export type MirrorConfig = Config['mirror'];
/** A mirror of one shared object, or of all that match a pattern. `path` may contain `{data}`. */
export type ShareMirrorConfig = MirrorConfig['shares'][number];
/** A mirror of one table, or of all that match a pattern. `path` may contain `{table}`. */
export type TableMirrorConfig = MirrorConfig['tables'][number];
/**
 * A mirror of the citations of one folder. `path` contains `{path}`, and may contain `{folder}`.
 */
export type CitationsMirrorConfig = MirrorConfig['citations'][number];

type DeepReadonly<T> = T extends string | number | boolean | undefined
  ? T
  : { readonly [K in keyof T]: DeepReadonly<T[K]> };

/**
 * Completes a configuration: makes paths absolute, relative to `directory`, and gives each folder a
 * name and a URL base.
 */
export function complete({ $schema: _, ...parsed }: ParsedConfig, directory: string): Config {
  const { fleet, peer, folders, state, mirror, status } = parsed;
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
    ...(fleet && {
      fleet: {
        ...fleet,
        ...(fleet.password && { password: secretAt(fleet.password) }),
        ...(fleet.ca && { ca: at(fleet.ca) }),
      },
    }),
  });
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value))
    if (typeof inner === 'object' && inner !== null) deepFreeze(inner);
  return Object.freeze(value);
}

const ERRORS = {
  CONFIG_MISSING: {
    message: 'The configuration file {path} does not exist.',
    hint: 'Type `peersync init` to write one, or name another file with --config.',
    exitCode: EXIT.usage,
  },
  CONFIG_UNREADABLE: {
    message: 'The configuration file {path} cannot be read: {why}.',
    hint: 'Make it readable for this user, or name another file with --config.',
    exitCode: EXIT.usage,
  },
  CONFIG_SYNTAX: {
    message: '{path} is not valid JSON at line {line}, column {column}: {what}.',
    hint: 'Correct the file at that place. With the schema from `peersync schema`, an editor shows such errors while you type.',
    exitCode: EXIT.usage,
  },
  CONFIG_INVALID: {
    message: '{path} has {count}:{lines}',
    hint: 'Correct the file. With the schema from `peersync schema`, an editor shows such errors while you type.',
    exitCode: EXIT.usage,
  },
  CONFIG_NEEDS_RESTART: {
    message:
      'These changes need a restart, because {keys} cannot change while peersync runs:{lines}',
    hint: 'Nothing changed. Restart peersync with this file, or undo the changes that conflict with the running values.',
    exitCode: EXIT.usage,
  },
  SECRET_MISSING: {
    message: '{place} {why}.',
    hint: 'Provide it, or name another place in the configuration: an environment variable, a file or a credential.',
    exitCode: EXIT.usage,
  },
  SECRET_UNREADABLE: {
    message: '{place} {why}.',
    hint: 'Make it a regular file that holds only the secret and that this user may read.',
    exitCode: EXIT.usage,
  },
  SECRET_EMPTY: {
    message: '{place} is empty.',
    hint: 'Put the secret there.',
    exitCode: EXIT.usage,
  },
} as const satisfies ErrorTable;

/**
 * Thrown when the configuration, or a secret that it names, cannot be used. Never contains a
 * secret.
 */
export class ConfigError extends tableError(ERRORS) {}
