import { mkdir, type open, readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Clock } from '../lib/clock.js';
import { EXIT, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { isOpenToOthers } from '../lib/file.js';
import { describeHolder, type Holder, isHere, type Lock, readLock, takeLock } from '../lib/lock.js';
import { shellWord } from '../lib/text.js';

/** How files are opened; a parameter so that a test can let a disk fail. */
export type OpenFile = typeof open;

/**
 * By code: what happened and what to do. `{dir}` is the directory, `{word}` the same as a shell
 * takes it, and `{detail}` says who, what or why.
 */
const TABLE = {
  STATE_LOCKED: [
    'Another peersync ({detail}) uses the state directory {dir}.',
    'Stop it, or give this one another state.dir.',
  ],
  STATE_LOCKED_ELSEWHERE: [
    'A peersync on another machine or in another container ({detail}) uses the state directory {dir}.',
    'Stop it there, or give this one another state.dir. One that was killed there is waited for, a minute at the most.',
  ],
  STATE_LOST: [
    'The state directory {dir} was removed, unmounted or taken over while peersync ran.',
    'Bring it back if it was unmounted, then start peersync again; the log says whether what is known was written there anew.',
  ],
  STATE_OF_ANOTHER_USER: [
    'The state in {dir} belongs to {detail}: what root writes there, that user could not read any more.',
    "Type `sudo -u '{detail}' peersync …`. Where root is to have it from now on, as in a container: `chown -R root {word}`.",
  ],
  STATE_OPEN_TO_OTHERS: [
    'Other users may write in the state directory {dir} (mode {detail}): they could have peersync read and write other files.',
    'Take that right from them (`chmod go-w {word}`), or set state.dir to a directory below it, which is then made.',
  ],
  STATE_FULL: [
    'The state in {dir} cannot grow: no space is left on its disk ({detail}).',
    'Free some space there; nothing is lost, and a running daemon goes on by itself.',
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

/** Why the state cannot be used or kept; `code` says which, `details.dir` where. */
export class StateError extends PeersyncError {
  /** @param hint what to do, where that is known better than the table knows it */
  constructor(
    code: keyof typeof TABLE,
    dir: string,
    detail: string,
    hint?: string,
    cause?: unknown,
  ) {
    const values: Readonly<Record<string, string>> = { dir, word: shellWord(dir), detail };
    const filled = (text: string) =>
      text.replace(/\{(dir|word|detail)\}/g, (_, name: string) => values[name] ?? '');
    super({
      code,
      message: filled(TABLE[code][0]),
      hint: hint ?? filled(TABLE[code][1]),
      exitCode: code === 'STATE_NOT_A_DIRECTORY' ? EXIT.usage : EXIT.failure,
      details: { dir, detail },
      cause,
    });
  }
}

const BY_SYSTEM_CODE: Readonly<Record<string, keyof typeof TABLE>> = {
  ENOSPC: 'STATE_FULL',
  EDQUOT: 'STATE_FULL',
  ENOTDIR: 'STATE_NOT_A_DIRECTORY',
  EEXIST: 'STATE_NOT_A_DIRECTORY',
};

/**
 * The StateError for an error met while the state in `dir` was read or written; a StateError stays
 * what it is. What no system call said of reading is the content's fault. A file that its owner
 * keeps from this user is said to be that owner's.
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
  return new StateError(code, dir, detail, hint, error);
}

export function pathOf(dir: string, kind: 'journal' | 'snapshot', generation: number): string {
  return join(dir, `${kind}-${generation}`);
}

/**
 * The files of a state directory by generation, oldest first (see `JournalAdapter`), and the names
 * of those that were never finished. A directory that does not exist has none.
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
 * Takes the state directory `dir`, created if need be, for this process.
 *
 * Root is kept from the state of another user: its files would be root's, and unreadable for
 * whoever they are for. Some file systems give all that is written to one user; whose the lock
 * became shows that.
 *
 * @throws StateError STATE_LOCKED, STATE_LOCKED_ELSEWHERE, STATE_OPEN_TO_OTHERS,
 *   STATE_OF_ANOTHER_USER, STATE_UNWRITABLE, STATE_FULL, STATE_NOT_A_DIRECTORY
 */
export async function lockState(dir: string, { clock }: { readonly clock: Clock }): Promise<Lock> {
  const held = (holder: Holder) =>
    new StateError(
      isHere(holder) ? 'STATE_LOCKED' : 'STATE_LOCKED_ELSEWHERE',
      dir,
      describeHolder(holder),
    );
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const { mode } = await stat(dir);
    if (isOpenToOthers(mode))
      throw new StateError('STATE_OPEN_TO_OTHERS', dir, (mode & 0o7777).toString(8));
    const lock = await takeLock(join(dir, 'lock'), clock, held);
    const owner = process.geteuid?.() === 0 ? await ownerOfState(dir) : undefined;
    if (owner === undefined || owner.uid === 0) return lock;
    if (owner.uid === (await ownerOf(join(dir, 'lock')))?.uid) return lock;
    await lock.release();
    throw new StateError('STATE_OF_ANOTHER_USER', dir, owner.name);
  } catch (error) {
    throw await stateError(error, dir, 'write');
  }
}

/** Who works with the state in `dir`, if anybody living does. */
export async function stateHolder(dir: string): Promise<Holder | undefined> {
  return await readLock(join(dir, 'lock'));
}

/**
 * Whose the newest journal is, which is root in a container that was given a directory of the
 * host's; that of the directory where there is no journal yet.
 */
async function ownerOfState(dir: string) {
  const newest = (await listStateFiles(dir)).journal.at(-1);
  return await ownerOf(newest === undefined ? dir : pathOf(dir, 'journal', newest));
}

/**
 * The user whose the file or directory is, or what a link leads to, named as `sudo -u` takes it
 * (`#1000` where there is no name); undefined where that cannot be found out.
 */
async function ownerOf(path: string) {
  const uid = (await stat(path).catch(() => undefined))?.uid;
  if (uid === undefined) return undefined;
  const users = await readFile('/etc/passwd', 'utf8').catch(() => '');
  const rows = users.split('\n').map((row) => row.split(':'));
  return { uid, name: rows.find((row) => row[2] === String(uid))?.[0] || `#${uid}` };
}
