import { type FileStat, fileStat, joinPath, sameStat } from '../lib/file.js';
import {
  type Entry,
  EXCLUDED,
  type Failure,
  isAway,
  isExcluded,
  itemName,
  keptOutFor,
  mayHaveDocument,
} from '../state/entry.js';
import { wasSkippedFor } from '../state/history.js';
import type { State } from '../state/state.js';
import { quarantined, skipped, stillKeptOut } from '../state/transitions.js';
import type { FolderDeps } from './folder-deps.js';
import { failures, PRIVATE_KEY, SAME_DOCUMENT } from './rules/failures.js';
import type { Taken } from './rules/folder-rules.js';

/**
 * Records the files of one folder that are not pushed, each with its reason:
 *
 * - *Excluded*: a path rule keeps the file out. Its record is removed. If the peer was sent a
 *   document of it, the record stays, with the status `skipped` and the code EXCLUDED, and so does
 *   the document, because a rule may be mistaken.
 * - *Skipped*: its size, its content or the kind of its content keeps the file out.
 * - *Quarantined*: the file was to be taken, and cannot be without a change.
 */
export class Exclusions {
  constructor(private readonly deps: FolderDeps) {}

  /** Excludes a path. Only what the peer was sent of it is remembered. */
  exclude(path: string, rule: string): void {
    const { clock, folder, guard, log, state } = this.deps;
    const before = state.get(folder.name, path);
    if (!guard.mayLook || before === undefined || isAway(before) || isExcluded(before)) return;
    const at = { folder: folder.name, path };
    const failure = failures.excluded(folder.name);
    const after = skipped(before, at, fileStat(before.version), failure, clock.now());
    if (mayHaveDocument(after)) {
      state.put(after);
      log.info(
        { event: 'skipped', ...at, code: EXCLUDED },
        `skipped ${itemName(at)}: ${rule}. The peer keeps the document that it already has. ${failure.hint}`,
      );
    } else {
      state.remove(folder.name, path);
      log.debug(at, `${itemName(at)} is excluded from now on: ${rule}.`);
    }
    this.documentFreed(path);
  }

  /** Skips a file for its size, its content or the kind of its content. */
  skip(path: string, stat: FileStat, why: Failure): void {
    const { clock, folder, state } = this.deps;
    const before = state.get(folder.name, path);
    const isKnown =
      before !== undefined &&
      before.status !== 'quarantined' &&
      keptOutFor(before)?.message === why.message &&
      sameStat(before.version, stat);
    if (isKnown) return;
    const at = { folder: folder.name, path };
    const isLeaving = before?.status === 'removing' && before.keptOut !== undefined;
    state.put(
      isLeaving
        ? stillKeptOut(before, fileStat(stat), why)
        : skipped(before, at, fileStat(stat), why, clock.now()),
    );
    this.documentFreed(path);
    if (!wasSkippedFor(before, why)) this.#logSkipped(path, why);
  }

  /** Quarantines a file that was to be taken. */
  quarantine(path: string, stat: FileStat, why: Failure, taken: Taken): void {
    const { clock, committer, folder, log, state } = this.deps;
    const before = state.get(folder.name, path);
    const isKnown =
      before?.status === 'quarantined' &&
      before.failure.message === why.message &&
      sameStat(before.version, stat);
    if (isKnown) return;
    const at = { folder: folder.name, path };
    state.put(quarantined(before, { ...taken, ...at }, fileStat(stat), why, clock.now()));
    committer.commitSoon();
    log.warn(
      { event: 'quarantined', ...at, code: why.code },
      `quarantined ${itemName(at)}: ${why.message} ${why.hint}`,
    );
  }

  /** Called after a path gave up its document. A file with another form of the name may take it. */
  documentFreed(path: string): void {
    const { committer, debouncer, folder, state } = this.deps;
    committer.commitSoon();
    for (const other of waitingForDocument(state, folder.name, path)) debouncer.look(other);
  }

  #logSkipped(path: string, why: Failure): void {
    const { folder, log } = this.deps;
    const at = { folder: folder.name, path };
    const level = why.code === PRIVATE_KEY ? 'warn' : 'info';
    log[level](
      { event: 'skipped', ...at, code: why.code },
      `skipped ${itemName(at)}: ${why.message} ${why.hint}`,
    );
  }
}

/**
 * Files whose paths differ only in their Unicode form have one URL, so they would be one document
 * with alternating content. The first that is taken *owns* the document. The others wait in
 * quarantine until the owner is gone or skipped.
 */

const ASCII = /^[\0-\x7f]*$/;

/** Maximum number of other forms. Their number doubles with each name that has two forms. */
const MAX_FORMS = 256;

/** Returns the other path that owns the document of `path`, if there is one. */
export function ownerOfDocument(state: State, folder: string, path: string): string | undefined {
  return otherForms(path).find((other) => {
    const entry = state.get(folder, other);
    const isFree = entry === undefined || isAway(entry) || entry.status === 'skipped';
    return !isFree && !isWaitingForName(entry);
  });
}

/** Returns the other paths that wait for the document of `path`. */
function waitingForDocument(state: State, folder: string, path: string): readonly string[] {
  return otherForms(path).filter((other) => isWaitingForName(state.get(folder, other)));
}

/** Whether a file waits because another path owns its document. */
export function isWaitingForName(entry: Entry | undefined): boolean {
  return entry?.status === 'quarantined' && entry.failure.code === SAME_DOCUMENT;
}

/**
 * Returns the paths that differ from `path` only in the Unicode form of their names: `ü` as one
 * character (NFC) or as two (NFD).
 */
function otherForms(path: string): readonly string[] {
  if (ASCII.test(path)) return [];
  let all = [''];
  for (const name of path.split('/')) {
    const forms = [...new Set([name, name.normalize('NFC'), name.normalize('NFD')])];
    all = all.flatMap((above) => forms.map((form) => joinPath(above, form))).slice(0, MAX_FORMS);
  }
  return all.filter((form) => form !== path);
}
