import { fstatSync } from 'node:fs';
import type { DestinationStream } from 'pino';

/** The priorities of syslog. */
const PRIORITY = { debug: 7, info: 6, warn: 4, error: 3 } as const;

/** Whether a file descriptor leads to the journal: systemd names the socket, which a redirection would have replaced. */
export function isJournal(
  fd: number,
  { JOURNAL_STREAM }: Readonly<Record<string, string | undefined>>,
): boolean {
  if (JOURNAL_STREAM === undefined) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return JOURNAL_STREAM === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

/** For pino's numbers. */
function priorityOf(level: unknown): number {
  const number = typeof level === 'number' ? level : 0;
  if (number >= 50) return PRIORITY.error;
  if (number >= 40) return PRIORITY.warn;
  return number >= 30 ? PRIORITY.info : PRIORITY.debug;
}

/**
 * Makes `<6>a sentence` of each of pino's JSON lines, as a journal wants it: the priority first, one line an event, and no time,
 * which the journal has.
 */
export function journalLines(to: DestinationStream): DestinationStream {
  return { write: (line) => to.write(journalLine(line)) };
}

function journalLine(line: string): string {
  const { level, msg, err } = JSON.parse(line) as {
    readonly level?: unknown;
    readonly msg?: unknown;
    readonly err?: { readonly stack?: unknown };
  };
  const stack = typeof err?.stack === 'string' ? `\n${err.stack}` : '';
  return asJournalLines(priorityOf(level), `${String(msg ?? '')}${stack}`);
}

/** One line with its priority, whatever the text holds. */
function asJournalLines(priority: number, text: string): string {
  return `<${priority}>${oneLine(text)}\n`;
}

/** Several lines behind one another, with what would act on a terminal, or turn the words around, written out. */
export function oneLine(text: string): string {
  return text
    .replace(/\s*[\r\n\u2028\u2029]+\s*/g, ' | ')
    .replaceAll('\t', ' ')
    .replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** What a command says to a person who reads it in a journal: each line with the priority of errors. */
export function asErrorLines(text: string): string {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => asJournalLines(PRIORITY.error, line))
    .join('');
}

/** From the most words to none. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
