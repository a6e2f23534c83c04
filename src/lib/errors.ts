/** Exit codes of the command line. */
export const EXIT = {
  done: 0,
  failure: 1,
  usage: 2,
  quarantined: 3,
  unreachable: 4,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export interface ErrorParts {
  /** A stable code: `STATE_LOCKED`. Callers test it, and never the text. */
  readonly code: string;
  /** One sentence: what happened, with the value that was received. */
  readonly message: string;
  /** One sentence: what to do. */
  readonly hint: string;
  /** Structured fields for logs and `--json`. They never contain a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly exitCode?: ExitCode;
  readonly cause?: unknown;
}

/** An error that a person may read: what happened, what to do, and a stable code. */
export class PeersyncError extends Error {
  readonly code: string;
  readonly hint: string;
  readonly exitCode: ExitCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(parts: ErrorParts) {
    super(parts.message, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.name = new.target.name;
    this.code = parts.code;
    this.hint = parts.hint;
    this.exitCode = parts.exitCode ?? EXIT.failure;
    this.details = parts.details ?? {};
  }
}

/** Returns the `code` of a system error (`ENOENT`, `ENOSPC`); undefined for other errors. */
export function systemCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Returns the text of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
