import type { Logger } from '../../src/lib/logger.js';

/** A log whose lines a test reads, as `warn: message`; those of debug are left out. */
export function loggerTo(logged: string[]): Logger {
  const say = (level: string) => (_: object, message: string) =>
    void logged.push(`${level}: ${message}`);
  return { debug: () => {}, info: say('info'), warn: say('warn'), error: say('error') };
}
