import { basename, resolve } from 'node:path';
import type { z } from 'zod';
import type { Config, FolderConfig, MirrorConfig } from './config.js';
import type { configSchema } from './schema.js';
import { isTablePattern } from './table-pattern.js';
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
    mirror: completeMirror(rest.mirror, at),
    status: {
      ...rest.status,
      ...(rest.status.token && { token: completeSecret(rest.status.token, at) }),
    },
  });
}

type At = (path: string) => string;

function completeFolder(folder: Parsed['folders'][number], at: At): FolderConfig {
  const path = at(folder.path);
  return { ...folder, path, name: folder.name ?? basename(path), url: folder.url ?? fileBase(path) };
}

function completeMirror(mirror: Parsed['mirror'], at: At): MirrorConfig {
  return {
    ...mirror,
    root: at(mirror.root),
    shares: mirror.shares.map((share) => {
      const whole = share.c === undefined ? share.data : `${share.c}/${share.data}`;
      const target = isTablePattern(share.data)
        ? `${share.c === undefined ? '' : `${share.c}/`}{data}`
        : whole;
      return { ...share, name: share.name ?? whole, path: share.path ?? `shares/${target}` };
    }),
    tables: mirror.tables.map((table) => ({
      ...table,
      name: table.name ?? table.table,
      path: table.path ?? `tables/{table}.${table.format}`,
    })),
    citations: mirror.citations.map((each) => ({
      ...each,
      name: each.name ?? `citations/${each.folder}`,
      path: each.path ?? 'citations/{folder}/{path}.json',
    })),
  };
}

function completeSecret(secret: NonNullable<Parsed['peer']['auth']>['password'], at: At) {
  return 'file' in secret ? { file: at(secret.file) } : secret;
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value))
    if (typeof inner === 'object' && inner !== null) deepFreeze(inner);
  return Object.freeze(value);
}
