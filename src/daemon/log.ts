import { fstatSync } from 'node:fs';
import type { DestinationStream } from 'pino';
import { withConfig } from '../lib/hint.js';
import type { Logger } from '../lib/logger.js';
import { escapeInvisible, escapeUnseen } from '../lib/text.js';

/** From the most words to none. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A log whose level may change. */
export type Log = Logger & { level: string };

export interface LogOptions {
  readonly level: LogLevel;
  /** 1 where the log is what the command prints (`run`), 2 where it goes beside a result. */
  readonly fd: 1 | 2;
  readonly terminal: boolean;
  /** The configuration that commands in its lines have to name. */
  readonly config?: string | undefined;
  /** @default process.env */
  readonly env?: NodeJS.ProcessEnv;
}

/**
 * The daemon's log: readable lines on a terminal, lines with their priority for a journal, one JSON
 * object a line otherwise.
 *
 * `PEERSYNC_LOG=pretty`, `journal` or `json` overrules what the log seems to go to.
 */
export async function createLog({
  config,
  level,
  fd,
  terminal,
  env = process.env,
}: LogOptions): Promise<Log> {
  // Loaded here: the commands that need no log are quicker without it.
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
 * Whether a file descriptor leads to the journal: systemd names the socket, which a redirection
 * would have replaced.
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

/**
 * Writes what would act on a terminal, or would not be seen, as escapes of JSON: the values are the
 * same.
 */
function jsonLine(line: string): string {
  return `${escapeUnseen(line.trimEnd())}\n`;
}

/** The priorities of syslog, for pino's levels. */
const PRIORITIES: Readonly<Record<number, number>> = { 20: 7, 30: 6, 40: 4, 50: 3 };

/**
 * Makes `<6>a sentence` of one of pino's JSON lines, as a journal wants it: the priority first, one
 * line an event, and no time, which the journal has.
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
 * Several lines behind one another, with what would act on a terminal, or turn the words around,
 * written out.
 */
function oneLine(text: string): string {
  return escapeInvisible(text.replace(/\s*[\r\n\u2028\u2029]+\s*/g, ' | ').replaceAll('\t', ' '));
}

/**
 * What a command says to a person who reads it in a journal: each line with the priority of errors.
 */
export function asErrorLines(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line) => `<3>${oneLine(line)}\n`).join('');
}
