import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { asErrorLines, isJournal } from '../daemon/log.js';
import { type ErrorParts, EXIT, type ExitCode, messageOf, PeersyncError } from '../lib/errors.js';
import { jsonWithConfig, withConfig } from '../lib/hint.js';
import { configToName, type GlobalOptions } from './global-options.js';
import { canDraw, type Line, painted, textOf, wantsColour, withText } from './terminal.js';
import { safe } from './text.js';
import { wrongUsage } from './usage.js';

/** Lines for a person, whose commands name the configuration where that is needed. */
export function completed(options: Pick<GlobalOptions, 'config'>, lines: readonly Line[]): Line[] {
  const config = configToName(options);
  return lines.map((line) => withText(line, withConfig(textOf(line), config)));
}

/** Returns the same error with some parts replaced. */
export function restated(error: PeersyncError, parts: Partial<ErrorParts>): PeersyncError {
  const { code, details, exitCode, hint, message } = error;
  return new PeersyncError({ code, message, hint, details, exitCode, cause: error, ...parts });
}

/** Prints an error on the standard error, and returns the exit code. */
export function reportError(
  error: unknown,
  options: Pick<GlobalOptions, 'config' | 'json'>,
): ExitCode {
  if (error instanceof AggregateError) {
    const codes = error.errors.map((each: unknown) => reportError(each, options));
    return codes[0] ?? EXIT.failure;
  }
  const { code, message, hint, details, exitCode } = asPeersyncError(error);
  const config = configToName(options);
  complain(
    options.json
      ? `${jsonWithConfig({ error: { code, message, hint, ...details } }, config)}\n`
      : safeLines(withConfig(`peersync: ${message}\n  ${hint}\n`, config)),
  );
  if (code === 'BUG' && process.env.PEERSYNC_DEBUG !== undefined && error instanceof Error)
    complain(safeLines(`${error.stack}\n`));
  return exitCode;
}

function asPeersyncError(error: unknown): PeersyncError {
  if (error instanceof PeersyncError) return error;
  if (error instanceof Error && error.name === 'YError') return wrongUsage(error.message);
  const message = `This should not have happened: ${messageOf(error)}`;
  const hint = 'Please report it, with the output of PEERSYNC_DEBUG=1.';
  return new PeersyncError({ code: 'BUG', message, hint });
}

/**
 * Returns text in which nothing acts on a terminal, such as a file name with control characters.
 */
function safeLines(text: string): string {
  return text.split('\n').map(safe).join('\n');
}

/** Writes to the standard error. */
export function complain(text: string): void {
  process.stderr.write(isJournal(2, process.env) ? asErrorLines(text) : text);
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Answers with one JSON object, or with lines for a person. */
export function answer(
  options: GlobalOptions,
  value: unknown,
  lines: () => readonly Line[],
): ExitCode {
  if (options.json) printJson(options, value);
  else for (const line of completed(options, lines())) printLine(line);
  return EXIT.done;
}

/** Prints a line, in its colour if colours are wanted. */
function printLine(line: Line): void {
  const { env, stdout } = process;
  print(canDraw(stdout, env) && wantsColour(env) ? painted(line) : textOf(line));
}

export function printJson(options: Pick<GlobalOptions, 'config'>, value: unknown): void {
  print(jsonWithConfig(value, configToName(options)));
}

/**
 * Writes pieces as fast as the reader takes them, so that memory does not grow with the output. On
 * a terminal, characters that would act on it are shown as escapes.
 */
export async function writeAll(
  out: Writable & { readonly isTTY?: boolean },
  pieces: AsyncIterable<string | Uint8Array>,
): Promise<void> {
  const decoder = new TextDecoder();
  for await (const piece of pieces) {
    const text = () =>
      typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true });
    // Line breaks and tabs stay; the text between them is made safe.
    const shown = () =>
      text()
        .split(/(\r?\n|\t)/)
        .map((part, i) => (i % 2 === 0 ? safe(part) : part))
        .join('');
    if (!out.write(out.isTTY === true ? shown() : piece)) await once(out, 'drain');
  }
}
