import { EXIT, PeersyncError } from '../lib/errors.js';

/** What the sentences of the table are filled with. */
export interface AlarmFacts {
  /** What is mirrored, in words: `the table "prices"`. */
  readonly what: string;
  readonly detail?: string;
}

interface Row {
  readonly message: (facts: AlarmFacts) => string;
  /** What accepting does, as the end of a sentence that begins with the command. */
  readonly accepting: string;
}

/** Every alarm of one-way mirrors: what the peer says would replace good data. */
const TABLE = {
  SHARE_GONE: {
    message: ({ what }) => `The peer does not have ${what} any more; the file stays as it was.`,
    accepting: 'removes the file, until the peer has the object again',
  },
  SHARE_EMPTY: {
    message: ({ what }) => `The peer answers for ${what} with nothing at all; the file stays as it was.`,
    accepting: 'takes it as it is',
  },
  SHARE_HTML: {
    message: ({ what }) =>
      `The peer answers for ${what} with an HTML page, which it was not before; the file stays as it was.`,
    accepting: 'takes the page',
  },
  SHARE_TYPE: {
    message: ({ what, detail }) =>
      `The peer answers for ${what} with something of another kind (${detail}); the file stays as it was.`,
    accepting: 'takes it as it is',
  },
  SHARE_ERROR_PAGE: {
    message: ({ what, detail }) =>
      `The peer answers for ${what} with what looks like an error (${detail}); the file stays as it was.`,
    accepting: 'takes it as it is',
  },
  MIRROR_TOO_LARGE: {
    message: ({ what, detail }) =>
      `The peer's answer for ${what} is larger than maxSize (${detail}); the file stays as it was.`,
    accepting: 'takes it this once; raise maxSize to take it always',
  },
  TABLE_GONE: {
    message: ({ what }) => `The peer does not have ${what} any more; the file stays as it was.`,
    accepting: 'removes the file, until the peer has the table again',
  },
  TABLE_EMPTY: {
    message: ({ what, detail }) =>
      `The peer shows no rows of ${what}, where there were ${detail}; the file stays as it was.`,
    accepting: 'takes it as it is',
  },
  COLUMNS_LOST: {
    message: ({ what, detail }) =>
      `The peer does not show these columns of ${what} any more: ${detail}; the file stays as it was.`,
    accepting: 'goes on without them',
  },
} as const satisfies Record<string, Row>;

export type AlarmCode = keyof typeof TABLE;

/** Thrown where following the peer would replace good data; the file was left alone. */
export class MirrorAlarm extends PeersyncError {
  declare readonly code: AlarmCode;

  /** @param name of the mirror */
  constructor(code: AlarmCode, name: string, facts: AlarmFacts) {
    const row: Row = TABLE[code];
    super({
      code,
      message: row.message(facts),
      hint: `If that is right, \`peersync mirror accept ${shellWord(name)}\` ${row.accepting}; if not, look at the peer.`,
      details: { mirror: name },
      exitCode: EXIT.quarantined,
    });
  }
}

/** For a record: what happened, what to do. */
export type Trouble = Pick<PeersyncError, 'code' | 'message' | 'hint'>;

/** As it is typed into a shell. */
export function shellWord(text: string): string {
  return /^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
