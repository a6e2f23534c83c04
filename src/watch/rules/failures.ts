import type { FolderConfig } from '../../config/config.js';
import type { FileStat } from '../../lib/file.js';
import { escapeInvisible, quoted, shellWord } from '../../lib/text.js';
import { formatBytes } from '../../lib/units.js';
import { EXCLUDED, type Failure } from '../../state/entry.js';

/** The code of a file that is kept out as a private key. */
export const PRIVATE_KEY = 'PRIVATE_KEY';
/** The code of a file whose document belongs to another file. */
export const SAME_DOCUMENT = 'SAME_DOCUMENT';

const CONTINUES =
  'A running daemon sees that within seconds and continues; without one, run `peersync once`.';

/**
 * The codes of files whose names are not shown to everyone who may search: a rule or a secret keeps
 * them out, or nobody could look whether they are secrets.
 */
export const UNNAMED: ReadonlySet<string> = new Set([
  EXCLUDED,
  PRIVATE_KEY,
  'UNREADABLE',
  'DIRECTORY_UNREADABLE',
  'LINK_UNREADABLE',
]);

/** Every reason that watching has for not taking a file, a directory or a folder. */
export const failures = {
  empty: () => ({
    code: 'EMPTY',
    message: 'The file is empty.',
    hint: 'It is taken as soon as it has content.',
  }),
  excluded: (folder: string) => ({
    code: EXCLUDED,
    message: 'A rule keeps the file out. The peer keeps the document that it already has.',
    hint: `\`peersync forget ${shellWord(folder)} --remove\` removes such documents from the peer.`,
  }),
  privateKey: (folder: string) => ({
    code: PRIVATE_KEY,
    message:
      'The file holds a private key. It is kept out because a peer may publish its documents.',
    hint: `Move it out of the folder. If it is meant to be found, set "ignoreDefaults": false for the folder ${quoted(folder)}.`,
  }),
  tooLarge: (size: number, limit: number) => ({
    code: 'TOO_LARGE',
    message: `The file has ${formatBytes(size)}; the limit of its folder is ${formatBytes(limit)}.`,
    hint: 'Raise `maxFileSize` of the folder if the peer takes such large documents.',
  }),
  unreadable: (code: string) => ({
    code: 'UNREADABLE',
    message: `The file cannot be read (${code}).`,
    hint:
      code === 'EACCES' || code === 'EPERM'
        ? 'Give the user that peersync runs as the right to read it.'
        : 'See the system log: the disk or the network mount may be failing.',
  }),
  sameDocument: (other: string) => ({
    code: SAME_DOCUMENT,
    message: `Its document is already that of ${escapeInvisible(other)}, a name that only differs in its Unicode form.`,
    hint: 'Rename or remove one of the two; both have the same URL.',
  }),
  directoryUnreadable: (code: string) => ({
    code: 'DIRECTORY_UNREADABLE',
    message: `The directory cannot be listed (${code}), so its content is unknown.`,
    hint: 'Give the user that peersync runs as the right to read and enter it.',
  }),
  linkUnreadable: (code: string) => ({
    code: 'LINK_UNREADABLE',
    message: `The symbolic link cannot be followed (${code}), so its target is unknown.`,
    hint: 'Give the user that peersync runs as the right to enter the directories on the way, or remove the link.',
  }),
  pathTooLong: () => ({
    code: 'PATH_TOO_LONG',
    message: 'The path is longer than the system allows and cannot be read.',
    hint: 'Move it up some levels, or watch a directory further down as a folder of its own.',
  }),
  nameNotUtf8: () => ({
    code: 'NAME_NOT_UTF8',
    message: 'The name is not valid UTF-8 and has no URL.',
    hint: 'Rename it, for instance with convmv; `ls -b` shows its bytes.',
  }),
  rulesUnreadable: (reason: string) => ({
    code: 'RULES_UNREADABLE',
    message: `The rules cannot be read (${reason}), so everything below their directory is excluded.`,
    hint: 'Make the file readable, or remove it.',
  }),
  /**
   * @param wasSeen whether the folder was there before. If it was, the hint does not suggest to
   *   create it: an empty directory would hide that something is not mounted.
   */
  rootMissing: (path: string, code: string, wasSeen: boolean) => ({
    code: 'FOLDER_MISSING',
    message: `The folder ${escapeInvisible(path)} is not there or cannot be read (${code}); nothing counts as removed because of that.`,
    hint: `${wasSeen ? 'Mount it or bring it back' : 'Mount or create it'}. ${CONTINUES}`,
  }),
  mountAway: (path: string, folder: string) => ({
    code: 'MOUNT_AWAY',
    message: `The file system that was mounted on ${escapeInvisible(path)} is not there. Nothing in the directory is taken, and nothing that was on it counts as removed.`,
    hint: `Mount it. ${CONTINUES} If it is gone for good, put any file into the directory and run \`peersync rescan ${shellWord(folder)}\`.`,
  }),
  rootReplaced: (path: string, name: string) => ({
    code: 'FOLDER_REPLACED',
    message: `The folder ${escapeInvisible(path)} is not the one it was (empty, or on another file system): is something not mounted? Nothing in it is taken, and nothing counts as removed.`,
    hint: `Mount what belongs there. ${CONTINUES} If the change is meant, \`peersync rescan ${shellWord(name)}\` accepts the directory as the folder; an empty one needs a file in it first.`,
  }),
  /** @param change how the root differs from before, as the predicate of a sentence */
  rootElsewhere: (path: string, change: string, name: string) => ({
    code: 'FOLDER_REPLACED',
    message: `The folder ${path} ${change}. Nothing in it is taken, and nothing counts as removed.`,
    hint: `If the change is meant, \`peersync rescan ${shellWord(name)}\` accepts the directory as the folder. Otherwise restore what was there; peersync then continues by itself.`,
  }),
  watchLate: () => ({
    code: 'WATCH_LATE',
    message:
      'The watch on this directory did not open in time; the directory was listed and watched again.',
    hint: 'Nothing is lost. If this repeats, check the disk (`dmesg`).',
  }),
  watchLimit: (code: string) => ({
    code: 'WATCH_LIMIT',
    message: `The system's limit of watched directories is reached (${code}): changes are found by rescans only, some minutes late.`,
    hint: 'Raise it: `sysctl fs.inotify.max_user_watches=1048576 fs.inotify.max_user_instances=1024` (and in /etc/sysctl.d to keep it).',
  }),
} satisfies Record<string, (...values: never[]) => Failure>;

/**
 * Returns why a folder skips a file with this stat; undefined if it does not. The answer must
 * depend on the stat and the configuration alone: a directory that did not change since the last
 * scan is not compared again (`Scanner.#visit`), so a rule that depends on the time of day would
 * not be applied anew. The reconciler asks this before it reads the file.
 */
export function failureOfStat(
  { size }: FileStat,
  { maxFileSize }: FolderConfig,
): Failure | undefined {
  if (size === 0) return failures.empty();
  return size > maxFileSize ? failures.tooLarge(size, maxFileSize) : undefined;
}
