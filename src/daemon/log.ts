import { type DestinationStream, pino, stdTimeFunctions } from 'pino';
import type { Logger } from '../lib/logger.js';
import { isJournal, journalLines, type LogLevel, oneLine } from './journal-lines.js';

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
export async function createLog({ level, fd, terminal, env = process.env }: LogOptions): Promise<Log> {
  const forms: Record<LogForm, () => DestinationStream | Promise<DestinationStream>> = {
    pretty: () => prettyLines(fd, env),
    journal: () => journalLines(pino.destination({ dest: fd, sync: true })),
    json: () => pino.destination({ dest: fd, sync: true }),
  };
  const destination = await forms[formOf(fd, terminal, env)]();
  const log: Log = pino({ level, base: null, timestamp: stdTimeFunctions.isoTime }, destination);
  return log;
}

/** Loaded here, for most logs are read by nobody as they are written, and are quicker without it. */
async function prettyLines(
  fd: LogOptions['fd'],
  env: NonNullable<LogOptions['env']>,
): Promise<DestinationStream> {
  const { PinoPretty } = await import('pino-pretty');
  return PinoPretty({
    destination: fd,
    sync: true,
    colorize: env.NO_COLOR === undefined,
    translateTime: 'HH:MM:ss',
    ignore: 'pid,hostname,event,folder,path,url,evidence,tookMs,items,code,hint,circuit',
    hideObject: true,
    messageFormat: (log, key) => oneLine(String(log[key] ?? '')),
  });
}

type LogForm = 'pretty' | 'journal' | 'json';

function formOf(fd: number, terminal: boolean, env: NonNullable<LogOptions['env']>): LogForm {
  const asked = env.PEERSYNC_LOG;
  if (asked === 'pretty' || asked === 'journal' || asked === 'json') return asked;
  if (terminal) return 'pretty';
  return isJournal(fd, env) ? 'journal' : 'json';
}
