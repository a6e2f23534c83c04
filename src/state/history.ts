import {
  type AcceptedItem,
  type AwayItem,
  type Entry,
  type Failure,
  type HistoryEntry,
  type ItemKey,
  isMissing,
  itemName,
  keptOutFor,
} from './entry.js';

type History = readonly HistoryEntry[];

/** Number of status changes that a record keeps. */
const HISTORY_LENGTH = 8;
const MAX_NOTE_LENGTH = 300;

/**
 * Notes that mark the beginning of the work on a version. The entries that follow, up to the next
 * beginning, belong to the same work.
 *
 * For `newFile`, `fileChanged`, `fileBack` and `sentBefore` the time is when the file came to rest,
 * which may be before it was found.
 *
 * Entries may be added, but never changed or reordered: the state on disk stores positions in this
 * list.
 */
export const BEGINNINGS = {
  newFile: 'new file',
  fileChanged: 'the file changed',
  fileBack: 'the file is back',
  sentBefore: 'the peer was sent this before',
  /**
   * Written until November 2026 for a file that was moved here with its directory, or that a rule
   * used to exclude.
   */
  broughtIn: 'new file, older than its place here',
  takenAnew: 'taken anew, though the file is the same',
  takenAnewSentBefore: 'taken anew, and the peer was sent this before',
  retry: 'retry asked for',
  replaced: 'another file was pushed to its address',
  programFound: 'a program that it lacked was found',
} as const;
/**
 * Prefix of the note of an item that the peer lost after it was confirmed; the reason follows. It
 * is stored in the state on disk and must not change.
 */
export const LOST_NOTE = 'confirmed before and missed now: ';
/**
 * Prefixes of the notes of renamed files: the new file names the old one, and the removed file
 * names the new one.
 */
const RENAMED_FROM = 'renamed from ';
const RENAMED_TO = 'renamed to ';
const BEGINNING_NOTES: ReadonlySet<string> = new Set(Object.values(BEGINNINGS));

/** Returns the index at which the current work begins; -1 if the history no longer has it. */
export function beginningOf(history: History): number {
  return history.findLastIndex(({ note }) => note !== undefined && isBeginning(note));
}

function isBeginning(note: string): boolean {
  return BEGINNING_NOTES.has(note) || note.startsWith(LOST_NOTE) || note.startsWith(RENAMED_FROM);
}

/**
 * Whether an item is `accepted` without a new push, because the peer was sent this version before.
 */
export function isAcceptedWithoutPush({ history }: Pick<AcceptedItem, 'history'>): boolean {
  const note = history.at(-1)?.note;
  return note === BEGINNINGS.sentBefore || note === BEGINNINGS.takenAnewSentBefore;
}

/**
 * Whether the file was already skipped for this reason, even if it changed and was read again
 * since. That was logged then.
 */
export function wasSkippedFor(before: Entry | undefined, why: Failure): boolean {
  if (before === undefined || isMissing(before)) return false;
  if (keptOutFor(before)?.code === why.code) return true;
  const last = before.history.findLast(({ status }) => status !== 'pending');
  return last?.status === 'skipped' && last.note === why.message;
}

/** Returns the history of `before` with one more change of status. */
export function historyWith(
  before: Entry | undefined,
  status: Entry['status'],
  at: number,
  note?: string,
): History {
  const entry: HistoryEntry =
    note === undefined ? { status, at } : { status, at, note: note.slice(0, MAX_NOTE_LENGTH) };
  if (before === undefined) return [entry];
  const { history } = before;
  if (history.length < HISTORY_LENGTH) return [...history, entry];
  // The beginning of the current work is kept, however many attempts follow.
  const beginning = history[beginningOf(history)];
  const kept = history.slice(1 - HISTORY_LENGTH);
  if (beginning === undefined || kept.includes(beginning) || beginningOf([entry]) === 0)
    return [...kept, entry];
  return [beginning, ...kept.slice(1), entry];
}

/** Notes in the history of a removed file that it now has the name `to`. */
export function renamedTo(item: AwayItem, to: ItemKey): AwayItem {
  const at = item.history.findLastIndex(({ status }) => status === 'gone');
  return withNote(item, at, `${RENAMED_TO}${itemName(to)}`);
}

/** Whether the removed file now has another name. */
export function isRenamed(item: AwayItem): boolean {
  return renameOf(item) !== undefined;
}

/**
 * Returns `renamed to FOLDER/path` for a removed file that now has another name, or `renamed from
 * FOLDER/path` for a file that had another name before.
 */
export function renameOf(entry: Entry): string | undefined {
  const { history } = entry;
  const change = isMissing(entry)
    ? history.findLast(({ status }) => status === 'gone')
    : history[beginningOf(history)];
  const note = change?.note ?? '';
  return note.startsWith(isMissing(entry) ? RENAMED_TO : RENAMED_FROM) ? note : undefined;
}

/** Notes in the history of a new file that it had the name `from` before. */
export function renamedFrom(entry: Entry, from: ItemKey): Entry {
  const isNew = (note?: string) => note === BEGINNINGS.newFile || note === BEGINNINGS.fileBack;
  const at = entry.history.findLastIndex(({ note }) => isNew(note));
  return withNote(entry, at, `${RENAMED_FROM}${itemName(from)}`);
}

/** Replaces the note at one index of the history; -1 changes nothing. */
function withNote<E extends Entry>(entry: E, at: number, note: string): E {
  const cut = note.slice(0, MAX_NOTE_LENGTH);
  return {
    ...entry,
    history: entry.history.map((change, i) => (i === at ? { ...change, note: cut } : change)),
  };
}
