import { type DestinationStream, pino, stdTimeFunctions } from 'pino';
import { PinoPretty } from 'pino-pretty';
import type { Logger } from '../lib/logger.js';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * The daemon's log: readable lines on a terminal, one JSON object a line otherwise.
 *
 * @param fd 1 where the log is what the command prints (`run`), 2 where it goes beside a result
 */
export function createLog(options: {
  readonly level: LogLevel;
  readonly fd: 1 | 2;
  readonly terminal: boolean;
}): Logger {
  const destination: DestinationStream = options.terminal
    ? PinoPretty({
        destination: options.fd,
        sync: true,
        colorize: process.env.NO_COLOR === undefined,
        translateTime: 'HH:MM:ss',
        ignore: 'pid,hostname,event,folder,path,url,evidence,tookMs,items,code,hint,circuit',
        hideObject: true,
      })
    : pino.destination({ dest: options.fd, sync: true });
  return pino({ level: options.level, base: null, timestamp: stdTimeFunctions.isoTime }, destination);
}
