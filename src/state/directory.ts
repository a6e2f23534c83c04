import { mkdir, type open, readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Clock } from '../lib/clock.js';
import { EXIT, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { isOpenToOthers } from '../lib/file.js';
import { describeHolder, type Holder, isHere, type Lock, readLock, takeLock } from '../lib/lock.js';
import { shellWord } from '../lib/text.js';

/** The function that opens files. A parameter, so that tests can simulate disk failures. */
export type OpenFile = typeof open;

/**
 * Message and hint by code. `{dir}` is the directory, `{word}` the same quoted for a shell, and
 * `{detail}` names the user, process or reason.
 */
const TABLE = {
  STATE_LOCKED: [
    'Another peersync ({detail}) uses the state directory {dir}.',
    'It does the work already: `peersync status` tells how it stands. Stop it to start this one, or give this one another state.dir.',
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

/**
 * Why the state cannot be used or saved. `code` says which error, `details.dir` which directory.
 */
export class StateError extends PeersyncError {
  /** @param hint replaces the hint of the table */
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
  return new StateError(code, dir, detail, hint, error);
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
