import { type ErrorParts, EXIT, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { describeHolder, type Holder, isHere } from '../lib/lock.js';
import { shellWord } from '../lib/text.js';

/** What can keep an embedded peer from starting, or end it. */
export class EmbeddedError extends PeersyncError {}

/** One entry an error; every text that a person may read of this room's failures stands here. */
export const failures = {
  portInUse: (port: number): ErrorParts => ({
    code: 'EMBEDDED_PORT_IN_USE',
    message: `The embedded peer cannot listen on 127.0.0.1:${port}: another program uses this port.`,
    hint: 'Stop that program, or set another port in peer.embedded.port (0 takes any free one).',
    details: { port },
  }),
  portRefused: (port: number, why: string): ErrorParts => ({
    code: 'EMBEDDED_PORT_REFUSED',
    message: `The embedded peer cannot listen on 127.0.0.1:${port}: ${why}.`,
    hint: 'Set a port above 1023 in peer.embedded.port (0 takes any free one).',
    details: { port },
    exitCode: EXIT.usage,
  }),
  directoryUnwritable: (dir: string, cause: unknown): ErrorParts => ({
    code: 'EMBEDDED_DIR_UNWRITABLE',
    message: `The embedded peer cannot write to its directory ${dir}: ${systemCode(cause) ?? messageOf(cause)}.`,
    hint: 'Give the user that runs peersync write access to it, free space on its disk, or name another directory.',
    details: { dir },
  }),
  directoryOpenToOthers: (dir: string, mode: number): ErrorParts => ({
    code: 'EMBEDDED_DIR_OPEN_TO_OTHERS',
    message:
      `Other users may write in the embedded peer's directory ${dir} (mode ${(mode & 0o7777).toString(8)}): ` +
      'they could replace its password and its documents.',
    hint: `Take that right from them (\`chmod go-w ${shellWord(dir)}\`), or name a directory below it, which is then made.`,
    details: { dir },
  }),
  directoryOfAnotherUser: (dir: string, uid: number): ErrorParts => ({
    code: 'EMBEDDED_DIR_OF_ANOTHER_USER',
    message: `The embedded peer's directory ${dir} belongs to another user (uid ${uid}), who could replace its password.`,
    hint:
      `Type \`sudo -u '#${uid}' peersync …\`, or take the directory over: ` +
      `\`chown -R ${process.geteuid?.() ?? 0} ${shellWord(dir)}\`.`,
    details: { dir, uid },
  }),
  directoryLocked: (dir: string, holder: Holder): ErrorParts =>
    isHere(holder)
      ? {
          code: 'EMBEDDED_DIR_LOCKED',
          message: `Another embedded peer (${describeHolder(holder)}) uses the directory ${dir}.`,
          hint: 'Stop it, or name another directory.',
          details: { dir, pid: holder.pid },
        }
      : {
          code: 'EMBEDDED_DIR_LOCKED_ELSEWHERE',
          message: `An embedded peer on another machine or in another container (${describeHolder(holder)}) uses the directory ${dir}.`,
          hint: 'Stop it there, or name another directory. One that was killed there is waited for, a minute at the most.',
          details: { dir, pid: holder.pid, host: holder.host },
        },
  databaseDamaged: (path: string, cause: unknown): ErrorParts => ({
    code: 'EMBEDDED_DIR_DAMAGED',
    message: `The embedded peer's database ${path} cannot be read: ${messageOf(cause)}.`,
    hint: 'Restore it from a backup, or move it away: the peer makes an empty one, and `peersync verify --all --repair` pushes the files of your folders again.',
    details: { path },
  }),
  databaseNewer: (path: string, found: number, known: number): ErrorParts => ({
    code: 'EMBEDDED_DIR_NEWER',
    message: `The embedded peer's database ${path} has format ${found}; this peersync knows up to ${known}.`,
    hint: 'Run the newer peersync that wrote it, or name another directory.',
    details: { path, found, known },
  }),
  databaseOlder: (path: string, found: number, known: number): ErrorParts => ({
    code: 'EMBEDDED_DIR_OLDER',
    message: `The embedded peer's database ${path} has format ${found}, which an earlier peersync wrote. This one reads format ${known} only.`,
    hint:
      `Move it away (\`mv ${shellWord(path)} ${shellWord(`${path}.old`)}\`) and start peersync again: \`peersync verify --all --repair\` ` +
      'then pushes the files of your folders again. Shared objects are kept. Tables, and documents ' +
      'that no folder has, are in the old file alone: save what you need of them with the earlier peersync before.',
    details: { path, found, known },
  }),
  passwordUnusable: (path: string, why: string): ErrorParts => ({
    code: 'EMBEDDED_PASSWORD_UNUSABLE',
    message: `The administrator's password in ${path} cannot be used: ${why}.`,
    hint: 'Write one line of at least 8 characters into it, or remove it: a new one is made at the next start.',
    details: { path },
  }),
  stopped: (why: string): ErrorParts => ({
    code: 'EMBEDDED_STOPPED',
    message: `The embedded peer stopped unexpectedly: ${why}.`,
    hint: 'Start peersync again: what the peer had accepted is kept.',
  }),
} as const;
