import { basename } from 'node:path';
import { EXIT, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { type Owner, ownerOf } from '../lib/owner.js';

/** By code: what happened, with `{dir}` and `{detail}` (who, what or why), and what to do. */
const TABLE = {
  STATE_LOCKED: [
    'Another peersync ({detail}) uses the state directory {dir}.',
    'Stop it, or give this one another state.dir.',
  ],
  STATE_LOCKED_ELSEWHERE: [
    'A peersync on another machine ({detail}) uses the state directory {dir}.',
    'Stop it there; if that machine or container is no more, remove the file "lock" in the directory.',
  ],
  STATE_OF_ANOTHER_USER: [
    'The state in {dir} belongs to {detail}: what root writes there, that user could not read any more.',
    'Run peersync as that user.',
  ],
  STATE_FULL: [
    'The state in {dir} cannot grow: no space is left on its disk ({detail}).',
    'Free some space there; nothing is lost, and the work goes on by itself.',
  ],
  STATE_DAMAGED: [
    'The state in {dir} cannot be understood: {detail}.',
    'Restore it from a backup, or move it aside to start afresh: files are then looked up and pushed again.',
  ],
  STATE_UNWRITABLE: [
    'The state in {dir} cannot be written ({detail}).',
    'Make the directory writable for the user that runs peersync, check its disk, or set another state.dir.',
  ],
  STATE_UNREADABLE: [
    'The state in {dir} cannot be read ({detail}).',
    'Run as the user that the daemon runs as, or check the disk of the directory.',
  ],
  STATE_NOT_A_DIRECTORY: [
    'The state directory {dir} is not a directory ({detail}).',
    'Set state.dir to a directory; it is created when it does not exist.',
  ],
  STATE_NEWER: [
    'The state in {dir} was written by a newer peersync ({detail}).',
    'Run that version or a later one, or set another state.dir.',
  ],
} as const satisfies Readonly<Record<string, readonly [message: string, hint: string]>>;

export type StateErrorCode = keyof typeof TABLE;

interface Facts {
  readonly dir: string;
  readonly detail: string;
  /** What to do, where that is known better than the table knows it. */
  readonly hint?: string;
}

/** Why the state cannot be used or kept; `code` says which, `details.dir` where. */
export class StateError extends PeersyncError {
  declare readonly code: StateErrorCode;

  constructor(code: StateErrorCode, { dir, detail, hint }: Facts, cause?: unknown) {
    const [message, usualHint] = TABLE[code];
    super({
      code,
      message: message.replace(/\{(dir|detail)\}/g, (_, name) => (name === 'dir' ? dir : detail)),
      hint: hint ?? usualHint,
      exitCode: code === 'STATE_NOT_A_DIRECTORY' ? EXIT.usage : EXIT.failure,
      details: { dir, detail },
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
