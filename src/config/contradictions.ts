import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isWildcard, isWithin, nearest, wildcard } from '../lib/text.js';
import type { Config } from './config.js';
import { FOLDER_NAME, FOLDER_NAME_RIGHT } from './fields.js';
import { fileBase } from './url.js';

/** One thing that is wrong with a configuration, in three parts that make a line. */
export interface Problem {
  /** The key as it is written in the documentation: `folders[0].settle`. */
  readonly path: string;
  /** What stands there, shown without secrets. */
  readonly received: string;
  /** What would be right. */
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
 * What is wrong between the parts of a configuration, each of which is right by itself: names that
 * stand twice, places that lie within each other, also through symbolic links, URLs of which one
 * begins with the other, secrets that would be pushed, and mirrors that write the same file.
 */
export async function contradictions(config: Config): Promise<Problem[]> {
  const folders = config.folders.map((folder, i) => ({ ...folder, key: `folders[${i}]` }));
  const mirrors = mirrorsOf(config);
  return [
    ...folders
      .filter(({ name }) => !FOLDER_NAME.test(name))
      .map(({ key, name }) => problem(`${key}.name`, name, FOLDER_NAME_RIGHT)),
    ...sameNames(folders),
    ...(await overlappingPlaces(config)),
    ...overlappingUrls(config),
    ...sameNames(mirrors),
    ...unknownFolders(config),
    ...sameFiles(mirrors),
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
        `a name that ${a.key} does not have: give one of the two a "name"`,
      ),
    );
}

/** A place on disk that the configuration names. */
interface Place {
  readonly key: string;
  readonly path: string;
  /** Where it is when all symbolic links are followed. */
  readonly real: string;
}

async function overlappingPlaces({
  folders,
  state,
  mirror,
  peer,
  status,
}: Config): Promise<Problem[]> {
  const watched = await Promise.all(
    folders.map(({ path }, i) => placeOf(`folders[${i}].path`, path)),
  );
  const places = [
    ...watched,
    await placeOf('state.dir', state.dir),
    await placeOf('mirror.root', mirror.root),
    ...(peer.url === 'embedded' ? [await placeOf('peer.embedded.dir', peer.embedded.dir)] : []),
  ];
  const problems = pairs(places)
    .filter(([a, b]) => isWithin(a.real, b.real) || isWithin(b.real, a.real))
    .map(([a, b]) => ({
      path: b.key,
      received: placeText(b),
      expected: `a directory apart from ${a.key}, ${placeText(a)}: neither may lie within the other`,
    }));
  const secrets = {
    'peer.auth.password.file': peer.auth?.password,
    'status.token.file': status.token,
  };
  for (const [key, secret] of Object.entries(secrets)) {
    if (secret === undefined || !('file' in secret)) continue;
    const { real } = await placeOf(key, secret.file);
    const folder = watched.find((each) => isWithin(real, each.real));
    if (folder === undefined) continue;
    problems.push(
      problem(key, secret.file, `a file outside of ${folder.key}: it would be pushed to the peer`),
    );
  }
  return problems;
}

/** Of two folders without a URL it is enough that their paths are compared. */
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
      const right = `a URL apart from ${a.key}, ${JSON.stringify(a.url)}: two files would share one document`;
      return problem(b.key, b.url, right);
    });
}

function unknownFolders({ folders, mirror }: Config): Problem[] {
  const names = folders.map(({ name }) => name);
  return mirror.citations.flatMap(({ folder }, i) => {
    if (names.includes(folder)) return [];
    const meant = nearest(folder, names);
    const known = names.map((name) => JSON.stringify(name)).join(', ');
    const right =
      meant === undefined
        ? `the name of a watched folder: ${known}`
        : `"${meant}": did you mean that?`;
    return [problem(`mirror.citations[${i}].folder`, folder, right)];
  });
}

/** One mirror of the configuration, whatever it follows. */
interface Mirror {
  readonly key: string;
  readonly name: string;
  readonly path: string;
  /**
   * What it writes, in one spelling; where it writes many files, a wildcard that takes them all.
   */
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
    // Some file systems do not tell letters apart by case or composition.
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
      same === undefined ? 'a file cannot be a directory' : 'both would write the same file';
    const right = `a path apart from that of ${other.key}, ${JSON.stringify(other.path)}: ${why}`;
    return [problem(`${mirror.key}.path`, mirror.path, right)];
  });
}

function pairs<T>(all: readonly T[]): [T, T][] {
  return all.flatMap((b, i) => all.slice(0, i).map((a): [T, T] => [a, b]));
}

function placeText({ path, real }: Place): string {
  return path === real
    ? JSON.stringify(path)
    : `${JSON.stringify(path)} (which is ${JSON.stringify(real)})`;
}

async function placeOf(key: string, path: string): Promise<Place> {
  return { key, path, real: await realPath(path) };
}

/** The real path; of what does not exist yet, the real path of the nearest parent that does. */
async function realPath(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    return dirname(path) === path ? path : join(await realPath(dirname(path)), basename(path));
  }
}
