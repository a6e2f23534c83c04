import { join, posix } from 'node:path';
import type { Clock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import type { State } from '../state/state.js';
import { keepPass, passNames } from './citations-pass.js';
import { downloadNames, downloadOf, isStale, keepDownload } from './download.js';
import type { Mirror } from './parts.js';
import { keepRecord, recordedNames, recordOf } from './records.js';
import { directoryBelow } from './root.js';
import { sweep } from './temporary.js';

export interface LeftoversParts {
  readonly set: {
    get(name: string): object | undefined;
    readonly all: readonly Pick<Mirror, 'identity'>[];
  };
  readonly state: Pick<State, 'meta' | 'setMeta' | 'metaNames'>;
  /** Absolute; temporary files are in `mirrors/` below it. */
  readonly stateDir: string;
  readonly root: () => string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What an earlier run, or an earlier configuration, left of mirrors. */
export class Leftovers {
  readonly #parts: LeftoversParts;

  constructor(parts: LeftoversParts) {
    this.#parts = parts;
  }

  /**
   * Removes the unfinished files that a killed process left where mirrors write, but for what a download can be gone on with.
   * To be called before anything runs.
   */
  async sweep(): Promise<void> {
    const { set, state, stateDir, root, clock, log } = this.#parts;
    const spared = new Set<string>();
    for (const name of downloadNames(state)) {
      const download = set.get(name) && downloadOf(state, name);
      if (download === undefined || isStale(download, clock.now())) keepDownload(state, name, undefined);
      else spared.add(posix.basename(download.file));
    }
    let swept = await sweep(join(stateDir, 'mirrors'), 'alone');
    for (const [directory, depth] of this.#written()) {
      const real = await directoryBelow(root(), directory);
      if (real !== undefined) swept += await sweep(real, depth, spared);
    }
    if (swept > 0) log.info({ event: 'swept', swept }, `removed ${swept} unfinished files of an earlier run`);
  }

  /** Forgets what is kept of mirrors that are not configured any more. Their files stay. */
  forgetStrays(): void {
    const { set, state, log } = this.#parts;
    for (const name of recordedNames(state)) {
      if (set.get(name) !== undefined) continue;
      log.info(
        { event: 'mirror', mirror: name },
        `mirror ${name} is not configured any more: it is forgotten, its file stays`,
      );
      keepRecord(state, name, undefined);
    }
    for (const name of passNames(state)) {
      if (set.get(name) === undefined) keepPass(state, name, undefined);
    }
    for (const name of downloadNames(state)) {
      if (set.get(name) === undefined) keepDownload(state, name, undefined);
    }
  }

  /** Where mirrors write, or wrote, below the root: there may be much besides that is not theirs to look at. */
  #written(): ReadonlyMap<string, 'alone' | 'below'> {
    const directories = new Map<string, 'alone' | 'below'>();
    const { set, state } = this.#parts;
    const recorded = recordedNames(state).flatMap((name) => recordOf(state, name) ?? []);
    for (const { kind, path } of [...set.all.map(({ identity }) => identity), ...recorded]) {
      const directory = posix.dirname(path.replace(/\{.*/s, '{'));
      if (kind === 'citations') directories.set(directory, 'below');
      else if (!directories.has(directory)) directories.set(directory, 'alone');
    }
    return directories;
  }
}
