import { EXIT, type ExitCode, messageOf, PeersyncError, systemCode } from '../lib/errors.js';

export type StateErrorCode =
  | 'STATE_LOCKED'
  | 'STATE_LOCKED_ELSEWHERE'
  | 'STATE_FULL'
  | 'STATE_DAMAGED'
  | 'STATE_UNWRITABLE'
  | 'STATE_UNREADABLE'
  | 'STATE_NOT_A_DIRECTORY'
  | 'STATE_NEWER';

/** What the sentences of the table are filled with. */
interface Facts {
  readonly dir: string;
  /** Who, what or why, in words that fit the sentence. */
  readonly detail: string;
}

interface Row {
  readonly message: (facts: Facts) => string;
  readonly hint: string;
  readonly exitCode: ExitCode;
}

const TABLE: Readonly<Record<StateErrorCode, Row>> = {
  STATE_LOCKED: {
    message: ({ dir, detail }) => `Another peersync (${detail}) uses the state directory ${dir}.`,
    hint: 'Stop it, or give this one another state.dir.',
    exitCode: EXIT.failure,
  },
  STATE_LOCKED_ELSEWHERE: {
    message: ({ dir, detail }) =>
      `A peersync on another machine (${detail}) uses the state directory ${dir}.`,
    hint: 'Stop it there; if that machine or container is no more, remove the file "lock" in the directory.',
    exitCode: EXIT.failure,
  },
  STATE_FULL: {
    message: ({ dir, detail }) =>
      `The state in ${dir} cannot grow: no space is left on its disk (${detail}).`,
    hint: 'Free some space there; nothing is lost, and the work goes on by itself.',
    exitCode: EXIT.failure,
  },
  STATE_DAMAGED: {
    message: ({ dir, detail }) => `The state in ${dir} cannot be understood: ${detail}.`,
    hint: 'Restore it from a backup, or move it aside to start afresh: files are then looked up and pushed again.',
    exitCode: EXIT.failure,
  },
  STATE_UNWRITABLE: {
    message: ({ dir, detail }) => `The state in ${dir} cannot be written (${detail}).`,
    hint: 'Make the directory writable for the user that runs peersync, check its disk, or set another state.dir.',
    exitCode: EXIT.failure,
  },
  STATE_UNREADABLE: {
    message: ({ dir, detail }) => `The state in ${dir} cannot be read (${detail}).`,
    hint: 'Run as the user that the daemon runs as, or check the disk of the directory.',
    exitCode: EXIT.failure,
  },
  STATE_NOT_A_DIRECTORY: {
    message: ({ dir, detail }) => `The state directory ${dir} is not a directory (${detail}).`,
    hint: 'Set state.dir to a directory; it is created when it does not exist.',
    exitCode: EXIT.usage,
  },
  STATE_NEWER: {
    message: ({ dir, detail }) => `The state in ${dir} was written by a newer peersync (${detail}).`,
    hint: 'Run that version or a later one, or set another state.dir.',
    exitCode: EXIT.failure,
  },
};

/** Why the state cannot be used or kept; `code` says which, `details.dir` where. */
export class StateError extends PeersyncError {
  declare readonly code: StateErrorCode;

  constructor(code: StateErrorCode, facts: Facts, cause?: unknown) {
    const row = TABLE[code];
    super({
      code,
      message: row.message(facts),
      hint: row.hint,
      exitCode: row.exitCode,
      details: { ...facts },
      cause,
    });
  }
}

const BY_SYSTEM_CODE: Readonly<Record<string, StateErrorCode>> = {
  ENOSPC: 'STATE_FULL',
  EDQUOT: 'STATE_FULL',
  ENOTDIR: 'STATE_NOT_A_DIRECTORY',
  EEXIST: 'STATE_NOT_A_DIRECTORY',
};

/** The StateError for a system error met while writing below `dir`; a StateError stays what it is. */
export function writeError(error: unknown, dir: string): StateError {
  if (error instanceof StateError) return error;
  const system = systemCode(error) ?? messageOf(error);
  return new StateError(BY_SYSTEM_CODE[system] ?? 'STATE_UNWRITABLE', { dir, detail: system }, error);
}

/**
 * The StateError for an error met while reading below `dir`; a StateError stays what it is. What no system call said is
 * the content's fault.
 */
export function readError(error: unknown, dir: string): StateError {
  if (error instanceof StateError) return error;
  const system = systemCode(error);
  if (system === undefined) return new StateError('STATE_DAMAGED', { dir, detail: messageOf(error) }, error);
  const code = system === 'ENOTDIR' ? 'STATE_NOT_A_DIRECTORY' : 'STATE_UNREADABLE';
  return new StateError(code, { dir, detail: system }, error);
}
