import { type ErrorTable, messageOf, systemCode, tableError } from '../lib/errors.js';

const ERRORS = {
  BACKUP_EXISTS: {
    message: 'There is a file {file} already; nothing was written.',
    hint: 'Name another file, or give --force to replace this one.',
  },
  BACKUP_INSIDE: {
    message: '{file} is in the directory of the peer itself, {dir}; nothing was written.',
    hint: 'Name a file elsewhere, best on another disk.',
  },
  BACKUP_UNWRITABLE: {
    message: 'The backup cannot be written to {file}: {why}.',
    hint: 'Name a file in a directory that you can write, on a disk with enough space.',
  },
  BACKUP_NO_SPACE: {
    message: 'Too little space in {dir}: {needed} are needed, and {free} are free.',
    hint: 'Free some space there. Nothing was changed.',
  },
  BACKUP_PEER_MISSING: {
    message: 'There is no embedded peer in {dir}: it has no peer.sqlite.',
    hint: 'Name the directory of the peer with --data, or the configuration with -c.',
  },
  BACKUP_PEER_UNREADABLE: {
    message: '{path} of the peer cannot be read: {why}.',
    hint: 'Run the command as the user that runs the peer (`sudo -u peersync peersync …` for the service). If that user cannot read it either, check the disk.',
  },
  BACKUP_PEER_OLDER: {
    message:
      'The database {path} has format {found}, and this peersync copies and checks format {known}. It was not changed.',
    hint: 'Start the peer with this peersync once, which takes the database over; or use the earlier peersync.',
  },
  BACKUP_NO_TEMPORARY: {
    message: 'The check needs a small temporary directory in {dir}: {why}.',
    hint: 'Name another directory for temporary files in TMPDIR.',
  },
  BACKUP_PEER_UNREACHABLE: {
    message: 'The peer in {dir} is running, and cannot be asked for a backup: {why}.',
    hint: 'Run the command as the user that runs the peer, or stop the peer before.',
  },
  BACKUP_REFUSED: {
    message: 'The running peer refuses the backup: {why}',
    hint: 'Run the command again later, or stop the peer before.',
  },
  BACKUP_INTERRUPTED: {
    message: 'The peer did not stay available while it was copied ({why}); no backup was written.',
    hint: 'Run the command again.',
  },
  BACKUP_SHARE_CHANGES: {
    message: 'The shared object {path} cannot be copied whole: {why}; no backup was written.',
    hint: 'Run the command again when no program writes to this file.',
  },
  BACKUP_UNREADABLE: {
    message: 'The backup {file} cannot be read: {why}.',
    hint: 'Name a file that `peersync peer backup FILE` wrote, and that you can read. If it is one, check its disk. Nothing was changed.',
  },
  BACKUP_UNKNOWN: {
    message: '{file} is no backup of an embedded peer, or its end is missing.',
    hint: 'Name a complete file that `peersync peer backup FILE` wrote. Nothing was changed.',
  },
  BACKUP_NEWER: {
    message: 'The backup {file} has format {found}. This peersync reads format {known}.',
    hint: 'Use the newer peersync that wrote it. Nothing was changed.',
  },
  BACKUP_OLDER: {
    message:
      'The backup {file} is of an earlier peersync: its database has format {found}, and this one reads format {known}.',
    hint: 'Restore it with the earlier peersync. Nothing was changed.',
  },
  BACKUP_DAMAGED: {
    message: 'The backup {file} is damaged: {why}.',
    hint: 'Use another backup. Nothing was changed.',
  },
  BACKUP_DIFFERS: {
    message: 'The copy of the peer is not consistent, and was not kept: {why}',
    hint: '`peersync peer check` of the stopped peer shows whether the peer itself is damaged. To keep such a copy all the same, give --no-check.',
  },
  BACKUP_INCONSISTENT: {
    message: 'The backup {file} is complete, but its index and documents differ: {why}',
    hint: 'Use another backup, or give --no-check to restore it as it is. Nothing was changed.',
  },
  RESTORE_KEPT: {
    message: '{kept} holds what an earlier restore replaced; nothing was changed.',
    hint: 'Move it away if you still need it, or give --discard to delete it.',
  },
  RESTORE_SHARES_ELSEWHERE: {
    message: '{shares} cannot be renamed ({why}), because it is a mount, or {trial} is in the way.',
    hint: 'Unmount it, and mount it again after the restore. Nothing was changed.',
  },
  RESTORE_UNFINISHED: {
    message: 'A restore in {dir} is decided and not finished: {why}.',
    hint: 'The next start of the peer completes it.',
  },
} as const satisfies ErrorTable;

/** Thrown by backup, restore and check of an embedded peer. */
export class BackupError extends tableError(ERRORS) {}

/** Returns the error of a backup that cannot be written. An error that says more stays. */
export function unwritable(file: string, cause: unknown): BackupError {
  if (cause instanceof BackupError) return cause;
  return new BackupError('BACKUP_UNWRITABLE', { file, why: reason(cause) }, { cause });
}

/** Returns the error of a file of the peer that cannot be read. An error that says more stays. */
export function peerUnreadable(path: string, cause: unknown): BackupError {
  if (cause instanceof BackupError) return cause;
  return new BackupError('BACKUP_PEER_UNREADABLE', { path, why: reason(cause) }, { cause });
}

/** Returns the error of a backup that cannot be read. */
export function unreadable(file: string, cause: unknown): BackupError {
  return new BackupError('BACKUP_UNREADABLE', { file, why: reason(cause) }, { cause });
}

/** Returns why something failed, as the end of a sentence. */
export function reason(cause: unknown): string {
  return systemCode(cause) ?? messageOf(cause);
}
