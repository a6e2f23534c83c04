import { fstatSync } from 'node:fs';
import type { DestinationStream } from 'pino';
import { withConfig } from '../lib/hint.js';
import type { Logger } from '../lib/logger.js';
import { escapeInvisible, escapeUnseen } from '../lib/text.js';

/** From the most verbose to none. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A logger whose level may change. */
export type Log = Logger & { level: string };

export interface LogOptions {
  readonly level: LogLevel;
  /** 1 if the log is the output of the command (`run`), 2 if the command also prints a result. */
  readonly fd: 1 | 2;
  readonly terminal: boolean;
  /** Configuration file that the commands in its lines must name with `-c`. */
  readonly config?: string | undefined;
  /** @default process.env */
  readonly env?: NodeJS.ProcessEnv;
}

/**
 * Creates the log of the daemon. It writes readable lines to a terminal, lines with a priority to a
 * journal, and otherwise one JSON object per line.
 *
 * `PEERSYNC_LOG=pretty`, `journal` or `json` overrides the detected format.
 */
export async function createLog({
  config,
  level,
  fd,
  terminal,
  env = process.env,
}: LogOptions): Promise<Log> {
  // Loaded on demand, because commands without a log start faster without it.
  const { pino, stdTimeFunctions } = await import('pino');
  const asked = env.PEERSYNC_LOG;
  let destination: DestinationStream;
  if (asked === 'pretty' || (terminal && asked !== 'journal' && asked !== 'json')) {
    const { PinoPretty } = await import('pino-pretty');
    destination = PinoPretty({
      destination: fd,
      sync: true,
      colorize: env.NO_COLOR === undefined,
      translateTime: 'HH:MM:ss',
      ignore: 'pid,hostname,event,folder,path,url,evidence,tookMs,items,code,hint,circuit',
      hideObject: true,
      messageFormat: (log, key) => oneLine(String(log[key] ?? '')),
    });
  } else {
    const lines = pino.destination({ dest: fd, sync: true });
    const isForJournal = asked === 'journal' || (asked !== 'json' && isJournal(fd, env));
    const written = isForJournal ? journalLine : jsonLine;
    destination = { write: (line) => lines.write(written(line)) };
  }
  const log: Log = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      hooks: {
        logMethod([fields, message, ...rest], method) {
          method.call(
            this,
            hintCompleted(fields, config),
            withConfig(String(message), config),
            ...rest,
          );
        },
      },
    },
    destination,
  );
  return log;
}

function hintCompleted<T>(fields: T, config: string | undefined): T {
  const { hint } = Object(fields) as { readonly hint?: unknown };
  return typeof hint === 'string' ? { ...fields, hint: withConfig(hint, config) } : fields;
}

/**
 * Whether a file descriptor is connected to the journal. systemd names the socket in the
 * environment; a redirected descriptor is another file.
 */
export function isJournal(fd: number, { JOURNAL_STREAM }: NodeJS.ProcessEnv): boolean {
  if (JOURNAL_STREAM === undefined) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return JOURNAL_STREAM === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

/** Escapes control and invisible characters in a line of JSON. Its values remain the same. */
function jsonLine(line: string): string {
  return `${escapeUnseen(line.trimEnd())}\n`;
}

/** Priorities of syslog by pino's levels. */
const PRIORITIES: Readonly<Record<number, number>> = { 20: 7, 30: 6, 40: 4, 50: 3 };

/**
 * Converts one of pino's JSON lines to a line for the journal: `<6>a sentence`. The number is the
 * priority. The time is omitted, because the journal adds it.
 */
function journalLine(line: string): string {
  const { level, msg, err } = JSON.parse(line) as {
    level: number;
    msg?: string;
    err?: { stack?: string };
  };
  const stack = err?.stack === undefined ? '' : `\n${err.stack}`;
  return `<${PRIORITIES[level] ?? 3}>${oneLine(`${msg ?? ''}${stack}`)}\n`;
}

/**
 * Joins several lines into one, and escapes characters that control a terminal or the direction of
 * the text.
 */
function oneLine(text: string): string {
  return escapeInvisible(text.replace(/\s*[\r\n\u2028\u2029]+\s*/g, ' | ').replaceAll('\t', ' '));
}

/**
 * Formats the message of a failed command for the journal: each line has the priority of errors.
 */
export function asErrorLines(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line) => `<3>${oneLine(line)}\n`).join('');
}
