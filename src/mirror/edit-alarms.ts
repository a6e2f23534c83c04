import { EXIT, PeersyncError } from '../lib/errors.js';
import { shellWord } from './alarms.js';

/** What the sentences of the table are filled with. */
export interface EditFacts {
  /** Of the mirror. */
  readonly name: string;
  /** The file. */
  readonly file: string;
  readonly detail: string;
}

interface Row {
  readonly message: (facts: EditFacts) => string;
  readonly hint: (facts: EditFacts) => string;
}

const leftAlone = 'until then nothing of it reaches the peer, and it is left alone';
const orAnew = 'or move the file aside to have it written anew';

/** Every alarm of a file that a person edits. */
const TABLE = {
  EDIT_UNREADABLE: {
    message: ({ file, detail }) => `${file} cannot be read as the table that it is: ${detail}.`,
    hint: () => `Mend that place, ${orAnew}; ${leftAlone}.`,
  },
  EDIT_TOO_LARGE: {
    message: ({ file, detail }) => `${file} is too large to be edited: ${detail}.`,
    hint: () => 'Set "edit" to false for this table, or keep fewer rows in it.',
  },
  EDIT_COLUMNS: {
    message: ({ file, detail }) => `${file} ${detail}.`,
    hint: () => `Put the columns right, ${orAnew}; ${leftAlone}.`,
  },
  EDIT_DELETES: {
    message: ({ file, detail }) => `From ${file} ${detail}.`,
    hint: ({ name }) =>
      `If they are to go, \`peersync mirror accept ${shellWord(name)}\` removes them in the peer; if not, put the lines back, ${orAnew}.`,
  },
  EDIT_KEYS: {
    message: ({ file, detail }) => `${file} cannot be merged: ${detail}.`,
    hint: () =>
      'Rows are told apart by their keys: mend the table in the peer, or set "edit" to false for it.',
  },
} as const satisfies Record<string, Row>;

export type EditAlarmCode = keyof typeof TABLE;

/** A file that a person edits cannot be taken as it is; it is left alone, and nothing of it was written to the peer. */
export class EditAlarm extends PeersyncError {
  declare readonly code: EditAlarmCode;

  constructor(code: EditAlarmCode, facts: EditFacts) {
    const row: Row = TABLE[code];
    super({
      code,
      message: row.message(facts),
      hint: row.hint(facts),
      details: { mirror: facts.name },
      exitCode: EXIT.quarantined,
    });
  }
}
