import { EXIT, type ExitCode, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { sentence } from '../lib/text.js';
import { PeerError } from '../peer/errors.js';

/** What the sentences of the table are filled with. */
interface Facts {
  /** The file or directory, the table or the mirror that it is about. */
  readonly what: string;
  /** Who, what or why, in words that fit the sentence. */
  readonly detail: string;
}

interface Row {
  readonly message: (facts: Facts) => string;
  readonly hint: string;
  /** @default EXIT.failure */
  readonly exitCode?: ExitCode;
}

/** Every error of this room, and what to do about it. */
const TABLE = {
  MIRROR_OUTSIDE: {
    message: ({ what, detail }) => `${what} would be written outside the mirror root ${detail}.`,
    hint: 'Remove the link that leads out of the root, or point mirror.root at the directory that is meant.',
  },
  MIRROR_ROOT_AWAY: {
    message: ({ what }) =>
      `The mirror root ${what} is empty and on another file system than before, as if its disk were not mounted.`,
    hint: 'Mount it, and the work goes on by itself; if it is meant to begin anew there, put any file into it.',
  },
  MIRROR_BLOCKED: {
    message: ({ what, detail }) => `${what} cannot be written: ${detail} stands there.`,
    hint: 'Move aside what stands there, or give the mirror another path.',
  },
  MIRROR_FULL: {
    message: ({ what, detail }) => `${what} cannot be written: no space is left on its disk (${detail}).`,
    hint: 'Free some space there; the old file stays until then, and the work goes on by itself.',
  },
  MIRROR_UNWRITABLE: {
    message: ({ what, detail }) => `${what} cannot be written (${detail}).`,
    hint: 'Make the directory writable for the user that runs peersync, check its disk, or set another mirror.root.',
  },
  MIRROR_TOO_LARGE: {
    message: ({ what, detail }) => `${what} would become larger than ${detail}.`,
    hint: 'Raise maxSize of the mirror if it is really that large; the old file stays until then.',
  },
  MIRROR_TOO_WIDE: {
    message: ({ what, detail }) => `${what} has more than ${detail} columns.`,
    hint: 'Look at the table in the peer: so many columns are a sign that something else was answered.',
  },
  MIRROR_NOTHING: {
    message: ({ what }) => `The peer does not have ${what}.`,
    hint: 'Check its name in the configuration, or put it there; the peer is asked for it again.',
  },
  MIRROR_TOO_MANY: {
    message: ({ what, detail }) => `The pattern ${what} matches more than ${detail} of the peer.`,
    hint: 'Narrow the pattern; what it found before goes on.',
  },
  MIRROR_NO_LIST: {
    message: ({ what, detail }) =>
      `The peer does not tell which ${detail} it has, so that the pattern ${what} finds nothing.`,
    hint: 'Give each of them an entry of its own in the configuration.',
  },
  MIRROR_UNKNOWN: {
    message: ({ what, detail }) => sentence(`There is no mirror called ${what}${detail}`),
    hint: '`peersync status` lists the mirrors.',
    exitCode: EXIT.usage,
  },
  MIRROR_NO_ALARM: {
    message: ({ what }) => `The mirror ${what} has no alarm that could be accepted.`,
    hint: '`peersync status` shows which mirrors have one.',
    exitCode: EXIT.usage,
  },
  MIRROR_REPLACED: {
    message: ({ what }) =>
      `The configuration of the mirror ${what} changed, or it left, while it was to run.`,
    hint: 'If it is still configured it runs again by itself, in its new way; `peersync mirror` runs it now.',
  },
  MIRROR_FAILED: {
    message: ({ what, detail }) => `The mirror ${what} failed: ${detail}.`,
    hint: 'It is tried again; if it goes on, report this with the log.',
  },
} as const satisfies Record<string, Row>;

export type MirrorErrorCode = keyof typeof TABLE;

/** Why a mirror could not be written; `code` says which. The old file is as it was. */
export class MirrorError extends PeersyncError {
  declare readonly code: MirrorErrorCode;

  constructor(code: MirrorErrorCode, facts: Facts, cause?: unknown) {
    const row: Row = TABLE[code];
    super({
      code,
      message: row.message(facts),
      hint: row.hint,
      exitCode: row.exitCode ?? EXIT.failure,
      details: { ...facts },
      cause,
    });
  }
}

/** The MirrorError for a system error met while writing `what`; a MirrorError stays what it is. */
export function writeError(error: unknown, what: string): MirrorError {
  if (error instanceof MirrorError) return error;
  const system = systemCode(error);
  switch (system) {
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return new MirrorError('MIRROR_FULL', { what, detail: system }, error);
    case 'EISDIR':
      return new MirrorError('MIRROR_BLOCKED', { what, detail: 'a directory' }, error);
    case 'ENOTDIR':
    case 'EEXIST':
      return new MirrorError('MIRROR_BLOCKED', { what, detail: 'something that is no directory' }, error);
    default:
      return new MirrorError('MIRROR_UNWRITABLE', { what, detail: system ?? messageOf(error) }, error);
  }
}

/** Whether an error says that there is more than was asked for, whoever noticed it first. */
export function isTooLarge(error: unknown): boolean {
  return (
    (error instanceof PeerError && error.code === 'PEER_ANSWER_TOO_LARGE') ||
    (error instanceof MirrorError && error.code === 'MIRROR_TOO_LARGE')
  );
}
