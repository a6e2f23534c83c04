import { joinPath } from '../lib/file.js';
import { type Entry, isAway } from '../state/entry.js';
import type { State } from '../state/state.js';
import { SAME_DOCUMENT } from './rules/failures.js';

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
export function waitingForDocument(state: State, folder: string, path: string): readonly string[] {
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
