import { basename } from 'node:path';
import { EXIT, type ExitCode, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { type Owner, ownerOf } from '../lib/owner.js';

export type StateErrorCode =
  | 'STATE_LOCKED'
  | 'STATE_LOCKED_ELSEWHERE'
  | 'STATE_OF_ANOTHER_USER'
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
  /** What to do, where that is known better than the table knows it. */
  readonly hint?: string;
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
  STATE_OF_ANOTHER_USER: {
    message: ({ dir, detail }) =>
      `The state in ${dir} belongs to ${detail}: what root writes there, that user could not read any more.`,
    hint: 'Run peersync as that user.',
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
      hint: facts.hint ?? row.hint,
      exitCode: row.exitCode,
      details: { dir: facts.dir, detail: facts.detail },
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

/** Root is kept from a state that belongs to `owner`. */
export function anothersState(dir: string, { name, argument }: Owner): StateError {
  const hint = `Type \`sudo -u ${argument.sudo} peersync …\`. Where root is to have it from now on, as in a container: \`chown -R root ${dir}\`.`;
  return new StateError('STATE_OF_ANOTHER_USER', { dir, detail: name, hint });
}

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
export async function readError(error: unknown, dir: string): Promise<StateError> {
  if (error instanceof StateError) return error;
  const system = systemCode(error);
  if (system === undefined) return new StateError('STATE_DAMAGED', { dir, detail: messageOf(error) }, error);
  const code = system === 'ENOTDIR' ? 'STATE_NOT_A_DIRECTORY' : 'STATE_UNREADABLE';
  const facts = (await forbiddenFile(error, dir)) ?? { detail: system };
  return new StateError(code, { dir, ...facts }, error);
}

/** What is said of a file below `dir` that its owner keeps from this user; undefined where that is not what happened. */
export async function forbiddenFile(
  error: unknown,
  dir: string,
): Promise<Pick<Facts, 'detail' | 'hint'> | undefined> {
  if (systemCode(error) !== 'EACCES') return undefined;
  const path = error instanceof Error && 'path' in error ? error.path : undefined;
  if (typeof path !== 'string' || path === dir) return undefined;
  const [owner, whole] = [await ownerOf(path), await ownerOf(dir)];
  if (owner === undefined || whole === undefined) return undefined;
  const detail = `EACCES: ${basename(path)} belongs to ${owner.name}`;
  if (owner.uid === whole.uid) return { detail };
  const { chown, sudo } = whole.argument;
  return {
    detail,
    hint: `Give it back: \`sudo chown -R ${chown} ${dir}\`; give commands by \`sudo -u ${sudo} peersync …\`, then it stays so.`,
  };
}
