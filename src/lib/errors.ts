import { shellWord } from './text.js';

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

/**
 * The texts of one error. `{name}` in message and hint stands for a value, `{name|shell}` for the
 * value as one word of a shell.
 */
export interface ErrorEntry {
  /** One sentence: what happened. */
  readonly message: string;
  /** The next step for the reader. */
  readonly hint: string;
  /** The exit code of a command that ends with this error. @default EXIT.failure */
  readonly exitCode?: ExitCode;
  /** The status of an answer over HTTP. Only servers use it. */
  readonly status?: number;
}

/** The errors of one part of the program, by code. */
export type ErrorTable = Readonly<Record<string, ErrorEntry>>;

type Placeholders<T extends string> = T extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholders<Rest>
  : never;
type ValueName<P extends string> = Exclude<P extends `${infer Name}|shell` ? Name : P, ''>;

/** The values for the placeholders of one error. */
export type ErrorValues<E extends ErrorEntry> = Readonly<
  Record<ValueName<Placeholders<E['message'] | E['hint']>>, string | number>
>;

export interface ErrorContext {
  readonly cause?: unknown;
  /** Replaces the hint of the table. */
  readonly hint?: string | undefined;
  /** Replaces the exit code of the table. */
  readonly exitCode?: ExitCode;
  /** Fields for logs and `--json`. @default the values */
  readonly details?: Readonly<Record<string, unknown>>;
}

type Code<T extends ErrorTable> = keyof T & string;

type ErrorArguments<T extends ErrorTable> = {
  [C in Code<T>]: [code: C, values: ErrorValues<T[C]>, context?: ErrorContext];
}[Code<T>];

/** An error of one table. */
export interface TableError<T extends ErrorTable> extends PeersyncError {
  readonly code: Code<T>;
  /** The status of an answer over HTTP, if the table has one. */
  readonly status: number | undefined;
}

/** The base class for the errors of one table. */
export interface TableErrorClass<T extends ErrorTable> {
  new (...args: ErrorArguments<T>): TableError<T>;
  /** For a code that is not known when the program is compiled: takes the values of all codes. */
  new (code: Code<T>, values: ErrorValues<T[Code<T>]>, context?: ErrorContext): TableError<T>;
}

/** Fills message and hint of one entry with values. */
function errorTexts(
  { hint, message }: ErrorEntry,
  values: Readonly<Record<string, string | number>>,
): { readonly message: string; readonly hint: string } {
  const filled = (text: string): string =>
    text
      .replace(/\{(\w+)(\|shell)?\}/g, (source, name: string, quoted?: string) => {
        const value = values[name];
        if (value === undefined) return source;
        return quoted === undefined ? String(value) : shellWord(String(value));
      })
      .trim();
  return { message: filled(message), hint: filled(hint) };
}

/**
 * Returns the base class for the errors of one table. The constructor takes the code and the values
 * for its placeholders, which the compiler checks:
 *
 *     const ERRORS = {
 *       STATE_FULL: { message: 'The disk of {dir} is full.', hint: 'Free some space there.' },
 *     } as const satisfies ErrorTable;
 *     export class StateError extends tableError(ERRORS) {}
 *     throw new StateError('STATE_FULL', { dir });
 */
export function tableError<const T extends ErrorTable>(table: T): TableErrorClass<T> {
  return class extends PeersyncError implements TableError<T> {
    declare readonly code: Code<T>;
    readonly status: number | undefined;

    constructor(code: Code<T>, values: ErrorValues<T[Code<T>]>, context: ErrorContext = {}) {
      const entry: ErrorEntry | undefined = table[code];
      if (entry === undefined) throw new TypeError(`the table of errors has no ${code}`);
      const { cause, details = values, exitCode, hint } = context;
      const texts = errorTexts(entry, values);
      super({
        code,
        message: texts.message,
        hint: hint ?? texts.hint,
        exitCode: exitCode ?? entry.exitCode ?? EXIT.failure,
        details,
        cause,
      });
      this.status = entry.status;
    }
  };
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

/** The error of a question that is wrong and has to be changed. */
export function badRequest(code: string, message: string, hint: string): PeersyncError {
  return new PeersyncError({ code, message, hint, exitCode: EXIT.usage });
}
