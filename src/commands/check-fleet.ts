import { readdir } from 'node:fs/promises';
import { counted, fewOf } from '../cli/text.js';
import type { Config } from '../config/config.js';
import type { Programs } from '../content/helpers/programs.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, messageOf, PeersyncError } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { quoted } from '../lib/text.js';
import { noPushText } from '../report/fleet.js';
import { type Finding, find, Wrong } from './finding.js';

type FleetConfig = NonNullable<Config['fleet']>;
type RedisFindings = Awaited<ReturnType<typeof import('../fleet/redis-check.js')['checkRedis']>>;

/** The folders, the programs and the peer of a worker. */
export interface WorkerHere {
  readonly peerUrl: string;
  readonly folders: Config['folders'];
  readonly programs: Programs;
}

/** The error of a worker whose configuration names no Redis. */
export function noFleet(): PeersyncError {
  return new PeersyncError({
    code: 'NO_FLEET',
    message: 'The configuration has no `fleet`, so that there is nobody to help.',
    hint: 'Add `"fleet": { "redis": "redis://HOST:6379" }` to it, here and on the machine that runs `peersync run`.',
    exitCode: EXIT.usage,
  });
}

/**
 * Checks whether Redis can be used, and who else uses it.
 *
 * @param worker what a worker has here; undefined on the machine of the owner
 */
export async function* checkFleet(
  fleet: FleetConfig,
  log: Logger,
  worker?: WorkerHere,
): AsyncGenerator<Finding> {
  const [{ checkRedis }, { buildName }] = await Promise.all([
    import('../fleet/redis-check.js'),
    import('../fleet/build-name.js'),
  ]);
  let found: RedisFindings | undefined;
  yield await find('redis', async () => {
    found = await checkRedis(fleet, log);
    const { isOld, program, version } = found;
    if (isOld)
      throw new Wrong(
        `${fleet.redis} is ${program} ${version}`,
        'Install Redis 6.2 or later, or Valkey.',
      );
    return `${program} ${version} answers at ${fleet.redis}, and can be written`;
  });
  const known = found;
  if (known === undefined) return;
  yield checkMemoryPolicy(known);
  const open = opennessOf(fleet);
  if (open !== undefined) yield open;
  if (worker === undefined) yield await find('workers', () => workersOf(known, buildName()));
  else yield* checkOwner(known, buildName(), fleet, worker);
}

function checkMemoryPolicy({ maxmemoryPolicy: policy }: RedisFindings): Finding {
  const check = 'redis memory';
  if (policy === undefined || policy === 'noeviction')
    return { check, ok: true, message: 'it never throws keys away (noeviction)' };
  return {
    check,
    ok: false,
    message: `its maxmemory-policy is ${policy}, so that it throws jobs away when its memory is full`,
    hint: 'Type `redis-cli config set maxmemory-policy noeviction` there, and write the same into its redis.conf.',
  };
}

/** Tells who else may read or write what is in Redis; undefined if nobody may. */
function opennessOf({ password, redis }: FleetConfig): Finding | undefined {
  const check = 'redis access';
  if (redis.startsWith('unix:')) return undefined;
  if (password === undefined)
    return {
      check,
      ok: true,
      message: 'it lets everybody in who reaches it',
      hint: 'Set `requirepass` in its redis.conf and `fleet.password` here: whoever can write to it decides what becomes searchable.',
    };
  if (
    redis.startsWith('rediss:') ||
    /^redis:\/\/(127\.|localhost[:/]|localhost$|\[::1\])/.test(redis)
  )
    return undefined;
  return {
    check,
    ok: true,
    message: 'texts of documents and the password travel unencrypted',
    hint: 'Use TLS (rediss://), unless the network between these machines is your own.',
  };
}

function workersOf({ workers }: RedisFindings, build: string) {
  if (workers.length === 0)
    return {
      message: 'none is there; this machine does everything itself',
      hint: 'Start `peersync worker` on another machine, with the same configuration.',
    };
  const others = workers.filter((worker) => worker.build !== build);
  if (others.length > 0)
    throw new Wrong(
      `${others.map(({ build: other, host }) => `${quoted(host)} has version ${other}`).join(', ')}; here it is ${build}`,
      'Install the same version there, and start the worker again.',
    );
  const withoutPeer = workers.filter(({ noPush }) => noPush !== undefined);
  if (withoutPeer.length > 0)
    throw new Wrong(
      withoutPeer.map((worker) => `${quoted(worker.host)} ${noPushText(worker)}`).join(', '),
      'Type `peersync check --worker` there: it says more.',
    );
  const hosts = fewOf([...new Set(workers.map(({ host }) => host))]);
  return `${counted(workers.length, 'worker')} (${hosts})`;
}

/** Checks whether the owner gives work to a worker on this machine. */
async function* checkOwner(
  { owner }: RedisFindings,
  build: string,
  { share }: FleetConfig,
  { folders, peerUrl, programs }: WorkerHere,
): AsyncGenerator<Finding> {
  const finding = await find('owner', () => ownerOf({ owner }, build));
  yield finding;
  if (owner === undefined || !finding.ok) return;
  const [{ Abilities, differenceOf }, { FolderCheck }] = await Promise.all([
    import('../fleet/abilities.js'),
    import('../fleet/folder-check.js'),
  ]);
  const seen = new Set(await new FolderCheck(systemClock).visible(folders));
  const unseen = owner.folders.filter((name) => !seen.has(name));
  const differences = differenceOf(await new Abilities(systemClock).of(programs), owner.abilities);
  yield await find('folders', () => {
    if (unseen.length === 0) return 'all folders in which the owner sees files are there';
    throw new Wrong(
      `the owner sees files in ${fewOf(unseen)}, and this machine does not`,
      'Mount what is missing, and see the paths in `folders` on this machine.',
    );
  });
  const { peerDigest } = await import('../fleet/protocol.js');
  const { peer } = owner;
  if (share.includes('push') && peer !== undefined)
    yield await find('peer of the owner', () => {
      if (peer === peerDigest(peerUrl)) return 'it is the same one';
      throw new Wrong(
        'the owner has another `peer.url`',
        'Set it here as it is there. Until then, this machine pushes nothing.',
      );
    });
  if (!share.includes('extract')) return;
  yield await find('programs', () => {
    if (differences.length === 0)
      return 'the same ones read documents here and there, in the same versions';
    throw new Wrong(
      `other ones read documents here than on the machine of the owner (${fewOf(differences)})`,
      'Install the same programs in the same versions, with the same languages, and use the same section `documents`.',
    );
  });
}

function ownerOf({ owner }: Pick<RedisFindings, 'owner'>, build: string) {
  if (owner === undefined)
    return {
      message: 'nobody gives work now',
      hint: 'Start `peersync run` on the machine that has the state, with the same `fleet.redis` and `fleet.prefix`.',
    };
  if (owner.build !== build)
    throw new Wrong(
      `peersync on ${quoted(owner.host)} has version ${owner.build}; here it is ${build}`,
      'Install the same version on both machines. A worker of another one takes no jobs.',
    );
  return `peersync on ${quoted(owner.host)} gives the work, and has the same version`;
}

/** Checks whether a worker sees the folders. It takes no jobs while it does not see one of them. */
export async function* checkVisible({ folders }: Pick<Config, 'folders'>): AsyncGenerator<Finding> {
  for (const { name, path } of folders)
    yield await find(`folder ${name}`, async () => {
      const names = await readdir(path).catch((error: unknown) => {
        throw new Wrong(
          `${path} cannot be read: ${messageOf(error)}`,
          'Mount it, let the user that peersync runs as read it, or correct its path in `folders` on this machine.',
        );
      });
      if (names.length > 0) return `${path} is there`;
      return {
        message: `${path} is empty`,
        hint: 'Mount it, unless it is empty on the machine that runs `peersync run`, too.',
      };
    });
}
