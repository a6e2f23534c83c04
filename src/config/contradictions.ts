import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isWildcard, isWithin, nearest, wildcard } from '../lib/text.js';
import type { Config } from './config.js';
import { FOLDER_NAME, FOLDER_NAME_RIGHT } from './fields.js';
import { fileBase } from './url.js';

/** One error in a configuration. Its three parts make one line. */
export interface Problem {
  /** The key as the documentation spells it: `folders[0].settle`. */
  readonly path: string;
  /** The value found there, without secrets. */
  readonly received: string;
  /** The value that would be right. */
  readonly expected: string;
}

export function problemLines(problems: readonly Problem[]): string {
  return problems
    .map(
      ({ path, received, expected }) => `\n  ${path}: received ${received}; expected ${expected}`,
    )
    .join('');
}

/**
 * Returns the contradictions between parts of a configuration that are valid on their own:
 *
 * - two folders or mirrors have the same name;
 * - one directory contains another, also through symbolic links;
 * - the URL of one folder begins with that of another;
 * - a secret is in a watched folder, and would be pushed;
 * - two mirrors write the same file;
 * - workers are to push to the embedded peer, which only this machine reaches.
 */
export async function contradictions(config: Config): Promise<Problem[]> {
  const folders = config.folders.map((folder, i) => ({ ...folder, key: `folders[${i}]` }));
  const mirrors = mirrorsOf(config);
  return [
    ...folders
      .filter(({ name }) => !FOLDER_NAME.test(name))
      .map(({ key, name }) => problem(`${key}.name`, name, FOLDER_NAME_RIGHT)),
    ...sameNames(folders),
    ...(await overlappingPaths(config)),
    ...overlappingUrls(config),
    ...sameNames(mirrors),
    ...unknownFolders(config),
    ...sameFiles(mirrors),
    ...unreachableForWorkers(config),
  ];
}

function problem(path: string, value: string, expected: string): Problem {
  return { path, received: JSON.stringify(value), expected };
}

function sameNames(all: readonly { readonly key: string; readonly name: string }[]): Problem[] {
  return pairs(all)
    .filter(([a, b]) => a.name === b.name)
    .map(([a, b]) =>
      problem(
        `${b.key}.name`,
        b.name,
        `another name than that of ${a.key}: set "name" for one of the two`,
      ),
    );
}

/** A path that the configuration names. */
interface ConfiguredPath {
  readonly key: string;
  readonly path: string;
  /** The path with all symbolic links resolved. */
  readonly real: string;
}

async function overlappingPaths({
  folders,
  state,
  mirror,
  peer,
  status,
}: Config): Promise<Problem[]> {
  const watched = await Promise.all(
    folders.map(({ path }, i) => resolvePath(`folders[${i}].path`, path)),
  );
  const paths = [
    ...watched,
    await resolvePath('state.dir', state.dir),
    await resolvePath('mirror.root', mirror.root),
    ...(peer.url === 'embedded' ? [await resolvePath('peer.embedded.dir', peer.embedded.dir)] : []),
  ];
  const problems = pairs(paths)
    .filter(([a, b]) => isWithin(a.real, b.real) || isWithin(b.real, a.real))
    .map(([a, b]) => ({
      path: b.key,
      received: pathText(b),
      expected: `a directory that does not overlap with ${a.key}, ${pathText(a)}: neither may contain the other`,
    }));
  const secrets = {
    'peer.auth.password.file': peer.auth?.password,
    'status.token.file': status.token,
  };
  for (const [key, secret] of Object.entries(secrets)) {
    if (secret === undefined || !('file' in secret)) continue;
    const { real } = await resolvePath(key, secret.file);
    const folder = watched.find((each) => isWithin(real, each.real));
    if (folder === undefined) continue;
    problems.push(
      problem(
        key,
        secret.file,
        `a file outside of ${folder.key}: files there are pushed to the peer`,
      ),
    );
  }
  return problems;
}

/** Two folders without a URL are not compared here: their paths are compared already. */
function overlappingUrls({ folders }: Config): Problem[] {
  const bases = folders.map(({ url, path }, i) => ({
    key: `folders[${i}].url`,
    url,
    isGiven: url !== fileBase(path),
  }));
  return pairs(bases)
    .filter(
      ([a, b]) => (a.isGiven || b.isGiven) && (a.url.startsWith(b.url) || b.url.startsWith(a.url)),
    )
    .map(([a, b]) => {
      const right = `a URL that does not overlap with ${a.key}, ${JSON.stringify(a.url)}: two files would share one document`;
      return problem(b.key, b.url, right);
    });
}

function unknownFolders({ folders, mirror }: Config): Problem[] {
  const names = folders.map(({ name }) => name);
  return mirror.citations.flatMap(({ folder }, i) => {
    if (names.includes(folder)) return [];
    const suggestion = nearest(folder, names);
    const known = names.map((name) => JSON.stringify(name)).join(', ');
    const right =
      suggestion === undefined
        ? `the name of a watched folder: ${known}`
        : `a watched folder, perhaps "${suggestion}"`;
    return [problem(`mirror.citations[${i}].folder`, folder, right)];
  });
}

function unreachableForWorkers({ fleet, peer }: Config): Problem[] {
  if (peer.url !== 'embedded' || !fleet?.share.includes('push')) return [];
  const right =
    'only "extract" with "peer.url": "embedded", because only this machine reaches its own peer: run the peer by itself with `peersync peer`, and set "peer.url" to an address that the workers reach';
  return [{ path: 'fleet.share', received: JSON.stringify(fleet.share), expected: right }];
}

/** One mirror of the configuration, of any kind. */
interface Mirror {
  readonly key: string;
  readonly name: string;
  readonly path: string;
  /** The path of its file, in one spelling. A wildcard if it writes several files. */
  readonly target: string;
}

function mirrorsOf({ mirror }: Config): Mirror[] {
  const { shares, tables, citations } = mirror;
  return [
    ...shares.map(({ name, path, data }, i) => ({
      key: `mirror.shares[${i}]`,
      name,
      path,
      target: isWildcard(data) ? path.replaceAll('{data}', () => data) : path,
    })),
    ...tables.map(({ name, path, table }, i) => ({
      key: `mirror.tables[${i}]`,
      name,
      path,
      target: path.replaceAll('{table}', () => table),
    })),
    ...citations.map(({ name, path, folder }, i) => ({
      key: `mirror.citations[${i}]`,
      name,
      path,
      target: path.replaceAll('{folder}', () => folder).replaceAll('{path}', '*'),
    })),
    // Some file systems ignore the case or the composition of letters.
  ].map((each) => ({ ...each, target: each.target.normalize('NFC').toLowerCase() }));
}

function sameFiles(mirrors: readonly Mirror[]): Problem[] {
  return mirrors.flatMap((mirror, i) => {
    const [target, others] = [mirror.target, mirrors.slice(0, i)];
    const same = others.find(
      (other) => wildcard(other.target).test(target) || wildcard(target).test(other.target),
    );
    const around = others.find(
      (other) => target.startsWith(`${other.target}/`) || other.target.startsWith(`${target}/`),
    );
    const other = same ?? around;
    if (other === undefined) return [];
    const why =
      same === undefined
        ? 'one would need a directory where the other writes a file'
        : 'both would write the same file';
    const right = `another path than that of ${other.key}, ${JSON.stringify(other.path)}: ${why}`;
    return [problem(`${mirror.key}.path`, mirror.path, right)];
  });
}

function pairs<T>(all: readonly T[]): [T, T][] {
  return all.flatMap((b, i) => all.slice(0, i).map((a): [T, T] => [a, b]));
}

function pathText({ path, real }: ConfiguredPath): string {
  return path === real
    ? JSON.stringify(path)
    : `${JSON.stringify(path)} (which is ${JSON.stringify(real)})`;
}

async function resolvePath(key: string, path: string): Promise<ConfiguredPath> {
  return { key, path, real: await realPath(path) };
}

/**
 * Resolves symbolic links. If the path does not exist, resolves those of its nearest existing
 * parent.
 */
async function realPath(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    return dirname(path) === path ? path : join(await realPath(dirname(path)), basename(path));
  }
}
