import { pagePath } from '../lib/documentation.js';
import { type ErrorTable, EXIT, PeersyncError, systemCode, tableError } from '../lib/errors.js';
import { numberText, shellWord } from '../lib/text.js';
import type { Conflict } from './record.js';

/** Errors of a run or a request. `{what}` is the file, mirror or pattern. */
const ERRORS = {
  MIRROR_OUTSIDE: {
    message: '{what} would be written outside the mirror root {detail}.',
    hint: 'Remove the link that leads out of the root, or point mirror.root at the directory that is meant.',
  },
  MIRROR_ROOT_AWAY: {
    message:
      'The mirror root {what} is empty and on another file system than before, as if its disk were not mounted.',
    hint: 'Mount it, and the mirrors go on by themselves. If the root is meant to begin anew there, put any file into it.',
  },
  MIRROR_ROOT_NESTED: {
    message:
      'The mirror root {what} cannot be used: it overlaps with {detail}, into which another state of peersync mirrors.',
    hint: 'Set mirror.root, or the path of the mirror, to another directory. If nothing mirrors there any more, remove the file .peersync-mirror.json in it.',
  },
  MIRROR_BLOCKED: {
    message: '{what} cannot be written: {detail} is in the way.',
    hint: 'Move it aside, or give the mirror another path.',
  },
  MIRROR_EDITED_AGAIN: {
    message: '{what} was edited again, and there are {detail} copies of earlier edits beside it.',
    hint: 'Remove the conflict files that you do not need, or stop the program that writes into the file. It stays as it is until then.',
  },
  MIRROR_FULL: {
    message: '{what} cannot be written: no space is left on its disk ({detail}).',
    hint: 'Free some space there. The old file stays until then, and the mirror goes on by itself.',
  },
  MIRROR_UNWRITABLE: {
    message: '{what} cannot be written ({detail}).',
    hint: 'Make the directory writable for the user that runs peersync, check its disk, or set another mirror.root.',
  },
  MIRROR_TOO_LARGE: {
    message: '{what} would become larger than {detail}.',
    hint: 'Raise maxSize of the mirror if it is really that large. The old file stays until then.',
  },
  MIRROR_TOO_WIDE: {
    message: '{what} has more than {detail} columns.',
    hint: 'Look at the table in the peer: with so many columns the answer is probably not that table.',
  },
  MIRROR_NOTHING: {
    message: 'The peer does not have {what}.',
    hint: 'Check its name in the configuration, or put it there: {detail}. The peer is asked for it again.',
  },
  MIRROR_TOO_MANY: {
    message: 'The pattern {what} matches more than {detail} of the peer.',
    hint: 'Narrow the pattern. The mirrors that it created before go on.',
  },
  MIRROR_NO_LIST: {
    message: 'The peer does not list its {detail}, so that the pattern {what} finds nothing.',
    hint: 'Give each of them an entry of its own in the configuration.',
  },
  MIRROR_UNKNOWN: {
    message: 'There is no mirror called {what}{suggestion}',
    hint: '`peersync status` lists the mirrors.',
    exitCode: EXIT.usage,
  },
  MIRROR_NONE: {
    message: 'The configuration names no mirrors.',
    hint: `${pagePath('src/mirror/README.md')} explains what mirrors do.`,
    exitCode: EXIT.usage,
  },
  MIRROR_NO_CONDITION: {
    message: 'The mirror {what} reports nothing that could be accepted.',
    hint: '`peersync status` shows which mirrors need you.',
    exitCode: EXIT.usage,
  },
  MIRROR_REPLACED: {
    message: 'The mirror {what} was changed or removed in the configuration before it could run.',
    hint: 'If it is still configured it runs again by itself. `peersync mirror` runs it now.',
  },
  MIRROR_FAILED: {
    message: 'The mirror {what} failed: {detail}.',
    hint: 'It is tried again. If it goes on failing, report this with the log.',
  },
} as const satisfies ErrorTable;

/** A mirror could not be brought up to date. The old file is as it was. */
export class MirrorError extends tableError(ERRORS) {}

/**
 * Returns how a table or shared object is put into the peer, as a phrase.
 *
 * @param name of the table
 */
export function howToPut(kind: 'table' | 'share', name: string): string {
  return kind === 'table'
    ? `\`peersync table set ${shellWord(name)} --pk KEY COLUMN=VALUE\` sets its first row`
    : 'the embedded peer takes it on its page "Shares" (/api/share.html)';
}

/**
 * Runs work on the disk. A system error becomes a MirrorError about `what`. Any other error passes.
 */
export async function onDisk<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const system = systemCode(error);
    if (system === undefined || error instanceof PeersyncError) throw error;
    if (['ENOSPC', 'EDQUOT', 'EFBIG'].includes(system)) {
      throw new MirrorError('MIRROR_FULL', { what, detail: system }, { cause: error });
    }
    if (!['EISDIR', 'ENOTDIR', 'EEXIST'].includes(system)) {
      throw new MirrorError('MIRROR_UNWRITABLE', { what, detail: system }, { cause: error });
    }
    const detail = system === 'EISDIR' ? 'a directory' : 'something that is no directory';
    throw new MirrorError('MIRROR_BLOCKED', { what, detail }, { cause: error });
  }
}

/** Returns whether an error says that an answer or a file exceeds its limit. */
export function isTooLarge(error: unknown): boolean {
  const codes = ['PEER_ANSWER_TOO_LARGE', 'MIRROR_TOO_LARGE'];
  return error instanceof PeersyncError && codes.includes(error.code);
}

const stays = 'the file stays as it was';
const accept = '`peersync mirror accept {mirror|shell}`';
const ifRight = <const T extends string>(accepting: T) =>
  `If that is right, ${accept} ${accepting}; if not, look at the peer.` as const;
const orAnew = 'or move the file aside to have it written anew';
const gone = <const T extends string>(noun: T) =>
  ({
    message: `The peer does not have {what} any more; ${stays}.`,
    hint: ifRight(`removes the file, until the peer has the ${noun} again`),
  }) as const;
const leftAlone = 'until then nothing of it reaches the peer, and nothing overwrites it';

/**
 * Every condition of a mirror. SHARE_ and TABLE_: what the peer answers would replace good data.
 * ROOT_: the root belongs to another state. EDIT_: a file that a person edits cannot be taken.
 */
const CONDITIONS = {
  SHARE_GONE: gone('object'),
  SHARE_EMPTY: {
    message: `The peer answers for {what} with nothing at all; ${stays}.`,
    hint: ifRight('takes it as it is'),
  },
  SHARE_HTML: {
    message: `The peer answers for {what} with an HTML page, which it was not before; ${stays}.`,
    hint: ifRight('takes the page'),
  },
  SHARE_TYPE: {
    message: `The peer answers for {what} with something of another kind ({detail}); ${stays}.`,
    hint: ifRight('takes it as it is'),
  },
  MIRROR_TOO_LARGE: {
    message: `The peer's answer for {what} is larger than maxSize ({detail}); ${stays}.`,
    hint: ifRight('takes it this once; raise maxSize to take it always'),
  },
  ROOT_TAKEN: {
    message:
      'The mirror root {what} belongs to another state of peersync ({detail}); nothing is written there.',
    hint: `Set mirror.root to another directory. If that state is lost or mirrors there no more, ${accept} takes the root for all mirrors; files that were edited are kept as conflict files.`,
  },
  TABLE_GONE: gone('table'),
  TABLE_EMPTY: {
    message: `The peer shows no rows of {what}, where there were {detail}; ${stays}.`,
    hint: ifRight('takes it as it is'),
  },
  ROWS_LOST: {
    message: `The peer does not show {detail} of {what} any more; ${stays}.`,
    hint: ifRight('takes it as it is'),
  },
  KEYS_TWICE: {
    message: `The peer shows {detail} of {what} more than once; ${stays}.`,
    hint: ifRight('takes it as it is'),
  },
  TABLE_NOT_UTF8: {
    message: `The peer answers for {what} with bytes that are not UTF-8; ${stays}.`,
    hint: ifRight('takes it with U+FFFD in their place'),
  },
  COLUMNS_LOST: {
    message: `The peer does not show these columns of {what} any more: {detail}; ${stays}.`,
    hint: ifRight('goes on without them'),
  },
  EDIT_UNREADABLE: {
    message: '{what} cannot be read as the table that it is: {detail}.',
    hint: `Mend that place, ${orAnew}; ${leftAlone}.`,
  },
  EDIT_TOO_LARGE: {
    message: '{what} is too large to be edited: {detail}.',
    hint: 'Keep fewer rows in it; or set "edit" to false for this table and move the file aside.',
  },
  EDIT_COLUMNS: {
    message: '{what} {detail}.',
    hint: `Put the columns right, ${orAnew}; ${leftAlone}.`,
  },
  EDIT_DELETES: {
    message: 'In {what} {detail}.',
    hint: `If they are to go, ${accept} removes them in the peer; if not, put the lines back, ${orAnew}.`,
  },
  EDIT_KEYS: {
    message: '{what} cannot be merged: {detail}.',
    hint: 'Rows are identified by their keys: mend the table in the peer, or set "edit" to false for it.',
  },
} as const satisfies ErrorTable;

export type ConditionCode = keyof typeof CONDITIONS;

/**
 * Keeps a mirror from following the peer until a person accepts it or mends its cause. File and
 * peer are as they were.
 */
export class MirrorCondition extends tableError(CONDITIONS) {
  /** For a two-way table: its open conflicts. */
  conflicts?: readonly Conflict[];

  /**
   * @param mirror its name
   * @param what the condition is about: `the table "prices"`, or the file for EDIT_ codes
   */
  constructor(code: ConditionCode, mirror: string, what: string, detail = '') {
    const context = { details: { mirror }, exitCode: EXIT.quarantined };
    super(code, { what, detail, mirror }, context);
  }
}

/** The most characters of a name in a message. */
const SHOWN = 100;
/** The most names in a message. */
const LISTED = 5;

/**
 * Returns a name of the peer for a message: in quotes, cut if it is long, and with characters
 * escaped that move a cursor or hide text.
 */
export function quoted(name: string): string {
  const characters = [...name.slice(0, 4 * SHOWN)];
  const shown = characters.slice(0, SHOWN).join('');
  return JSON.stringify(characters.length > SHOWN ? `${shown}…` : shown).replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

/** Returns several names for a message. */
export function quotedList(names: readonly string[]): string {
  const shown = names.slice(0, LISTED).map(quoted).join(', ');
  return names.length > LISTED ? `${shown} and ${numberText(names.length - LISTED)} more` : shown;
}
