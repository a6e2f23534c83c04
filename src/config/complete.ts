import { basename, resolve } from 'node:path';
import type { z } from 'zod';
import type { Config, FolderConfig } from './config.js';
import type { configSchema } from './schema.js';
import { fileBase } from './url.js';

type Parsed = z.output<typeof configSchema>;

/** Makes every path absolute, as seen from `directory`, and gives each folder its name and URL base; frozen. */
export function complete(parsed: Parsed, directory: string): Config {
  const at = (path: string): string => resolve(directory, path);
  const { $schema: _, peer, folders, ...rest } = parsed;
  return deepFreeze({
    ...rest,
    peer: {
      ...peer,
      ...(peer.auth && { auth: { ...peer.auth, password: completeSecret(peer.auth.password, at) } }),
      tls: peer.tls.ca === undefined ? {} : { ca: at(peer.tls.ca) },
      embedded: { ...peer.embedded, dir: at(peer.embedded.dir) },
    },
    folders: folders.map((folder) => completeFolder(folder, at)),
    state: { ...rest.state, dir: at(rest.state.dir) },
    mirror: { ...rest.mirror, root: at(rest.mirror.root) },
  });
}

type At = (path: string) => string;

function completeFolder(folder: Parsed['folders'][number], at: At): FolderConfig {
  const path = at(folder.path);
  return { ...folder, path, name: folder.name ?? basename(path), url: folder.url ?? fileBase(path) };
}

function completeSecret(secret: NonNullable<Parsed['peer']['auth']>['password'], at: At) {
  return 'file' in secret ? { file: at(secret.file) } : secret;
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value))
    if (typeof inner === 'object' && inner !== null) deepFreeze(inner);
  return Object.freeze(value);
}
