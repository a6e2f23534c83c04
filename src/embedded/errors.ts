import { type ErrorTable, EXIT, messageOf, systemCode, tableError } from '../lib/errors.js';
import { describeHolder, type Holder, isHere } from '../lib/lock.js';

const ERRORS = {
  EMBEDDED_PORT_IN_USE: {
    message: 'The embedded peer cannot listen on 127.0.0.1:{port}: another program uses this port.',
    hint: 'Stop that program, or set another port in peer.embedded.port (0 takes any free one).',
  },
  EMBEDDED_PORT_REFUSED: {
    message: 'The embedded peer cannot listen on 127.0.0.1:{port}: {why}.',
    hint: 'Set a port above 1023 in peer.embedded.port (0 takes any free one).',
    exitCode: EXIT.usage,
  },
  EMBEDDED_DIR_UNWRITABLE: {
    message: 'The embedded peer cannot write to its directory {dir}: {why}.',
    hint: 'Give the user that runs peersync write access to it, free space on its disk, or name another directory.',
  },
  EMBEDDED_DIR_OPEN_TO_OTHERS: {
    message:
      "Other users may write in the embedded peer's directory {dir} (mode {mode}). They could replace its password and its documents.",
    hint: 'Take that right from them (`chmod go-w {dir|shell}`), or name a directory below it, which is then made.',
  },
  EMBEDDED_DIR_OF_ANOTHER_USER: {
    message:
      "The embedded peer's directory {dir} belongs to another user (uid {uid}), who could replace its password.",
    hint: "Type `sudo -u '#{uid}' peersync …`, or take the directory over: `chown -R {user} {dir|shell}`.",
  },
  EMBEDDED_DIR_LOCKED: {
    message: 'Another embedded peer ({holder}) uses the directory {dir}.',
    hint: 'Stop it, or name another directory.',
  },
  EMBEDDED_DIR_LOCKED_ELSEWHERE: {
    message:
      'An embedded peer on another machine or in another container ({holder}) uses the directory {dir}.',
    hint: 'Stop it there, or name another directory. If it was killed there, this one waits for a minute at most.',
  },
  EMBEDDED_DIR_DAMAGED: {
    message: "The embedded peer's database {path} cannot be read: {why}.",
    hint: 'Restore a backup (`peersync peer restore FILE`), or move it away: the peer makes an empty one, and the daemon pushes the files of your folders again.',
  },
  EMBEDDED_DIR_NEWER: {
    message:
      "The embedded peer's database {path} has format {found}. This peersync reads format {known}.",
    hint: 'Run the newer peersync that wrote it, or name another directory.',
  },
  EMBEDDED_DIR_OLDER: {
    message:
      "The embedded peer's database {path} has format {found}, which an earlier peersync wrote. This one reads formats {oldest} to {known}.",
    hint: 'Move it away (`mv {path|shell} {old|shell}`) and start peersync again: it then pushes the files of your folders again. Shared objects are kept. Tables, and documents that no folder has, are in the old file alone: save what you need of them with the earlier peersync before.',
  },
  EMBEDDED_PASSWORD_UNUSABLE: {
    message: "The administrator's password in {path} cannot be used: {why}.",
    hint: 'Write one line of at least 8 characters into it, or remove it: a new one is made at the next start.',
  },
  EMBEDDED_STOPPED: {
    message: 'The embedded peer stopped unexpectedly: {why}.',
    hint: 'Start peersync again. Everything that the peer accepted is kept.',
  },
} as const satisfies ErrorTable;

/** Thrown when an embedded peer cannot start, and returned when it ends by itself. */
export class EmbeddedError extends tableError(ERRORS) {}

export function directoryUnwritable(dir: string, cause: unknown): EmbeddedError {
  const why = systemCode(cause) ?? messageOf(cause);
  return new EmbeddedError('EMBEDDED_DIR_UNWRITABLE', { dir, why }, { cause, details: { dir } });
}

export function directoryLocked(dir: string, holder: Holder): EmbeddedError {
  const values = { dir, holder: describeHolder(holder) };
  const { host, pid } = holder;
  return isHere(holder)
    ? new EmbeddedError('EMBEDDED_DIR_LOCKED', values, { details: { dir, pid } })
    : new EmbeddedError('EMBEDDED_DIR_LOCKED_ELSEWHERE', values, { details: { dir, pid, host } });
}
