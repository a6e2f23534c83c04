import { realpath } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import type { Config } from './config.js';
import { FOLDER_NAME, FOLDER_NAME_RIGHT } from './fields.js';
import { isLoopback, parseListen } from './listen.js';
import { mirrorContradictions } from './mirror-contradictions.js';
import type { Problem } from './problems.js';
import { formatDuration } from './units.js';
import { fileBase } from './url.js';

/** A place on disk that the configuration names. */
interface Place {
  readonly key: string;
  readonly path: string;
  /** Where it is when all symbolic links are followed. */
  readonly real: string;
}

/**
 * What is wrong between values that are right by themselves: names that stand twice, places that lie within each
 * other, also through symbolic links, URLs of which one begins with the other, limits that exclude each other, mirrors
 * that get in each other's way.
 *
 * @param isSound tells whether the value of a key was given as it stands here; the others are not spoken about
 */
export async function contradictions(config: Config, isSound: (key: string) => boolean): Promise<Problem[]> {
  const problems = [
    ...names(config),
    ...overlappingPlaces(await places(config, isSound)),
    ...(await secretsInFolders(config)),
    ...overlappingUrls(config),
    ...limits(config),
    ...openStatus(config),
    ...mirrorContradictions(config),
  ];
  return problems.filter(({ path }) => isSound(path));
}

function names({ folders }: Config): Problem[] {
  const seen = new Map<string, number>();
  return folders.flatMap(({ name }, i): Problem[] => {
    const path = `folders[${i}].name`;
    const received = JSON.stringify(name);
    if (!FOLDER_NAME.test(name)) return [{ path, received, expected: FOLDER_NAME_RIGHT }];
    const first = seen.get(name);
    if (first === undefined) {
      seen.set(name, i);
      return [];
    }
    return [
      {
        path,
        received,
        expected: `a name that folders[${first}] does not have: give one of the two a "name"`,
      },
    ];
  });
}

async function places(config: Config, isSound: (key: string) => boolean): Promise<Place[]> {
  const named = [
    ...config.folders.map(({ path }, i) => ({ key: `folders[${i}].path`, path })),
    { key: 'state.dir', path: config.state.dir },
    { key: 'mirror.root', path: config.mirror.root },
    ...(config.peer.url === 'embedded' ? [{ key: 'peer.embedded.dir', path: config.peer.embedded.dir }] : []),
  ];
  const sound = named.filter(
    ({ key }) => isSound(key) && (key !== 'peer.embedded.dir' || isSound('peer.url')),
  );
  return Promise.all(sound.map(async (place) => ({ ...place, real: await whereItIs(place.path) })));
}

function overlappingPlaces(all: readonly Place[]): Problem[] {
  return pairs(all)
    .filter(([a, b]) => isWithin(a.real, b.real) || isWithin(b.real, a.real))
    .map(([a, b]) => ({
      path: b.key,
      received: placeText(b),
      expected: `a directory apart from ${a.key}, ${placeText(a)}: neither may lie within the other`,
    }));
}

async function secretsInFolders({ folders, peer, status }: Config): Promise<Problem[]> {
  const reals = await Promise.all(folders.map(({ path }) => whereItIs(path)));
  const problems: Problem[] = [];
  for (const [key, secret] of [
    ['peer.auth.password.file', peer.auth?.password],
    ['status.token.file', status.token],
  ] as const) {
    if (secret === undefined || !('file' in secret)) continue;
    const real = await whereItIs(secret.file);
    const i = reals.findIndex((folder) => isWithin(real, folder));
    if (i < 0) continue;
    const received = JSON.stringify(secret.file);
    const expected = `a file outside of folders[${i}].path: it would be pushed to the peer`;
    problems.push({ path: key, received, expected });
  }
  return problems;
}

function openStatus({ status }: Config): Problem[] {
  const listen = parseListen(status.listen);
  if (listen === undefined || isLoopback(listen) || status.token !== undefined) return [];
  const expected =
    'a loopback address such as "127.0.0.1:8385", or a status.token beside it: others could reach the page';
  return [{ path: 'status.listen', received: JSON.stringify(status.listen), expected }];
}

function overlappingUrls({ folders }: Config): Problem[] {
  const bases = folders.map(({ url, path }, i) => ({ key: `folders[${i}].url`, url, path }));
  return pairs(bases)
    .filter(([a, b]) => a.url.startsWith(b.url) || b.url.startsWith(a.url))
    .filter(
      ([a, b]) => !(isWithin(a.path, b.path) || isWithin(b.path, a.path)) || !(isDefault(a) && isDefault(b)),
    )
    .map(([a, b]) => ({
      path: b.key,
      received: JSON.stringify(b.url),
      expected: `a URL apart from ${a.key}, ${JSON.stringify(a.url)}: two files would share one document`,
    }));
}

/** Of two folders without a URL it is enough to hear that their paths overlap. */
function isDefault({ url, path }: { readonly url: string; readonly path: string }): boolean {
  return url === fileBase(path);
}

function limits({ peer, push, confirm }: Config): Problem[] {
  const problems: Problem[] = [];
  if (peer.url === 'embedded' && peer.dialect === 'yacy') {
    problems.push({
      path: 'peer.dialect',
      received: '"yacy"',
      expected:
        '"auto" or "standard", which the embedded peer speaks: give the URL of your YaCy peer in peer.url',
    });
  }
  if (push.backoff.min > push.backoff.max) {
    problems.push({
      path: 'push.backoff.min',
      received: `"${formatDuration(push.backoff.min)}"`,
      expected: `at most push.backoff.max, "${formatDuration(push.backoff.max)}"`,
    });
  }
  if (confirm.hold !== undefined && confirm.hold >= confirm.timeout) {
    problems.push({
      path: 'confirm.hold',
      received: `"${formatDuration(confirm.hold)}"`,
      expected: `less than confirm.timeout, "${formatDuration(confirm.timeout)}": nothing could be confirmed`,
    });
  }
  return problems;
}

function pairs<T>(all: readonly T[]): [T, T][] {
  return all.flatMap((b, i) => all.slice(0, i).map((a): [T, T] => [a, b]));
}

function isWithin(inner: string, outer: string): boolean {
  return inner === outer || inner.startsWith(outer.endsWith(sep) ? outer : outer + sep);
}

function placeText({ path, real }: Place): string {
  return path === real ? JSON.stringify(path) : `${JSON.stringify(path)} (which is ${JSON.stringify(real)})`;
}

/** The real path; of what does not exist yet, the real path of the nearest parent that does. */
async function whereItIs(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    return dirname(path) === path ? path : join(await whereItIs(dirname(path)), basename(path));
  }
}
