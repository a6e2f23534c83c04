import type { Duty } from '../lib/pulse.js';
import type { Commits } from './commits.js';
import type { Gathering } from './gathering.js';
import type { HashQueue } from './hash-queue.js';
import type { Looks } from './looks.js';
import type { RootGuard } from './root-guard.js';
import type { Settling } from './settling.js';
import type { Steps } from './steps.js';

/** One step of a look, one piece of a file: a disk that is far away may take long for it. In ms. */
const LONGEST_STEP_MS = 15 * 60_000;
/** A commit waits for the one before it, and for a disk that has much to write. In ms. */
const LONGEST_COMMIT_MS = 5 * 60_000;

export interface FolderAtWork {
  readonly name: string;
  /** What is being looked at, as the beginning of a sentence; undefined where nothing is. */
  readonly looking: () => string | undefined;
  readonly steps: Steps;
  readonly gathering: Pick<Gathering, 'waits' | 'rounds'>;
  readonly settling: Pick<Settling, 'isDue' | 'handedOn'>;
  readonly guard: Pick<RootGuard, 'isOverdue' | 'checks'>;
  readonly hashQueue: Pick<HashQueue, 'isCrowded'>;
}

/** Hints are looked at, files settle, a look goes on from step to step unless too many files wait to be read, the root is checked. */
export function folderDuties(folder: FolderAtWork): readonly Duty[] {
  const { name, looking, steps, gathering, settling, guard, hashQueue } = folder;
  return [
    {
      name: `hints ${name}`,
      moves: () => gathering.rounds,
      neglects: () => (gathering.waits ? `changes in ${name} are not looked at` : undefined),
    },
    {
      name: `settling ${name}`,
      moves: () => settling.handedOn,
      neglects: () => (settling.isDue ? `files at rest in ${name} are not looked at` : undefined),
    },
    {
      name: `folder ${name}`,
      moves: () => steps.taken,
      neglects: () => (hashQueue.isCrowded ? undefined : looking()),
      limitMs: LONGEST_STEP_MS,
    },
    {
      name: `root ${name}`,
      moves: () => guard.checks,
      neglects: () => (guard.isOverdue ? `the folder ${name} is not checked` : undefined),
      limitMs: LONGEST_STEP_MS,
    },
  ];
}

export interface WatcherAtWork {
  readonly hashQueue: Pick<HashQueue, 'duties' | 'isCrowded'>;
  readonly commits: Pick<Commits, 'isDue' | 'ended'>;
  readonly looks: Pick<Looks, 'size' | 'ended'>;
  /** How far the looks at all folders have got. */
  readonly steps: () => number;
  /** Whether the time of the next full scan is over. */
  readonly isRescanOverdue: () => boolean;
  readonly rescans: () => number;
}

/** What waits to be read is read, and to its end; what is known reaches the disk; who asked for a look gets it; scans begin on time. */
export function watcherDuties(watcher: WatcherAtWork): readonly Duty[] {
  const { hashQueue, commits, looks, steps, isRescanOverdue, rescans } = watcher;
  return [
    ...hashQueue.duties,
    {
      name: 'findings',
      moves: () => commits.ended,
      neglects: () =>
        commits.isDue ? 'what was found in the folders is not brought to the disk' : undefined,
      limitMs: LONGEST_COMMIT_MS,
    },
    {
      name: 'looks',
      moves: () => looks.ended + steps(),
      neglects: () =>
        looks.size > 0 && !hashQueue.isCrowded ? 'paths that were asked for are not looked at' : undefined,
      limitMs: LONGEST_STEP_MS,
    },
    {
      name: 'rescan',
      moves: () => rescans(),
      neglects: () => (isRescanOverdue() ? 'the folders are not scanned again in time' : undefined),
    },
  ];
}
