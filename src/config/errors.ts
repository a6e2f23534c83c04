import { EXIT, PeersyncError } from '../lib/errors.js';

/** Every error of this room, and what to do about it. */
const TABLE = {
  CONFIG_MISSING: 'Run `peersync init` to write one, or name another with --config.',
  CONFIG_UNREADABLE: 'Name a file that this user may read with --config.',
  CONFIG_SYNTAX:
    'Mend the file at that place; `peersync schema` helps an editor to show such errors while you type.',
  CONFIG_INVALID: 'Mend the file; `peersync schema` helps an editor to show such errors while you type.',
  CONFIG_NEEDS_RESTART: 'Nothing changed. Restart peersync with this file, or change the rest of it first.',
  SECRET_MISSING:
    'Provide it, or let peer.auth.password name another place: an environment variable, file or credential.',
  SECRET_UNREADABLE: 'Make it a regular file that holds only the secret and that this user may read.',
  SECRET_EMPTY: 'Put the secret there.',
} as const;

export type ConfigErrorCode = keyof typeof TABLE;

/** The configuration, or a secret that it names, cannot be used. Never holds a secret. */
export class ConfigError extends PeersyncError {
  declare readonly code: ConfigErrorCode;

  constructor(code: ConfigErrorCode, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super({ code, message, hint: TABLE[code], details, exitCode: EXIT.usage });
  }
}
