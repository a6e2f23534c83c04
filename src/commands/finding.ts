import { type ExitCode, PeersyncError } from '../lib/errors.js';

/** The result of one check. */
export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly message: string;
  readonly hint?: string;
  /** The exit code that this finding alone would lead to. */
  readonly exitCode?: ExitCode;
}

/** The fault that a check found, with a remedy. */
export class Wrong extends PeersyncError {
  constructor(message: string, hint: string) {
    super({ code: 'CHECK', message, hint });
  }
}

/** A result that is right and could be better. */
type Warning = Required<Pick<Finding, 'message' | 'hint'>>;

/** Returns the result of a check: its success, or the error that it throws. */
export async function find(
  check: string,
  look: () => Promise<string | Warning> | string | Warning,
): Promise<Finding> {
  try {
    const found = await look();
    return { check, ok: true, ...(typeof found === 'string' ? { message: found } : found) };
  } catch (error) {
    if (!(error instanceof PeersyncError)) throw error;
    const { message, hint, exitCode } = error;
    return { check, ok: false, message, hint, ...(!(error instanceof Wrong) && { exitCode }) };
  }
}
