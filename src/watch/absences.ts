import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FolderConfig } from '../config/config.js';
import type { Entry } from '../state/entry.js';
import type { Findings } from './findings.js';
import type { Hints } from './hints.js';
import { look } from './listing.js';
import { joinPath, nameOf } from './paths.js';
import type { Root } from './root.js';
import type { FolderRules } from './rules.js';
import type { Steps } from './steps.js';
import type { WatchState } from './watch-state.js';

/** Records are gone through in slices of so many, with room for other work in between. */
const SLICE = 1_000;

export interface AbsencesParts {
  readonly folder: FolderConfig;
  readonly root: Root;
  readonly rules: FolderRules;
  readonly state: WatchState;
  readonly findings: Findings;
  readonly steps: Steps;
  readonly hints: Hints | undefined;
}

/** Whether an error of the system says that there is nothing at a path; any other says nothing about it. */
export function isAbsence(code: string | undefined): boolean {
  return code === 'ENOENT' || code === 'ENOTDIR';
}

/** Takes out of state what one folder does not have any more: removed, or kept out by a rule. */
export class Absences {
  readonly #parts: AbsencesParts;

  constructor(parts: AbsencesParts) {
    this.#parts = parts;
  }

  /** There is nothing at a path; whatever state knows there or below is gone. */
  async at(path: string): Promise<void> {
    const { findings, rules, hints, root } = this.#parts;
    hints?.unwatch(root.absolute(path));
    rules.ignoreFiles.forget(path);
    await findings.noFile(path);
    await this.below(path);
  }

  /** There is no directory at a path, so nothing of what state knows below it is there. */
  async below(path: string): Promise<void> {
    const { folder, state, findings, steps } = this.#parts;
    // That the folder itself cannot be seen says nothing of its files.
    if (path === '') return;
    await inSlices(state.entries.underDirectory(folder.name, path), isLive, steps, (entries) =>
      findings.removed(entries),
    );
  }

  /** What state knows directly in a directory, and a list of it did not show, is looked up by name. */
  async unlisted(directory: string, listed: ReadonlySet<string>): Promise<void> {
    const { folder, state, findings, steps } = this.#parts;
    const isUnlisted = (entry: Entry) => isLive(entry) && !listed.has(nameOf(entry.path));
    await inSlices(state.entries.inDirectory(folder.name, directory), isUnlisted, steps, async (entries) => {
      const missing: Entry[] = [];
      for (const entry of entries) if (await this.#isAbsent(entry.path)) missing.push(entry);
      if (missing.length > 0) await findings.removed(missing);
    });
  }

  /** What state knows below the directories in a directory, where none was entered. */
  async unentered(directory: string, entered: (name: string) => boolean): Promise<void> {
    const { folder, state, rules, root } = this.#parts;
    for (const name of state.entries.knownDirectories(folder.name, directory)) {
      if (entered(name)) continue;
      this.#parts.steps.take();
      const path = joinPath(directory, name);
      const stats = await look(root.absolute(path));
      if (stats instanceof Error) {
        if (isAbsence(stats.code)) await this.at(path);
      } else if (!stats.isDirectory()) {
        await this.below(path);
      } else {
        const closed = rules.closedEntered(path);
        if (closed !== undefined) await this.exclude(path, closed);
      }
    }
  }

  /** A rule keeps a directory out: there is nothing to remember of what is below it. */
  async exclude(directory: string, rule: string): Promise<void> {
    const { folder, state, findings, hints, root, steps } = this.#parts;
    hints?.unwatch(root.absolute(directory));
    await inSlices(state.entries.underDirectory(folder.name, directory), isLive, steps, (entries) => {
      for (const entry of entries) findings.excluded(entry.path, rule);
    });
  }

  async #isAbsent(path: string): Promise<boolean> {
    this.#parts.steps.take();
    const stats = await look(this.#parts.root.absolute(path));
    return stats instanceof Error && isAbsence(stats.code);
  }
}

function isLive(entry: Entry): boolean {
  return entry.status !== 'gone';
}

async function inSlices(
  entries: Iterable<Entry>,
  wanted: (entry: Entry) => boolean,
  steps: Steps,
  work: (entries: readonly Entry[]) => Promise<void> | void,
): Promise<void> {
  let slice: Entry[] = [];
  let seen = 0;
  for (const entry of entries) {
    seen += 1;
    if (wanted(entry)) slice.push(entry);
    if (seen % SLICE !== 0) continue;
    steps.take();
    if (slice.length > 0) await work(slice);
    slice = [];
    await nextTurn();
  }
  if (slice.length > 0) await work(slice);
}
