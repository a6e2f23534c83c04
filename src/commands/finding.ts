import { type ExitCode, PeersyncError } from '../lib/errors.js';

/** One thing that was checked. */
export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly message: string;
  readonly hint?: string;
  /** The exit code that this finding alone would lead to. */
  readonly exitCode?: ExitCode;
}

/** The finding that an error is. @throws the error where it is none that a person may read */
export function troubleOf(check: string, error: unknown): Finding {
  if (!(error instanceof PeersyncError)) throw error;
  const { message, hint, exitCode } = error;
  return { check, ok: false, message, hint, exitCode };
}
