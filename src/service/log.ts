import { fstatSync } from 'node:fs';
import { type DestinationStream, pino, stdTimeFunctions } from 'pino';
import { PinoPretty } from 'pino-pretty';
import type { Logger } from '../lib/logger.js';
import { journalLines, oneLine } from './journal-lines.js';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A log whose level may change. */
export type Log = Logger & { level: string };

export interface LogOptions {
  readonly level: LogLevel;
  /** 1 where the log is what the command prints (`run`), 2 where it goes beside a result. */
  readonly fd: 1 | 2;
  readonly terminal: boolean;
  /** @default process.env */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/**
 * The daemon's log: readable lines on a terminal, lines with their priority for a journal, one JSON object a line otherwise.
 *
 * `PEERSYNC_LOG=pretty`, `journal` or `json` overrules what the log seems to go to.
 */
export function createLog({ level, fd, terminal, env = process.env }: LogOptions): Log {
  const forms: Record<LogForm, () => DestinationStream> = {
    pretty: () =>
      PinoPretty({
        destination: fd,
        sync: true,
        colorize: env.NO_COLOR === undefined,
        translateTime: 'HH:MM:ss',
        ignore: 'pid,hostname,event,folder,path,url,evidence,tookMs,items,code,hint,circuit',
        hideObject: true,
        messageFormat: (log, key) => oneLine(String(log[key] ?? '')),
      }),
    journal: () => journalLines(pino.destination({ dest: fd, sync: true })),
    json: () => pino.destination({ dest: fd, sync: true }),
  };
  const destination = forms[formOf(fd, terminal, env)]();
  return pino({ level, base: null, timestamp: stdTimeFunctions.isoTime }, destination);
}

type LogForm = 'pretty' | 'journal' | 'json';

function formOf(fd: number, terminal: boolean, env: NonNullable<LogOptions['env']>): LogForm {
  const asked = env.PEERSYNC_LOG;
  if (asked === 'pretty' || asked === 'journal' || asked === 'json') return asked;
  if (terminal) return 'pretty';
  return isJournal(fd, env) ? 'journal' : 'json';
}

/** Whether a file descriptor leads to the journal: systemd names the socket, which a redirection would have replaced. */
export function isJournal(fd: number, { JOURNAL_STREAM }: NonNullable<LogOptions['env']>): boolean {
  if (JOURNAL_STREAM === undefined) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return JOURNAL_STREAM === `${dev}:${ino}`;
  } catch {
    return false;
  }
}
