import { mkdir, type open, readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Clock } from '../lib/clock.js';
import { type ErrorTable, EXIT, messageOf, systemCode, tableError } from '../lib/errors.js';
import { isOpenToOthers } from '../lib/file.js';
import { describeHolder, type Holder, isHere, type Lock, readLock, takeLock } from '../lib/lock.js';
import { shellWord } from '../lib/text.js';

/** The function that opens files. A parameter, so that tests can simulate disk failures. */
export type OpenFile = typeof open;

/** `{detail}` names the user, the process or the reason. */
const ERRORS = {
  STATE_LOCKED: {
    message: 'Another peersync ({detail}) uses the state directory {dir}.',
    hint: 'It does the work already: `peersync status` shows its state. Stop it to start this one, or give this one another state.dir.',
  },
  STATE_LOCKED_ELSEWHERE: {
    message:
      'A peersync on another machine or in another container ({detail}) uses the state directory {dir}.',
    hint: 'Stop it there, or give this one another state.dir. If it was killed there, this one waits for a minute at most.',
  },
  STATE_LOST: {
    message: 'The state directory {dir} was removed, unmounted or taken over while peersync ran.',
    hint: 'Bring it back if it was unmounted, then start peersync again; the log says whether what is known was written there anew.',
  },
  STATE_OF_ANOTHER_USER: {
    message:
      'The state in {dir} belongs to {detail}: what root writes there, that user could not read any more.',
    hint: "Type `sudo -u '{detail}' peersync …`. Where root is to have it from now on, as in a container: `chown -R root {dir|shell}`.",
  },
  STATE_OPEN_TO_OTHERS: {
    message:
      'Other users may write in the state directory {dir} (mode {detail}): they could have peersync read and write other files.',
    hint: 'Take that right from them (`chmod go-w {dir|shell}`), or set state.dir to a directory below it, which is then made.',
  },
  STATE_FULL: {
    message: 'The state in {dir} cannot grow: no space is left on its disk ({detail}).',
    hint: 'Free some space there; nothing is lost, and a running daemon goes on by itself.',
  },
  STATE_DAMAGED: {
    message: 'The state in {dir} cannot be understood: {detail}.',
    hint: 'Restore it from a backup, or move it aside to start afresh: files are then looked up and pushed again.',
  },
  STATE_UNWRITABLE: {
    message: 'The state in {dir} cannot be written ({detail}).',
    hint: 'Make the directory writable for the user that runs peersync, check its disk, or set another state.dir.',
  },
  STATE_UNREADABLE: {
    message: 'The state in {dir} cannot be read ({detail}).',
    hint: 'Run as the user that the daemon runs as, or check the disk of the directory.',
  },
  STATE_NOT_A_DIRECTORY: {
    message: 'The state directory {dir} is not a directory ({detail}).',
    hint: 'Set state.dir to a directory; it is created when it does not exist.',
    exitCode: EXIT.usage,
  },
  STATE_NEWER: {
    message: 'The state in {dir} was written by a newer peersync ({detail}).',
    hint: 'Run that version or a later one, or set another state.dir.',
  },
} as const satisfies ErrorTable;

/** Thrown when the state cannot be used or saved. `details.dir` is its directory. */
export class StateError extends tableError(ERRORS) {}

const BY_SYSTEM_CODE: Readonly<Record<string, 'STATE_FULL' | 'STATE_NOT_A_DIRECTORY'>> = {
  ENOSPC: 'STATE_FULL',
  EDQUOT: 'STATE_FULL',
  ENOTDIR: 'STATE_NOT_A_DIRECTORY',
  EEXIST: 'STATE_NOT_A_DIRECTORY',
};

/**
 * Returns the StateError for an error that occurred while reading or writing the state in `dir`. A
 * StateError is returned unchanged. A read error without a system code is taken for damaged
 * content. If a file is not accessible, the error names its owner.
 */
export async function stateError(
  error: unknown,
  dir: string,
  did: 'read' | 'write',
): Promise<StateError> {
  if (error instanceof StateError) return error;
  const system = systemCode(error);
  const usual =
    did === 'write'
      ? 'STATE_UNWRITABLE'
      : system === undefined
        ? 'STATE_DAMAGED'
        : 'STATE_UNREADABLE';
  const code = BY_SYSTEM_CODE[system ?? ''] ?? usual;
  let [detail, hint]: [string, string?] = [system ?? messageOf(error)];
  const path =
    error instanceof Error && 'path' in error && error.path !== dir ? error.path : undefined;
  if (system === 'EACCES' && typeof path === 'string') {
    const [owner, whole] = [await ownerOf(path), await ownerOf(dir)];
    if (owner !== undefined) detail = `EACCES: ${basename(path)} belongs to ${owner.name}`;
    if (owner !== undefined && whole !== undefined && owner.uid !== whole.uid)
      hint = `Give it back: \`sudo chown -R ${whole.name.replace('#', '')} ${shellWord(dir)}\`; give commands by \`sudo -u '${whole.name}' peersync …\`, then it stays so.`;
  }
  return new StateError(code, { dir, detail }, { hint, cause: error });
}

export function pathOf(dir: string, kind: 'journal' | 'snapshot', generation: number): string {
  return join(dir, `${kind}-${generation}`);
}

/**
 * Lists the generations of the journals and snapshots in a state directory, oldest first (see
 * `JournalAdapter`), and the names of unfinished files. A directory that does not exist has none.
 */
export async function listStateFiles(dir: string) {
  const names = await readdir(dir).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  const generations = (pattern: RegExp) => {
    const found = names.flatMap((name) => pattern.exec(name)?.[1] ?? []);
    return found.map(Number).sort((a, b) => a - b);
  };
  return {
    journal: generations(/^journal-([1-9]\d*)$/),
    snapshot: generations(/^snapshot-([1-9]\d*)$/),
    unfinished: names.filter((name) => /^(journal|snapshot)-\d+\..*tmp$/.test(name)),
  };
}

/**
 * Locks the state directory `dir` for this process. Creates it if needed.
 *
 * Root may not use the state of another user: it would write files that the user cannot read. Some
 * file systems assign all files to one user; the owner of the lock file shows that, and root may
 * then use the state.
 *
 * @throws StateError STATE_LOCKED, STATE_LOCKED_ELSEWHERE, STATE_OPEN_TO_OTHERS,
 *   STATE_OF_ANOTHER_USER, STATE_UNWRITABLE, STATE_FULL, STATE_NOT_A_DIRECTORY
 */
export async function lockState(dir: string, { clock }: { readonly clock: Clock }): Promise<Lock> {
  const held = (holder: Holder) =>
    new StateError(isHere(holder) ? 'STATE_LOCKED' : 'STATE_LOCKED_ELSEWHERE', {
      dir,
      detail: describeHolder(holder),
    });
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const { mode } = await stat(dir);
    if (isOpenToOthers(mode))
      throw new StateError('STATE_OPEN_TO_OTHERS', { dir, detail: (mode & 0o7777).toString(8) });
    const lock = await takeLock(join(dir, 'lock'), clock, held);
    const owner = process.geteuid?.() === 0 ? await ownerOfState(dir) : undefined;
    if (owner === undefined || owner.uid === 0) return lock;
    if (owner.uid === (await ownerOf(join(dir, 'lock')))?.uid) return lock;
    await lock.release();
    throw new StateError('STATE_OF_ANOTHER_USER', { dir, detail: owner.name });
  } catch (error) {
    throw await stateError(error, dir, 'write');
  }
}

/** Returns the living process that uses the state in `dir`, if any. */
export async function stateHolder(dir: string): Promise<Holder | undefined> {
  return await readLock(join(dir, 'lock'));
}

/**
 * Returns the owner of the newest journal or, without a journal, of the directory. In a container,
 * root may own the journal in a directory of a user of the host.
 */
async function ownerOfState(dir: string) {
  const newest = (await listStateFiles(dir)).journal.at(-1);
  return await ownerOf(newest === undefined ? dir : pathOf(dir, 'journal', newest));
}

/**
 * Returns the owner of a file or directory; follows links. The name is written as `sudo -u` accepts
 * it (`#1000` if the user has no name). Undefined if the owner cannot be determined.
 */
async function ownerOf(path: string) {
  const uid = (await stat(path).catch(() => undefined))?.uid;
  if (uid === undefined) return undefined;
  const users = await readFile('/etc/passwd', 'utf8').catch(() => '');
  const rows = users.split('\n').map((row) => row.split(':'));
  return { uid, name: rows.find((row) => row[2] === String(uid))?.[0] || `#${uid}` };
}
