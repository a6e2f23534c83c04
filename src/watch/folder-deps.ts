import type { FolderConfig } from '../config/config.js';
import { HealthCheck } from '../lib/health.js';
import { isWithin, quoted } from '../lib/text.js';
import { Debouncer } from './debouncer.js';
import type { WatchDeps } from './deps.js';
import { FolderGuard, folderModes, type GuardDeps, mayLook } from './folder-guard.js';
import type { EventListener, FsEvents } from './fs-events.js';
import { FolderMounts } from './mounts.js';
import { FolderRoot } from './root.js';
import { FolderRules } from './rules/folder-rules.js';
import { Problems } from './rules/problems.js';
import { ScanQueue } from './scan-queue.js';

/** The longest time that one step of a look may take, in ms. A remote disk may be slow. */
const MAX_STEP_MS = 15 * 60_000;

/** The dependencies that the parts of one folder share. */
export interface FolderDeps extends GuardDeps {
  readonly guard: FolderGuard;
  readonly rules: FolderRules;
  readonly problems: Problems;
  /** Shows whether scans and looks make progress. */
  readonly scanHealth: HealthCheck;
  /** Shows whether watches on directories open. */
  readonly openingHealth: HealthCheck;
}

/**
 * Opens a source of fs events.
 *
 * @param directories the number of directories in the folder that have records
 */
export type OpenEvents = (listener: EventListener, directories: number) => FsEvents;

/**
 * Builds the dependencies of one folder.
 *
 * @param openEvents undefined if changes are found by scans alone
 */
export function folderDeps(
  folder: FolderConfig,
  deps: WatchDeps,
  openEvents: OpenEvents | undefined,
): FolderDeps {
  const { clock, hashQueue, log, state } = deps;
  const { name } = folder;
  const modes = folderModes();
  const root = new FolderRoot(folder, deps);
  const debouncer = new Debouncer(folder.settle, clock);
  const scans = new ScanQueue();
  const onEvent: EventListener = (directory, changed) => {
    if (!mayLook(modes) || !isWithin(directory, root.real)) return;
    debouncer.changed(directory.slice(root.real.length + 1), changed);
  };
  const events = openEvents?.(onEvent, state.entries.directoryCount(name));
  const guardDeps: GuardDeps = {
    ...deps,
    folder,
    modes,
    root,
    mounts: new FolderMounts(folder, deps),
    debouncer,
    scans,
    events,
    digests: new Map(),
  };
  const scanHealth = new HealthCheck(
    `folder ${name}`,
    `the scan of folder ${quoted(name)} does not go on`,
    {
      limitMs: MAX_STEP_MS,
      busy: () =>
        !modes.is('stopped') && !hashQueue.isCrowded && (scans.isRunning || debouncer.isLooking),
    },
  );
  return {
    ...guardDeps,
    guard: new FolderGuard(guardDeps),
    rules: new FolderRules(folder),
    problems: new Problems(folder, clock, log),
    scanHealth,
    openingHealth: new HealthCheck(
      `watches of ${name}`,
      `watches on directories of ${name} do not open`,
    ),
  };
}
