import type { FleetFailure, FleetStatus, WorkerStatus } from '../fleet/status.js';
import { counted, quoted, sentence } from '../lib/text.js';
import { durationText } from '../lib/units.js';

/** The machines that help, as a status has them. Times are in ms since the epoch. */
export type FleetReport = FleetStatus;
export type { WorkerStatus };

/** A condition without its severity. */
interface FleetCondition {
  readonly code: string;
  readonly subject: string;
  readonly message: string;
  readonly hint: string;
  readonly since?: number;
}

/** Returns the conditions of the fleet, a list for each kind. All of them are warnings. */
export function fleetConditions(
  fleet: FleetReport,
): readonly (readonly [what: string, conditions: readonly FleetCondition[]])[] {
  const { failure } = fleet;
  // Nothing is known of workers.
  if (failure !== undefined) return [['', [failureCondition(failure)]]];
  return [
    ['', noWorkers(fleet)],
    ['workers have another version', otherVersions(fleet)],
    ['workers do not see a folder', workersWithoutFolder(fleet)],
    ['workers have other programs', otherPrograms(fleet)],
    ['workers could not push', workersWithoutPeer(fleet)],
    ['workers are gone', lostWorkers(fleet)],
  ];
}

/** The code of each kind of failure. */
const FAILURE_CODES: Readonly<Record<FleetFailure['kind'], string>> = {
  redis: 'FLEET_AWAY',
  loading: 'FLEET_LOADING',
  owned: 'FLEET_OWNED',
};

function failureCondition({ hint, kind, message, since }: FleetFailure): FleetCondition {
  return {
    code: FAILURE_CODES[kind],
    subject: 'fleet',
    message: `${sentence(message)} This machine does all the work itself until workers can be used again.`,
    hint: kind === 'redis' ? `${sentence(hint)} \`peersync check\` looks again.` : hint,
    since,
  };
}

function noWorkers({ noneSince: since }: FleetReport): readonly FleetCondition[] {
  if (since === undefined) return [];
  return [
    {
      code: 'FLEET_ALONE',
      subject: 'fleet',
      message: 'No worker is there, so that this machine does all the work itself.',
      hint: 'Start `peersync worker` on another machine. If you want none, remove `fleet` from the configuration.',
      since,
    },
  ];
}

function otherVersions({ build, workers }: FleetReport): readonly FleetCondition[] {
  return workers
    .filter(({ idle }) => idle?.reason === 'build')
    .map(({ build: other, host }) => ({
      code: 'WORKER_VERSION',
      subject: host,
      message: `The worker on ${quoted(host)} takes no jobs, because it has version ${other}; here it is ${build}.`,
      hint: 'Install the same version on both machines, and start the worker again.',
    }));
}

function workersWithoutFolder({ workers }: FleetReport): readonly FleetCondition[] {
  return workers.flatMap(({ host, idle }) => {
    if (idle?.reason !== 'folders' || idle.folders.length === 0) return [];
    return {
      code: 'WORKER_FOLDERS',
      subject: host,
      message: `The worker on ${quoted(host)} takes no jobs, because it does not see ${foldersText(idle.folders)}.`,
      hint: 'Mount it there, or correct its path in the configuration of that machine. `peersync check --worker` there says more.',
    };
  });
}

function otherPrograms({ workers }: FleetReport): readonly FleetCondition[] {
  return workers.flatMap(({ host, idle }) => {
    if (idle?.reason !== 'programs') return [];
    return {
      code: 'WORKER_PROGRAMS',
      subject: host,
      message: `The worker on ${quoted(host)} takes no jobs, because other programs read documents there (${listed(idle.abilities, 2 * MOST_NAMED)}).`,
      hint: 'Install the same versions of these programs there, with the same languages. After a change of `documents` in the configuration, start the worker again.',
    };
  });
}

/**
 * Why a worker does not push, or did not at its last attempt: the end of a sentence, a few words,
 * and what to do. A worker that the peer did not let in takes batches again after a while.
 */
const NO_PUSH: Readonly<
  Record<
    NonNullable<WorkerStatus['noPush']>,
    { readonly does: string; readonly words: string; readonly hint: string }
  >
> = {
  peer: {
    does: 'pushes nothing, because its `peer.url` is another one',
    words: 'has another `peer.url`',
    hint: 'Set `peer.url` there as it is here, and start the worker again.',
  },
  urls: {
    does: 'left out its last push, because a folder has another `url` there',
    words: 'has another `url` for a folder',
    hint: 'Set the `url` of each folder there as it is here, and start the worker again.',
  },
  denied: {
    does: 'was not let in by the peer at its last push',
    words: 'was not let in by the peer',
    hint: 'See `peer.auth` there. `peersync check --worker` there says more.',
  },
  unreachable: {
    does: 'did not reach the peer at its last push',
    words: 'did not reach the peer',
    hint: 'See whether the network and the firewall let it. `peersync check --worker` there says more.',
  },
};

function workersWithoutPeer({ workers }: FleetReport): readonly FleetCondition[] {
  return workers.flatMap(({ host, idle, noPush }) => {
    // One that takes no jobs has a condition of its own.
    if (noPush === undefined || idle !== undefined) return [];
    const { does, hint } = NO_PUSH[noPush];
    return {
      code: 'WORKER_PEER',
      subject: host,
      message: `The worker on ${quoted(host)} ${does}.`,
      hint,
    };
  });
}

function lostWorkers({ lost }: FleetReport): readonly FleetCondition[] {
  return lost.map(({ host, seenAt: since }) => ({
    code: 'WORKER_LOST',
    subject: host,
    message: `The worker on ${quoted(host)} is gone; others do its jobs.`,
    hint: 'If you did not stop it, see there whether the machine, the network and the worker run.',
    since,
  }));
}

/** The number of names in a sentence. */
const MOST_NAMED = 3;

function foldersText(folders: readonly string[]): string {
  return `the ${folders.length === 1 ? 'folder' : 'folders'} ${listed(folders.map(quoted))}`;
}

function listed(names: readonly string[], most = MOST_NAMED): string {
  const more = names.length - most;
  return `${names.slice(0, most).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Returns how the fleet stands, in one line. */
export function fleetText(fleet: FleetReport, now: number): string {
  const { active, failure, oldestSince, redis, waiting, workers } = fleet;
  if (redis === 'connecting') return 'connecting with Redis';
  if (redis === 'away') return 'Redis does not answer; this machine does everything';
  if (redis === 'loading') return 'Redis is loading its data; this machine does everything';
  if (failure !== undefined) return 'another peersync has the workers';
  const age =
    oldestSince === undefined
      ? ''
      : ` (the oldest for ${durationText(Math.max(0, now - oldestSince))})`;
  return `${counted(workers.length, 'worker')}, ${counted(active, 'job')} under way, ${waiting} waiting${age}`;
}

/** Returns why a worker takes no jobs, as a few words; empty if it takes some. */
export function idleText({ idle }: Pick<WorkerStatus, 'idle'>): string {
  switch (idle?.reason) {
    case undefined:
      return '';
    case 'build':
      return 'has another version';
    case 'programs':
      return 'has other programs';
    case 'stopping':
      return 'stops';
    case 'folders':
      return idle.folders.length === 0 ? 'starts' : `does not see ${foldersText(idle.folders)}`;
  }
}

/** Returns why a worker does not push, or did not, as a few words; empty if it knows no reason. */
export function noPushText({ noPush }: Pick<WorkerStatus, 'noPush'>): string {
  return noPush === undefined ? '' : NO_PUSH[noPush].words;
}
