import type { AcceptedItem, Entry, HistoryEntry } from './entry.js';

/** How many changes of status a record remembers. */
const HISTORY_LENGTH = 8;
/**
 * What the history notes where the work on a version begins: everything after it, up to the next of these, is about the
 * same work. Of the first group the file itself tells since when it was at rest; the others begin when they are noted.
 */
export const BEGINNINGS = {
  newFile: 'new file',
  fileChanged: 'the file changed',
  fileBack: 'the file is back',
  sentBefore: 'the peer was sent this before',
  /** It was moved here with its directory, or a rule kept it out until now: its own times say nothing of that. */
  broughtIn: 'new file, older than its place here',
  takenAnew: 'taken anew, though the file is the same',
  takenAnewSentBefore: 'taken anew, and the peer was sent this before',
  retry: 'retry asked for',
  replaced: 'another file was pushed to its address',
} as const;
/** No beginning: the work goes on, only sooner. */
export const RETRIED_WHILE_PENDING = 'retry asked for while it waited';
/** Begins the note of an item that was missed; the reason follows. */
export const MISSED = 'confirmed before and missed now: ';
const ALL_BEGINNINGS: ReadonlySet<string> = new Set(Object.values(BEGINNINGS));
/** Acceptances that only were remembered: nothing was pushed for them. */
const REMEMBERED: ReadonlySet<string | undefined> = new Set<string>([
  BEGINNINGS.sentBefore,
  BEGINNINGS.takenAnewSentBefore,
]);

/** Where in a history the present work begins; -1 where that is forgotten. */
export function beginningOf(history: readonly HistoryEntry[]): number {
  return history.findLastIndex(
    ({ note }) => note !== undefined && (ALL_BEGINNINGS.has(note) || note.startsWith(MISSED)),
  );
}

/** Whether an accepted item was not pushed for that, for the peer was sent it before. */
export function isRemembered({ history }: AcceptedItem): boolean {
  return REMEMBERED.has(history.at(-1)?.note);
}

/** The history of a record that was `before`, with one more change of status. */
export function next(
  before: Entry | undefined,
  status: Entry['status'],
  at: number,
  note?: string,
): readonly HistoryEntry[] {
  const entry: HistoryEntry = note === undefined ? { status, at } : { status, at, note: note.slice(0, 300) };
  if (before === undefined) return [entry];
  const { history } = before;
  if (history.length < HISTORY_LENGTH) return [...history, entry];
  // Where the present work begins is kept, however many attempts it takes.
  const begun = history[beginningOf(history)];
  const kept = history.slice(1 - HISTORY_LENGTH);
  if (begun === undefined || kept.includes(begun) || beginningOf([entry]) === 0) return [...kept, entry];
  return [begun, ...kept.slice(1), entry];
}
